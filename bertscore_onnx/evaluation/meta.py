"""Judge metrics by human scores of systems, over one or more language pairs."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from itertools import permutations as all_orders
from typing import Literal, get_args

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
from bertscore_onnx.evaluation.metric_pairs import notes_of_exchanges, notes_of_few
from bertscore_onnx.evaluation.metric_tests import MIN_SYSTEMS, Williams, clusters, perm_both, williams
from bertscore_onnx.evaluation.metrics import MetricScores
from bertscore_onnx.evaluation.resampling import (
    UnitSums,
    correlation_interval,
    enough_permutations,
    exchange_units,
    holm_matrix,
    resample_units,
)
from bertscore_onnx.evaluation.significance import MAX_EXACT
from bertscore_onnx.evaluation.tables import plural
from bertscore_onnx.evaluation.unit_statistics import SegmentStatistics, SystemStatistics, whole_system_sums

Test = Literal["segments", "perm-both"]
TESTED = ("pearson", "pearson_by_item", "acc_eq", "spa")
"""The statistics that are tested; the ranks are by the first."""

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


def compare_units(
    sums: Mapping[str, UnitSums], permutations: int, seed: int
) -> tuple[dict[str, int], dict[tuple[str, str], Difference]]:
    """Compare metrics by a statistic, exchanging whole units; returns what `compare_metrics` does."""
    values = {name: float(one.statistic(one.sums.sum(axis=0))) for name, one in sums.items()}
    names = [name for name, value in values.items() if np.isfinite(value)]
    if len(names) < 2:
        return dict.fromkeys(names, 1), {}
    p = exchange_units([sums[name] for name in names], permutations=permutations, seed=seed)
    corrected = holm_matrix(p)
    ranks = clusters(np.array([values[name] for name in names]), corrected)
    differences = {
        (names[one], names[other]): Difference(
            values[names[one]] - values[names[other]], float(p[one, other]), p_holm=float(corrected[one, other])
        )
        for one, other in all_orders(range(len(names)), 2)
    }
    return {name: int(rank) for name, rank in zip(names, ranks, strict=True)}, differences


def compare_metrics(
    human: Floats | None, scores: Mapping[str, Floats | None], permutations: int, seed: int, test: Test = "perm-both"
) -> tuple[dict[str, int], dict[tuple[str, str], Difference]]:
    """Compare metrics by Pearson's r at one level, and by Williams' test for whole systems.

    Those of segments are compared by PERM-BOTH; whole systems by the test named.

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
    if test == "segments":
        sums = {name: whole_system_sums(human[:, 0], one[:, 0]) for name, one in zip(names, metrics, strict=True)}
        ranked, exchanged = compare_units(sums, permutations, seed)
        r = {
            name: float(correlate_pairs(human[:, 0], one[:, 0]).value or 0)
            for name, one in zip(names, metrics, strict=True)
        }
        at = {name: place for place, name in enumerate(names)}
        return ranked, {
            pair: replace(difference, williams=_williams(human, metrics, [*r.values()], at[pair[0]], at[pair[1]]))
            for pair, difference in exchanged.items()
        }
    found_by = perm_both(human, metrics, permutations=permutations, seed=seed)
    ranks = clusters(found_by.correlations, found_by.p)
    differences = {}
    for first, second in combinations(range(len(names)), 2):
        for one, other in ((first, second), (second, first)):
            tested = _williams(human, metrics, found_by.correlations, one, other) if has_williams else None
            delta = float(found_by.correlations[one] - found_by.correlations[other])
            p, p_reverse = float(found_by.p[one, other]), float(found_by.p[other, one])
            differences[names[one], names[other]] = Difference(delta, p, p_reverse, tested)
    return {name: int(rank) for name, rank in zip(names, ranks, strict=True)}, differences


def _scaled(scores: Floats) -> Floats:
    """Divide scores by the largest, which changes no correlation, so that their squares are within range."""
    scaled: Floats = scores / np.nanmax(np.abs(scores))
    return scaled


def _williams(human: Floats, metrics: list[Floats], r: Sequence[float] | Floats, first: int, second: int) -> Williams:
    is_judged = ~np.isnan(human)
    n = int(is_judged.sum())
    if n < MIN_SYSTEMS:
        return Williams(None, None, n, reason=f"{n} systems, and the test needs {MIN_SYSTEMS}")
    between = pearson(metrics[first][is_judged], metrics[second][is_judged])
    return williams(float(r[first]), float(r[second]), float(between), n)


def meta_evaluate(
    language_pairs: Sequence[JudgedSystems], *, permutations: int = 1000, seed: int = 4, test: Test = "segments"
) -> MetaEvaluation:
    """Correlate metrics with human scores, with 95 % intervals over other segments (documents, if known).

    Those of Pearson's r by segments are of Fisher's z, by a jackknife; the others by a bootstrap.

    Args:
        language_pairs: the systems of each, with the metrics to judge. Systems without human scores are left out.
        permutations: of soft pairwise accuracy, and of the test of every two metrics; that by segments has at least 30
            for each pair of metrics, so that corrected p-values can be below .05.
        test: `segments` exchanges the scores of two metrics in whole segments (documents, if known), with two-sided p
            and Holm's correction for all pairs. `perm-both` is that of the WMT metrics tasks, which takes the outputs
            of a segment for independent, with one-sided, uncorrected p.
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
    if test not in get_args(Test):
        raise InputError(f"There is no test {test!r}; expected one of {', '.join(get_args(Test))}.")
    results = tuple(_language_pair(one, permutations, seed, test) for one in judged)
    return MetaEvaluation(results, _means(judged, results), permutations, seed, test)


def _language_pair(judged: JudgedSystems, permutations: int, seed: int, test: Test) -> LanguagePairResult:
    if not judged.metrics:
        raise InputError(f"{judged.language_pair}: there are no scores of a metric. Give those of one at least.")
    system_scores = {name: metric.system for name, metric in judged.metrics.items()}
    segment_scores = {name: metric.segment for name, metric in judged.metrics.items()}
    drawn = enough_permutations(permutations, len(judged.metrics)) if test == "segments" else permutations
    system_ranks, system_differences = compare_metrics(judged.human_system, system_scores, drawn, seed, test)
    sums, of_systems = _unit_sums(judged)
    compared = {
        name: compare_units({metric: one[name] for metric, one in sums.items() if name in one}, drawn, seed)
        for name in (TESTED if test == "segments" else ())
    }
    segment_ranks, segment_differences = compared.pop("pearson", ({}, {}))
    if test == "perm-both":
        segment_ranks, segment_differences = compare_metrics(judged.human_segment, segment_scores, drawn, seed)
    ranks = segment_ranks or system_ranks
    base_names = Counter(metric.base_name for metric in judged.metrics.values())
    agreements = [
        MetricAgreement(
            name,
            metric.base_name if metric.base_name and base_names[metric.base_name] == 1 else name,
            metric.signature,
            _with_intervals(
                system_agreement(judged, metric, rank=system_ranks.get(name), permutations=permutations, seed=seed),
                {key: one for key, one in sums.get(name, {}).items() if key == "spa"} | of_systems.get(name, {}),
                seed,
            ),
            _with_intervals(segment_agreement(judged, metric, rank=segment_ranks.get(name)), sums.get(name, {}), seed),
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
            {
                statistic: differences[first.name, second.name]
                for statistic, (_, differences) in compared.items()
                if (first.name, second.name) in differences
            },
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
        (
            *_notes(judged),
            *(_notes_of_tests(judged, len(segment_ranks), len(system_ranks)) if test == "segments" else ()),
        ),
        _kind_of_units(judged),
        0.0 if test == "segments" and _num_units(judged) <= MAX_EXACT else 1 / (drawn + 1),
    )


def _unit_sums(judged: JudgedSystems) -> tuple[dict[str, dict[str, UnitSums]], dict[str, dict[str, UnitSums]]]:
    """Return by metric the statistics of segments, and those of whole systems, as functions of sums over units."""
    human = judged.human_segment
    of_segments: dict[str, dict[str, UnitSums]] = {}
    of_systems: dict[str, dict[str, UnitSums]] = {}
    if human is None or np.isnan(human).all():
        return of_segments, of_systems
    is_judged = ~np.isnan(human).all(axis=0)
    units = judged.unit_numbers(is_judged)
    human = human[:, is_judged]
    rows = ~np.isnan(judged.human_system)
    for name, metric in judged.metrics.items():
        scores = None if metric.segment is None else metric.segment[:, is_judged]
        if scores is None or np.ptp(scores[~np.isnan(human)]) == 0:
            continue
        scales = [np.nanmax(np.abs(side)) or 1.0 for side in (human, scores)]
        has_any = ~np.isnan(human).all(axis=1)
        of_segments[name] = SegmentStatistics(human[has_any] / scales[0], scores[has_any] / scales[1], units).sums()
        if metric.system is not None and rows.sum() > 1:
            sides = (judged.human_system[rows] / scales[0], metric.system[rows] / scales[1])
            kept = ~outliers(sides[0])
            of_systems[name] = SystemStatistics(
                sides, (human[rows] / scales[0], scores[rows] / scales[1]), units, kept
            ).sums()
    return of_segments, of_systems


def _with_intervals(agreement: Agreement | None, sums: Mapping[str, UnitSums], seed: int) -> Agreement | None:
    """Add the interval of each measure that has a value and sums, about that value."""
    names = [name for name in sums if agreement and name in agreement.measures and agreement[name].value is not None]
    if agreement is None or not names or len(sums[names[0]].sums) < 2:
        return agreement
    ends = resample_units([sums[name] for name in names], seed=seed)
    for place, name in enumerate(names):
        if agreement.outliers is None and name.startswith("pearson"):
            found = correlation_interval(sums[name])
            ends[:, place] = found if np.isfinite(found).all() else ends[:, place]
    measures = dict(agreement.measures)
    for name, (low, high) in zip(names, ends.T, strict=True):
        shift = (measures[name].value or 0.0) - float(sums[name].statistic(sums[name].sums.sum(axis=0)))
        if np.isfinite(low + shift):
            least = 0.0 if name in ("accuracy", "spa", "acc_eq") else -1.0
            low, high = (float(np.clip(end + shift, least, 1)) for end in (low, high))
            measures[name] = replace(measures[name], low=low, high=high)
    return replace(agreement, measures=measures)


def _place(metric: MetricAgreement) -> tuple[float, float]:
    """Sort by rank and then by correlation; what has neither comes last."""
    level = metric.segment or metric.system
    r = level["pearson"].value if level else None
    return (np.inf if metric.rank is None else metric.rank, np.inf if r is None else -r)


def _notes(judged: JudgedSystems) -> Iterator[str]:
    """Yield warnings about scores that are less comparable."""
    if judged.dropped:
        yield f"{plural(len(judged.dropped), 'segment')} left out, where a judged output has no score by some metric"
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
    yield from notes_of_few(_num_units(judged), _kind_of_units(judged))


def _notes_of_tests(judged: JudgedSystems, num_of_segments: int, num_of_systems: int) -> Iterator[str]:
    """Yield warnings where too few units can be exchanged, by how many metrics correlate at each level."""
    yield from notes_of_exchanges(_num_units(judged), _kind_of_units(judged), num_of_segments)
    yield from notes_of_exchanges(int((~np.isnan(judged.human_system)).sum()), "systems", num_of_systems)


def _num_units(judged: JudgedSystems) -> int:
    """Return how many segments, or documents if they are known, have a human score."""
    human = judged.human_segment
    return 0 if human is None else int(judged.unit_numbers((~np.isnan(human)).any(axis=0)).max(initial=-1)) + 1


def _kind_of_units(judged: JudgedSystems) -> str:
    return "documents" if judged.documents else "segments"


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
    num_pairs = len({one.language_pair for one, _ in found})
    measures = {key: [agreement[of] for agreement in level] for key, of, level in _levels(found)}
    scores = [(one.human_system, one.metrics[metric.name].system) for one, metric in found]
    pooled = pairwise_accuracy([(human, metric) for human, metric in scores if metric is not None])
    averages = {"accuracy": pooled, **{key: _average(values, len(results)) for key, values in measures.items()}}
    if num_pairs < len(results):
        averages = {key: no_value(_SOME_PAIRS.format(num_pairs, len(results)), 0) for key in averages}
    return MetricMean(name, num_pairs, averages)


_SOME_PAIRS = "the metric has scores of {} of {} language pairs, and means over others cannot be compared"


def _levels(found: Sequence[tuple[JudgedSystems, MetricAgreement]]) -> Iterator[tuple[str, str, list[Agreement]]]:
    """Yield each mean, the measure that it is of, and the agreements at its level."""
    systems = [metric.system for _, metric in found if metric.system is not None]
    segments = [metric.segment for _, metric in found if metric.segment is not None]
    yield from (("system_pearson", "pearson", systems), ("spa", "spa", systems))
    yield from (("segment_pearson", "pearson", segments), ("kendall", "kendall", segments))
    yield "acc_eq", "acc_eq", segments


def _average(measures: Sequence[Measure], num_pairs: int) -> Measure:
    """Average over language pairs; the interval takes these for independent (Zou and Donner, 2008)."""
    if not measures:
        return no_value("the metric has no such scores", 0)
    mean = average(measures)
    if mean.value is not None and mean.groups < num_pairs:
        return no_value(_SOME_PAIRS.format(mean.groups, num_pairs), 0)
    if mean.value is None or any(one.low is None or one.high is None for one in measures):
        return mean
    ends = np.array([(one.value, one.low, one.high) for one in measures], dtype=np.float64)
    below, above = (np.sqrt(((ends[:, 0] - ends[:, at]) ** 2).sum()) / len(ends) for at in (1, 2))
    return replace(mean, low=mean.value - float(below), high=mean.value + float(above))
