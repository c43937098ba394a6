import numpy as np
import pytest
from scipy import stats

from bertscore_onnx.errors import InputError
from reproduce.williams import williams


def test_williams_is_the_equation():
    r12, r13, r23, n = 0.9, 0.7, 0.6, 12
    k = np.linalg.det([[1, r12, r13], [r12, 1, r23], [r13, r23, 1]])
    t = (r12 - r13) * (
        (n - 1) * (1 + r23) / (2 * k * (n - 1) / (n - 3) + (r12 + r13) ** 2 / 4 * (1 - r23) ** 3)
    ) ** 0.5
    result = williams(r12, r13, r23, n)
    assert (result.t, result.p) == pytest.approx((t, 1 - stats.t.cdf(t, 9)))


def test_williams_of_five_systems():
    assert round(williams(0.999, 0.987, 0.9795, 5).p, 3) == 0.019


def test_the_other_direction_has_the_other_p():
    one, other = williams(0.8, 0.6, 0.5, 20), williams(0.6, 0.8, 0.5, 20)
    assert (one.t, one.p) == pytest.approx((-other.t, 1 - other.p))


def test_equal_metrics_have_no_value():
    result = williams(0.9, 0.9, 1.0, 10)
    assert (result.t, result.p) == (None, None)
    assert "correlate perfectly" in result.reason


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0.9, 0.8, 0.7, 3), "of 3 systems; expected at least 4"),
        ((1.1, 0.8, 0.7, 9), "r12 is 1.1; expected a correlation"),
        ((0.9, float("nan"), 0.7, 9), "r13 is nan"),
        ((0.99, -0.99, 0.99, 9), "No three rows of scores correlate as"),
    ],
)
def test_correlations_for_williams_are_checked(arguments, message):
    with pytest.raises(InputError, match=message):
        williams(*arguments)
