"""The drawings of a comparison, in SVG.

They are distributions, intervals, and a scatter plot.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx_evaluation.report.wording import typographic
from bertscore_onnx_evaluation.systems.verdicts import MetricResult, fixed, interval, score, signed

# A scale from numbers to places on a drawing, with round numbers as its ticks.


MARGIN = 0.04
"""The share of the range that is left empty at each end, so that a mark at the end is whole."""

ROOM = 44
"""The characters for which there is room beside each other, with two between the texts of ticks."""


@dataclass(frozen=True, slots=True)
class Scale:
    """An axis to the right or upwards, from `low` to `high`, which is larger."""

    low: float
    high: float

    def share(self, value: float) -> float:
        """Return where a number lies: 0 at the low end, 1 at the high one."""
        return (value - self.low) / (self.high - self.low)

    def percent(self, value: float) -> str:
        """Return where a number lies, as a coordinate of SVG."""
        return f"{100 * self.share(value):.2f}%"

    def ticks(self, limit: int = 6) -> list[tuple[float, str]]:
        """Return round numbers on the scale, with their texts.

        There are at most `limit` numbers, and as many as have room.
        """
        ticks = self._ticks(limit)
        while limit > 2 and sum(len(text) + 2 for _, text in ticks) > ROOM:
            limit -= 1
            ticks = self._ticks(limit)
        return ticks

    def _ticks(self, limit: int) -> list[tuple[float, str]]:
        exponent = math.floor(math.log10((self.high - self.low) / limit))
        for power in (exponent, exponent + 1):
            for factor in (1, 2, 5):
                step = factor * 10.0**power
                first = math.ceil(self.low / step)
                last = math.floor(self.high / step)
                if last - first < limit:
                    decimals = max(0, -power)
                    return self._multiples(step, range(first, last + 1), decimals)
        return []

    def _multiples(
        self,
        step: float,
        factors: Iterable[int],
        decimals: int,
    ) -> list[tuple[float, str]]:
        ticks = []
        for factor in factors:
            # A rounded product may lie beyond an end.
            value = min(max(factor * step, self.low), self.high)
            ticks.append((value, typographic(fixed(value, decimals))))
        return ticks


def scale_over(values: Iterable[float]) -> Scale:
    """Return a scale for all these finite numbers, which may be equal."""
    numbers = [float(value) for value in values]
    low = min(numbers)
    high = max(numbers)
    if high - low <= 1e-6 * max(abs(low), abs(high)):
        half = abs(low) / 10 or 0.5
        return Scale(low - half, high + half)
    margin = MARGIN * (high - low)
    return Scale(low - margin, high + margin)


# Rows below each other, and the axis below them.


@dataclass(frozen=True, slots=True)
class Drawing:
    """The content of an `<svg>` and its description in words.

    A row of a chart has a name too.
    """

    body: str
    """SVG elements; safe to put into a page, as texts of users in it are escaped."""
    text: str
    """The same for those who cannot see it; still to be escaped."""
    box: str = ""
    """Its `viewBox`; empty if it fills its place."""
    name: str = ""
    style: str = ""
    """The class of its row, such as `baseline`."""


@dataclass(frozen=True, slots=True)
class Chart:
    """Rows that share a scale."""

    rows: Sequence[Drawing]
    scale: Scale

    @property
    def axis(self) -> str:
        """The number of each tick, as SVG elements."""
        texts = []
        for value, text in self.scale.ticks():
            x = self.scale.percent(value)
            texts.append(f'<text x="{x}" y="14" text-anchor="middle">{text}</text>')
        return "".join(texts)


def grid(scale: Scale) -> str:
    """Return a line over the height of a row for each tick."""
    return "".join(_upright("grid", scale.percent(value)) for value, _ in scale.ticks())


def _upright(style: str, x: str) -> str:
    """Return a line over the height of a row."""
    return f'<line class="{style}" x1="{x}" x2="{x}" y1="0" y2="100%"/>'


# How the segment scores of each system are distributed.


BASELINE = "baseline"
"""The class of the baseline's row."""

NUM_BINS = 60
HEIGHT = 100
"""Of the highest bin of all rows, in the units of the drawing."""


def distributions(metric: MetricResult) -> Chart:
    """Draw a histogram for each system, with the baseline's behind it."""
    scale = scale_over([metric.segment_scores.min(), metric.segment_scores.max()])
    shares = {row: _shares(metric.segment_scores[row], scale) for row in metric.ranked}
    # All histograms have the same scale of heights.
    highest = max(float(bins.max()) for bins in shares.values())
    outlines = {row: _outline(bins / highest) for row, bins in shares.items()}
    drawn = []
    for row in metric.ranked:
        quantiles = np.quantile(metric.segment_scores[row], [0.25, 0.5, 0.75])
        low, middle, high = quantiles.tolist()
        middle_half = f"middle half {score(low, metric)} to {score(high, metric)}"
        text = f"Median {score(middle, metric)}, {middle_half}"
        style = ""
        behind = f'<path class="outline" d="{outlines[0]}"/>'
        if row == 0:
            style = BASELINE
            behind = ""
        body = (
            f'{grid(scale)}<svg width="100%" height="100%" viewBox="0 0 {NUM_BINS} {HEIGHT}" '
            f'preserveAspectRatio="none"><path class="area" d="{outlines[row]}"/>{behind}</svg>'
            f"{_upright('middle', scale.percent(middle))}"
        )
        drawn.append(Drawing(body, text, name=metric.systems[row].name, style=style))
    return Chart(drawn, scale)


def _shares(scores: NDArray[np.float64], scale: Scale) -> NDArray[np.float64]:
    """Return the share of the scores in each bin, (NUM_BINS,)."""
    counts, _ = np.histogram(scores, NUM_BINS, (scale.low, scale.high))
    return counts / len(scores)


def _outline(heights: NDArray[np.float64]) -> str:
    """Return the path round bins of these heights, at most 1 each."""
    tops = [round(HEIGHT * (1 - float(height))) for height in heights]
    steps = "".join(f"V{top}H{place}" for place, top in enumerate(tops, start=1))
    return f"M0 {HEIGHT}{steps}V{HEIGHT}"


# The difference of each system from the baseline, with its 95 % interval.


def intervals(metric: MetricResult) -> Chart:
    """Draw the difference of each system from the baseline.

    Each has its interval, and a line through all rows is at 0.
    """
    systems = [metric.systems[row] for row in metric.ranked]
    numbers = [0.0]
    for system in systems:
        for number in (system.delta_low, system.delta, system.delta_high):
            if number is not None:
                numbers.append(number)
    scale = scale_over(numbers)
    across = grid(scale) + _upright("zero", scale.percent(0.0))
    rows = []
    for system in systems:
        # The baseline has neither a difference nor an interval.
        delta = system.delta or 0.0
        bar = ""
        text = f"Difference {signed(delta, metric)}"
        if system.delta_low is not None and system.delta_high is not None:
            low = scale.percent(system.delta_low)
            high = scale.percent(system.delta_high)
            bar = f'<line class="bar" x1="{low}" x2="{high}" y1="50%" y2="50%"/>'
            ends = interval(metric, system.delta_low, system.delta_high)
            text = f"{text}, 95 % interval {ends}"
        dot = f'<circle class="dot" cx="{scale.percent(delta)}" cy="50%" r="3"/>'
        style = BASELINE if system.delta is None else ""
        rows.append(Drawing(f"{across}{bar}{dot}", text, name=system.name, style=style))
    return Chart(rows, scale)


# The segment scores of a system against the baseline's: a dot for each segment.


LEFT = 38
"""Where the square begins, in the units of its drawing; numbers stand left of it and below."""
TOP = 6

SIDE = 200
"""Of the square; dots lie on whole units, so that segments with about the same scores share one."""

SPARSE = 300
"""Segments up to which dots are larger."""

CLASSES = ((1, "few"), (2, "some"), (5, "many"))
"""From how many segments on a dot has a style."""


def scatter(
    baseline: NDArray[np.float64],
    system: NDArray[np.float64],
    *,
    lower_is_better: bool,
) -> Drawing:
    """Draw a dot for each segment.

    The baseline's score goes from left to right and the system's from bottom to top; both are
    (segments,).
    """
    scale = scale_over([baseline.min(), baseline.max(), system.min(), system.max()])
    x = _units(baseline, scale)
    y = _units(system, scale)
    # Segments with about the same scores share a dot.
    places = np.stack([x + LEFT, TOP + SIDE - y], axis=1)
    cells, counts = np.unique(places, axis=0, return_counts=True)
    dots = []
    ends = [start for start, _ in CLASSES[1:]]
    for (start, style), end in zip(CLASSES, [*ends, len(baseline) + 1], strict=True):
        chosen = cells[(counts >= start) & (counts < end)]
        if len(chosen):
            dots.append(f'<path class="dots {style}" d="{_dots(chosen)}"/>')
    right = LEFT + SIDE
    bottom = TOP + SIDE
    better_corner = f"{right} {bottom}" if lower_is_better else f"{LEFT} {TOP}"
    size = ' class="sparse"' if len(baseline) <= SPARSE else ""
    body = (
        f'<path class="better-half" d="M{LEFT} {bottom}L{right} {TOP}L{better_corner}Z"/>'
        f'{_axes(scale)}<line class="zero" x1="{LEFT}" x2="{right}" y1="{bottom}" y2="{TOP}"/>'
        f"<g{size}>{''.join(dots)}</g>"
    )
    num_higher = (system > baseline).sum()
    num_lower = (system < baseline).sum()
    better, worse = (num_lower, num_higher) if lower_is_better else (num_higher, num_lower)
    text = (
        f"{len(baseline)} segments: the system is better on {better}, the baseline on {worse}, "
        f"neither on {(system == baseline).sum()}"
    )
    return Drawing(body, text, f"0 0 {right + 6} {bottom + 20}")


def _units(scores: NDArray[np.float64], scale: Scale) -> NDArray[np.int_]:
    """Return where scores lie on a side of the square, in whole units."""
    return np.rint(SIDE * ((scores - scale.low) / (scale.high - scale.low))).astype(int)


def _axes(scale: Scale) -> str:
    """Return a line and a label for each tick of the square: left to right, then bottom to top."""
    right = LEFT + SIDE
    bottom = TOP + SIDE
    vertical = []
    horizontal = []
    for value, text in scale.ticks(5):
        x = round(LEFT + SIDE * scale.share(value), 1)
        vertical.append(
            f'<line class="grid" x1="{x}" x2="{x}" y1="{TOP}" y2="{bottom}"/>'
            f'<text x="{x}" y="{bottom + 15}" text-anchor="middle">{text}</text>'
        )
        y = round(bottom - SIDE * scale.share(value), 1)
        horizontal.append(
            f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y}" y2="{y}"/>'
            f'<text x="{LEFT - 5}" y="{y + 4}" text-anchor="end">{text}</text>'
        )
    return "".join(vertical + horizontal)


def _dots(cells: NDArray[np.int_]) -> str:
    """Return the path that has a point at each of these places.

    Places are (dots, 2); in the path each is relative to the one before.
    """
    path = []
    for dx, dy in np.diff(cells, axis=0, prepend=[[0, 0]]).tolist():
        separator = "" if dy < 0 else " "  # a minus sign separates numbers too
        path.append(f"m{dx}{separator}{dy}h0")
    return "".join(path)
