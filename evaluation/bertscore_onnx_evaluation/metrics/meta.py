"""Judge metrics by human scores of systems, over one or more language pairs."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import InputError, listed
from bertscore_onnx.tables.table import plural
from bertscore_onnx_evaluation.metric_scores import MetricScores
from bertscore_onnx_evaluation.metrics.correlation import (
    ROUNDING,
    Floats,
    Measure,
    average,
    correlate,
    correlate_pairs,
    no_value,
    outliers,
    pair_signs,
    pairwise_accuracy,
    soft_pairwise_accuracy,
    tie_calibrated_accuracy,
)
from bertscore_onnx_evaluation.metrics.judged_systems import JudgedSystems
from bertscore_onnx_evaluation.metrics.meta_results import (
    Agreement,
    Kind,
    LanguagePairResult,
    MetaEvaluation,
    MetricAgreement,
    MetricMean,
    MetricPair,
)
from bertscore_onnx_evaluation.metrics.ranks import (
    Compared,
    compare_metrics,
    notes_of_exchanges,
)
from bertscore_onnx_evaluation.metrics.sentinels import (
    RANDOM,
    mean_agreement,
    notes_of_sentinels,
    random_scores,
    sentinel_scores,
)
from bertscore_onnx_evaluation.metrics.statistics import (
    SegmentStatistics,
    SystemStatistics,
    UnitSums,
    correlation_interval,
    enough_permutations,
    exchange_systems,
    exchange_units,
    permute_systems,
    resample_units,
    resampled_both,
    student_interval,
    student_p,
)
from bertscore_onnx_evaluation.systems.paired_tests import MAX_EXACT, MIN_UNITS

Test = Literal["segments", "boot-both"]
Level = Literal["segment", "system"]
Key = tuple[Level, str]
"""A statistic by its level and its name; soft pairwise accuracy is made of segments."""
OF_SEGMENTS: Key = ("segment", "pearson")
OF_SYSTEMS: Key = ("system", "pearson")
"""The statistics of the ranks."""
TESTED: tuple[Key, ...] = (
    OF_SEGMENTS,
    ("segment", "pearson_by_item"),
    ("segment", "acc_eq"),
    ("segment", "spa"),
    OF_SYSTEMS,
)
MIN_DRAWN_SYSTEMS = 5
"""With fewer systems, draws of systems say nothing about others."""


# How one metric agrees with human scores in one language pair.


def system_agreement(
    judged: JudgedSystems, metric: MetricScores, permutations: int, seed: int, rank: int | None = None
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
    signs = np.stack([pair_signs(human), pair_signs(scores)])  # (sides, pairs)
    human_ties, metric_ties = (signs == 0).sum(axis=1).tolist()
    return Agreement(
        len(human), measures, signs.shape[1], human_ties, metric_ties, rank, outliers=tuple(names[is_outlier])
    )


def segment_agreement(judged: JudgedSystems, metric: MetricScores, rank: int | None = None) -> Agreement | None:
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
    few = {name: measure for name, measure in _too_few(human).items() if name in measures}
    measures |= {name: measure for name, measure in few.items() if measures[name].value is not None}
    return Agreement(int((~np.isnan(human)).sum()), measures, *_ties(human, scores), rank)


def _soft_accuracy(judged: JudgedSystems, metric: MetricScores, permutations: int, seed: int) -> Measure:
    if judged.human_segment is None:
        return no_value("only whole systems have human scores, and it takes segments", 0)
    if metric.segment is None:
        return no_value("the metric has no scores of segments", 0)
    has_any = ~np.isnan(judged.human_segment).all(axis=1)
    human, scores = judged.human_segment[has_any], metric.segment[has_any]
    accuracy = soft_pairwise_accuracy(human, scores, permutations=permutations, seed=seed)
    return accuracy if accuracy.value is None else _too_few(human).get("spa", accuracy)


def _too_few(human: Floats) -> dict[str, Measure]:
    """Return the measures that rest on fewer than 20 segments, without a value; (systems, segments)."""
    is_judged = ~np.isnan(human)
    lowest, highest = np.where(is_judged, human, np.inf).min(axis=0), np.where(is_judged, human, -np.inf).max(axis=0)
    segments = {
        "spa": (is_judged.all(axis=0), "judged for every system"),
        "pearson_by_item": (lowest < highest, "with different human scores"),
        "acc_eq": (is_judged.sum(axis=0) > 1, "judged for two systems or more"),
    }
    return {
        name: no_value(f"{plural(int(rests_on.sum()), 'segment')} {which}, and it takes {MIN_UNITS}", 0)
        for name, (rests_on, which) in segments.items()
        if rests_on.sum() < MIN_UNITS
    }


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


# Statistics as functions of sums over segments (documents, if known), for intervals and tests.


class _Statistics:
    """The statistics of one metric in one language pair."""

    def __init__(self, judged: JudgedSystems, metric: MetricScores) -> None:
        human = judged.human_segment
        self._of_segments: tuple[SegmentStatistics, NDArray[np.bool_]] | None = None
        self._of_systems: tuple[SystemStatistics, NDArray[np.bool_]] | None = None
        self._too_few: Mapping[str, Measure] = {}
        rows = ~np.isnan(judged.human_system)
        has_segments = human is not None and metric.segment is not None
        if human is not None and metric.segment is not None:
            is_judged = ~np.isnan(human).all(axis=0)
            human, scores, units = human[:, is_judged], metric.segment[:, is_judged], judged.unit_numbers(is_judged)
        elif metric.system is not None:  # each system is one segment
            human, scores, units = judged.human_system[:, None], metric.system[:, None], np.zeros(1, dtype=np.int64)
        else:
            return
        scales = [float(np.nanmax(np.abs(side))) or 1.0 for side in (human, scores)]
        human, scores = human / scales[0], scores / scales[1]
        if has_segments:
            has_any = np.asarray(~np.isnan(human).all(axis=1))
            self._too_few = _too_few(human[has_any])
            self._of_segments = SegmentStatistics(human[has_any], scores[has_any], units), has_any
        if metric.system is not None and rows.sum() > 1:
            systems = (judged.human_system[rows] / scales[0], metric.system[rows] / scales[1])
            kept = ~outliers(systems[0])
            segments = (human[rows], scores[rows])
            self._of_systems = SystemStatistics(systems, segments, units, kept), rows

    def sums(self, weights: Floats | None = None) -> dict[Key, UnitSums]:
        """Return each statistic; `weights` are how often each system counts, (systems,)."""
        by_key: dict[Key, UnitSums] = {}
        levels: tuple[tuple[Level, Any], ...] = (("segment", self._of_segments), ("system", self._of_systems))
        for level, statistics_and_rows in levels:
            if statistics_and_rows is not None:
                statistics, rows = statistics_and_rows
                by_name = statistics.sums(None if weights is None else weights[rows])
                by_key |= {(level, name): sums for name, sums in by_name.items()}
        return {key: sums for key, sums in by_key.items() if key[1] not in self._too_few}


def meta_evaluate(
    language_pairs: Sequence[JudgedSystems],
    *,
    permutations: int = 1000,
    seed: int = 4,
    test: Test = "segments",
    sentinels: bool = True,
) -> MetaEvaluation:
    """Correlate metrics with human scores, with 95 % intervals over other segments (documents, if known).

    Those of Pearson's r by segments are of Fisher's z, by a jackknife; the others by a bootstrap.

    Args:
        language_pairs: the systems of each, with the metrics to judge. Systems without human scores are left out.
            `annotators` are judged beside the metrics, by the outputs that they and the others judged.
        permutations: of soft pairwise accuracy, and of the test of every two metrics; that by segments has at least 30
            for each pair of metrics, so that corrected p-values can be below .05.
        test: `segments` exchanges the scores of two metrics in whole segments (documents, if known), with two-sided p
            and Holm's correction for all pairs. `boot-both` draws systems and segments, for intervals and p over
            other systems too, with Student's t for the number of systems.
        seed: of the permutations; with 4, soft pairwise accuracy is that of mt-metrics-eval.
        sentinels: whether to judge sentinels too, and to test whether each metric is better than all of them.

    Raises:
        InputError: there is no language pair, one is given twice, one has no metric or no judged system, shapes
            differ, a metric lacks a score that annotators judged, two have the same name, or there are too few
            systems to draw from.
        MissingExtraError: scipy is not installed.
    """
    names = [systems.language_pair for systems in language_pairs]
    if not names or len({*names}) < len(names):
        raise InputError(f"The language pairs are {names}. Give at least one, and each once.")
    judged = [systems.judged().judged_by_all().judged() for systems in language_pairs]
    if test not in get_args(Test):
        raise InputError(f"There is no test {test!r}; expected one of {', '.join(get_args(Test))}.")
    results = tuple(_language_pair(systems, permutations, seed, test, sentinels) for systems in judged)
    return MetaEvaluation(results, _means(results), permutations, seed, test)


def _language_pair(
    judged: JudgedSystems, permutations: int, seed: int, test: Test, with_sentinels: bool
) -> LanguagePairResult:
    if not judged.metrics:
        raise InputError(f"{judged.language_pair}: there are no scores of a metric. Give those of one at least.")
    metrics = {**judged.annotators, **judged.metrics}
    sentinels = sentinel_scores(judged, seed) if with_sentinels else {}
    if shared := [name for name in judged.metrics if name in judged.annotators]:
        raise InputError(f"{judged.language_pair}: two of the scores are called {shared[0]!r}. Rename the metric.")
    everything = metrics | sentinels
    num_segments = _num_segments(judged)
    is_small = 0 < num_segments < MIN_UNITS
    tested = {
        name: metric
        for name, metric in everything.items()
        if not is_small and (name in sentinels or _varies(judged, metric))
    }
    statistics = {name: _Statistics(judged, metric) for name, metric in tested.items()}
    num_exchanges = enough_permutations(permutations, len(metrics))
    if test == "boot-both":
        compared, intervals = _by_both(judged, tested, statistics, num_exchanges, seed)
    else:
        compared, intervals = _by_units(judged, tested, statistics, num_exchanges, seed)
    ranks = compared[OF_SEGMENTS].ranks or compared[OF_SYSTEMS].ranks
    base_names = Counter(metric.base_name for metric in judged.metrics.values())

    def agreement(name: str) -> MetricAgreement:
        metric = everything[name]
        if name == RANDOM:
            draws = [*random_scores(judged, seed)]
            systems = [system_agreement(judged, scores, permutations, seed) for scores in draws]
            segments = [segment_agreement(judged, scores) for scores in draws]
            levels = (mean_agreement(filter(None, systems)), mean_agreement(filter(None, segments)))
        else:
            system = system_agreement(judged, metric, permutations, seed, compared[OF_SYSTEMS].ranks.get(name))
            segment = segment_agreement(judged, metric, compared[OF_SEGMENTS].ranks.get(name))
            levels = (intervals(system, name, "system"), intervals(segment, name, "segment"))
        base_name = metric.base_name if metric.base_name and base_names[metric.base_name] == 1 else name
        return MetricAgreement(name, base_name, metric.signature, *levels, ranks.get(name))

    ordered = sorted(map(agreement, judged.metrics), key=_place)
    humans = sorted(map(agreement, judged.annotators), key=_place)
    pairs = [
        MetricPair(
            first.name,
            second.name,
            compared[OF_SYSTEMS].differences.get((first.name, second.name)),
            compared[OF_SEGMENTS].differences.get((first.name, second.name)),
            {
                key[1]: compared[key].differences[first.name, second.name]
                for key in TESTED[1:-1]
                if (first.name, second.name) in compared[key].differences
            },
        )
        for first, second in combinations([*humans, *ordered], 2)
    ]
    num_ranked = [len(compared[name].ranks) for name in (OF_SEGMENTS, OF_SYSTEMS)]
    is_exact = test == "boot-both" or _num_units(judged) <= MAX_EXACT
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
            *_notes_of_gold(judged),
            *notes_of_sentinels(judged, sentinels),
            *(_notes_of_tests(judged, *num_ranked) if test == "segments" else ()),
        ),
        _kind_of_units(judged),
        0.0 if is_exact else 1 / (num_exchanges + 1),
        tuple(map(agreement, sentinels)),
        tuple(humans),
        tuple(test for comparison in compared.values() for test in comparison.sentinels),
        _numbers(judged.human_system),
        {name: _numbers(metric.system) for name, metric in judged.metrics.items() if metric.system is not None},
    )


def _numbers(scores: Floats) -> tuple[float | None, ...]:
    """Return scores, and None for those that are not finite."""
    return tuple(float(score) if np.isfinite(score) else None for score in scores)


def _varies(judged: JudgedSystems, metric: MetricScores) -> bool:
    """Return whether a metric's scores of segments, or else of systems, differ where people judged."""
    human, scores = judged.human_segment, metric.segment
    if human is None or scores is None:
        human, scores = judged.human_system, metric.system
    return scores is not None and not np.isnan(human).all() and bool(np.ptp(scores[~np.isnan(human)]) > 0)


Intervals = Callable[[Agreement | None, str, Level], Agreement | None]
"""Adds the interval of each measure of a metric, by its name and the level."""


def _by_units(
    judged: JudgedSystems,
    metrics: Mapping[str, MetricScores],
    statistics: Mapping[str, _Statistics],
    permutations: int,
    seed: int,
) -> tuple[dict[Key, Compared], Intervals]:
    """Compare metrics by exchanging whole units, with intervals over other units."""
    sums = {name: of_metric.sums() for name, of_metric in statistics.items()}
    compared = {}
    for key in TESTED[:-1]:
        by_metric = {name: by_key[key] for name, by_key in sums.items() if key in by_key}

        def p_values(names: Sequence[str], by_metric: Mapping[str, UnitSums] = by_metric) -> Floats:
            return exchange_units([by_metric[name] for name in names], permutations=permutations, seed=seed)

        compared[key] = compare_metrics(_label(key), _values_of(by_metric), p_values)
    human, scores = _whole_systems(judged, metrics)

    def p_of_systems(names: Sequence[str]) -> Floats:
        rows = np.stack([scores[name] for name in names])
        p = exchange_systems(human, rows, permutations=permutations, seed=seed)
        return _against_random(names, p, permute_systems(human, rows, permutations=permutations, seed=seed))

    r = {name: 0.0 if name == RANDOM else correlate_pairs(human, scores[name]).value for name in scores}
    values = {name: value for name, value in r.items() if value is not None}
    compared[OF_SYSTEMS] = compare_metrics(_label(OF_SYSTEMS), values, p_of_systems)

    def intervals(agreement: Agreement | None, name: str, level: Level) -> Agreement | None:
        has_segments = judged.human_segment is not None
        return _with_intervals(agreement, sums.get(name, {}) if has_segments else {}, level, seed)

    return compared, intervals


def _values_of(by_metric: Mapping[str, UnitSums]) -> dict[str, float]:
    return {name: of_units.value for name, of_units in by_metric.items()}


def _whole_systems(judged: JudgedSystems, metrics: Mapping[str, MetricScores]) -> tuple[Floats, dict[str, Floats]]:
    """Return human scores of the systems that were judged as a whole, and those of the metrics that have them all."""
    is_judged = ~np.isnan(judged.human_system)
    scores = {name: metric.system[is_judged] for name, metric in metrics.items() if metric.system is not None}
    complete = {name: of_metric for name, of_metric in scores.items() if np.isfinite(of_metric).all()}
    return judged.human_system[is_judged], complete


def _against_random(names: Sequence[str], p: Floats, p_of_zero: Floats) -> Floats:
    """Return p, (metrics, metrics), in which that against random numbers is of r = 0, (metrics,)."""
    is_random = np.array([name == RANDOM for name in names])
    return np.where(is_random, p_of_zero[:, None], np.where(is_random[:, None], p_of_zero, p))


def _by_both(
    judged: JudgedSystems,
    metrics: Mapping[str, MetricScores],
    statistics: Mapping[str, _Statistics],
    permutations: int,
    seed: int,
) -> tuple[dict[Key, Compared], Intervals]:
    """Compare metrics by drawing systems and units, with intervals over other systems and units.

    A metric without scores of segments, where these were judged, has neither.
    """
    num_systems = len(judged.systems)
    if num_systems < MIN_DRAWN_SYSTEMS:
        raise InputError(
            f"{judged.language_pair}: there are {num_systems} systems, and a test that draws systems needs "
            f"{MIN_DRAWN_SYSTEMS} or more. Choose the test `segments`."
        )
    num_units = max(1, _num_units(judged))
    sums = {name: of_metric.sums() for name, of_metric in statistics.items()}
    sums = {
        name: by_key
        for name, by_key in sums.items()
        if all(len(of_units.sums) == num_units for of_units in by_key.values())
    }
    keys = [(name, key) for name, by_key in sums.items() for key in by_key]

    def drawn_sums(weights: Floats) -> list[UnitSums]:
        weighted = {name: statistics[name].sums(weights) for name in sums}
        return [weighted[name][key] for name, key in keys]

    values = resampled_both(drawn_sums, num_systems, num_units, np.random.default_rng(seed))
    resampled = dict(zip(keys, values.T, strict=True))
    human, scores = _whole_systems(judged, metrics)
    compared = {}
    for key in TESTED:
        of_metrics = _values_of({name: by_key[key] for name, by_key in sums.items() if key in by_key})
        if key == OF_SYSTEMS and RANDOM in of_metrics:
            of_metrics[RANDOM] = 0.0

        def p_values(names: Sequence[str], key: Key = key, of_metrics: Mapping[str, float] = of_metrics) -> Floats:
            drawn = np.stack([resampled[name, key] for name in names])  # (metrics, resamples)
            values = np.array([of_metrics[name] for name in names])
            deltas = (drawn[:, None] - drawn).transpose(2, 0, 1)
            p = student_p(values[:, None] - values, deltas, num_systems)
            if key != OF_SYSTEMS:
                return p
            rows = np.stack([scores[name] for name in names])
            return _against_random(names, p, permute_systems(human, rows, permutations=permutations, seed=seed))

        compared[key] = compare_metrics(_label(key), of_metrics, p_values)

    def intervals(agreement: Agreement | None, name: str, level: Level) -> Agreement | None:
        if agreement is None:
            return None
        measures = dict(agreement.measures)
        for kind, measure in agreement.measures.items():
            drawn = resampled.get((name, _key(level, kind)))
            if measure.value is None or drawn is None:
                continue
            if kind in _SHARES:
                low, high = student_interval(measure.value, drawn, num_systems)
            else:
                with np.errstate(divide="ignore"):
                    z = np.arctanh(np.append(drawn, measure.value))
                low, high = np.tanh(student_interval(float(z[-1]), z[:-1], num_systems))
            measures[kind] = _bounded(kind, measure, low, high)
        return replace(agreement, measures=measures)

    return compared, intervals


def _key(level: Level, measure: str) -> Key:
    """Return the statistic of a measure in `Agreement`."""
    return ("segment", "spa") if measure == "spa" else (level, measure)


def _label(key: Key) -> str:
    """Return the name of a statistic in the results of tests against sentinels."""
    level, name = key
    return f"system_{name}" if level == "system" else name


_SHARES = ("accuracy", "spa", "acc_eq")
"""The measures in [0, 1]; the others are correlations."""


def _with_intervals(
    agreement: Agreement | None, sums: Mapping[Key, UnitSums], level: Level, seed: int
) -> Agreement | None:
    """Add the interval of each measure that has a value and sums, about that value."""
    if agreement is None:
        return None
    keys = {name: _key(level, name) for name in agreement.measures}
    sums_of = {name: sums[key] for name, key in keys.items() if key in sums and agreement[name].value is not None}
    if not sums_of or len(next(iter(sums_of.values())).sums) < 2:
        return agreement
    by_jackknife = {
        name: correlation_interval(of_units) for name, of_units in sums_of.items() if name.startswith("pearson")
    }
    ends = {name: interval for name, interval in by_jackknife.items() if np.isfinite(interval).all()}
    to_draw = {name: of_units for name, of_units in sums_of.items() if name not in ends}
    if to_draw:
        ends |= zip(to_draw, resample_units([*to_draw.values()], seed=seed).T, strict=True)
    measures = dict(agreement.measures)
    for name, of_units in sums_of.items():
        low, high = ends[name]
        shift = (measures[name].value or 0.0) - of_units.value
        measures[name] = _bounded(name, measures[name], low + shift, high + shift)
    return replace(agreement, measures=measures)


def _bounded(name: str, measure: Measure, low: float, high: float) -> Measure:
    """Return a measure with the interval, within the range of the measure; without one if an end is not a number."""
    if not np.isfinite(low + high):
        return measure
    least = 0.0 if name in _SHARES else -1.0
    low, high = (float(np.clip(end, least, 1)) for end in (low, high))
    return replace(measure, low=low, high=high)


def _place(metric: MetricAgreement) -> tuple[float, float]:
    """Sort by rank and then by correlation; what has neither comes last."""
    level = metric.segment or metric.system
    r = level["pearson"].value if level else None
    return (np.inf if metric.rank is None else metric.rank, np.inf if r is None else -r)


def _notes(judged: JudgedSystems) -> Iterator[str]:
    """Yield warnings about scores that are less comparable."""
    if judged.dropped:
        yield f"{plural(len(judged.dropped), 'segment')} left out, where a judged output has no score by some metric"
    if judged.of_all_outputs:
        yield (
            f"scores of whole systems by {listed(judged.of_all_outputs)} are of all outputs, also of those that an "
            "annotator did not judge: they are no means of segments"
        )
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
    if (num_segments := _num_segments(judged)) < MIN_UNITS:
        yield (
            f"{plural(num_segments, 'segment')}: fewer than {MIN_UNITS} give no intervals, ranks and tests, and no "
            "SPA, r by item and acc*_eq; the other values describe these segments alone"
        )
    elif (num_units := _num_units(judged)) < MIN_UNITS:
        yield f"{num_units} {_kind_of_units(judged)} are few: below {MIN_UNITS}, intervals are too narrow"


def _notes_of_tests(judged: JudgedSystems, num_of_segments: int, num_of_systems: int) -> Iterator[str]:
    """Yield warnings where too few units can be exchanged, by how many metrics correlate at each level."""
    yield from notes_of_exchanges(_num_units(judged), _kind_of_units(judged), num_of_segments)
    yield from notes_of_exchanges(int((~np.isnan(judged.human_system)).sum()), "systems", num_of_systems)


def _notes_of_gold(judged: JudgedSystems) -> Iterator[str]:
    """Yield which metrics are the human scores themselves."""
    for name, metric in {**judged.annotators, **judged.metrics}.items():
        sides = ((judged.human_segment, metric.segment), (judged.human_system, metric.system))
        r = [
            correlate_pairs(human.ravel(), scores.ravel())
            for human, scores in sides
            if human is not None and scores is not None
        ]
        perfect = [measure.value for measure in r if measure.n > 2 and abs(measure.value or 0) > 1 - ROUNDING]
        if perfect:
            yield f"{name} is the human scores themselves, or linear in them: r = {perfect[0]:+.0f} is by construction"
        elif judged.gold and judged.gold in (name, metric.base_name):
            yield f"{name} has the name of the human scores: if it is made from them, they agree by construction"


def _num_segments(judged: JudgedSystems) -> int:
    """Return how many segments have a human score."""
    return 0 if judged.human_segment is None else int((~np.isnan(judged.human_segment)).any(axis=0).sum())


def _num_units(judged: JudgedSystems) -> int:
    """Return how many segments, or documents if they are known, have a human score."""
    human = judged.human_segment
    return 0 if human is None else int(judged.unit_numbers((~np.isnan(human)).any(axis=0)).max(initial=-1)) + 1


def _kind_of_units(judged: JudgedSystems) -> str:
    return "documents" if judged.documents else "segments"


def _means(results: Sequence[LanguagePairResult]) -> tuple[MetricMean, ...]:
    """Return the means of annotators, metrics and sentinels, in this order."""
    means = []
    for kind in ("humans", "metrics", "sentinels"):
        names = dict.fromkeys(metric.base_name for result in results for metric in getattr(result, kind))
        of_kind = [_mean(name, kind, results) for name in names]
        means += of_kind if kind == "sentinels" else sorted(of_kind, key=_lowest_last)
    return tuple(means)


def _lowest_last(mean: MetricMean) -> float:
    accuracy = mean["accuracy"].value
    return np.inf if accuracy is None else -accuracy


def _mean(name: str, kind: Kind, results: Sequence[LanguagePairResult]) -> MetricMean:
    by_pair = [[metric for metric in getattr(result, kind) if metric.base_name == name] for result in results]
    num_pairs = sum(map(bool, by_pair))
    metrics = [metric for metrics in by_pair for metric in metrics]
    measures = {
        mean: [agreement[measure] for agreement in agreements] for mean, measure, agreements in _levels(metrics)
    }
    averages = {key: _average(values, len(results)) for key, values in measures.items()}
    averages = {"accuracy": _pooled([metric.system["accuracy"] for metric in metrics if metric.system]), **averages}
    if num_pairs < len(results):
        averages = {key: no_value(_SOME_PAIRS.format(num_pairs, len(results)), 0) for key in averages}
    return MetricMean(name, num_pairs, averages, kind)


def _pooled(accuracies: Sequence[Measure]) -> Measure:
    """Return the accuracy over the pairs of systems of all language pairs."""
    num_pairs = sum(accuracy.n for accuracy in accuracies if accuracy.value is not None)
    if not num_pairs:
        return pairwise_accuracy([])
    return Measure(sum((accuracy.value or 0.0) * accuracy.n for accuracy in accuracies) / num_pairs, num_pairs)


_SOME_PAIRS = "the metric has scores of {} of {} language pairs, and means over others cannot be compared"


def _levels(metrics: Sequence[MetricAgreement]) -> Iterator[tuple[str, str, list[Agreement]]]:
    """Yield each mean, the measure that it is of, and the agreements at its level."""
    systems = [metric.system for metric in metrics if metric.system is not None]
    segments = [metric.segment for metric in metrics if metric.segment is not None]
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
    if mean.value is None or any(measure.low is None or measure.high is None for measure in measures):
        return mean
    ends = np.array([(measure.value, measure.low, measure.high) for measure in measures], dtype=np.float64)
    below, above = (np.sqrt(((ends[:, 0] - ends[:, at]) ** 2).sum()) / len(ends) for at in (1, 2))
    return replace(mean, low=mean.value - float(below), high=mean.value + float(above))
