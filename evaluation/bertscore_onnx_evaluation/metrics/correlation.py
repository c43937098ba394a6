"""Agreement of a metric with human scores.

Measures are Pearson's r, acc*_eq of the outputs of a segment, and SPA of systems. Outputs without
a judgement are left out. A side that ties everything has no value.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from math import fsum
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import InputError, needs_extra, plural
from bertscore_onnx_evaluation.systems.corpus_scores import ROUNDING

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Measure:
    """A number computed from human scores, or the reason why there is none."""

    value: float | None
    """None if the data gives no value."""
    n: int
    """The number of judged outputs or systems it was computed from; for acc*_eq and SPA of their
    pairs.
    """
    reason: str = ""
    """Why there is no value; empty if there is one."""
    groups: int = 1
    """How many values it is the mean of, or for SPA the segments that systems are compared on; 0
    without a value.
    """
    left_out: int = 0
    """How many groups had no value, and are not part of the mean."""
    zeros: int = 0
    """How many groups count as 0 in the mean, since the metric is constant there."""
    low: float | None = None
    """The lower end of the 95 % interval, if there is one."""
    high: float | None = None
    """The upper end."""
    epsilon: float | None = None
    """For `tie_calibrated_accuracy`: the difference up to which two scores of the metric count as
    tied.
    """


def finite(value: float) -> float | None:
    """Return a number as Python has it; None for NaN or an infinite one."""
    return float(value) if np.isfinite(value) else None


def no_value(reason: str, n: int) -> Measure:
    """Return a measure without a value."""
    return Measure(None, n, reason, groups=0, left_out=1)


def average(measures: Sequence[Measure]) -> Measure:
    """Average the measures that have a value, with the same weight.

    Each is of one group. InputError is raised without any.
    """
    if not measures:
        raise InputError("There are no measures to average. Give at least one.")
    values = [measure.value for measure in measures if measure.value is not None]
    n = sum(measure.n for measure in measures if measure.value is not None)
    left_out = len(measures) - len(values)
    if not values:
        reasons = ", ".join(sorted({measure.reason for measure in measures}))
        return Measure(None, 0, f"no group has a value: {reasons}", groups=0, left_out=left_out)
    zeros = sum(measure.zeros for measure in measures)
    return Measure(float(np.mean(values)), n, groups=len(values), left_out=left_out, zeros=zeros)


def judged_scores(human: Floats, metric: Floats, *, ndim: int = 2) -> tuple[Floats, Floats]:
    """Return human scores and a metric's as float64.

    Raise InputError unless shapes agree and no score is missing.

    Both are (systems, segments), or (systems,) with `ndim` 1. Human scores are NaN where nobody
    judged, and so are then those of the metric, which have to be finite elsewhere.
    """
    human = np.asarray(human, dtype=np.float64)
    metric = np.asarray(metric, dtype=np.float64)
    axes = ("system", "segment")[:ndim]
    if human.ndim != ndim or human.shape != metric.shape:
        shape = ", ".join(f"{axis}s" for axis in axes)
        raise InputError(
            f"Human scores of shape {human.shape} and metric scores of shape {metric.shape}; "
            f"expected both as ({shape}), in the same order."
        )
    is_judged = ~np.isnan(human)
    for side, is_wrong in (
        ("Annotators", np.isinf(human)),
        ("The metric", is_judged & ~np.isfinite(metric)),
    ):
        if is_wrong.any():
            positions = zip(axes, np.argwhere(is_wrong)[0], strict=True)
            place = ", ".join(f"{axis} {position}" for axis, position in positions)
            raise InputError(
                f"{side} gave no finite score at {place} (counted from 0). Give one, or NaN as "
                "the human score to leave the place out."
            )
    metric = np.where(is_judged, metric, np.nan)
    _check_range(human, metric)
    return human, metric


LARGEST = 1e300
"""Larger scores are refused: the sum of a few would overflow."""


def _check_range(*scores: Floats) -> None:
    """Raise InputError if a finite score is too large to be summed."""
    for values in scores:
        if (np.isfinite(values) & (np.abs(values) > LARGEST)).any():
            raise InputError(
                f"A score is beyond ±{LARGEST:g}, and sums of such scores overflow. Scale the "
                "scores."
            )


def shared_segments(human: Floats) -> NDArray[np.int64]:
    """Return how many segments every two systems are both judged on, (pairs,).

    The scores are (systems, segments), NaN where nobody judged.
    """
    return (~np.isnan(exact_differences(human))).sum(axis=1)


def mean_by_system(scores: Floats) -> Floats:
    """Average each system's scores over the segments that have one.

    NaN for a system of none.
    """
    _check_range(scores)
    counts = (~np.isnan(scores)).sum(axis=1)
    return np.where(counts, np.nansum(scores, axis=1) / np.maximum(counts, 1), np.nan)


def scipy_module(name: Literal["special", "stats"]) -> Any:
    """Return a module of scipy, which takes a second to load.

    Raise MissingExtraError unless scipy is installed.
    """
    with needs_extra("evaluation", "This statistic"):
        return import_module(f"scipy.{name}")


Grouping = Literal["all", "segment"]
GROUPINGS = get_args(Grouping)
HUMAN_CONSTANT = "the human scores are constant"
METRIC_CONSTANT = "the metric's scores are constant"


def correlate(human: Floats, metric: Floats, *, by: Grouping = "all") -> Measure:
    """Correlate a metric's segment scores with human scores by Pearson's r.

    Args:
        human: (systems, segments), NaN where nobody judged.
        metric: (systems, segments), finite where annotators judged.
        by: over all judged outputs at once; or within each segment, and then the mean of these
            values.

    Returns:
        The correlation in [-1, 1]. A segment where only the metric is constant counts as 0, since
        leaving it out would favour a metric that is constant where it would err. Segments without a
        value are left out and counted; `n` counts the judged outputs in the others.

    Raises:
        InputError: shapes differ, a score is missing, or the grouping is unknown.
    """
    human, metric = judged_scores(human, metric)
    if by not in GROUPINGS:
        raise InputError(f"There is no grouping {by!r}; expected one of {', '.join(GROUPINGS)}.")
    if by == "all":
        return correlate_pairs(human.ravel(), metric.ravel())
    measures = []
    for human_scores, metric_scores in zip(human.T, metric.T, strict=True):
        measure = correlate_pairs(human_scores, metric_scores)
        if measure.reason == METRIC_CONSTANT:
            measure = Measure(0.0, measure.n, zeros=1)
        measures.append(measure)
    return average(measures)


def correlate_pairs(human: Floats, metric: Floats) -> Measure:
    """Correlate two rows of scores, such as scores of systems, by Pearson's r.

    Args:
        human: (n,), NaN where nobody judged.
        metric: (n,), finite where annotators judged.

    Raises:
        InputError: shapes differ, or a score is missing.
    """
    human, metric = judged_scores(human, metric, ndim=1)
    is_judged = ~np.isnan(human)
    human = human[is_judged]
    metric = metric[is_judged]
    n = len(human)
    if n < 2:
        return no_value(f"{n} judged, and a correlation needs two", n)
    for reason, scores in ((HUMAN_CONSTANT, human), (METRIC_CONSTANT, metric)):
        if np.ptp(scores) <= rounding(scores):
            return no_value(reason, n)
    return Measure(float(pearson(human, metric)), n)


def pearson(human: Floats, metric: Floats) -> Floats:
    """Return Pearson's r along the last axis, (…), from (…, n).

    NaN where a side is constant.
    """
    human = unit_vectors(human)
    metric = unit_vectors(metric)
    return np.clip((human * metric).sum(axis=-1), -1, 1)


def pearson_of_moments(moments: Iterable[Floats], of_constant: float = 0.0) -> Floats:
    """Return Pearson's r from the sums of 1, g, g², x, x² and g·x, each (…).

    r is NaN where human scores g are constant, else `of_constant` where the metric's scores x are.
    """
    number, g, gg, x, xx, gx = moments
    number = np.maximum(number, 1)
    human = gg - g * g / number  # the sum of squared deviations
    metric = xx - x * x / number
    human_varies = human > CLOSE * gg
    varies = human_varies & (metric > CLOSE * xx)
    r = np.full(varies.shape, of_constant)
    np.divide(gx - g * x / number, np.sqrt(np.maximum(human * metric, 0)), out=r, where=varies)
    return np.where(human_varies, np.clip(r, -1, 1), np.nan)


def unit_vectors(scores: Floats) -> Floats:
    """Centre scores and divide by their norm, (…, n).

    The squares of the norm neither overflow nor vanish.
    """
    centred = scores - scores.mean(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        centred /= np.abs(centred).max(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).sum(axis=-1, keepdims=True))


CLOSE = 1e-9
"""Correlations closer than this are equal but for rounding; likewise sums, as a share of their
absolute sum.
"""


def rounding(scores: Floats) -> float:
    """Return the difference up to which two of these scores are equal but for rounding."""
    largest = np.abs(scores).max(initial=0, where=np.isfinite(scores))
    return float(max(ROUNDING * largest, 1 / LARGEST))


def exact_differences(scores: Floats) -> Floats:
    """Return the differences of every two systems, (pairs, …).

    The scores are (systems, …).
    """
    first, second = np.triu_indices(len(scores), 1)
    return scores[first] - scores[second]


def pair_differences(scores: Floats) -> Floats:
    """Return the differences of every two systems, (pairs, …).

    The scores are (systems, …); a difference of rounding is 0.
    """
    differences = exact_differences(scores)
    differences[np.abs(differences) <= rounding(scores)] = 0
    return differences


# SPA, soft pairwise accuracy, compares how sure each side is of the order of two systems: Thompson,
# Mathur, Deutsch and Khayrallah, "Improving Statistical Significance in Human Evaluation of
# Automatic Metrics via Soft Pairwise Accuracy", WMT 2024.


def soft_pairwise_accuracy(
    human: Floats, metric: Floats, *, permutations: int = 1000, seed: int = 4, min_segments: int = 1
) -> Measure:
    """Return SPA, section 3 of the paper.

    SPA is 1 − the mean over pairs of systems of |p by human scores − p by the metric|.

    p is the probability of such a lead of one system over another if the two were equal
    (`superiority`). The paper takes each pair in one order; with ties the other order has another
    value, and this is the mean of both.

    Args:
        human: (systems, segments), NaN where nobody judged. Two systems are compared on the
            segments that both are judged on.
        metric: (systems, segments), finite where annotators judged.
        permutations: how often each pair of systems is permuted.
        seed: of the permutations; 4 draws mt-metrics-eval's.
        min_segments: pairs of systems with fewer segments are left out and counted.

    Returns:
        SPA in [0, 1]; `n` counts the pairs of systems, `groups` the segments of the pair with the
        fewest. None if either side ties all systems in every segment.

    Raises:
        InputError: shapes differ, a score is missing or infinite, or there are no permutations.
    """
    human, metric = judged_scores(human, metric)
    if len(human) < 2:
        return no_value("a pair needs two systems", 0)
    num_shared = shared_segments(human)
    is_compared = num_shared >= min_segments
    if not is_compared.any():
        segments = plural(min_segments, "common segment")
        return no_value(f"no two systems are judged on {segments}", 0)
    is_shared = (~np.isnan(human)).sum(axis=0) > 1
    sides = human[:, is_shared], metric[:, is_shared]
    for whose, scores in zip(("human scores tie", "metric ties"), sides, strict=True):
        if not np.nan_to_num(pair_differences(scores)[is_compared]).any():
            return no_value(f"the {whose} all systems in every segment", 0)
    by_human, by_metric = [
        superiority(scores, permutations=permutations, seed=seed)[:, is_compared]
        for scores in sides
    ]
    # whole numbers: the order of systems changes no bit
    distance = int(np.abs(by_human - by_metric).sum())
    return Measure(
        1 - distance / (permutations * by_human.size),
        int(is_compared.sum()),
        groups=int(num_shared[is_compared].min()),
        left_out=int((~is_compared).sum()),
    )


def superiority(scores: Floats, *, permutations: int = 1000, seed: int = 4) -> NDArray[np.int64]:
    """Test for every two systems whether the first is better, and whether the second is.

    This is a paired permutation of the segments that have both scores: the two outputs of a segment
    are swapped with probability ½. The same swaps serve all pairs, so that one matrix product of
    signs and differences answers for all (mt-metrics-eval:
    `pairwise_paired_permutation_test.py`).

    Returns the number of permutations with Δ* ≥ Δ = xᵢ − xⱼ, and with Δ* ≤ Δ, (2, pairs), from
    scores, (systems, segments), NaN where there is none. Values that are equal but for rounding
    count as equal.
    """
    if permutations < 1:
        raise InputError(f"{permutations} permutations; expected at least one, such as 1000.")
    differences = np.nan_to_num(exact_differences(scores))  # (pairs, segments)
    rng = np.random.default_rng(seed)
    signs = 2 * np.rint(rng.random((permutations, scores.shape[1]), dtype=np.float32)) - 1
    permuted = signs @ differences.T  # (permutations, pairs)
    delta = differences.sum(axis=1)
    slack = CLOSE * np.nansum(np.abs(scores), axis=1).max()
    is_above = permuted >= delta - slack
    is_below = permuted <= delta + slack
    return np.stack([is_above.sum(axis=0), is_below.sum(axis=0)])


# acc*_eq, pairwise accuracy with tie calibration: Deutsch, Foster and Freitag, "Ties Matter", EMNLP
# 2023.


DIGITS = 12
"""Accuracies that agree to this digit are equal: below it they differ by the rounding of sums."""


def tie_calibrated_accuracy(human: Floats, metric: Floats) -> Measure:
    """Find the ε at which a metric agrees best with human scores, and how often it then agrees.

    A segment's accuracy is (concordant pairs + pairs tied in
    both) / all pairs, section 5 of the paper; ε is one for the whole set and maximises the mean
    over segments, section 6 (mt-metrics-eval: `tau_optimization.py`, with every pair in the
    sample). Annotators tie where their scores are equal to the last bit, the metric where |Δ| ≤ ε.
    Of several ε that are equally good, the smallest is taken; ε = 0 is among them.

    Args:
        human: (systems, segments), NaN where nobody judged; such pairs are left out.
        metric: (systems, segments), finite where annotators judged.

    Raises:
        InputError: shapes differ, or a score is missing or infinite.
    """
    human, metric = judged_scores(human, metric)
    human_delta = exact_differences(human)  # (pairs, segments)
    metric_delta = pair_differences(metric)
    is_judged = ~np.isnan(human_delta)
    counts = is_judged.sum(axis=0)
    has_pairs = counts > 0
    pairs = int(counts.sum())
    if not pairs:
        return no_value("no segment has two judged systems", 0)
    if not np.nan_to_num(human_delta).any():
        return no_value("the human scores tie every pair of outputs of a segment", 0)

    # a pair's part in the sum over segments, (judged pairs,)
    share = (is_judged / np.maximum(counts, 1))[is_judged]
    human_delta = human_delta[is_judged]
    metric_delta = metric_delta[is_judged]
    is_concordant = np.sign(human_delta) * np.sign(metric_delta) > 0
    # Once ε reaches its |Δ|, a pair is tied for the metric: right if annotators tie too, and no
    # longer concordant.
    gain = share * ((human_delta == 0).astype(np.int64) - is_concordant)
    distance = np.abs(metric_delta)
    order = np.argsort(distance)
    thresholds, starts = np.unique(distance[order], return_index=True)
    gains = np.add.reduceat(gain[order], starts)
    if thresholds[0] > 0:
        thresholds = np.append(0, thresholds)
        gains = np.append(0, gains)
    accuracy = (share[is_concordant].sum() + np.cumsum(gains)) / has_pairs.sum()
    epsilon = float(thresholds[accuracy.round(DIGITS).argmax()])
    by_segment = accuracies(ordered_pairs(human, metric, epsilon))[has_pairs]
    mean = fsum(by_segment) / len(by_segment)
    return Measure(mean, pairs, groups=len(by_segment), epsilon=epsilon)


def ordered_pairs(human: Floats, metric: Floats, epsilon: float) -> NDArray[np.bool_]:
    """Return which pairs of outputs are judged, and right at a given ε.

    Both are (2, pairs, segments).
    """
    human_delta = exact_differences(human)  # (pairs, segments)
    metric_delta = pair_differences(metric)
    is_concordant = np.sign(human_delta) * np.sign(metric_delta) > 0
    is_right = np.where(np.abs(metric_delta) <= epsilon, human_delta == 0, is_concordant)
    return np.stack([~np.isnan(human_delta), is_right])


def accuracies(pairs: NDArray[np.bool_]) -> Floats:
    """Return the accuracy of each segment, (segments,).

    NaN without a judged pair.
    """
    judged, right = pairs.sum(axis=1)
    return np.where(judged > 0, right / np.maximum(judged, 1), np.nan)
