"""Judge metrics by human scores of systems, over one or more language pairs."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import get_args

import numpy as np

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.table import plural
from bertscore_onnx_evaluation.metric_scores import MetricScores
from bertscore_onnx_evaluation.metrics.correlation import (
    CLOSE,
    Floats,
    Measure,
    average,
    correlate,
    correlate_pairs,
    finite,
    no_value,
    soft_pairwise_accuracy,
    tie_calibrated_accuracy,
)
from bertscore_onnx_evaluation.metrics.judged_systems import SENTINELS, JudgedSystems
from bertscore_onnx_evaluation.metrics.meta_results import (
    MIN_SYSTEMS,
    OF_OUTPUTS,
    OF_SYSTEMS,
    R_OF_OUTPUTS,
    R_OF_SYSTEMS,
    Agreement,
    Key,
    Kind,
    LanguagePairResult,
    Level,
    MetaEvaluation,
    MetricAgreement,
    MetricMean,
    label,
)
from bertscore_onnx_evaluation.metrics.ranks import MeasureTests, compare_metrics, notes_of_exchanges
from bertscore_onnx_evaluation.metrics.sentinels import (
    RANDOM,
    mean_agreement,
    notes_of_sentinels,
    random_scores,
    sentinel_scores,
)
from bertscore_onnx_evaluation.metrics.statistics import (
    MIN_PERMUTATIONS,
    NORMAL,
    UnitSums,
    exchange_units,
    jackknife_error,
    segment_sums,
    student_interval,
    system_sums,
)
from bertscore_onnx_evaluation.systems.paired_tests import MAX_EXACT, MIN_UNITS, SIGNIFICANT, effective_units

# How one metric agrees with human scores in one language pair.


def system_agreement(judged: JudgedSystems, metric: MetricScores, permutations: int, seed: int) -> Agreement | None:
    """Compare a metric's scores of whole systems with human scores; None if the metric has none."""
    if metric.system is None:
        return None
    is_judged = ~np.isnan(judged.human_system)
    human, scores = judged.human_system[is_judged], metric.system[is_judged]
    measures = {"spa": _soft_accuracy(judged, metric, permutations, seed), "pearson": correlate_pairs(human, scores)}
    return Agreement(len(human), measures)


def segment_agreement(judged: JudgedSystems, metric: MetricScores) -> Agreement | None:
    """Compare a metric's scores of segments with human scores; None if either has none."""
    human, scores = judged.human_segment, metric.segment
    if human is None or scores is None:
        return None
    has_any = judged.is_judged.any(axis=0)
    human, scores = human[:, has_any], scores[:, has_any]  # (systems, judged segments)
    measures = {
        "acc_eq": tie_calibrated_accuracy(human, scores),
        "pearson": correlate(human, scores),
        "pearson_by_item": correlate(human, scores, by="segment"),
    }
    return Agreement(int(judged.is_judged.sum()), measures)


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


# Measures as functions of sums over segments (documents, if known), for intervals and tests.


def _sums(judged: JudgedSystems, metric: MetricScores) -> dict[Key, UnitSums]:
    """Return the measures of a metric in one language pair; none without scores of segments."""
    if judged.human_segment is None or metric.segment is None:
        return {}
    is_judged = judged.is_judged.any(axis=0)
    units = judged.unit_numbers(is_judged)
    scaled: list[Floats] = []
    scales: list[float] = []
    for outputs in (judged.human_segment, metric.segment):
        scale = float(np.nanmax(np.abs(outputs[:, is_judged]))) or 1.0
        scaled.append(outputs[:, is_judged] / scale)
        scales.append(scale)
    human, scores = scaled  # (systems, judged segments)
    has_any = ~np.isnan(human).all(axis=1)
    found: dict[Key, UnitSums] = {}
    for name, sums in segment_sums(human[has_any], scores[has_any], units).items():
        found[OF_SYSTEMS if name == "spa" else ("segment", name)] = sums
    rows = ~np.isnan(judged.human_system)
    if metric.system is not None and rows.sum() > 1:
        systems = judged.human_system[rows] / scales[0], metric.system[rows] / scales[1]
        found[R_OF_SYSTEMS] = system_sums(systems, (human[rows], scores[rows]), units)
    return found


class _ByUnits:
    """Measures of metrics as sums over units, for tests that exchange whole units, and intervals over other units."""

    def __init__(self, judged: JudgedSystems, metrics: Mapping[str, MetricScores]) -> None:
        self.judged = judged
        self.sums = {name: _sums(judged, metric) for name, metric in metrics.items()}

    def values(self, key: Key) -> dict[str, float]:
        """Return a measure by the names of the metrics that have it."""
        found = {name: by_key[key].value for name, by_key in self.sums.items() if key in by_key}
        return {name: value for name, value in found.items() if np.isfinite(value)}

    def with_interval(self, metric: str, level: Level, name: str, measure: Measure) -> Measure:
        """Return a measure of a metric with its 95 % interval, if it has one, within the range of the measure."""
        if measure.value is None or (level, name) not in self.sums.get(metric, {}):
            return measure
        is_r = name.startswith("pearson")
        error = jackknife_error(self.sums[metric][level, name], _effective_units(self.judged), of_z=is_r)
        ends = student_interval(measure.value, *error, of_z=is_r)
        low, high = np.clip(ends, -1 if is_r else 0, 1).tolist()
        return replace(measure, low=low, high=high) if np.isfinite(low + high) else measure


# One language pair.


def meta_evaluate(
    language_pairs: Sequence[JudgedSystems],
    *,
    permutations: int = 1000,
    seed: int = 4,
    sentinels: bool = True,
) -> MetaEvaluation:
    """Judge metrics by acc*_eq of the outputs of a segment and by SPA of systems, with 95 % intervals.

    Intervals are over other segments (documents, if known), by a jackknife. Where each segment has one output, metrics
    are judged by Pearson's r over all outputs; where whole systems alone were judged, by that of systems, which has no
    test.

    Args:
        language_pairs: the systems of each, with the metrics to judge. Systems without human scores are left out, and
            metrics whose lower scores are better are negated.
        permutations: of soft pairwise accuracy, and of the test of every two metrics, which exchanges their scores in
            whole segments (documents, if known), with two-sided p and Holm's correction for all pairs. It has at least
            30 for each pair of metrics, so that corrected p-values can be below .05.
        seed: of the permutations; with 4, soft pairwise accuracy is as in mt-metrics-eval.
        sentinels: whether to judge sentinels too, and to test whether each metric is better than all of them.

    Raises:
        InputError: there is no language pair, one is given twice, one has no metric or no judged system, shapes
            differ, a metric lacks a score that annotators judged, or two have the same name.
        MissingExtraError: scipy is not installed.
    """
    names = [systems.language_pair for systems in language_pairs]
    if not names or len({*names}) < len(names):
        raise InputError(f"The language pairs are {names}. Give at least one, and each once.")
    judged = [systems.judged() for systems in language_pairs]
    found = [_language_pair(systems, permutations, seed, sentinels) for systems in judged]
    results = tuple(result for result, _ in found)
    means, mean_tests = _means(results, [tests for _, tests in found], permutations, seed)
    return MetaEvaluation(results, means, mean_tests, permutations, seed)


def _language_pair(
    judged: JudgedSystems, permutations: int, seed: int, with_sentinels: bool
) -> tuple[LanguagePairResult, _ByUnits]:
    if not judged.metrics:
        raise InputError(f"{judged.language_pair}: there are no scores of a metric. Give those of one at least.")
    metrics = judged.metrics
    sentinels = sentinel_scores(judged, seed) if with_sentinels else {}
    everything, too_few = {**metrics, **sentinels}, _too_few(judged)

    def levels_of(metric: MetricScores) -> dict[Level, Agreement | None]:
        return {
            "segment": _changed(segment_agreement(judged, metric), too_few.get),
            "system": _changed(system_agreement(judged, metric, permutations, seed), too_few.get),
        }

    agreements = {name: levels_of(metric) for name, metric in everything.items()}
    if with_sentinels:
        draws = [levels_of(metric) for metric in random_scores(judged, seed)]
        agreements[RANDOM] = {level: mean_agreement(one[level] for one in draws) for level in get_args(Level)}
    golds = {name: r for name, metric in metrics.items() if (r := _r_of_gold(judged, metric))}
    num_segments = _num_segments(judged)
    is_small = 0 < num_segments < MIN_UNITS
    tested = {name: metric for name, metric in everything.items() if not is_small and name not in golds}
    tests = _ByUnits(judged, tested)
    ranked_by = _ranked_by(judged, [agreements[name] for name in metrics if name not in golds])
    compared = {}
    for key in ranked_by:
        with_value = {name: [name] for name in tested if _has_value(agreements[name], key)}
        compared[label(key)] = _compared([tests], key, with_value, permutations, seed)
    base_names = Counter(metric.base_name for metric in judged.metrics.values())

    def agreement(name: str) -> MetricAgreement:
        metric, levels = everything[name], dict(agreements[name])
        for level, of_level in agreements[name].items():
            if of_level and name != RANDOM:
                levels[level] = _changed(of_level, partial(tests.with_interval, name, level))
        for key in ranked_by:
            if of_level := levels[key[0]]:
                levels[key[0]] = replace(of_level, rank=compared[label(key)].ranks.get(name))
        base_name = metric.base_name if metric.base_name and base_names[metric.base_name] == 1 else name
        return MetricAgreement(name, base_name, metric.signature, levels["system"], levels["segment"])

    def place(metric: MetricAgreement) -> tuple[float, ...]:
        return tuple(_falling(metric.measure(key)) for key in (*ranked_by, R_OF_OUTPUTS, R_OF_SYSTEMS))

    notes = [
        *_notes(judged),
        *_notes_of_systems(judged, ranked_by),
        *_notes_of_gold(judged, golds),
        *notes_of_sentinels(judged, sentinels),
    ]
    if R_OF_SYSTEMS in ranked_by:
        notes.append("whole systems alone were judged: no metric is tested, and none has a rank")
    elif compared:
        notes += notes_of_exchanges(_num_units(judged), _kind_of_units(judged), len(tested.keys() & metrics.keys()))
    result = LanguagePairResult(
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
        metrics=tuple(sorted(map(agreement, judged.metrics), key=place)),
        sentinels=tuple(map(agreement, sentinels)),
        ranked_by=ranked_by,
        tests=compared,
        golds=tuple(golds),
        reversed=tuple(
            name for name in judged.metrics if name not in golds and _is_reversed(judged, name, permutations, seed)
        ),
        notes=tuple(notes),
        units=_kind_of_units(judged),
    )
    return result, tests


Levels = Mapping[Level, Agreement | None]


def _has_value(levels: Levels, key: Key) -> bool:
    """Return whether a metric has a value of a measure."""
    level, name = key
    agreement = levels[level]
    return agreement is not None and agreement[name].value is not None


def _ranked_by(judged: JudgedSystems, agreements: Sequence[Levels]) -> tuple[Key, ...]:
    """Return the measures that rank the metrics: of outputs that systems share, else of all outputs or of systems."""
    choices: tuple[Key, ...] = (OF_OUTPUTS, OF_SYSTEMS)
    if not any(levels["segment"] for levels in agreements):
        choices = (R_OF_SYSTEMS,)
    elif not (judged.is_judged.sum(axis=0) > 1).any():
        choices = (R_OF_OUTPUTS,)
    return tuple(key for key in choices if any(_has_value(levels, key) for levels in agreements))


def _compared(
    sets: Sequence[_ByUnits], key: Key, names: Mapping[str, Sequence[str]], permutations: int, seed: int
) -> MeasureTests:
    """Compare metrics by the mean of a measure over language pairs; each pair has names of its own for them."""
    if key == R_OF_SYSTEMS:  # exchanges of segments say nothing about other systems
        return MeasureTests()
    values_by_set = [tests.values(key) for tests in sets]
    values = {
        name: float(np.mean([by_name[one] for by_name, one in zip(values_by_set, of, strict=True)]))
        for name, of in names.items()
        if all(one in by_name for by_name, one in zip(values_by_set, of, strict=True))
    }
    number = sum(name not in SENTINELS for name in values)
    num_exchanges = max(permutations, MIN_PERMUTATIONS * number * (number - 1) // 2)

    def p_values(chosen: Sequence[str]) -> Floats:
        of_sets = [*zip(*(names[name] for name in chosen), strict=True)]
        return _p_values(sets, key, num_exchanges, seed, of_sets)

    is_exact = sum(_num_units(tests.judged) for tests in sets) <= MAX_EXACT
    return compare_metrics(values, p_values, smallest_p=0.0 if is_exact else 1 / (num_exchanges + 1))


def _p_values(
    sets: Sequence[_ByUnits], key: Key, permutations: int, seed: int, names: Sequence[Sequence[str]]
) -> Floats:
    """Return two-sided p of the mean over language pairs of every two metrics, whose names each of them has."""
    sums = [[tests.sums[name][key] for name in of_set] for tests, of_set in zip(sets, names, strict=True)]
    return exchange_units(sums, permutations=permutations, seed=seed)


def _is_reversed(judged: JudgedSystems, name: str, permutations: int, seed: int) -> bool:
    """Return whether a metric orders outputs the wrong way round: it is significantly worse than its negative."""
    metric = judged.metrics[name]
    if judged.human_segment is None or metric.segment is None:
        r = no_value("", 0) if metric.system is None else correlate_pairs(judged.human_system, metric.system)
        with np.errstate(divide="ignore"):
            z = np.arctanh(r.value or 0.0) * np.sqrt(max(r.n - 3, 0))
        return bool(z < NORMAL.inv_cdf(SIGNIFICANT / 2))
    if _num_segments(judged) < MIN_UNITS:
        return False
    tests = _ByUnits(judged, {"given": metric, "negative": replace(metric, lower_is_better=True).negated})
    key = OF_OUTPUTS if (judged.is_judged.sum(axis=0) > 1).any() else R_OF_OUTPUTS
    values, spa = tests.values(key), tests.values(OF_SYSTEMS).get("given", 0.0)
    if not values or values["given"] >= values["negative"] or spa > 0.5:
        return False
    return bool(_p_values([tests], key, permutations, seed, [["given", "negative"]])[0, 1] < SIGNIFICANT)


def _changed(agreement: Agreement | None, change: Callable[[str, Measure], Measure]) -> Agreement | None:
    """Return an agreement with changes to the measures that have a value."""
    if agreement is None:
        return None
    measures = {
        name: measure if measure.value is None else change(name, measure)
        for name, measure in agreement.measures.items()
    }
    return replace(agreement, measures=measures)


def _falling(measure: Measure | None) -> float:
    """Sort by value, the highest first; what has none comes last."""
    return np.inf if measure is None or measure.value is None else -measure.value


def _notes(judged: JudgedSystems) -> Iterator[str]:
    """Yield warnings about scores that are less comparable."""
    if judged.dropped:
        yield f"{plural(len(judged.dropped), 'segment')} left out, where a judged output has no score by some metric"
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
            "acc*_eq, SPA and r by item; the other values describe these segments alone"
        )
    elif (effective := _effective_units(judged)) < MIN_UNITS:
        number, kind = _num_units(judged), _kind_of_units(judged)
        alike = "" if effective > number - 0.05 else f", which tell as much as {effective:.1f} of one size,"
        yield f"{number} {kind}{alike} are few: below {MIN_UNITS}, intervals and tests are not reliable"


def _notes_of_systems(judged: JudgedSystems, ranked_by: Sequence[Key]) -> Iterator[str]:
    """Yield a warning if SPA is of few systems."""
    number = int(judged.is_judged.any(axis=1).sum())
    if OF_SYSTEMS in ranked_by and number < MIN_SYSTEMS:
        yield f"{number} systems: SPA says little of fewer than {MIN_SYSTEMS}; random numbers come close to 1"


def _r_of_gold(judged: JudgedSystems, metric: MetricScores) -> float | None:
    """Return the r of a metric that is the human scores themselves, or linear in them; None of another."""
    if judged.human_segment is not None and metric.segment is not None:
        r = correlate(judged.human_segment, metric.segment)
    elif metric.system is not None:
        r = correlate_pairs(judged.human_system, metric.system)
    else:
        return None
    return r.value if r.n > 2 and abs(r.value or 0.0) > 1 - CLOSE else None


def _notes_of_gold(judged: JudgedSystems, golds: Mapping[str, float]) -> Iterator[str]:
    """Yield which metrics are the human scores themselves."""
    for name, metric in judged.metrics.items():
        if name in golds:
            yield (
                f"{name} is the human scores themselves, or linear in them, and has no rank: r = {golds[name]:+.0f} is "
                "by construction"
            )
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


def _effective_units(judged: JudgedSystems) -> float:
    """Return how many segments, or equal documents, would tell as much as the judged ones."""
    numbers = judged.unit_numbers(judged.is_judged.any(axis=0))
    return effective_units(np.bincount(numbers).astype(np.float64)) if len(numbers) else 1.0


# Several language pairs.


AVERAGED: tuple[Key, ...] = (OF_OUTPUTS, OF_SYSTEMS, R_OF_OUTPUTS, R_OF_SYSTEMS)
"""The measures whose means over language pairs are taken."""
_SOME_PAIRS = "the metric has scores of {} of {} language pairs, and means over others cannot be compared"


def _means(
    results: Sequence[LanguagePairResult], sets: Sequence[_ByUnits], permutations: int, seed: int
) -> tuple[tuple[MetricMean, ...], dict[str, MeasureTests]]:
    """Return the means of metrics and then of sentinels, and the tests of metrics."""
    ranked_by = [key for key in AVERAGED if all(key in result.ranked_by for result in results)]
    names: dict[str, list[str]] = {}  # of all language pairs, by base name
    golds = {metric.base_name for result in results for metric in result.metrics if metric.name in result.golds}
    for metric in (metric for result in results for _, metric in result.by_kind()):
        names.setdefault(metric.base_name, []).append(metric.name)
    everywhere = {name: of for name, of in names.items() if len(of) == len(results) and name not in golds}
    tests = {label(key): _compared(sets, key, everywhere, permutations, seed) for key in ranked_by}
    means = []
    for kind in get_args(Kind):
        of_kind = [
            _mean(name, kind, results, {key: of.ranks[name] for key, of in tests.items() if name in of.ranks})
            for name in dict.fromkeys(metric.base_name for result in results for metric in getattr(result, kind))
        ]
        means += sorted(of_kind, key=lambda mean: [_falling(mean[label(key)]) for key in AVERAGED])
    return tuple(means), tests


def _mean(name: str, kind: Kind, results: Sequence[LanguagePairResult], ranks: Mapping[str, int]) -> MetricMean:
    metrics = [metric for result in results for metric in getattr(result, kind) if metric.base_name == name]
    measures = {}
    for key in AVERAGED:
        found = [measure for metric in metrics if (measure := metric.measure(key))]
        measures[label(key)] = _average(found, len(metrics), len(results))
    return MetricMean(name, len(metrics), measures, ranks, kind)


def _average(measures: Sequence[Measure], num_scored: int, num_pairs: int) -> Measure:
    """Average over language pairs; the interval takes these for independent (Zou and Donner, 2008)."""
    if num_scored < num_pairs:
        return no_value(_SOME_PAIRS.format(num_scored, num_pairs), 0)
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
