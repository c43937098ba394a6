"""Judge metrics by human scores of systems, over one or more language pairs."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import Literal, get_args

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
    finite,
    no_value,
    outliers,
    pair_differences,
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
    MIN_PERMUTATIONS,
    SegmentStatistics,
    SystemStatistics,
    UnitSums,
    bootstrap_error,
    exchange_systems,
    exchange_units,
    jackknife_error,
    permute_systems,
    resampled,
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


def system_agreement(judged: JudgedSystems, metric: MetricScores, permutations: int, seed: int) -> Agreement | None:
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
    outlying = tuple(names[is_outlier])
    return Agreement(len(human), measures, signs.shape[1], human_ties, metric_ties, outliers=outlying)


def segment_agreement(judged: JudgedSystems, metric: MetricScores) -> Agreement | None:
    """Compare a metric's scores of segments with human scores; None if either has none."""
    human, scores = judged.human_segment, metric.segment
    if human is None or scores is None:
        return None
    has_any = judged.is_judged.any(axis=0)
    human, scores = human[:, has_any], scores[:, has_any]  # (systems, judged segments)
    measures = {
        "pearson": correlate(human, scores),
        "pearson_by_item": correlate(human, scores, by="segment"),
        "pearson_by_system": correlate(human, scores, by="system"),
        "kendall": correlate(human, scores, coefficient="kendall_b"),
        "kendall_c": correlate(human, scores, coefficient="kendall_c"),
        "acc_eq": tie_calibrated_accuracy(human, scores),
    }
    is_pair = ~np.isnan(pair_differences(human))  # (pairs, segments)
    human_ties, metric_ties = (int((is_pair & (pair_differences(side) == 0)).sum()) for side in (human, scores))
    return Agreement(int(judged.is_judged.sum()), measures, int(is_pair.sum()), human_ties, metric_ties)


def _soft_accuracy(judged: JudgedSystems, metric: MetricScores, permutations: int, seed: int) -> Measure:
    if judged.human_segment is None:
        return no_value("only whole systems have human scores, and it takes segments", 0)
    if metric.segment is None:
        return no_value("the metric has no scores of segments", 0)
    has_any = judged.is_judged.any(axis=1)
    human, scores = judged.human_segment[has_any], metric.segment[has_any]
    return soft_pairwise_accuracy(human, scores, permutations=permutations, seed=seed)


def _too_few(judged: JudgedSystems) -> dict[str, Measure]:
    """Return the measures that rest on fewer than 20 segments, without a value."""
    if judged.human_segment is None:
        return {}
    human = judged.human_segment[judged.is_judged.any(axis=1)]
    is_judged = ~np.isnan(human)
    segments = {
        "spa": (is_judged.all(axis=0), "judged for every system"),
        "pearson_by_item": (np.fmin.reduce(human) < np.fmax.reduce(human), "with different human scores"),
        "acc_eq": (is_judged.sum(axis=0) > 1, "judged for two systems or more"),
    }
    return {
        name: no_value(f"{plural(int(rests_on.sum()), 'segment')} {which}, and it takes {MIN_UNITS}", 0)
        for name, (rests_on, which) in segments.items()
        if rests_on.sum() < MIN_UNITS
    }


# Statistics as functions of sums over segments (documents, if known), for intervals and tests.


def _outputs(judged: JudgedSystems, metric: MetricScores) -> tuple[Floats, Floats] | None:
    """Return human scores and a metric's, (systems, segments); of whole systems, each is one segment."""
    if judged.human_segment is not None and metric.segment is not None:
        return judged.human_segment, metric.segment
    return None if metric.system is None else (judged.human_system[:, None], metric.system[:, None])


def _statistics(
    judged: JudgedSystems, metric: MetricScores, outputs: tuple[Floats, Floats]
) -> Callable[[Floats], dict[Key, UnitSums]]:
    """Return the statistics of a metric in one language pair, by how often each system counts, (systems,)."""
    has_segments = outputs[0] is judged.human_segment
    is_judged = ~np.isnan(outputs[0]).all(axis=0)
    units = judged.unit_numbers(is_judged) if has_segments else np.zeros(1, dtype=np.int64)
    scales = [float(np.nanmax(np.abs(side[:, is_judged]))) or 1.0 for side in outputs]
    human, scores = (side[:, is_judged] / scale for side, scale in zip(outputs, scales, strict=True))
    by_level: dict[Level, tuple[SegmentStatistics | SystemStatistics, NDArray[np.bool_]]] = {}
    if has_segments:
        has_any = np.asarray(~np.isnan(human).all(axis=1))
        by_level["segment"] = SegmentStatistics(human[has_any], scores[has_any], units), has_any
    rows = ~np.isnan(judged.human_system)
    if metric.system is not None and rows.sum() > 1:
        systems = (judged.human_system[rows] / scales[0], metric.system[rows] / scales[1])
        by_level["system"] = SystemStatistics(systems, (human[rows], scores[rows]), units, ~outliers(systems[0])), rows

    def sums(weights: Floats) -> dict[Key, UnitSums]:
        return {
            (level, name): of_units
            for level, (statistics, rows) in by_level.items()
            for name, of_units in statistics.sums(weights[rows]).items()
        }

    return sums


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
    everything, too_few = metrics | sentinels, _too_few(judged)

    def of_systems(metric: MetricScores) -> Agreement | None:
        return _changed(system_agreement(judged, metric, permutations, seed), too_few.get)

    def of_segments(metric: MetricScores) -> Agreement | None:
        return _changed(segment_agreement(judged, metric), too_few.get)

    draws = [*random_scores(judged, seed)] if with_sentinels else []
    agreements = {
        name: (of_systems(metric), of_segments(metric))
        if name != RANDOM
        else (mean_agreement(map(of_systems, draws)), mean_agreement(map(of_segments, draws)))
        for name, metric in everything.items()
    }

    num_segments = _num_segments(judged)
    is_small = 0 < num_segments < MIN_UNITS
    tested = {
        name: metric
        for name, metric in everything.items()
        if not is_small and (name in sentinels or _varies(judged, metric))
    }
    num_exchanges = max(permutations, MIN_PERMUTATIONS * len(metrics) * (len(metrics) - 1) // 2)
    tests = (_ByBoth if test == "boot-both" else _ByUnits)(judged, tested, num_exchanges, seed)
    compared: dict[Key, Compared] = {}
    for key in TESTED:
        values = {} if key[1] in too_few else tests.values(key)
        if key == OF_SYSTEMS:
            has_r = {name for name, (system, _) in agreements.items() if system and system["pearson"].value is not None}
            values = {name: 0.0 if name == RANDOM else value for name, value in values.items() if name in has_r}
        compared[key] = compare_metrics(_label(key), values, partial(tests.p_values, key))
    segment_ranks, system_ranks = compared[OF_SEGMENTS].ranks, compared[OF_SYSTEMS].ranks
    ranks = segment_ranks or system_ranks
    base_names = Counter(metric.base_name for metric in judged.metrics.values())

    def agreement(name: str) -> MetricAgreement:
        metric, (system, segment) = everything[name], agreements[name]
        if name != RANDOM:
            system = _changed(system, partial(tests.with_interval, name, "system"))
            segment = _changed(segment, partial(tests.with_interval, name, "segment"))
        system = system and replace(system, rank=system_ranks.get(name))
        segment = segment and replace(segment, rank=segment_ranks.get(name))
        base_name = metric.base_name if metric.base_name and base_names[metric.base_name] == 1 else name
        return MetricAgreement(name, base_name, metric.signature, system, segment, ranks.get(name))

    ordered = sorted(map(agreement, judged.metrics), key=_place)
    humans = sorted(map(agreement, judged.annotators), key=_place)

    def pair(first: str, second: str) -> MetricPair:
        differences = {key: compared[key].differences.get((first, second)) for key in TESTED}
        others = {key[1]: difference for key, difference in differences.items() if difference and key in TESTED[1:-1]}
        return MetricPair(first, second, differences[OF_SYSTEMS], differences[OF_SEGMENTS], others)

    notes = [*_notes(judged), *_notes_of_gold(judged), *notes_of_sentinels(judged, sentinels)]
    if test == "segments":
        num_systems = int((~np.isnan(judged.human_system)).sum())
        notes += notes_of_exchanges(_num_units(judged), _kind_of_units(judged), len(segment_ranks))
        notes += notes_of_exchanges(num_systems, "systems", len(system_ranks))
    is_exact = test == "boot-both" or _num_units(judged) <= MAX_EXACT
    return LanguagePairResult(
        language_pair=judged.language_pair,
        gold=judged.gold,
        reference=judged.reference,
        systems=judged.systems,
        human_scores=tuple(map(finite, judged.human_system)),
        metric_scores={
            name: tuple(map(finite, metric.system))
            for name, metric in judged.metrics.items()
            if metric.system is not None
        },
        segments=num_segments,
        metrics=tuple(ordered),
        sentinels=tuple(map(agreement, sentinels)),
        humans=tuple(humans),
        sentinel_tests=tuple(test for comparison in compared.values() for test in comparison.sentinels),
        pairs=tuple(pair(first.name, second.name) for first, second in combinations([*humans, *ordered], 2)),
        notes=tuple(notes),
        units=_kind_of_units(judged),
        smallest_p=0.0 if is_exact else 1 / (num_exchanges + 1),
    )


def _varies(judged: JudgedSystems, metric: MetricScores) -> bool:
    """Return whether a metric's scores of segments, or else of systems, differ where people judged."""
    outputs = _outputs(judged, metric)
    return outputs is not None and len({*outputs[1][~np.isnan(outputs[0])].tolist()}) > 1


_SHARES = ("accuracy", "spa", "acc_eq")
"""The measures in [0, 1]; the others are correlations."""


class _ByUnits:
    """Tests of metrics by exchanging whole units, and intervals over other units."""

    def __init__(
        self, judged: JudgedSystems, metrics: Mapping[str, MetricScores], permutations: int, seed: int
    ) -> None:
        self._judged, self._metrics, self._permutations, self._seed = judged, metrics, permutations, seed
        outputs = {name: _outputs(judged, metric) for name, metric in metrics.items()}
        self._statistics = {name: _statistics(judged, metrics[name], sides) for name, sides in outputs.items() if sides}
        once = np.ones(len(judged.systems))
        self._sums = {name: statistics(once) for name, statistics in self._statistics.items()}
        self._drawn = self._draw()

    def values(self, key: Key) -> dict[str, float]:
        """Return a statistic by the names of the metrics that have it."""
        return {name: by_key[key].value for name, by_key in self._sums.items() if key in by_key}

    def p_values(self, key: Key, names: Sequence[str]) -> Floats:
        """Return two-sided p of every two metrics, (metrics, metrics); of r against random numbers that of r = 0."""
        p = self._p_of_differences(key, names)
        if key != OF_SYSTEMS:
            return p
        p_of_zero = permute_systems(*self._systems(names), permutations=self._permutations, seed=self._seed)
        is_random = np.array([name == RANDOM for name in names])
        return np.where(is_random, p_of_zero[:, None], np.where(is_random[:, None], p_of_zero, p))

    def with_interval(self, metric: str, level: Level, name: str, measure: Measure) -> Measure:
        """Return a measure of a metric with its 95 % interval, if it has one, within the range of the measure."""
        key: Key = ("segment", "spa") if name == "spa" else (level, name)
        if (metric, key) not in self._drawn:
            return measure
        ends = self._interval(name, measure.value or 0.0, self._sums[metric][key], self._drawn[metric, key])
        low, high = np.clip(ends, 0 if name in _SHARES else -1, 1).tolist()
        return replace(measure, low=low, high=high) if np.isfinite(low + high) else measure

    def _interval(self, name: str, value: float, units: UnitSums, drawn: Floats) -> tuple[float, float]:
        """Return the ends of the interval of a value of a statistic; NaN if there is none."""
        if name.startswith("pearson"):
            low, high = student_interval(value, *jackknife_error(units), of_z=True)
            if np.isfinite(low + high):
                return low, high
        return student_interval(value, *bootstrap_error(drawn, len(units.sums)))

    def _draw(self) -> dict[tuple[str, Key], Floats]:
        """Return the statistics of the metrics in draws, (resamples,)."""
        sums = {
            (name, key): of_units
            for name, by_key in self._sums.items()
            for key, of_units in by_key.items()
            if len(of_units.sums) > 1
        }
        drawn = resampled([*sums.values()], np.random.default_rng(self._seed)) if sums else []
        return dict(zip(sums, drawn, strict=True))

    def _p_of_differences(self, key: Key, names: Sequence[str]) -> Floats:
        if key == OF_SYSTEMS:
            return exchange_systems(*self._systems(names), permutations=self._permutations, seed=self._seed)
        sums = [self._sums[name][key] for name in names]
        return exchange_units(sums, permutations=self._permutations, seed=self._seed)

    def _systems(self, names: Sequence[str]) -> tuple[Floats, Floats]:
        """Return human scores of the systems that were judged as a whole, and those of metrics, (metrics, systems)."""
        is_judged = ~np.isnan(self._judged.human_system)
        scores = [self._metrics[name].system for name in names]
        return self._judged.human_system[is_judged], np.stack([row[is_judged] for row in scores if row is not None])


class _ByBoth(_ByUnits):
    """Tests of metrics by drawing systems and units, and intervals over other systems and units.

    A metric without scores of segments, where these were judged, has neither.
    """

    def _draw(self) -> dict[tuple[str, Key], Floats]:
        num_systems, num_units = len(self._judged.systems), max(1, _num_units(self._judged))
        if num_systems < MIN_DRAWN_SYSTEMS:
            raise InputError(
                f"{self._judged.language_pair}: there are {num_systems} systems, and a test that draws systems needs "
                f"{MIN_DRAWN_SYSTEMS} or more. Choose the test `segments`."
            )
        self._sums = {
            name: by_key
            for name, by_key in self._sums.items()
            if all(len(of_units.sums) == num_units for of_units in by_key.values())
        }
        keys = [(name, key) for name, by_key in self._sums.items() for key in by_key]

        def drawn_sums(weights: Floats) -> list[UnitSums]:
            weighted = {name: self._statistics[name](weights) for name in self._sums}
            return [weighted[name][key] for name, key in keys]

        drawn = resampled_both(drawn_sums, num_systems, num_units, np.random.default_rng(self._seed))
        return dict(zip(keys, drawn.T, strict=True))

    def _interval(self, name: str, value: float, units: UnitSums, drawn: Floats) -> tuple[float, float]:
        is_r = name not in _SHARES
        with np.errstate(divide="ignore"):
            error = bootstrap_error(np.arctanh(drawn) if is_r else drawn, len(self._judged.systems))
        return student_interval(value, *error, of_z=is_r)

    def _p_of_differences(self, key: Key, names: Sequence[str]) -> Floats:
        drawn = np.stack([self._drawn[name, key] for name in names])  # (metrics, resamples)
        values = np.array([self._sums[name][key].value for name in names])
        deltas = (drawn[:, None] - drawn).transpose(2, 0, 1)
        return student_p(values[:, None] - values, deltas, len(self._judged.systems))


def _label(key: Key) -> str:
    """Return the name of a statistic in the results of tests against sentinels."""
    level, name = key
    return f"system_{name}" if level == "system" else name


def _changed(agreement: Agreement | None, change: Callable[[str, Measure], Measure]) -> Agreement | None:
    """Return an agreement with changes to the measures that have a value."""
    if agreement is None:
        return None
    measures = {
        name: measure if measure.value is None else change(name, measure)
        for name, measure in agreement.measures.items()
    }
    return replace(agreement, measures=measures)


def _place(metric: MetricAgreement) -> tuple[float, float]:
    """Sort by rank and then by correlation; what has neither comes last."""
    level = metric.segment or metric.system
    return np.inf if metric.rank is None else metric.rank, np.inf if level is None else _falling(level["pearson"])


def _falling(measure: Measure) -> float:
    """Sort by value, the highest first; what has none comes last."""
    return np.inf if measure.value is None else -measure.value


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
    counts = judged.is_judged.sum(axis=1)
    shared = int(judged.is_judged.all(axis=0).sum())
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
    return int(judged.is_judged.any(axis=0).sum())


def _num_units(judged: JudgedSystems) -> int:
    """Return how many segments, or documents if they are known, have a human score."""
    return int(judged.unit_numbers(judged.is_judged.any(axis=0)).max(initial=-1)) + 1


def _kind_of_units(judged: JudgedSystems) -> str:
    return "documents" if judged.documents else "segments"


def _means(results: Sequence[LanguagePairResult]) -> tuple[MetricMean, ...]:
    """Return the means of annotators, metrics and sentinels, in this order."""
    means = []
    for kind in get_args(Kind):
        names = dict.fromkeys(metric.base_name for result in results for metric in getattr(result, kind))
        of_kind = [_mean(name, kind, results) for name in names]
        means += of_kind if kind == "sentinels" else sorted(of_kind, key=lambda mean: _falling(mean["accuracy"]))
    return tuple(means)


_AVERAGED: dict[str, Key] = {
    "system_pearson": OF_SYSTEMS,
    "spa": ("system", "spa"),
    "segment_pearson": OF_SEGMENTS,
    "kendall": ("segment", "kendall"),
    "acc_eq": ("segment", "acc_eq"),
}
"""The measures whose means are taken, by the name of the mean."""
_SOME_PAIRS = "the metric has scores of {} of {} language pairs, and means over others cannot be compared"


def _mean(name: str, kind: Kind, results: Sequence[LanguagePairResult]) -> MetricMean:
    by_pair = [[metric for metric in getattr(result, kind) if metric.base_name == name] for result in results]
    num_pairs, metrics = sum(map(bool, by_pair)), [metric for metrics in by_pair for metric in metrics]
    if num_pairs < len(results):
        nothing = no_value(_SOME_PAIRS.format(num_pairs, len(results)), 0)
        return MetricMean(name, num_pairs, dict.fromkeys(("accuracy", *_AVERAGED), nothing), kind)
    measures = {"accuracy": _pooled([metric.system["accuracy"] for metric in metrics if metric.system])}
    for mean, (level, measure) in _AVERAGED.items():
        levels = [getattr(metric, level) for metric in metrics]
        measures[mean] = _average([agreement[measure] for agreement in levels if agreement], len(results))
    return MetricMean(name, num_pairs, measures, kind)


def _pooled(accuracies: Sequence[Measure]) -> Measure:
    """Return the accuracy over the pairs of systems of all language pairs."""
    num_pairs = sum(accuracy.n for accuracy in accuracies if accuracy.value is not None)
    if not num_pairs:
        return pairwise_accuracy([])
    return Measure(sum((accuracy.value or 0.0) * accuracy.n for accuracy in accuracies) / num_pairs, num_pairs)


def _average(measures: Sequence[Measure], num_pairs: int) -> Measure:
    """Average over language pairs; the interval takes these for independent (Zou and Donner, 2008)."""
    if not measures:
        return no_value("the metric has no such scores", 0)
    mean = average(measures)
    if mean.value is not None and mean.groups < num_pairs:
        return no_value(_SOME_PAIRS.format(mean.groups, num_pairs), 0)
    if mean.value is None or any(measure.low is None for measure in measures):
        return mean
    ends = np.array([(measure.value, measure.low, measure.high) for measure in measures], dtype=np.float64)
    below, above = (np.sqrt(((ends[:, 0] - ends[:, at]) ** 2).sum()) / len(ends) for at in (1, 2))
    return replace(mean, low=mean.value - float(below), high=mean.value + float(above))
