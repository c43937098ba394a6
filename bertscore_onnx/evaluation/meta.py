"""Judge metrics by human scores of systems, over one or more language pairs."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

import numpy as np

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.correlation import (
    Floats,
    Measure,
    average,
    correlate,
    correlate_pairs,
    no_value,
    outliers,
    pairwise_accuracy,
    pearson,
    soft_pairwise_accuracy,
    tie_calibrated_accuracy,
)
from bertscore_onnx.evaluation.judged_systems import JudgedSystems
from bertscore_onnx.evaluation.meta_results import (
    Agreement,
    Difference,
    LanguagePairResult,
    MetaEvaluation,
    MetricAgreement,
    MetricMean,
    MetricPair,
)
from bertscore_onnx.evaluation.metric_tests import MIN_SYSTEMS, PermBoth, Williams, clusters, perm_both, williams
from bertscore_onnx.evaluation.metrics import MetricScores

# How one metric agrees with human scores in one language pair.


def system_agreement(
    judged: JudgedSystems, metric: MetricScores, *, rank: int | None, permutations: int, seed: int
) -> Agreement | None:
    """Compare a metric's scores of whole systems with human scores; None if the metric has none."""
    if metric.system is None:
        return None
    is_judged = ~np.isnan(judged.human_system)
    human, scores = judged.human_system[is_judged], metric.system[is_judged]
    is_outlier = outliers(human) if len(human) else is_judged[is_judged]
    names = np.array(judged.systems, dtype=object)[is_judged]
    measures = {
        "pearson": correlate_pairs(human, scores),
        "pearson_without_outliers": correlate_pairs(human[~is_outlier], scores[~is_outlier]),
        "accuracy": pairwise_accuracy([(human, scores)]),
        "spa": _soft_accuracy(judged, metric, permutations, seed),
    }
    ties = _ties(human[:, None], scores[:, None])
    return Agreement(len(human), measures, *ties, rank, tuple(names[is_outlier]))


def segment_agreement(judged: JudgedSystems, metric: MetricScores, *, rank: int | None) -> Agreement | None:
    """Compare a metric's scores of segments with human scores; None if either has none."""
    human, scores = judged.human_segment, metric.segment
    if human is None or scores is None:
        return None
    is_judged = ~np.isnan(human).all(axis=0)
    human, scores = human[:, is_judged], scores[:, is_judged]  # (systems, judged segments)
    measures = {
        "pearson": correlate(human, scores),
        "pearson_by_item": correlate(human, scores, by="segment"),
        "pearson_by_system": correlate(human, scores, by="system"),
        "kendall": correlate(human, scores, coefficient="kendall_b"),
        "kendall_c": correlate(human, scores, coefficient="kendall_c"),
        "acc_eq": tie_calibrated_accuracy(human, scores),
    }
    return Agreement(int((~np.isnan(human)).sum()), measures, *_ties(human, scores), rank)


def _soft_accuracy(judged: JudgedSystems, metric: MetricScores, permutations: int, seed: int) -> Measure:
    if judged.human_segment is None:
        return no_value("only whole systems have human scores, and it takes segments", 0)
    if metric.segment is None:
        return no_value("the metric has no scores of segments", 0)
    has_any = ~np.isnan(judged.human_segment).all(axis=1)
    return soft_pairwise_accuracy(
        judged.human_segment[has_any], metric.segment[has_any], permutations=permutations, seed=seed
    )


def _ties(human: Floats, metric: Floats) -> tuple[int, int, int]:
    """Count the judged pairs of systems within each segment, and those with equal scores by either side.

    Both are (systems, segments).
    """
    pairs = human_ties = metric_ties = 0
    for system in range(len(human) - 1):
        human_delta = human[system] - human[system + 1 :]
        is_judged = ~np.isnan(human_delta)
        pairs += int(is_judged.sum())
        human_ties += int((human_delta == 0).sum())
        metric_ties += int((is_judged & (metric[system] == metric[system + 1 :])).sum())
    return pairs, human_ties, metric_ties


# Which metrics correlate better with human scores than which others, and the ranks that follow.


def compare_metrics(
    human: Floats | None, scores: Mapping[str, Floats | None], permutations: int, seed: int
) -> tuple[dict[str, int], dict[tuple[str, str], Difference]]:
    """Compare metrics by Pearson's r at one level, with PERM-BOTH, and Williams' test for whole systems.

    Returns the rank of each metric that correlates, and the differences by the names of two, in both orders. Scores
    are those of systems, (systems,), or of segments, (systems, segments).
    """
    if human is None:
        return {}, {}
    has_williams = human.ndim == 1
    human = human.reshape(len(human), -1)
    found = {name: metric.reshape(human.shape) for name, metric in scores.items() if metric is not None}
    names = [name for name, metric in found.items() if correlate_pairs(human.ravel(), metric.ravel()).value is not None]
    if len(names) < 2:
        return dict.fromkeys(names, 1), {}
    human = _scaled(human)
    metrics = [_scaled(found[name]) for name in names]
    test = perm_both(human, metrics, permutations=permutations, seed=seed)
    ranks = clusters(test.correlations, test.p)
    differences = {}
    for first, second in combinations(range(len(names)), 2):
        for one, other in ((first, second), (second, first)):
            tested = _williams(human, metrics, test, one, other) if has_williams else None
            delta = float(test.correlations[one] - test.correlations[other])
            p, p_reverse = float(test.p[one, other]), float(test.p[other, one])
            differences[names[one], names[other]] = Difference(delta, p, p_reverse, tested)
    return {name: int(rank) for name, rank in zip(names, ranks, strict=True)}, differences


def _scaled(scores: Floats) -> Floats:
    """Divide scores by the largest, which changes no correlation, so that their squares are within range."""
    scaled: Floats = scores / np.nanmax(np.abs(scores))
    return scaled


def _williams(human: Floats, metrics: list[Floats], test: PermBoth, first: int, second: int) -> Williams:
    is_judged = ~np.isnan(human)
    n = int(is_judged.sum())
    if n < MIN_SYSTEMS:
        return Williams(None, None, n, reason=f"{n} systems, and the test needs {MIN_SYSTEMS}")
    between = pearson(metrics[first][is_judged], metrics[second][is_judged])  # both correlate, so neither is constant
    return williams(float(test.correlations[first]), float(test.correlations[second]), between, n)


def meta_evaluate(
    language_pairs: Sequence[JudgedSystems], *, permutations: int = 1000, seed: int = 4
) -> MetaEvaluation:
    """Correlate metrics with human scores.

    Args:
        language_pairs: the systems of each, with the metrics to judge. Systems without human scores are left out.
        permutations: of soft pairwise accuracy, and of PERM-BOTH over every two metrics.
        seed: of the permutations; with 4, soft pairwise accuracy is that of mt-metrics-eval.

    Raises:
        InputError: there is no language pair, one is given twice, one has no metric or no judged system, shapes
            differ, or a metric lacks a score that annotators judged.
        MissingExtraError: scipy is not installed.
    """
    names = [one.language_pair for one in language_pairs]
    if not names or len({*names}) < len(names):
        raise InputError(f"The language pairs are {names}. Give at least one, and each once.")
    judged = [one.judged() for one in language_pairs]
    results = tuple(_language_pair(one, permutations, seed) for one in judged)
    return MetaEvaluation(results, _means(judged, results), permutations, seed)


def _language_pair(judged: JudgedSystems, permutations: int, seed: int) -> LanguagePairResult:
    if not judged.metrics:
        raise InputError(f"{judged.language_pair}: there are no scores of a metric. Give those of one at least.")
    system_scores = {name: metric.system for name, metric in judged.metrics.items()}
    segment_scores = {name: metric.segment for name, metric in judged.metrics.items()}
    system_ranks, system_differences = compare_metrics(judged.human_system, system_scores, permutations, seed)
    segment_ranks, segment_differences = compare_metrics(judged.human_segment, segment_scores, permutations, seed)
    ranks = segment_ranks or system_ranks
    base_names = Counter(metric.base_name for metric in judged.metrics.values())
    agreements = [
        MetricAgreement(
            name,
            metric.base_name if metric.base_name and base_names[metric.base_name] == 1 else name,
            metric.signature,
            system_agreement(judged, metric, rank=system_ranks.get(name), permutations=permutations, seed=seed),
            segment_agreement(judged, metric, rank=segment_ranks.get(name)),
            ranks.get(name),
        )
        for name, metric in judged.metrics.items()
    ]
    ordered = sorted(agreements, key=_place)
    pairs = [
        MetricPair(
            first.name,
            second.name,
            system_differences.get((first.name, second.name)),
            segment_differences.get((first.name, second.name)),
        )
        for first, second in combinations(ordered, 2)
    ]
    human = judged.human_segment
    num_segments = 0 if human is None else int((~np.isnan(human)).any(axis=0).sum())
    return LanguagePairResult(
        judged.language_pair,
        judged.gold,
        judged.reference,
        judged.systems,
        num_segments,
        tuple(ordered),
        tuple(pairs),
        tuple(_notes(judged)),
    )


def _place(metric: MetricAgreement) -> tuple[float, float]:
    """Sort by rank and then by correlation; what has neither comes last."""
    level = metric.segment or metric.system
    r = level["pearson"].value if level else None
    return (np.inf if metric.rank is None else metric.rank, np.inf if r is None else -r)


def _notes(judged: JudgedSystems) -> Iterator[str]:
    """Yield warnings about scores that are less comparable."""
    if judged.human_segment is None:
        return
    for name, metric in judged.metrics.items():
        if metric.segment is None:
            yield f"{name} has no scores of segments, and so no rank among them"
    is_judged = ~np.isnan(judged.human_segment)
    counts = is_judged.sum(axis=1)
    shared = int(is_judged.all(axis=0).sum())
    if not (counts == shared).all():
        yield (
            f"systems are judged on different segments, {counts.min()} to {counts.max()} each, of which {shared} for "
            "all: the score of a system is the mean over its own, and SPA takes those of all"
        )


def _means(judged: Sequence[JudgedSystems], results: Sequence[LanguagePairResult]) -> tuple[MetricMean, ...]:
    names = dict.fromkeys(metric.base_name for result in results for metric in result.metrics)
    means = [_mean(name, judged, results) for name in names]
    return tuple(sorted(means, key=_lowest_last))


def _lowest_last(mean: MetricMean) -> float:
    accuracy = mean["accuracy"].value
    return np.inf if accuracy is None else -accuracy


def _mean(name: str, judged: Sequence[JudgedSystems], results: Sequence[LanguagePairResult]) -> MetricMean:
    found = [
        (one, metric)
        for one, result in zip(judged, results, strict=True)
        for metric in result.metrics
        if metric.base_name == name
    ]
    systems = [metric.system for _, metric in found if metric.system is not None]
    segments = [metric.segment for _, metric in found if metric.segment is not None]
    scores = [(one.human_system, one.metrics[metric.name].system) for one, metric in found]
    measures = {
        "accuracy": pairwise_accuracy([(human, metric) for human, metric in scores if metric is not None]),
        "system_pearson": _average([one["pearson"] for one in systems]),
        "spa": _average([one["spa"] for one in systems]),
        "segment_pearson": _average([one["pearson"] for one in segments]),
        "kendall": _average([one["kendall"] for one in segments]),
        "acc_eq": _average([one["acc_eq"] for one in segments]),
    }
    return MetricMean(name, len({one.language_pair for one, _ in found}), measures)


def _average(measures: Sequence[Measure]) -> Measure:
    return average(measures) if measures else no_value("the metric has no such scores", 0)
