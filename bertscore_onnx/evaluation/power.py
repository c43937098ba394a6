"""Intervals and power for few units: how wide intervals are, which differences a test finds, and with how many units.

Units are segments or documents. Everything here uses one approximation of Student's t.
"""

from bisect import bisect_left
from math import copysign, expm1, sqrt
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

NORMAL = NormalDist()

SIGNIFICANT = 0.05
"""A p below it is significant, two-sided."""

POWER = 0.8
"""The share of tests in which a detectable difference is found."""

MIN_TESTED_UNITS = 6
"""With fewer units no p of a permutation test is below `SIGNIFICANT`: 2 / 2⁵ is above it."""

MAX_UNITS = 1 << 53
"""The search for the number of units ends here."""


def student_quantile(p: float, num_units: int) -> float:
    """Return the quantile of Student's t with as many degrees of freedom as units, minus one.

    D. L. Wallace, "Bounds on normal approximations to Student's and the chi-square distributions", 1959: within 0.3 %
    from 6 units on. scipy's `stdtrit` is exact, and takes as long to import as half a comparison of given scores.
    """
    freedom = max(1, num_units - 1)
    z = NORMAL.inv_cdf(p) * (8 * freedom + 3) / (8 * freedom + 1)
    return copysign(sqrt(freedom * expm1(z * z / freedom)), z)


def widening(num_units: int) -> float:
    """Return sqrt(n / (n - 1)), the factor by which resampling underestimates a standard error."""
    return sqrt(1 + 1 / max(1, num_units - 1))


def tail_share(tail: float, num_units: int) -> float:
    """Return the share of resamples to cut off at an end of an interval, so that it holds in the population.

    Resamples of few units are too alike: Hesterberg, "What Teachers Should Know About the Bootstrap", 2015, section
    3.2.
    """
    return NORMAL.cdf(-student_quantile(1 - tail, num_units) * widening(num_units))


def intervals(resampled: NDArray[np.float64], num_units: int) -> NDArray[np.float64]:
    """Return the ends of 95 % intervals, (2, …), from (resamples, …)."""
    tail = tail_share(SIGNIFICANT / 2, num_units)
    return np.quantile(resampled, [tail, 1 - tail], axis=0)


def power_of(difference: float, error: float, num_units: int, planned: int | None = None) -> float:
    """Return the power of a test with `planned` units, by default as many as there are.

    The standard error is estimated from `num_units`, and is uncertain itself. Abramowitz and Stegun, "Handbook of
    Mathematical Functions", 26.7.10, with the variance of that error added.
    """
    planned = planned or num_units
    if min(num_units, planned) < MIN_TESTED_UNITS:
        return 0.0
    ratio = abs(difference) / error * sqrt(planned / num_units)
    bias, mean, variance = _terms(num_units, planned)
    return NORMAL.cdf((bias * ratio - mean) / sqrt(variance + ratio * ratio / (2 * num_units - 2)))


def _terms(num_units: int, planned: int) -> tuple[float, float, float]:
    """Return the bias of the error, and the mean and the variance of a normal variable in place of the critical t."""
    t = student_quantile(1 - SIGNIFICANT / 2, planned)
    return 1 - 1 / (4 * num_units - 4), t * (1 - 1 / (4 * planned - 4)), 1 + t * t / (2 * planned - 2)


def detectable_difference(error: float, num_units: int) -> float | None:
    """Return the difference of which `power_of` is `POWER`, given its standard error; None without one."""
    if num_units < MIN_TESTED_UNITS or not error:
        return None
    bias, mean, variance = _terms(num_units, num_units)
    square = NORMAL.inv_cdf(POWER) ** 2
    factor = bias * bias - square / (2 * num_units - 2)
    return (bias * mean + sqrt((bias * mean) ** 2 - factor * (mean * mean - square * variance))) / factor * error


def needed_units(difference: float, error: float, num_units: int) -> int | None:
    """Return how many units find a true difference with `POWER`, given the standard error of `num_units`."""
    if num_units < MIN_TESTED_UNITS or not difference or not error:
        return None

    def is_found(planned: int) -> bool:
        return power_of(difference, error, num_units, planned) >= POWER

    return MIN_TESTED_UNITS + bisect_left(range(MIN_TESTED_UNITS, MAX_UNITS), True, key=is_found)
