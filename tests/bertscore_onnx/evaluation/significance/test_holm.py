"""Holm's correction: the values of R's p.adjust, and what holds for all."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.significance import holm


@pytest.mark.parametrize(
    ("p", "adjusted"),
    [
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.02, 0.02, 0.02], [0.06, 0.06, 0.06]),
        ([0.9, 0.7], [1, 1]),
        ([0.3], [0.3]),
        ([], []),
    ],
)
def test_values(p, adjusted):
    np.testing.assert_allclose(holm(p), adjusted, rtol=1e-12)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_it_keeps_the_order_and_is_between_p_and_bonferroni(p):
    values, adjusted = np.array(p), holm(p)
    assert (adjusted >= values).all()
    assert (adjusted <= np.minimum(values * len(p), 1)).all()
    assert (np.diff(adjusted[np.argsort(values)]) >= 0).all()


@pytest.mark.parametrize("p", [[0.1, 1.2], [-0.1], [float("nan")], [[0.1]]])
def test_what_is_no_row_of_p_values_is_refused(p):
    with pytest.raises(InputError, match="from 0 to 1"):
        holm(p)
