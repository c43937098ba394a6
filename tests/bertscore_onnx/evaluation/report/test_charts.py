"""The drawings that pages share, and their scale."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bertscore_onnx.evaluation.report.charts import Scale, scale_over


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0, 1, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (0.8151, 0.8894, ["0.82", "0.84", "0.86", "0.88"]),
        (-13, 118, ["0", "20", "40", "60", "80", "100"]),
        (-13, 130, ["0", "50", "100"]),
        (-0.0007, 0.0012, ["−0.0005", "0.0000", "0.0005", "0.0010"]),
        (1000, 250000, ["50000", "100000", "150000", "200000", "250000"]),
    ],
)
def test_ticks_are_round_numbers(low, high, texts):
    assert [text for _, text in Scale(low, high).ticks()] == texts


@example([0.05], 3)  # 9 * 0.005 is less than 0.05 - 0.005
@given(st.lists(st.floats(-1e3, 1e3, allow_subnormal=False), min_size=1, max_size=5), st.integers(2, 8))
def test_all_numbers_have_a_place_and_ticks_are_few(values, most):
    scale = scale_over(values)
    assert all(0 < scale.share(value) < 1 for value in values)
    np.testing.assert_allclose(scale.shares(np.array(values)), [scale.share(value) for value in values])
    ticks = scale.ticks(most)
    assert 1 <= len(ticks) <= most
    assert all(scale.low <= value <= scale.high for value, _ in ticks)
