"""Intervals and power for few units: how wide intervals are, which differences a test finds, and with how many units.

Units are segments or documents. Everything here uses one approximation of Student's t.
"""

from bisect import bisect_left
from dataclasses import dataclass
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
"""With fewer units that differ no p of a permutation test is below `SIGNIFICANT`: 2 / 2⁵ is above it."""

MIN_PLANNED_UNITS = 20
"""With fewer units that differ nothing can be said about the power of tests on other units."""

MAX_UNITS = 1 << 53
"""The search for the number of units ends here."""

DEGENERATE = 1e-6
"""A standard error below this share of the largest difference is rounding."""


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


@dataclass(frozen=True, slots=True)
class PowerCurve:
    """The power of the test of one difference, by the units on which it was observed.

    The test lives on the units that differ. A true difference is taken to stand in the same share of other units, and
    to move their differences without changing their spread.
    """

    error: float
    """The standard error of the difference, of the units that differ about their own mean; above 0."""
    num_units: int
    num_differing: float
    """Units in which the systems differ; of unequal size, as many of one size as would tell as much."""
    kurtosis: float
    """Of the differences of these, 3 where they are normal: it says how well the error is known."""
    level: float = SIGNIFICANT
    """A p below it counts as found."""

    @property
    def is_known(self) -> bool:
        """Whether enough units differ."""
        return self.num_differing >= MIN_PLANNED_UNITS

    def power(self, difference: float, planned: int | None = None) -> float:
        """Return the share of tests that find a true difference on so many units, by default as many as observed.

        Abramowitz and Stegun, "Handbook of Mathematical Functions", 26.7.10, with the variance of both standard errors
        added, the observed one and that of the test, and that of the numbers of units that differ in both.
        """
        planned = planned or self.num_units
        share = self.num_differing / self.num_units
        differing = share * planned
        t = student_quantile(1 - self.level / 2, max(2, round(differing)))
        ratio = abs(difference) / self.error * sqrt(planned / self.num_units)
        observed, tested = ((self.kurtosis - 1) / (4 * number) for number in (self.num_differing, differing))
        counted = (1 - share) / 4 * (1 / self.num_differing + 1 / differing)
        mean = ratio * (1 - observed / 2) - t * (1 - tested / 2)
        variance = 1 + t**2 * tested + ratio**2 * (observed + counted)
        return NORMAL.cdf(mean / sqrt(variance))

    def detectable(self) -> float | None:
        """Return the true difference that is found with a power of `POWER`; None if too few units differ."""
        if not self.is_known:
            return None
        step = self.error / 1024
        num_steps = bisect_left(range(1, 1 << 20), POWER, key=lambda steps: self.power(steps * step)) + 1
        return num_steps * step if num_steps < 1 << 20 else None

    def needed(self, difference: float) -> int | None:
        """Return how many units find a true difference with a power of `POWER`; None if too few units differ, or none
        would be enough.
        """
        if not self.is_known:
            return None
        units = range(MIN_TESTED_UNITS, MAX_UNITS)
        place = bisect_left(units, POWER, key=lambda planned: self.power(difference, planned))
        return units[place] if place < len(units) else None
