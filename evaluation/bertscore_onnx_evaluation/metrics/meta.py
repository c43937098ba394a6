"""Judge metrics by human scores of systems, over one or more language pairs."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import compress

import numpy as np

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.table import listed, natural_key, plural
from bertscore_onnx_evaluation.metric_scores import MetricScores
from bertscore_onnx_evaluation.metrics.correlation import (
    CLOSE,
    Floats,
    Measure,
    average,
    correlate,
    correlate_pairs,
    exact_differences,
    finite,
    no_value,
    pair_differences,
    rounding,
    soft_pairwise_accuracy,
    tie_calibrated_accuracy,
)
from bertscore_onnx_evaluation.metrics.judged_systems import JudgedSystems
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
    SEGMENT,
    mean_agreement,
    notes_of_sentinels,
    random_scores,
    sentinel_scores,
)
from bertscore_onnx_evaluation.metrics.statistics import (
    NORMAL,
    UnitSums,
    exchange_units,
    interval,
    segment_sums,
    system_sums,
)
from bertscore_onnx_evaluation.systems.paired_tests import MIN_UNITS, SIGNIFICANT

Sums = Mapping[Key, UnitSums]
"""The measures of a metric in one language pair, as functions of sums over segments (documents, if known)."""


# How one metric agrees with human scores in one language pair.


def _system_agreement(judged: JudgedSystems, metric: MetricScores, permutations: int, seed: int) -> Agreement | None:
    """Compare a metric's scores of whole systems with human scores; None if the metric has none."""
    if metric.system is None:
        return None
    r = correlate_pairs(judged.human_system, metric.system)
    return Agreement(r.n, {"spa": _soft_accuracy(judged, metric, permutations, seed), "pearson": r})


def _segment_agreement(judged: JudgedSystems, metric: MetricScores) -> Agreement | None:
    """Compare a metric's scores of segments with human scores; None if either has none."""
    if judged.human_segment is None or metric.segment is None:
        return None
    is_judged = judged.is_judged.any(axis=0)
    human = judged.human_segment[:, is_judged]  # (systems, judged segments)
    scores = metric.segment[:, is_judged]
    r = correlate(human, scores)
    measures = {
        "acc_eq": tie_calibrated_accuracy(human, scores),
        "pearson": r,
        "pearson_by_item": correlate(human, scores, by="segment"),
    }
    return Agreement(r.n, measures)


def _soft_accuracy(judged: JudgedSystems, metric: MetricScores, permutations: int, seed: int) -> Measure:
    if judged.human_segment is None:
        return no_value("only whole systems have human scores, and it takes segments", 0)
    if metric.segment is None:
        return no_value("the metric has no scores of segments", 0)
    is_often = judged.often_judged
    human, scores = judged.human_segment[is_often], metric.segment[is_often]
    return soft_pairwise_accuracy(human, scores, permutations=permutations, seed=seed)


def _too_few(judged: JudgedSystems) -> dict[str, Measure]:
    """Return the measures that rest on fewer than 20 segments, without a value."""
    if judged.human_segment is None:
        return {}
    human, is_judged = judged.human_segment, judged.is_judged
    segments = {
        "spa": (is_judged[judged.often_judged].all(axis=0), "judged for every system"),
        "pearson_by_item": (np.fmin.reduce(human) < np.fmax.reduce(human), "with different human scores"),
        "acc_eq": (judged.is_shared, "judged for two systems or more"),
    }
    return {
        name: no_value(f"{plural(int(rests_on.sum()), 'segment')} {which}, and it takes {MIN_UNITS}", 0)
        for name, (rests_on, which) in segments.items()
        if rests_on.sum() < MIN_UNITS
    }


def _sums(judged: JudgedSystems, metric: MetricScores) -> Sums:
    """Return the measures of a metric in one language pair; none without scores of segments."""
    if judged.human_segment is None or metric.segment is None:
        return {}
    is_judged = judged.is_judged.any(axis=0)
    scaled: list[Floats] = []
    scales: list[float] = []
    for outputs in (judged.human_segment, metric.segment):
        largest = np.nanmax(np.abs(outputs[:, is_judged]))
        scale = float(np.ldexp(1.0, np.frexp(largest)[1]))  # a power of two: scores that differ stay so
        scaled.append(outputs[:, is_judged] / scale)
        scales.append(scale)
    human, scores = scaled  # (systems, judged segments)
    has_any = ~np.isnan(human).all(axis=1)
    found: dict[Key, UnitSums] = {}
    for name, sums in segment_sums(human[has_any], scores[has_any], judged.unit_numbers).items():
        found[OF_SYSTEMS if name == "spa" else ("segment", name)] = sums
    rows = ~np.isnan(judged.human_system)
    if metric.system is not None and rows.sum() > 1:
        systems = judged.human_system[rows] / scales[0], metric.system[rows] / scales[1]
        found[R_OF_SYSTEMS] = system_sums(systems, (human[rows], scores[rows]), judged.unit_numbers)
    return found


def _with_intervals(agreement: Agreement, level: Level, sums: Sums, effective: float) -> Agreement:
    """Return an agreement with the 95 % intervals of its measures."""
    measures = dict(agreement.measures)
    for name, measure in agreement.measures.items():
        if measure.value is None or (level, name) not in sums:
            continue
        ends = interval(measure.value, sums[level, name], effective, is_r=name.startswith("pearson"))
        if ends:
            measures[name] = replace(measure, low=ends[0], high=ends[1])
    return replace(agreement, measures=measures)


# One language pair.


def meta_evaluate(
    language_pairs: Sequence[JudgedSystems],
    *,
    permutations: int = 1000,
    seed: int = 4,
    sentinels: bool = True,
) -> MetaEvaluation:
    """Judge metrics by acc*_eq of the outputs of a segment and by SPA of systems, with 95 % intervals.

    Intervals are over other segments (documents, if known), by a jackknife. Where fewer than 20 segments, or fewer than
    half, have two judged outputs or more, metrics are judged by Pearson's r over all outputs first; where whole systems
    alone were judged, by that of systems, which has no test.

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
    means, mean_tests = _means(results, [sums for _, sums in found], permutations, seed)
    return MetaEvaluation(results, means, mean_tests, permutations, seed)


def _language_pair(
    judged: JudgedSystems, permutations: int, seed: int, with_sentinels: bool
) -> tuple[LanguagePairResult, dict[str, Sums]]:
    """Return the result of a language pair, and the sums of the metrics and sentinels that can be tested."""
    if not judged.metrics:
        raise InputError(f"{judged.language_pair}: there are no scores of a metric. Give those of one at least.")
    sentinels = sentinel_scores(judged, seed) if with_sentinels else {}
    everything = {**judged.metrics, **sentinels}
    too_few = _too_few(judged)
    is_by_r = _is_by_r(judged)
    base_names = Counter(metric.base_name for metric in judged.metrics.values())

    def agreement(name: str, metric: MetricScores) -> MetricAgreement:
        has_base_name = metric.base_name and base_names[metric.base_name] == 1
        of_segment = _without(_segment_agreement(judged, metric), too_few)
        if is_by_r and (name == SEGMENT or _tells_segments(judged, metric)):
            of_segment = _without(of_segment, {"pearson": no_value("all outputs of a segment score alike", 0)})
        return MetricAgreement(
            name,
            metric.base_name if has_base_name else name,
            metric.signature,
            _without(_system_agreement(judged, metric, permutations, seed), too_few),
            of_segment,
        )

    agreements = {name: agreement(name, metric) for name, metric in everything.items()}
    if with_sentinels:
        draws = [agreement(RANDOM, metric) for metric in random_scores(judged, seed)]
        agreements[RANDOM] = replace(
            draws[0],
            system=mean_agreement(draw.system for draw in draws),
            segment=mean_agreement(draw.segment for draw in draws),
        )
    golds = {name: r for name in judged.metrics if (r := _r_of_gold(agreements[name]))}
    num_segments = len(judged.unit_numbers)
    is_small = 0 < num_segments < MIN_UNITS
    sums = {name: _sums(judged, metric) for name, metric in everything.items() if not is_small and name not in golds}
    ranked_by = _ranked_by(judged, [agreements[name] for name in judged.metrics if name not in golds])
    tests = {}
    for key in ranked_by:
        own_names = {name: [name] for name in sums if agreements[name].measure(key)}
        tests[label(key)] = _compared([sums], key, own_names, permutations, seed)
    effective = judged.effective_units

    def completed(name: str, level: Level, agreement: Agreement | None) -> Agreement | None:
        if agreement is None:
            return None
        if name != RANDOM:  # its values are means over draws
            agreement = _with_intervals(agreement, level, sums.get(name, {}), effective)
        ranks = {key[1]: tests[label(key)].ranks.get(name) for key in ranked_by if key[0] == level}
        return replace(agreement, ranks={measure: rank for measure, rank in ranks.items() if rank})

    def finished(name: str) -> MetricAgreement:
        """Return a metric with intervals and ranks."""
        metric = agreements[name]
        system = completed(name, "system", metric.system)
        return replace(metric, system=system, segment=completed(name, "segment", metric.segment))

    def place(metric: MetricAgreement) -> tuple[float, ...]:
        return tuple(_falling(metric.measure(key)) for key in (*ranked_by, R_OF_OUTPUTS, R_OF_SYSTEMS))

    notes = [*_notes(judged, ranked_by), *_notes_of_gold(judged, golds), *notes_of_sentinels(judged, sentinels)]
    if R_OF_SYSTEMS in ranked_by:
        notes.append("there are scores of whole systems alone: metrics are tested by segments, and so none has a rank")
    elif tests:
        notes += notes_of_exchanges(judged.num_units, judged.kind_of_units, len(sums.keys() & judged.metrics.keys()))
    reversed_metrics = [
        name
        for name in judged.metrics
        if name not in golds and _is_reversed(judged, agreements[name], sums.get(name, {}), permutations, seed)
    ]
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
        metrics=tuple(sorted(map(finished, judged.metrics), key=place)),
        sentinels=tuple(map(finished, sentinels)),
        ranked_by=ranked_by,
        tests=tests,
        golds=tuple(golds),
        reversed=tuple(reversed_metrics),
        notes=tuple(notes),
        units=judged.kind_of_units,
        num_units=judged.num_units,
        spa_systems=tuple(compress(judged.systems, judged.often_judged)),
    )
    return result, sums


def _without(agreement: Agreement | None, too_few: Mapping[str, Measure]) -> Agreement | None:
    """Return an agreement without the values that rest on too few segments."""
    if agreement is None:
        return None
    measures = {
        name: measure if measure.value is None else too_few.get(name, measure)
        for name, measure in agreement.measures.items()
    }
    return replace(agreement, measures=measures)


def _is_by_r(judged: JudgedSystems) -> bool:
    """Return whether r over all outputs ranks metrics: too few segments have two judged outputs for acc*_eq alone."""
    num_segments = len(judged.unit_numbers)
    if num_segments < MIN_UNITS:
        return not judged.num_shared
    return judged.num_shared < max(MIN_UNITS, num_segments / 2)


def _tells_segments(judged: JudgedSystems, metric: MetricScores) -> bool:
    """Return whether a metric scores all outputs of a segment alike, in 20 segments with two or more."""
    if metric.segment is None or judged.num_shared < MIN_UNITS:
        return False
    scores = np.where(judged.is_judged, metric.segment, np.nan)
    return not np.nan_to_num(pair_differences(scores[:, judged.is_shared])).any()


def _ranked_by(judged: JudgedSystems, agreements: Sequence[MetricAgreement]) -> tuple[Key, ...]:
    """Return the measures that rank the metrics: of outputs and of systems, or of systems judged as wholes."""
    choices: tuple[Key, ...] = (OF_OUTPUTS, OF_SYSTEMS)
    if not any(metric.segment for metric in agreements):
        choices = (R_OF_SYSTEMS,)
    elif _is_by_r(judged):
        choices = (R_OF_OUTPUTS, *choices)
    return tuple(key for key in choices if any(metric.measure(key) for metric in agreements))


def _compared(
    sums: Sequence[Mapping[str, Sums]], key: Key, names: Mapping[str, Sequence[str]], permutations: int, seed: int
) -> MeasureTests:
    """Compare metrics by the mean of a measure over language pairs; each pair has names of its own for them."""
    if key == R_OF_SYSTEMS:  # exchanges of segments say nothing about other systems
        return MeasureTests()
    found: dict[str, list[UnitSums]] = {}
    for name, own_names in names.items():
        by_key = [of_pair.get(own_name, {}) for of_pair, own_name in zip(sums, own_names, strict=True)]
        if all(key in of_metric and np.isfinite(of_metric[key].value) for of_metric in by_key):
            found[name] = [of_metric[key] for of_metric in by_key]
    return compare_metrics(found, permutations=permutations, seed=seed)


def _is_reversed(judged: JudgedSystems, agreement: MetricAgreement, given: Sums, permutations: int, seed: int) -> bool:
    """Return whether a metric orders outputs the wrong way round: it is significantly worse than its negative."""
    if agreement.segment is None:
        r = agreement.system["pearson"] if agreement.system else no_value("", 0)
        with np.errstate(divide="ignore"):
            z = np.arctanh(r.value or 0.0) * np.sqrt(max(r.n - 3, 0))
        return bool(z < NORMAL.inv_cdf(SIGNIFICANT / 2))
    key = R_OF_OUTPUTS if judged.num_shared < MIN_UNITS else OF_OUTPUTS
    if key not in given or (OF_SYSTEMS in given and given[OF_SYSTEMS].value > 0.5):
        return False
    negative = _sums(judged, replace(judged.metrics[agreement.name], lower_is_better=True).negated)
    if not given[key].value < negative[key].value:
        return False
    p = exchange_units([[given[key], negative[key]]], permutations=permutations, seed=seed)
    return bool(p[0, 1] < SIGNIFICANT)


def _falling(measure: Measure | None) -> float:
    """Sort by value, the highest first; what has none comes last."""
    return np.inf if measure is None or measure.value is None else -measure.value


def _r_of_gold(agreement: MetricAgreement) -> float | None:
    """Return the r of a metric that is the human scores themselves, or linear in them; None of another."""
    level = agreement.segment or agreement.system
    if level is None or level["pearson"].n < 3:
        return None
    r = level["pearson"].value
    return r if abs(r or 0.0) > 1 - CLOSE else None


# Notes on the data.


def _look_alikes(segments: Sequence[str]) -> str:
    """Name two ids of segments that differ in zeros, blanks or capitals alone; nothing without any."""
    first: dict[str, str] = {}
    for name in segments:
        key = str(natural_key(name.strip().casefold())[0])
        earlier = first.setdefault(key, name)
        if earlier != name:
            return f"; the ids {earlier!r} and {name!r} look alike, and are two segments"
    return ""


def _notes(judged: JudgedSystems, ranked_by: Sequence[Key]) -> Iterator[str]:
    """Yield warnings about scores that are less comparable."""
    if judged.dropped:
        yield f"{plural(len(judged.dropped), 'segment')} left out, where a judged output has no score by some metric"
    if judged.human_segment is None:
        return
    for name, metric in judged.metrics.items():
        if metric.segment is None:
            yield f"{name} has no scores of segments, and so no rank among them"
    differences = np.abs(exact_differences(judged.human_segment))
    of_rounding = (differences > 0) & (differences <= rounding(judged.human_segment))
    if of_rounding.any():
        yield (
            f"{plural(int(of_rounding.sum()), 'pair')} of outputs with human scores that differ by rounding alone: "
            "they are compared as they are given, and are no ties"
        )
    counts = judged.is_judged.sum(axis=1)
    is_often = judged.often_judged
    seldom_judged = [*compress(judged.systems, ~is_often)]
    shared = int(judged.is_judged[is_often].all(axis=0).sum())
    if not (counts == shared).all():
        but = f" but {listed(seldom_judged)}" if seldom_judged else ""
        yield (
            f"systems are judged on different segments, {counts.min()} to {counts.max()} each, of which {shared} for "
            f"all{but}: the score of a system is the mean over its own, and SPA takes those of all{but}"
            f"{_look_alikes(judged.segments)}"
        )
    if seldom_judged:
        yield f"SPA leaves out {listed(seldom_judged)}: judged on less than half as many segments as another system"
    num_segments, num_units, effective = len(judged.unit_numbers), judged.num_units, judged.effective_units
    if num_segments < MIN_UNITS:
        yield (
            f"{plural(num_segments, 'segment')}: fewer than {MIN_UNITS} give no intervals, ranks and tests, and no "
            "acc*_eq, SPA and r by item; the other values describe these segments alone"
        )
    elif effective < MIN_UNITS:
        alike = "" if effective > num_units - 0.05 else f", which tell as much as {effective:.1f} of one size,"
        yield (
            f"{num_units} {judged.kind_of_units}{alike} are few: below {MIN_UNITS}, intervals and tests are not "
            "reliable"
        )
    num_systems = int(is_often.sum())
    if OF_SYSTEMS in ranked_by and num_systems < MIN_SYSTEMS:
        yield f"{num_systems} systems: SPA says little of fewer than {MIN_SYSTEMS}; random numbers come close to 1"


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


# Several language pairs.


AVERAGED: tuple[Key, ...] = (OF_OUTPUTS, OF_SYSTEMS, R_OF_OUTPUTS, R_OF_SYSTEMS)
"""The measures whose means over language pairs are taken."""
_SOME_PAIRS = "the metric has scores of {} of {} language pairs, and means over others cannot be compared"


def _means(
    results: Sequence[LanguagePairResult], sums: Sequence[Mapping[str, Sums]], permutations: int, seed: int
) -> tuple[tuple[MetricMean, ...], dict[str, MeasureTests]]:
    """Return the means of metrics and then of sentinels, and the tests of metrics."""
    found: dict[tuple[Kind, str], list[MetricAgreement]] = {}  # of all language pairs, by base name
    golds = set()
    for result in results:
        for kind, metric in result.by_kind():
            found.setdefault((kind, metric.base_name), []).append(metric)
            if metric.name in result.golds:
                golds.add(metric.base_name)
    ranked_by = [key for key in results[0].ranked_by if all(key in result.ranked_by for result in results)]
    tests = {}
    for key in ranked_by:
        own_names = {
            name: [metric.name for metric in metrics if metric.measure(key)]
            for (_, name), metrics in found.items()
            if name not in golds
        }
        everywhere = {name: own for name, own in own_names.items() if len(own) == len(results)}
        tests[label(key)] = _compared(sums, key, everywhere, permutations, seed)
    means = []
    for (kind, name), metrics in found.items():
        measures = {label(key): _average(metrics, key, len(results)) for key in AVERAGED}
        ranks = {measure: of_measure.ranks[name] for measure, of_measure in tests.items() if name in of_measure.ranks}
        means.append(MetricMean(name, len(metrics), measures, ranks, kind))
    means.sort(
        key=lambda mean: [mean.kind == "sentinels", *(_falling(mean[label(key)]) for key in (*ranked_by, *AVERAGED))]
    )
    return tuple(means), tests


def _average(metrics: Sequence[MetricAgreement], key: Key, num_pairs: int) -> Measure:
    """Average over language pairs; the interval takes these for independent (Zou and Donner, 2008)."""
    measures = [measure for metric in metrics if (measure := metric.measure(key))]
    num_scored = len(measures) if len(metrics) == num_pairs else len(metrics)
    if not num_scored:
        return no_value("the metric has no such scores", 0)
    if num_scored < num_pairs:
        return no_value(_SOME_PAIRS.format(num_scored, num_pairs), 0)
    mean = average(measures)
    if mean.value is None or any(measure.low is None for measure in measures):
        return mean
    ends = np.array([(measure.value, measure.low, measure.high) for measure in measures], dtype=np.float64)
    below, above = (np.sqrt(((ends[:, 0] - ends[:, at]) ** 2).sum()) / len(ends) for at in (1, 2))
    return replace(mean, low=mean.value - float(below), high=mean.value + float(above))
