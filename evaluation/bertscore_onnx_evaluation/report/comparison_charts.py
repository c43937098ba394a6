"""The drawings of a comparison: distributions, intervals, differences by length, and a scatter plot of segments."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.tables.table import count, plural
from bertscore_onnx_evaluation.report.charts import (
    LEFT,
    TOP,
    Chart,
    Drawing,
    Estimate,
    Plane,
    Row,
    Scale,
    dots_and_bars,
    grid,
    scale_over,
)
from bertscore_onnx_evaluation.systems.paired_tests import UnitValues
from bertscore_onnx_evaluation.systems.power import MIN_TESTED_UNITS, SIGNIFICANT, student_quantile
from bertscore_onnx_evaluation.systems.verdicts import MetricResult, score, signed

# How the segment scores of each system are distributed.


BASELINE = "baseline"
"""The class of the baseline's row."""

NUM_BINS = 60
HEIGHT = 100
"""Of the highest bin of all rows, in the units of the drawing."""


def distributions(metric: MetricResult) -> Chart:
    """Draw a histogram for each system, with the baseline's behind it, and one for unrelated pairs where known."""
    rows = [(metric.systems[row].name, metric.segment_scores[row], "area") for row in metric.ranked]
    if metric.unrelated is not None and len(metric.unrelated):
        rows.append(("Unrelated pairs", metric.unrelated, "area unrelated"))
    scale = scale_over(end for _, scores, _ in rows for end in (scores.min(), scores.max()))
    shares = [_shares(scores, scale) for _, scores, _ in rows]
    highest = max(float(one.max()) for one in shares)
    outlines = [_outline(one / highest) for one in shares]
    drawn, baseline = [], metric.ranked.index(0)
    for row, (name, scores, style) in enumerate(rows):
        low, middle, high = (float(value) for value in np.quantile(scores, [0.25, 0.5, 0.75]))
        text = f"Median {score(middle, metric)}, middle half {score(low, metric)} to {score(high, metric)}"
        behind = f'<path class="outline" d="{outlines[baseline]}"/>' if baseline != row < len(metric.systems) else ""
        x = scale.percent(middle)
        body = (
            f'{grid(scale)}<svg width="100%" height="100%" viewBox="0 0 {NUM_BINS} {HEIGHT}" '
            f'preserveAspectRatio="none"><path class="{style}" d="{outlines[row]}"/>{behind}</svg>'
            f'<line class="middle" x1="{x}" x2="{x}" y1="0" y2="100%"/>'
        )
        drawn.append(Row(name, Drawing(body, text), style=BASELINE if row == baseline else ""))
    return Chart(drawn, scale)


def _shares(scores: NDArray[np.float64], scale: Scale) -> NDArray[np.float64]:
    """Return the share of the scores in each bin, (NUM_BINS,)."""
    counts, _ = np.histogram(scores, NUM_BINS, (scale.low, scale.high))
    shares: NDArray[np.float64] = counts / len(scores)
    return shares


def _outline(heights: NDArray[np.float64]) -> str:
    """Return the path round bins of these heights, at most 1 each."""
    tops = [round(HEIGHT * (1 - float(height))) for height in heights]
    steps = "".join(f"V{top}H{place}" for place, top in enumerate(tops, start=1))
    return f"M0 {HEIGHT}{steps}V{HEIGHT}"


# The difference of each system from the baseline, with its 95 % interval.


def intervals(metric: MetricResult) -> Chart:
    """Draw the difference of each system from the baseline with its interval, and 0 through all rows."""
    systems = [metric.systems[row] for row in metric.ranked]
    estimates = [
        Estimate(one.name, one.delta or 0.0, one.delta_low, one.delta_high, style=BASELINE if one.delta is None else "")
        for one in systems
    ]
    return dots_and_bars(estimates, "Difference", partial(signed, metric=metric), [("zero", 0.0)])


# Where a system differs from the baseline: the mean difference of the segment scores by length of the reference.


NUM_BUCKETS = 5

NARROW = 26
"""The characters for which there is room below a drawing of a column of its own."""


def length_differences(
    metric: MetricResult, systems: Sequence[int], lengths: Sequence[int], documents: Sequence[int] = ()
) -> list[Chart]:
    """Draw for each system a bar from zero to its mean difference to the baseline, by length of the reference.

    The intervals, of Student's t and of whole documents where these are given, hold all of a system's means in 95 of
    100 cases; a bucket of few units has none. One scale serves all systems, which are rows of the scores.
    """
    characters = np.asarray(lengths)
    buckets = length_buckets(characters)
    names = [_range(int(characters[bucket].min()), int(characters[bucket].max())) for bucket in buckets]
    differences = [metric.segment_scores[row] - metric.segment_scores[0] for row in systems]
    units = np.asarray(documents) if documents else np.arange(len(characters))
    tail = SIGNIFICANT / 2 / len(buckets)  # Bonferroni: one of five may well miss its mean by chance
    level = level_of(len(buckets))
    bars = [
        [
            _mean_difference(name, system[bucket], units[bucket], tail)
            for name, bucket in zip(names, buckets, strict=True)
        ]
        for system in differences
    ]
    scale = scale_over([0, *(end for row in bars for bar in row for end in (bar.value or 0.0, *_ends_of(bar)))], NARROW)
    return [Chart([_bar(metric, scale, bar, level) for bar in row], scale) for row in bars]


def level_of(num_intervals: int) -> str:
    """Return the level of each of some intervals that hold all their values in 95 of 100 cases, such as 99 %."""
    return f"{100 * (1 - SIGNIFICANT / num_intervals):.3g} %"


def length_buckets(lengths: NDArray[np.int_]) -> list[NDArray[np.int_]]:
    """Return the segments by length, in at most `NUM_BUCKETS` parts of about the same size; equal lengths are together.

    The shortest come first, and no part is empty.
    """
    edges = np.unique(np.quantile(lengths, np.arange(1, NUM_BUCKETS) / NUM_BUCKETS, method="lower"))
    bucket_of = np.searchsorted(edges, lengths, side="left")
    return [np.flatnonzero(bucket_of == bucket) for bucket in np.unique(bucket_of)]


def _range(low: int, high: int) -> str:
    return count(low) if low == high else f"{count(low)}–{count(high)}"


def _mean_difference(name: str, differences: NDArray[np.float64], units: NDArray[np.int_], tail: float) -> Estimate:
    """Return the mean of some segments with an interval by their units, which leaves out `tail` at each end.

    There is no interval of few units.
    """
    mean, note = float(differences.mean()), plural(len(differences), "segment")
    _, numbers = np.unique(units, return_inverse=True)
    num_units = int(numbers.max()) + 1
    if num_units < MIN_TESTED_UNITS:
        return Estimate(name, mean, note=note)
    sums, sizes = np.bincount(numbers, differences).astype(np.float64), np.bincount(numbers).astype(np.float64)
    [error] = UnitValues(sums[None], sizes).errors(np.ones((1, num_units)))[:, 0]
    half_width = student_quantile(1 - tail, num_units) * float(error)
    return Estimate(name, mean, mean - half_width, mean + half_width, note)


def _bar(metric: MetricResult, scale: Scale, bar: Estimate, level: str) -> Row:
    mean, (low, high) = bar.value or 0.0, _ends_of(bar)
    text = f"Mean difference {signed(mean, metric)}"
    if bar.low is not None:
        text += f", {level} interval {signed(low, metric)} to {signed(high, metric)}"
    style = "better" if (mean < 0) == metric.lower_is_better else "worse"
    if bar.low is None or low <= 0 <= high:
        style += " unsure"
    left, right = sorted([scale.share(0), scale.share(mean)])
    zero, x1, x2 = (scale.percent(value) for value in (0, low, high))
    body = (
        f'{grid(scale)}<rect class="{style}" x="{100 * left:.2f}%" width="{100 * (right - left):.2f}%" '
        f'y="28%" height="44%"/><line class="whisker" x1="{x1}" x2="{x2}" y1="50%" y2="50%"/>'
        f'<line class="zero" x1="{zero}" x2="{zero}" y1="0" y2="100%"/>'
    )
    return Row(bar.name, Drawing(body, text), bar.note)


def _ends_of(bar: Estimate) -> tuple[float, float]:
    mean = bar.value or 0.0
    return (mean if bar.low is None else bar.low), (mean if bar.high is None else bar.high)


# The segment scores of a system against the baseline's: a dot for each segment.


SIDE = 200
"""Of the square; dots lie on whole units, so that segments with about the same scores share one."""

SPARSE = 300
"""Segments up to which dots are larger."""

CLASSES = ((1, "few"), (2, "some"), (5, "many"))
"""From how many segments on a dot has a style."""


def scatter(baseline: NDArray[np.float64], system: NDArray[np.float64], *, lower_is_better: bool) -> Drawing:
    """Draw the baseline's score from left to right and the system's from bottom to top; both are (segments,)."""
    scale = scale_over([*_ends(baseline), *_ends(system)])
    x, y = (np.rint(SIDE * scale.shares(scores)).astype(int) for scores in (baseline, system))
    cells, counts = np.unique(np.stack([x + LEFT, TOP + SIDE - y], axis=1), axis=0, return_counts=True)
    limits = [start for start, _ in CLASSES] + [len(baseline) + 1]
    dots = [
        f'<path class="dots {style}" d="{_dots(chosen)}"/>'
        for (start, style), end in zip(CLASSES, limits[1:], strict=True)
        if len(chosen := cells[(counts >= start) & (counts < end)])
    ]
    plane = Plane(scale, scale, SIDE, SIDE)
    right, bottom = plane.right, plane.bottom
    better_corner = f"{right} {bottom}" if lower_is_better else f"{LEFT} {TOP}"
    size = ' class="sparse"' if len(baseline) <= SPARSE else ""
    body = (
        f'<path class="better-half" d="M{LEFT} {bottom}L{right} {TOP}L{better_corner}Z"/>{plane.axes()}'
        f'<line class="zero" x1="{LEFT}" x2="{right}" y1="{bottom}" y2="{TOP}"/><g{size}>{"".join(dots)}</g>'
    )
    better = (system < baseline) if lower_is_better else (system > baseline)
    tied = system == baseline
    text = (
        f"{len(baseline)} segments: the system is better on {better.sum()}, the baseline on "
        f"{(~better & ~tied).sum()}, neither on {tied.sum()}"
    )
    return Drawing(body, text, plane.box)


def _ends(scores: NDArray[np.float64]) -> tuple[float, float]:
    return float(scores.min()), float(scores.max())


def _dots(cells: NDArray[np.int_]) -> str:
    """Return the path that has a point at each of these places, (dots, 2), each relative to the one before."""
    steps = np.diff(cells, axis=0, prepend=[[0, 0]])
    return "".join(f"m{dx}{dy}h0" if dy < 0 else f"m{dx} {dy}h0" for dx, dy in steps.tolist())
