"""The parts of drawings that pages share, in SVG: scales, rows of dots and bars, and planes of two scales."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx_evaluation.report.wording import typographic
from bertscore_onnx_evaluation.systems.verdicts import fixed

# A scale from numbers to places on a drawing, with round numbers as its ticks.


MARGIN = 0.04
"""The share of the range that is left empty at each end, so that a mark at the end is whole."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The numbers from `low` to `high`, which is larger, from left to right or from bottom to top."""

    low: float
    high: float

    room: int = 44
    """The characters for which there is room beside each other, with two between the texts of ticks."""

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
        """Return round numbers within the scale, at most `most` and as many as have room, with their texts."""
        found = self._ticks(most)
        while most > 2 and sum(len(text) + 2 for _, text in found) > self.room:
            most -= 1
            found = self._ticks(most)
        return found

    def _ticks(self, most: int) -> list[tuple[float, str]]:
        exponent = math.floor(math.log10((self.high - self.low) / most))
        for power in (exponent, exponent + 1):
            for factor in (1, 2, 5):
                step = factor * 10.0**power
                first, last = math.ceil(self.low / step), math.floor(self.high / step)
                if last - first < most:
                    places = [min(max(one * step, self.low), self.high) for one in range(first, last + 1)]
                    return [(place, typographic(fixed(place, max(0, -power)))) for place in places]
        return []


def scale_over(values: Iterable[float], room: int = 44) -> Scale:
    """Return a scale on which all these finite numbers have a place, also where they are one number."""
    numbers = [float(value) for value in values]
    low, high = min(numbers), max(numbers)
    if high - low <= 1e-6 * max(abs(low), abs(high)):
        half = abs(low) / 10 or 0.5
        return Scale(low - half, high + half, room)
    margin = MARGIN * (high - low)
    return Scale(low - margin, high + margin, room)


# Rows below each other, and the axis below them.


@dataclass(frozen=True, slots=True)
class Drawing:
    """The content of an `<svg>`, and its description in words."""

    body: str
    """SVG elements; safe to put into a page, as texts of users in it are escaped."""

    text: str
    """The same for those who cannot see it; still to be escaped."""

    box: str = ""
    """Its `viewBox`; empty if it fills its place."""


@dataclass(frozen=True, slots=True)
class Row:
    """A named drawing, or the note that stands in its place."""

    name: str
    drawing: Drawing | None
    note: str = ""
    style: str = ""
    """The class of its element, such as `baseline`."""


@dataclass(frozen=True, slots=True)
class Chart:
    """Rows that share a scale."""

    rows: Sequence[Row]
    scale: Scale

    @property
    def axis(self) -> str:
        """The number of each tick, as SVG elements."""
        return "".join(
            f'<text x="{self.scale.percent(value)}" y="14" text-anchor="middle">{text}</text>'
            for value, text in self.scale.ticks()
        )


def grid(scale: Scale) -> str:
    """Return a line over the height of a row for each tick."""
    places = [scale.percent(value) for value, _ in scale.ticks()]
    return "".join(f'<line class="grid" x1="{x}" x2="{x}" y1="0" y2="100%"/>' for x in places)


@dataclass(frozen=True, slots=True)
class Estimate:
    """A value with its 95 % interval."""

    name: str
    value: float | None
    low: float | None = None
    high: float | None = None
    note: str = ""
    """What it is, or why it has no value."""
    style: str = ""
    """The class of its row."""


def dots_and_bars(
    estimates: Sequence[Estimate], what: str, write: Callable[[float], str], lines: Sequence[tuple[str, float]] = ()
) -> Chart:
    """Draw a dot at each value, a line from end to end of its interval, and lines of a class through all rows.

    At least one of the estimates has a value. The descriptions begin with `what`.
    """
    ends = [end for one in estimates for end in (one.low, one.value, one.high) if one.value is not None]
    scale = scale_over([*(end for end in ends if end is not None), *(at for _, at in lines)])
    across = grid(scale) + "".join(
        f'<line class="{style}" x1="{at}" x2="{at}" y1="0" y2="100%"/>'
        for style, at in ((style, scale.percent(value)) for style, value in lines)
    )
    rows = []
    for one in estimates:
        drawing = None if one.value is None else _dot_and_bar(one, one.value, scale, across, what, write)
        rows.append(Row(one.name, drawing, one.note, one.style))
    return Chart(rows, scale)


def _dot_and_bar(
    one: Estimate, value: float, scale: Scale, across: str, what: str, write: Callable[[float], str]
) -> Drawing:
    bar, text = "", f"{what} {write(value)}"
    if one.low is not None and one.high is not None:
        bar = f'<line class="bar" x1="{scale.percent(one.low)}" x2="{scale.percent(one.high)}" y1="50%" y2="50%"/>'
        text += f", 95 % interval {write(one.low)} to {write(one.high)}"
    return Drawing(f'{across}{bar}<circle class="dot" cx="{scale.percent(value)}" cy="50%" r="3"/>', text)


# A plane: numbers from left to right, and from bottom to top.


LEFT, TOP = 38, 6
"""Where the plane begins, in the units of its drawing; numbers stand left of it and below."""


@dataclass(frozen=True, slots=True)
class Plane:
    """A rectangle between two scales."""

    across: Scale
    up: Scale
    width: int = 200
    height: int = 200

    @property
    def right(self) -> int:
        """Its right edge."""
        return LEFT + self.width

    @property
    def bottom(self) -> int:
        """Its lower edge."""
        return TOP + self.height

    @property
    def box(self) -> str:
        """The `viewBox` of the drawing, with the numbers around the plane."""
        return f"0 0 {self.right + 6} {self.bottom + 20}"

    def x(self, value: float) -> float:
        """Return where a number lies from left to right."""
        return round(LEFT + self.width * self.across.share(value), 1)

    def y(self, value: float) -> float:
        """Return where a number lies from top to bottom."""
        return round(self.bottom - self.height * self.up.share(value), 1)

    def axes(self) -> str:
        """Return a line and a text for each tick."""
        vertical = [
            f'<line class="grid" x1="{x}" x2="{x}" y1="{TOP}" y2="{self.bottom}"/>'
            f'<text x="{x}" y="{self.bottom + 15}" text-anchor="middle">{text}</text>'
            for x, text in ((self.x(value), text) for value, text in self.across.ticks(5))
        ]
        horizontal = [
            f'<line class="grid" x1="{LEFT}" x2="{self.right}" y1="{y}" y2="{y}"/>'
            f'<text x="{LEFT - 5}" y="{y + 4}" text-anchor="end">{text}</text>'
            for y, text in ((self.y(value), text) for value, text in self.up.ticks(5))
        ]
        return "".join(vertical + horizontal)
