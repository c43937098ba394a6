"""A scale from numbers to places on a drawing, with round numbers as its ticks."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.evaluation.report.numbers import fixed

MARGIN = 0.04
"""The share of the range that is left empty at each end, so that a mark at the end is whole."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The numbers from `low` to `high`, which is larger, from left to right or from bottom to top."""

    low: float
    high: float

    def share(self, value: float) -> float:
        """Return where a number lies: 0 at the low end, 1 at the high one."""
        return (value - self.low) / (self.high - self.low)

    def shares(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return where each of some numbers lies."""
        return (values - self.low) / (self.high - self.low)

    def percent(self, value: float) -> str:
        """Return where a number lies, as a coordinate of SVG."""
        return f"{100 * self.share(value):.2f}%"

    def ticks(self, most: int = 6) -> list[tuple[float, str]]:
        """Return round numbers within the scale, at most as many as asked for, with their texts."""
        exponent = math.floor(math.log10((self.high - self.low) / most))
        for power in (exponent, exponent + 1):
            for factor in (1, 2, 5):
                step = factor * 10.0**power
                first, last = math.ceil(self.low / step), math.floor(self.high / step)
                if last - first < most:
                    places = [min(max(one * step, self.low), self.high) for one in range(first, last + 1)]
                    return [(place, fixed(place, max(0, -power))) for place in places]
        return []


def scale_over(values: Iterable[float]) -> Scale:
    """Return a scale on which all these finite numbers have a place, also where they are one number."""
    numbers = [float(value) for value in values]
    low, high = min(numbers), max(numbers)
    if high - low <= 1e-6 * max(abs(low), abs(high)):
        half = abs(low) / 10 or 0.5
        return Scale(low - half, high + half)
    margin = MARGIN * (high - low)
    return Scale(low - margin, high + margin)
