"""Correlation of a metric with human scores, pairwise accuracy, and pairwise accuracy with tie calibration.

Pearson's r, Spearman's ρ (Pearson's of midranks) and Kendall's τ (M. G. Kendall, "The treatment of ties in ranking
problems", Biometrika 1945). Outputs without a judgement are left out. A side that is constant has no value.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import InputError, needs_extra

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Measure:
    """A number computed from human scores, or the reason why there is none."""

    value: float | None
    """None if the data gives no value."""
    n: int
    """What it was computed from: judged pairs of scores, or pairs of systems."""
    reason: str = ""
    """Why there is no value; empty if there is one."""
    groups: int = 1
    """How many values it is the mean of; 0 without a value."""
    left_out: int = 0
    """How many groups had no value, and are not part of the mean."""
    zeros: int = 0
    """How many groups count as 0 in the mean, since the metric is constant there."""
    low: float | None = None
    """The lower end of the 95 % interval, if there is one."""
    high: float | None = None
    """The upper end."""
    epsilon: float | None = None
    """For `tie_calibrated_accuracy`: the difference up to which two scores of the metric count as tied."""


def finite(value: float) -> float | None:
    """Return a number as Python has it, None for NaN or an infinite one."""
    return float(value) if np.isfinite(value) else None


def no_value(reason: str, n: int) -> Measure:
    """Return a measure without a value."""
    return Measure(None, n, reason, groups=0, left_out=1)


def average(measures: Sequence[Measure]) -> Measure:
    """Average the measures that have a value, each of one group, with the same weight; InputError without any."""
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
    """Return human scores and a metric's as float64; raise InputError unless shapes agree and no score is missing.

    Both are (systems, segments), or (systems,) with `ndim` 1. Human scores are NaN where nobody judged; the metric's
    are finite wherever annotators judged.
    """
    human, metric = np.asarray(human, dtype=np.float64), np.asarray(metric, dtype=np.float64)
    axes = ("system", "segment")[:ndim]
    if human.ndim != ndim or human.shape != metric.shape:
        shape = ", ".join(f"{axis}s" for axis in axes)
        raise InputError(
            f"Human scores of shape {human.shape} and metric scores of shape {metric.shape}; "
            f"expected both as ({shape}), in the same order."
        )
    for side, is_wrong in (("Annotators", np.isinf(human)), ("The metric", ~np.isnan(human) & ~np.isfinite(metric))):
        if is_wrong.any():
            place = ", ".join(f"{axis} {at}" for axis, at in zip(axes, np.argwhere(is_wrong)[0], strict=True))
            raise InputError(
                f"{side} gave no finite score at {place} (counted from 0). Give one, or NaN as the human score "
                f"to leave the place out."
            )
    _check_range(human, metric[~np.isnan(human)])
    return human, metric


LARGEST = 1e300
"""Larger scores are refused: the sum of a few would overflow."""


def _check_range(*scores: Floats) -> None:
    """Raise InputError if a finite score is too large to be summed."""
    for values in scores:
        if (np.isfinite(values) & (np.abs(values) > LARGEST)).any():
            raise InputError(f"A score is beyond ±{LARGEST:g}, and sums of such scores overflow. Scale the scores.")


def mean_by_system(scores: Floats) -> Floats:
    """Average each system's scores over the segments that have one, NaN for a system of none."""
    _check_range(scores)
    counts = (~np.isnan(scores)).sum(axis=1)
    return np.where(counts, np.nansum(scores, axis=1) / np.maximum(counts, 1), np.nan)


def scipy_module(name: Literal["special", "stats"]) -> Any:
    """Return a module of scipy, which takes a second to load; raise MissingExtraError unless scipy is installed."""
    with needs_extra("evaluation", "This statistic"):
        return import_module(f"scipy.{name}")


Coefficient = Literal["pearson", "spearman", "kendall_b", "kendall_c"]
COEFFICIENTS = get_args(Coefficient)
Grouping = Literal["all", "segment", "system"]
GROUPINGS = get_args(Grouping)
METRIC_CONSTANT = "the metric's scores are constant"
OUTLIER = 2.5
"""Robust z above which a system is an outlier: Mathur et al., "Tangled up in BLEU", ACL 2020, section 3.1."""


def correlate(human: Floats, metric: Floats, *, coefficient: Coefficient = "pearson", by: Grouping = "all") -> Measure:
    """Correlate a metric's segment scores with human scores.

    Args:
        human: (systems, segments), NaN where nobody judged.
        metric: (systems, segments), finite where annotators judged.
        coefficient: `kendall_b` corrects for ties of either side, `kendall_c` for the number of distinct scores.
        by: over all judged pairs at once; or within each segment, or each system, and then the mean of these values.

    Returns:
        The correlation in [-1, 1]. A group where only the metric is constant counts as 0, since leaving it out would
        favour a metric that is constant where it would err. Groups without a value are left out and counted; `n`
        counts the pairs in the others.

    Raises:
        InputError: shapes differ, a score is missing, or a coefficient or grouping is unknown.
        MissingExtraError: scipy, which Kendall's τ needs, is not installed.
    """
    human, metric = judged_scores(human, metric)
    if by not in GROUPINGS:
        raise InputError(f"There is no grouping {by!r}; expected one of {', '.join(GROUPINGS)}.")
    if by == "all":
        return correlate_pairs(human.ravel(), metric.ravel(), coefficient=coefficient)
    if by == "segment":
        human, metric = human.T, metric.T
    measures = [correlate_pairs(*pairs, coefficient=coefficient) for pairs in zip(human, metric, strict=True)]
    return average([Measure(0.0, row.n, zeros=1) if row.reason == METRIC_CONSTANT else row for row in measures])


def correlate_pairs(human: Floats, metric: Floats, *, coefficient: Coefficient = "pearson") -> Measure:
    """Correlate two rows of scores, such as those of systems.

    Args:
        human: (n,), NaN where nobody judged.
        metric: (n,), finite where annotators judged.
        coefficient: as `correlate` has it.

    Raises:
        InputError: shapes differ, a score is missing, or the coefficient is unknown.
        MissingExtraError: scipy, which Kendall's τ needs, is not installed.
    """
    human, metric = judged_scores(human, metric, ndim=1)
    if coefficient not in COEFFICIENTS:
        raise InputError(f"There is no coefficient {coefficient!r}; expected one of {', '.join(COEFFICIENTS)}.")
    is_judged = ~np.isnan(human)
    human, metric = human[is_judged], metric[is_judged]
    n = len(human)
    if n < 2:
        return no_value(f"{n} judged, and a correlation needs two", n)
    for reason, scores in (("the human scores are constant", human), (METRIC_CONSTANT, metric)):
        if (scores == scores[0]).all():
            return no_value(reason, n)
    if coefficient == "pearson":
        return Measure(float(pearson(human, metric)), n)
    if coefficient == "spearman":
        return Measure(float(pearson(midranks(human), midranks(metric))), n)
    tau = scipy_module("stats").kendalltau(human, metric, variant=coefficient[-1]).statistic
    return Measure(float(tau), n)


def pearson(human: Floats, metric: Floats) -> Floats:
    """Return Pearson's r along the last axis, (…), from (…, n); NaN where a side is constant."""
    human, metric = unit_vectors(human), unit_vectors(metric)
    return np.clip((human * metric).sum(axis=-1), -1, 1)


def pearson_of_moments(moments: Iterable[Floats], of_constant: float = 0.0) -> Floats:
    """Return Pearson's r from the sums of 1, g, g², x, x² and g·x, each (…).

    It is NaN where human scores g are constant, else `of_constant` where the metric's scores x are.
    """
    number, g, gg, x, xx, gx = moments
    number = np.maximum(number, 1)
    human, metric = gg - g * g / number, xx - x * x / number
    human_varies = human > ROUNDING * gg
    varies = human_varies & (metric > ROUNDING * xx)
    r = np.full(varies.shape, of_constant)
    np.divide(gx - g * x / number, np.sqrt(np.maximum(human * metric, 0)), out=r, where=varies)
    return np.where(human_varies, np.clip(r, -1, 1), np.nan)


def midranks(scores: Floats) -> Floats:
    """Rank scores from 1, the lowest, (n,); equal scores share the mean of their ranks."""
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]


def outliers(system_scores: Floats) -> NDArray[np.bool_]:
    """Find the systems whose human score is far from the others': |x − median| / (1.4826·MAD) > 2.5.

    Mathur et al., "Tangled up in BLEU", ACL 2020, section 3.1. One such system can make any metric correlate.

    Args:
        system_scores: human scores, (systems,), finite.

    Returns:
        True for outliers, (systems,). Where more than half the scores are the same, MAD is 0 and gives no scale to
        measure distance by: no system is an outlier then.

    Raises:
        InputError: the scores have another shape, or are not finite.
    """
    scores = np.asarray(system_scores, dtype=np.float64)
    if scores.ndim != 1 or not len(scores) or not np.isfinite(scores).all():
        raise InputError(f"System scores of shape {scores.shape}; expected (systems,), all finite, at least one.")
    distance = np.abs(scores - np.median(scores))
    scale = 1.4826 * np.median(distance)
    return (scale > 0) & (distance > OUTLIER * scale)


def unit_vectors(scores: Floats) -> Floats:
    """Centre scores and divide by their norm, whose squares neither overflow nor vanish; (…, n)."""
    centred = scores - scores.mean(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore"):
        centred /= np.abs(centred).max(axis=-1, keepdims=True)
    return centred / np.sqrt((centred * centred).sum(axis=-1, keepdims=True))


# Agreement on pairs of systems: pairwise accuracy, and soft pairwise accuracy, which weighs how sure each side is.
# Kocmi et al., "To Ship or Not to Ship", WMT 2021; Thompson et al., "Improving Statistical Significance in Human
# Evaluation of Automatic Metrics via Soft Pairwise Accuracy", WMT 2024.


ROUNDING = 1e-9
"""Correlations closer than this are equal but for rounding; likewise sums, as a share of their absolute sum."""


def pairwise_accuracy(language_pairs: Sequence[tuple[Floats, Floats]]) -> Measure:
    """Return the share of pairs of systems that a metric orders as annotators do, pooled over language pairs.

    A tie of one side agrees only with a tie of the other; scores that are equal but for rounding are tied.

    Args:
        language_pairs: for each, the system human scores and by the metric, each (systems,). Systems are compared
            within their language pair alone. A system without a judgement, NaN, is left out.

    Returns:
        The share in [0, 1]; `n` counts the pairs of systems.

    Raises:
        InputError: shapes differ, or a score is missing or infinite.
    """
    agrees = [np.empty(0, dtype=bool)]
    for human, metric in language_pairs:
        judged = judged_scores(human, metric, ndim=1)
        human_signs, metric_signs = (pair_signs(side[~np.isnan(judged[0])]) for side in judged)
        agrees.append(human_signs == metric_signs)
    pairs = np.concatenate(agrees)
    if not len(pairs):
        return no_value("no language pair has two judged systems", 0)
    return Measure(float(pairs.mean()), len(pairs))


def soft_pairwise_accuracy(human: Floats, metric: Floats, *, permutations: int = 1000, seed: int = 4) -> Measure:
    """Return 1 − the mean over pairs of systems of |p by human scores − p by the metric| (SPA, section 3 of the paper).

    p is the probability of such a lead of one system over another if the two were equal (`superiority`).

    Args:
        human: (systems, segments), NaN where nobody judged. Only segments judged for every system count.
        metric: (systems, segments), finite where annotators judged.
        permutations: how often each pair of systems is permuted.
        seed: of the permutations; 4 draws those of mt-metrics-eval.

    Returns:
        SPA in [0, 1]; `n` counts the pairs of systems.

    Raises:
        InputError: shapes differ, a score is missing or infinite, or there are no permutations.
    """
    human, metric = judged_scores(human, metric)
    is_judged = ~np.isnan(human).any(axis=0)
    if len(human) < 2:
        return no_value("a pair needs two systems", 0)
    if not is_judged.any():
        return no_value("no segment is judged for every system", 0)
    by_human, by_metric = (
        superiority(scores[:, is_judged], permutations=permutations, seed=seed) for scores in (human, metric)
    )
    if np.ptp(metric[:, is_judged]) == 0:  # p is 1 in both directions then, and the value a matter of order
        return no_value(METRIC_CONSTANT, 0)
    upper = np.triu_indices(len(human), 1)
    return Measure(float(1 - np.abs(by_human - by_metric)[upper].mean()), len(upper[0]))


def pair_differences(scores: Floats) -> Floats:
    """Return the differences of every two systems, (pairs, …), from scores, (systems, …)."""
    first, second = np.triu_indices(len(scores), 1)
    return scores[first] - scores[second]


def pair_signs(scores: Floats) -> Floats:
    """Return the signs of the differences of pairs of systems, (…, pairs), from scores, (…, systems); 0 of rounding."""
    first, second = np.triu_indices(scores.shape[-1], 1)
    difference = scores[..., first] - scores[..., second]
    rounding = max(ROUNDING * np.abs(scores).max(initial=0, where=~np.isnan(scores)), 1 / LARGEST)
    return np.sign(difference) * (np.abs(difference) > rounding)


def superiority(scores: Floats, *, permutations: int = 1000, seed: int = 4) -> Floats:
    """Test for every pair of systems whether the first is better, by paired permutation of their segments.

    The two outputs of a segment are swapped with probability ½. The same swaps serve all pairs, so that one matrix
    product of signs and scores answers for all (mt-metrics-eval: `pairwise_paired_permutation_test.py`).

    Returns p that system i is better than j, (systems, systems): the share of permutations with Δ* ≥ Δ = xᵢ − xⱼ, from
    finite scores, (systems, segments). Values that are equal but for rounding count as equal. On the diagonal 1.
    """
    if permutations < 1:
        raise InputError(f"{permutations} permutations; expected at least one, such as 1000.")
    rng = np.random.default_rng(seed)
    signs = 2 * np.rint(rng.random((permutations, scores.shape[1]), dtype=np.float32)) - 1
    permuted = signs @ scores.T  # (permutations, systems)
    totals = scores.sum(axis=1)
    slack = ROUNDING * np.abs(scores).sum()
    p = np.empty((len(scores), len(scores)))
    for system, total in enumerate(totals):
        delta = total - totals  # (systems,)
        p[system] = (permuted[:, system, None] - permuted >= delta - slack).mean(axis=0)
    return p


# acc*_eq, pairwise accuracy with tie calibration: Deutsch, Foster and Freitag, "Ties Matter", EMNLP 2023.


DIGITS = 12
"""Accuracies that agree to this digit are equal: below it they differ by the rounding of sums."""


def tie_calibrated_accuracy(human: Floats, metric: Floats) -> Measure:
    """Find the ε at which a metric agrees best with human scores, and how often it agrees then.

    A segment's accuracy is (concordant pairs + pairs tied in both) / all pairs, section 5 of the paper; ε is one for
    the whole set and maximises the mean over segments, section 6 (mt-metrics-eval: `tau_optimization.py`, with every
    pair in the sample). Annotators tie where their scores are equal, the metric where |Δ| ≤ ε. Of several ε that are
    equally good, the smallest is taken; ε = 0 is among them.

    Args:
        human: (systems, segments), NaN where nobody judged; such pairs are left out.
        metric: (systems, segments), finite where annotators judged.

    Raises:
        InputError: shapes differ, or a score is missing or infinite.
    """
    human_delta, metric_delta = (pair_differences(side).T for side in judged_scores(human, metric))  # (segments, pairs)
    is_judged = ~np.isnan(human_delta)
    counts = is_judged.sum(axis=1)
    pairs, segments = int(counts.sum()), int((counts > 0).sum())
    if not pairs:
        return no_value("no segment has two judged systems", 0)

    share = np.repeat(1 / np.maximum(counts, 1), counts) / segments  # a pair's part in the mean, (judged pairs,)
    human_delta, metric_delta = human_delta[is_judged], metric_delta[is_judged]
    is_concordant = np.sign(human_delta) * np.sign(metric_delta) > 0
    # Once ε reaches its |Δ|, a pair is tied for the metric: right if annotators tie too, and no longer concordant.
    gain = share * ((human_delta == 0).astype(np.int64) - is_concordant)
    distance = np.abs(metric_delta)
    order = np.argsort(distance)
    thresholds, starts = np.unique(distance[order], return_index=True)
    gains = np.add.reduceat(gain[order], starts)
    if thresholds[0] > 0:
        thresholds, gains = np.append(0, thresholds), np.append(0, gains)
    accuracy = share[is_concordant].sum() + np.cumsum(gains)
    best = int(accuracy.round(DIGITS).argmax())
    return Measure(min(float(accuracy[best]), 1.0), pairs, groups=segments, epsilon=float(thresholds[best]))


def ordered_pairs(human: Floats, metric: Floats, epsilon: float) -> NDArray[np.bool_]:
    """Return which pairs of outputs are judged, and which are right at a given ε, (2, pairs, segments)."""
    human_delta, metric_delta = pair_differences(human), pair_differences(metric)  # (pairs, segments)
    is_concordant = np.sign(human_delta) * np.sign(metric_delta) > 0
    is_right = np.where(np.abs(metric_delta) <= epsilon, human_delta == 0, is_concordant)
    return np.stack([~np.isnan(human_delta), is_right])
