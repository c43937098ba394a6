"""The drawings of a comparison, in SVG: distributions, intervals, and a scatter plot."""

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
    """The numbers from `low` to `high`, which is larger, from left to right or from bottom to top."""

    low: float
    high: float

    def share(self, value: float) -> float:
        """Return where a number lies: 0 at the low end, 1 at the high one."""
        return (value - self.low) / (self.high - self.low)

    def percent(self, value: float) -> str:
        """Return where a number lies, as a coordinate of SVG."""
        return f"{100 * self.share(value):.2f}%"

    def ticks(self, most: int = 6) -> list[tuple[float, str]]:
        """Return round numbers within the scale, at most `most` and as many as have room, with their texts."""
        ticks = self._ticks(most)
        while most > 2 and sum(len(text) + 2 for _, text in ticks) > ROOM:
            most -= 1
            ticks = self._ticks(most)
        return ticks

    def _ticks(self, most: int) -> list[tuple[float, str]]:
        exponent = math.floor(math.log10((self.high - self.low) / most))
        for power in (exponent, exponent + 1):
            for factor in (1, 2, 5):
                step = factor * 10.0**power
                first, last = math.ceil(self.low / step), math.floor(self.high / step)
                if last - first < most:
                    places = [min(max(times * step, self.low), self.high) for times in range(first, last + 1)]
                    return [(place, typographic(fixed(place, max(0, -power)))) for place in places]
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


# Rows below each other, and the axis below them.


@dataclass(frozen=True, slots=True)
class Drawing:
    """The content of an `<svg>`, its description in words, and its name if it is a row of a chart."""

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
        return "".join(
            f'<text x="{self.scale.percent(value)}" y="14" text-anchor="middle">{text}</text>'
            for value, text in self.scale.ticks()
        )


def grid(scale: Scale) -> str:
    """Return a line over the height of a row for each tick."""
    places = [scale.percent(value) for value, _ in scale.ticks()]
    return "".join(f'<line class="grid" x1="{x}" x2="{x}" y1="0" y2="100%"/>' for x in places)


# How the segment scores of each system are distributed.


BASELINE = "baseline"
"""The class of the baseline's row."""

NUM_BINS = 60
HEIGHT = 100
"""Of the highest bin of all rows, in the units of the drawing."""


def distributions(metric: MetricResult) -> Chart:
    """Draw a histogram for each system, with the baseline's behind it."""
    rows = [(metric.systems[row].name, metric.segment_scores[row]) for row in metric.ranked]
    scale = scale_over([metric.segment_scores.min(), metric.segment_scores.max()])
    shares = [_shares(scores, scale) for _, scores in rows]
    highest = max(float(bins.max()) for bins in shares)
    outlines = [_outline(bins / highest) for bins in shares]
    drawn, baseline = [], metric.ranked.index(0)
    for row, (name, scores) in enumerate(rows):
        low, middle, high = (float(value) for value in np.quantile(scores, [0.25, 0.5, 0.75]))
        text = f"Median {score(middle, metric)}, middle half {score(low, metric)} to {score(high, metric)}"
        behind = f'<path class="outline" d="{outlines[baseline]}"/>' if row != baseline else ""
        x = scale.percent(middle)
        body = (
            f'{grid(scale)}<svg width="100%" height="100%" viewBox="0 0 {NUM_BINS} {HEIGHT}" '
            f'preserveAspectRatio="none"><path class="area" d="{outlines[row]}"/>{behind}</svg>'
            f'<line class="middle" x1="{x}" x2="{x}" y1="0" y2="100%"/>'
        )
        drawn.append(Drawing(body, text, name=name, style=BASELINE if row == baseline else ""))
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
    """Draw the difference of each system from the baseline with its interval, and 0 through all rows."""
    systems = [metric.systems[row] for row in metric.ranked]
    ends = [end for system in systems for end in (system.delta_low, system.delta, system.delta_high)]
    scale = scale_over([0.0, *(end for end in ends if end is not None)])
    zero = scale.percent(0.0)
    across = f'{grid(scale)}<line class="zero" x1="{zero}" x2="{zero}" y1="0" y2="100%"/>'
    rows = []
    for system in systems:
        delta, bar = system.delta or 0.0, ""
        text = f"Difference {signed(delta, metric)}"
        if system.delta_low is not None and system.delta_high is not None:
            low, high = scale.percent(system.delta_low), scale.percent(system.delta_high)
            bar = f'<line class="bar" x1="{low}" x2="{high}" y1="50%" y2="50%"/>'
            text += f", 95 % interval {interval(metric, system.delta_low, system.delta_high)}"
        body = f'{across}{bar}<circle class="dot" cx="{scale.percent(delta)}" cy="50%" r="3"/>'
        rows.append(Drawing(body, text, name=system.name, style=BASELINE if system.delta is None else ""))
    return Chart(rows, scale)


# The segment scores of a system against the baseline's: a dot for each segment.


LEFT, TOP = 38, 6
"""Where the square begins, in the units of its drawing; numbers stand left of it and below."""

SIDE = 200
"""Of the square; dots lie on whole units, so that segments with about the same scores share one."""

SPARSE = 300
"""Segments up to which dots are larger."""

CLASSES = ((1, "few"), (2, "some"), (5, "many"))
"""From how many segments on a dot has a style."""


def scatter(baseline: NDArray[np.float64], system: NDArray[np.float64], *, lower_is_better: bool) -> Drawing:
    """Draw the baseline's score from left to right and the system's from bottom to top; both are (segments,)."""
    scale = scale_over(end for scores in (baseline, system) for end in (scores.min(), scores.max()))
    x, y = (
        np.rint(SIDE * ((scores - scale.low) / (scale.high - scale.low))).astype(int) for scores in (baseline, system)
    )
    cells, counts = np.unique(np.stack([x + LEFT, TOP + SIDE - y], axis=1), axis=0, return_counts=True)
    limits = [start for start, _ in CLASSES] + [len(baseline) + 1]
    dots = [
        f'<path class="dots {style}" d="{_dots(chosen)}"/>'
        for (start, style), end in zip(CLASSES, limits[1:], strict=True)
        if len(chosen := cells[(counts >= start) & (counts < end)])
    ]
    right, bottom = LEFT + SIDE, TOP + SIDE
    better_corner = f"{right} {bottom}" if lower_is_better else f"{LEFT} {TOP}"
    size = ' class="sparse"' if len(baseline) <= SPARSE else ""
    body = (
        f'<path class="better-half" d="M{LEFT} {bottom}L{right} {TOP}L{better_corner}Z"/>{_axes(scale)}'
        f'<line class="zero" x1="{LEFT}" x2="{right}" y1="{bottom}" y2="{TOP}"/><g{size}>{"".join(dots)}</g>'
    )
    better = (system < baseline) if lower_is_better else (system > baseline)
    tied = system == baseline
    text = (
        f"{len(baseline)} segments: the system is better on {better.sum()}, the baseline on "
        f"{(~better & ~tied).sum()}, neither on {tied.sum()}"
    )
    return Drawing(body, text, f"0 0 {right + 6} {bottom + 20}")


def _axes(scale: Scale) -> str:
    """Return a line and a text for each tick of the square, from left to right and from bottom to top."""
    right, bottom, ticks = LEFT + SIDE, TOP + SIDE, scale.ticks(5)
    vertical = [
        f'<line class="grid" x1="{x}" x2="{x}" y1="{TOP}" y2="{bottom}"/>'
        f'<text x="{x}" y="{bottom + 15}" text-anchor="middle">{text}</text>'
        for x, text in ((round(LEFT + SIDE * scale.share(value), 1), text) for value, text in ticks)
    ]
    horizontal = [
        f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y}" y2="{y}"/>'
        f'<text x="{LEFT - 5}" y="{y + 4}" text-anchor="end">{text}</text>'
        for y, text in ((round(bottom - SIDE * scale.share(value), 1), text) for value, text in ticks)
    ]
    return "".join(vertical + horizontal)


def _dots(cells: NDArray[np.int_]) -> str:
    """Return the path that has a point at each of these places, (dots, 2), each relative to the one before."""
    steps = np.diff(cells, axis=0, prepend=[[0, 0]])
    return "".join(f"m{dx}{dy}h0" if dy < 0 else f"m{dx} {dy}h0" for dx, dy in steps.tolist())
