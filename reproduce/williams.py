"""Williams' test of two correlations that share the human scores.

E. J. Williams, "Regression Analysis", 1959; for metrics: Graham and Baldwin, "Testing for
Significance of Increased Correlation with Human Judgment", EMNLP 2014, equation 1.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from bertscore_onnx.errors import InputError

MIN_SYSTEMS = 4
"""Of Williams' test, which has n − 3 degrees of freedom."""


@dataclass(frozen=True, slots=True)
class Williams:
    """Whether one metric correlates better with human scores than another."""

    t: float | None
    """The statistic: above 0 where the first metric correlates better. None where there is no
    value.
    """
    p: float | None
    """One-sided: the chance of such a t or a larger one, if the two correlated equally well."""
    n: int
    """Systems that the correlations were computed from."""
    reason: str = ""
    """Why there is no value; empty where there is one."""


def williams(r12: float, r13: float, r23: float, n: int) -> Williams:
    """Test whether r12 is larger than r13.

    K = 1 − r12² − r13² − r23² + 2·r12·r13·r23 and t = (r12 − r13)·√((n−1)(1+r23)) / √(2K(n−1)/(n−3)
    + ((r12+r13)/2)²(1−r23)³), with n − 3 degrees of freedom.

    Args:
        r12: Pearson's r of human scores and the first metric, with its sign.
        r13: of human scores and the second.
        r23: of the two metrics.
        n: how many systems each was computed from, at least 4.

    Raises:
        InputError: a correlation is not within [-1, 1], the three cannot come from the same
            systems, or n < 4.
    """
    if n < MIN_SYSTEMS:
        raise InputError(
            f"Williams' test of {n} systems; expected at least {MIN_SYSTEMS}, since it has n - 3 "
            "degrees of freedom."
        )
    correlations = {"r12": r12, "r13": r13, "r23": r23}
    for name, value in correlations.items():
        if not -1 <= value <= 1:
            raise InputError(f"{name} is {value}; expected a correlation within [-1, 1].")
    k = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    if k < -1e-9:
        raise InputError(
            f"No three rows of scores correlate as {correlations}. Compute them from the same "
            "systems."
        )
    variance = 2 * max(k, 0.0) * (n - 1) / (n - 3) + ((r12 + r13) / 2) ** 2 * (1 - r23) ** 3
    if variance <= 1e-15:
        return Williams(
            None, None, n, reason="the metrics correlate perfectly, and leave nothing to test"
        )
    t = float((r12 - r13) * np.sqrt((n - 1) * (1 + r23)) / np.sqrt(variance))
    return Williams(t, float(stats.t.sf(t, n - 3)), n)
