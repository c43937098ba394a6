"""Judge metrics by human scores of systems.

The systems are of one or more language pairs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain

import numpy as np

from bertscore_onnx.errors import InputError, plural
from bertscore_onnx.tables.repeats import RepeatCounter
from bertscore_onnx_evaluation.metric_scores import MetricScores
from bertscore_onnx_evaluation.metrics.agreement import (
    MIN_SYSTEMS,
    OF_OUTPUTS,
    OF_SYSTEMS,
    R_BY_ITEM,
    R_OF_OUTPUTS,
    R_OF_SYSTEMS,
    Kind,
    LanguagePairResult,
    MetricAgreement,
    MetricMean,
)
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
from bertscore_onnx_evaluation.metrics.meta_evaluation import MetaEvaluation
from bertscore_onnx_evaluation.metrics.ranks import (
    MeasureTests,
    compare_metrics,
    notes_of_exchanges,
)
from bertscore_onnx_evaluation.metrics.sentinels import (
    RANDOM,
    SEGMENT,
    mean_agreement,
    notes_of_sentinels,
    random_scores,
    sentinel_scores,
)
from bertscore_onnx_evaluation.metrics.statistics import (
    UnitSums,
    exchange_units,
    interval,
    segment_sums,
    system_sums,
)
from bertscore_onnx_evaluation.systems.paired_tests import MIN_UNITS, SIGNIFICANT

Sums = Mapping[str, UnitSums]
"""The measures of a metric in one language pair, as functions of sums over segments (documents, if
known).
"""


# How one metric agrees with human scores in one language pair.


def _measures(
    judged: JudgedSystems, metric: MetricScores, permutations: int, seed: int
) -> dict[str, Measure]:
    """Return the measures of a metric by name."""
    is_judged = judged.is_judged.any(axis=0)
    human = judged.human_segment[:, is_judged]  # (systems, judged segments)
    scores = metric.segment[:, is_judged]
    return {
        OF_SYSTEMS: soft_pairwise_accuracy(
            judged.human_segment,
            metric.segment,
            permutations=permutations,
            seed=seed,
            min_segments=MIN_UNITS,
        ),
        R_OF_SYSTEMS: correlate_pairs(judged.human_system, metric.system),
        OF_OUTPUTS: tie_calibrated_accuracy(human, scores),
        R_OF_OUTPUTS: correlate(human, scores),
        R_BY_ITEM: correlate(human, scores, by="segment"),
    }


def _too_few(judged: JudgedSystems) -> dict[str, Measure]:
    """Return the measures that rest on fewer than 20 segments, without a value."""
    human = judged.human_segment
    differs = np.fmin.reduce(human) < np.fmax.reduce(human)
    bases = (
        (R_BY_ITEM, differs, "with different human scores"),
        (OF_OUTPUTS, judged.is_shared, "judged for two systems or more"),
    )
    too_few = {}
    for key, is_basis, which in bases:
        num_segments = int(is_basis.sum())
        if num_segments < MIN_UNITS:
            reason = f"{plural(num_segments, 'segment')} {which}, and it takes {MIN_UNITS}"
            too_few[key] = no_value(reason, 0)
    return too_few


def _sums(judged: JudgedSystems, metric: MetricScores) -> Sums:
    """Return the measures of a metric as sums."""
    is_judged = judged.is_judged.any(axis=0)
    scaled: list[Floats] = []
    scales: list[float] = []
    for side in (judged.human_segment, metric.segment):
        outputs = np.compress(is_judged, side, axis=1)
        # a power of two: scores that differ stay so
        scale = float(np.ldexp(1.0, np.frexp(np.nanmax(np.abs(outputs)))[1]))
        scaled.append(outputs / scale)
        scales.append(scale)
    human, scores = scaled  # (systems, judged segments)
    sums = segment_sums(human, scores, judged.unit_numbers)
    if len(judged.systems) > 1:
        systems = judged.human_system / scales[0], metric.system / scales[1]
        sums[R_OF_SYSTEMS] = system_sums(systems, (human, scores), judged.unit_numbers)
    return sums


def _with_intervals(metric: MetricAgreement, sums: Sums, effective: float) -> MetricAgreement:
    """Return a metric with the 95 % intervals of its measures."""
    measures = dict(metric.measures)
    for key, of_key in sums.items():
        measure = metric.measure(key)
        if measure is None or measure.value is None:
            continue
        ends = interval(measure.value, of_key, effective, is_r="pearson" in key)
        if ends:
            low, high = ends
            measures[key] = replace(measure, low=low, high=high)
    return replace(metric, measures=measures)


# One language pair.


def meta_evaluate(
    language_pairs: Sequence[JudgedSystems],
    *,
    permutations: int = 1000,
    seed: int = 4,
    sentinels: bool = True,
) -> MetaEvaluation:
    """Judge metrics by acc*_eq and SPA, with 95 % intervals.

    The former is of the outputs of a segment, the latter of systems.

    Intervals are over other segments (documents, if known), by a jackknife. Where fewer than 20
    segments have two judged outputs or more, or under two thirds of the outputs are in such
    segments, metrics are judged by Pearson's r over all outputs first. SPA has no rank and no test
    of fewer than five systems. A mean over language pairs is over those that have the measure.

    Args:
        language_pairs: the systems of each, with the metrics to judge. Systems without human scores
            are left out, and metrics whose lower scores are better are negated.
        permutations: of soft pairwise accuracy, and of the test of every two metrics, which
            exchanges their scores in whole segments (documents, if known), with two-sided p and
            Holm's correction for all pairs. It has at least 30 for each pair of metrics, so that
            corrected p-values can be below .05.
        seed: of the permutations; with 4, soft pairwise accuracy is as in mt-metrics-eval.
        sentinels: whether to judge sentinels too, and to test whether each metric is better than
            all of them.

    Raises:
        InputError: there is no language pair, one is given twice, one has no metric or no judged
            system, shapes differ, a metric lacks a score that annotators judged, or two have the
            same name.
        MissingExtraError: scipy is not installed.
    """
    names = [systems.language_pair for systems in language_pairs]
    if not names or len({*names}) < len(names):
        raise InputError(f"The language pairs are {names}. Give at least one, and each once.")
    judged = [systems.judged() for systems in language_pairs]
    found = [_language_pair(systems, permutations, seed, sentinels) for systems in judged]
    results, sums = zip(*found, strict=True)
    pairs_of = {key: _pairs_with(results, key) for key in AVERAGED}
    means, mean_tests = _means(results, sums, pairs_of, permutations, seed)
    mean_pairs = {}
    for key, pairs in pairs_of.items():
        mean_pairs[key] = tuple(names[pair] for pair in pairs)
    return MetaEvaluation(results, means, mean_tests, mean_pairs, permutations, seed)


def _language_pair(
    judged: JudgedSystems, permutations: int, seed: int, with_sentinels: bool
) -> tuple[LanguagePairResult, dict[str, Sums]]:
    """Return the result of a language pair, and the sums of metrics that can be tested."""
    if not judged.metrics:
        raise InputError(
            f"{judged.language_pair}: there are no scores of a metric. Give those of one at least."
        )
    sentinels = sentinel_scores(judged, seed) if with_sentinels else {}
    scores = {**judged.metrics, **sentinels}
    too_few = _too_few(judged)
    agreements = _agreements(judged, scores, too_few, permutations, seed)
    if with_sentinels:
        agreements[RANDOM] = _agreement_of_random(judged, too_few, permutations, seed)
    golds = _golds(judged, agreements)
    sums = _sums_of_tested(judged, scores, golds)
    ranked_by = _ranked_by(
        judged, [agreements[name] for name in judged.metrics if name not in golds]
    )
    tests = {}
    for key in ranked_by:
        names = [name for name in sums if agreements[name].measure(key)]
        if key == OF_SYSTEMS and len(judged.compared_systems) < MIN_SYSTEMS:
            names = []
        tests[key] = _compared([sums], key, names, permutations, seed)
    finished = {}
    for name, agreement in agreements.items():
        with_intervals = agreement
        if name != RANDOM:  # its values are means over draws
            with_intervals = _with_intervals(agreement, sums.get(name, {}), judged.effective_units)
        finished[name] = replace(with_intervals, ranks=_ranks(name, tests))

    def place(metric: MetricAgreement) -> tuple[float, ...]:
        keys = (*ranked_by, R_OF_OUTPUTS, R_OF_SYSTEMS)
        return tuple(_falling(metric.measure(key)) for key in keys)

    num_tested = len(sums.keys() & judged.metrics.keys())
    notes = list(_notes(judged, ranked_by))
    notes += _notes_of_gold(golds)
    notes += notes_of_sentinels(judged, sentinels)
    if tests:
        notes += notes_of_exchanges(judged.num_units, judged.kind_of_units, num_tested)
    reversed_metrics = []
    for name in judged.metrics:
        if name not in golds and _is_reversed(
            judged, agreements[name], sums.get(name, {}), permutations, seed
        ):
            reversed_metrics.append(name)
    metric_scores = {}
    for name, metric in judged.metrics.items():
        metric_scores[name] = tuple(map(finite, metric.system))
    ranked_metrics = sorted((finished[name] for name in judged.metrics), key=place)
    result = LanguagePairResult(
        language_pair=judged.language_pair,
        systems=judged.systems,
        human_scores=tuple(map(finite, judged.human_system)),
        metric_scores=metric_scores,
        segments=len(judged.unit_numbers),
        metrics=tuple(ranked_metrics),
        sentinels=tuple(finished[name] for name in sentinels),
        ranked_by=ranked_by,
        tests=tests,
        golds=tuple(golds),
        reversed=tuple(reversed_metrics),
        notes=tuple(notes),
        units=judged.kind_of_units,
        num_units=judged.num_units,
        shared=judged.num_shared,
    )
    return result, sums


def _agreements(
    judged: JudgedSystems,
    scores: Mapping[str, MetricScores],
    too_few: Mapping[str, Measure],
    permutations: int,
    seed: int,
) -> dict[str, MetricAgreement]:
    """Return how metrics and sentinels agree with human scores, by name."""
    is_by_r = _is_by_r(judged)
    no_r = {R_OF_OUTPUTS: no_value("all outputs of a segment score alike", 0)}
    agreements = {}
    for name, metric in scores.items():
        absent = too_few
        if is_by_r and (name == SEGMENT or _tells_segments(judged, metric)):
            absent = {**too_few, **no_r}
        agreements[name] = _agreement(judged, name, metric, absent, permutations, seed)
    return agreements


def _agreement(
    judged: JudgedSystems,
    name: str,
    metric: MetricScores,
    absent: Mapping[str, Measure],
    permutations: int,
    seed: int,
) -> MetricAgreement:
    """Return how a metric agrees with human scores, without the values that are absent."""
    measures = _measures(judged, metric, permutations, seed)
    for key, measure in absent.items():
        if measures[key].value is not None:
            measures[key] = measure
    num_outputs = int(judged.is_judged.sum())
    return MetricAgreement(name, metric.signature, measures, len(judged.systems), num_outputs)


def _agreement_of_random(
    judged: JudgedSystems, too_few: Mapping[str, Measure], permutations: int, seed: int
) -> MetricAgreement:
    """Return the mean agreement of several draws of random numbers."""
    draws = []
    for metric in random_scores(judged, seed):
        draws.append(_agreement(judged, RANDOM, metric, too_few, permutations, seed))
    return mean_agreement(draws)


def _golds(judged: JudgedSystems, agreements: Mapping[str, MetricAgreement]) -> dict[str, float]:
    """Return the r of the metrics that are the human scores themselves, or linear in them."""
    golds = {}
    for name in judged.metrics:
        r = _r_of_gold(agreements[name])
        if r:
            golds[name] = r
    return golds


def _sums_of_tested(
    judged: JudgedSystems, scores: Mapping[str, MetricScores], golds: Mapping[str, float]
) -> dict[str, Sums]:
    """Return the sums of the metrics and sentinels that can be tested; none of few segments."""
    if len(judged.unit_numbers) < MIN_UNITS:
        return {}
    return {name: _sums(judged, metric) for name, metric in scores.items() if name not in golds}


def _is_by_r(judged: JudgedSystems) -> bool:
    """Return whether too few outputs share a segment with another for acc*_eq alone."""
    if len(judged.unit_numbers) < MIN_UNITS:
        return not judged.num_shared
    num_outputs = judged.is_judged.sum()
    num_in_company = judged.is_judged[:, judged.is_shared].sum()
    return judged.num_shared < MIN_UNITS or 3 * num_in_company < 2 * num_outputs


def _tells_segments(judged: JudgedSystems, metric: MetricScores) -> bool:
    """Return whether a metric scores all outputs of a segment alike, in 20 shared segments."""
    if judged.num_shared < MIN_UNITS:
        return False
    scores = np.where(judged.is_judged, metric.segment, np.nan)
    return not np.nan_to_num(pair_differences(scores[:, judged.is_shared])).any()


def _ranked_by(judged: JudgedSystems, agreements: Sequence[MetricAgreement]) -> tuple[str, ...]:
    """Return the measures of outputs and of systems that rank the metrics."""
    choices: tuple[str, ...] = (OF_OUTPUTS, OF_SYSTEMS)
    if _is_by_r(judged):
        choices = (R_OF_OUTPUTS, *choices)
    keys = []
    for key in choices:
        if any(metric.measure(key) for metric in agreements):
            keys.append(key)
    return tuple(keys)


def _compared(
    sums: Sequence[Mapping[str, Sums]],
    key: str,
    names: Sequence[str],
    permutations: int,
    seed: int,
) -> MeasureTests:
    """Compare the metrics of these names by the mean of a measure over language pairs."""
    tested: dict[str, list[UnitSums]] = {}
    for name in names:
        values = []
        for of_pair in sums:
            of_key = of_pair.get(name, {}).get(key)
            if of_key is not None and np.isfinite(of_key.value):
                values.append(of_key)
        if len(values) == len(sums):
            tested[name] = values
    return compare_metrics(tested, permutations=permutations, seed=seed)


def _ranks(name: str, tests: Mapping[str, MeasureTests]) -> dict[str, int]:
    """Return the rank of a metric by each measure that ranks it."""
    ranks = {}
    for measure, of_measure in tests.items():
        if name in of_measure.ranks:
            ranks[measure] = of_measure.ranks[name]
    return ranks


def _is_reversed(
    judged: JudgedSystems, agreement: MetricAgreement, given: Sums, permutations: int, seed: int
) -> bool:
    """Return whether a metric is significantly worse than its negative."""
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
    """Return the r of a metric that is linear in the human scores; None of another."""
    r = agreement.measures[R_OF_OUTPUTS]
    if r.n < 3 or abs(r.value or 0.0) <= 1 - CLOSE:
        return None
    return r.value


# Notes on the data.


def _notes(judged: JudgedSystems, ranked_by: Sequence[str]) -> Iterator[str]:
    """Yield warnings about scores that are less comparable."""
    if judged.dropped:
        yield (
            f"{plural(len(judged.dropped), 'segment')} left out, where a judged output has no "
            "score by some metric"
        )
    # Annotators tie where their scores are equal to the last bit.
    differences = np.abs(exact_differences(judged.human_segment))
    of_rounding = (differences > 0) & (differences <= rounding(judged.human_segment))
    if of_rounding.any():
        yield (
            f"{plural(int(of_rounding.sum()), 'pair')} of outputs with human scores that differ "
            "by rounding alone: they are compared as they are given, and are no ties"
        )
    counts = judged.is_judged.sum(axis=1)
    if (counts < len(judged.unit_numbers)).any():
        yield (
            f"systems are judged on different segments, {counts.min()} to {counts.max()} each: the "
            "score of a system is the mean over its own, and SPA compares two on those of both"
        )
    yield from _pairs_not_compared(judged)
    yield from _repeated_segments(judged)
    num_segments = len(judged.unit_numbers)
    num_units = judged.num_units
    effective = judged.effective_units
    if num_segments < MIN_UNITS:
        yield (
            f"{plural(num_segments, 'segment')}: fewer than {MIN_UNITS} give no intervals, ranks "
            "and tests, and no acc*_eq, SPA and r by item; the other values describe these "
            "segments alone"
        )
    elif effective < MIN_UNITS:
        units = f"{num_units} {judged.kind_of_units}"
        if effective <= num_units - 0.05:
            units += f", which tell as much as {effective:.1f} of one size,"
        yield f"{units} are few: below {MIN_UNITS}, intervals and tests are not reliable"
    num_systems = len(judged.compared_systems)
    if OF_SYSTEMS in ranked_by and num_systems < MIN_SYSTEMS:
        yield (
            f"{num_systems} systems: SPA has no rank and no test of fewer than {MIN_SYSTEMS}; "
            "random numbers come close to 1"
        )


def _pairs_not_compared(judged: JudgedSystems) -> Iterator[str]:
    """Yield which systems SPA leaves out, and which pairs of the others."""
    compared = judged.compared_systems
    names = [f"{system} with any other" for system in judged.systems if system not in compared]
    for (first, second), is_compared in judged.compared_pairs.items():
        if not is_compared and first in compared and second in compared:
            names.append(f"{first} with {second}")
    if compared and names:
        yield (
            "SPA does not compare systems that are judged on fewer than "
            f"{MIN_UNITS} common segments: {', '.join(names)}"
        )


def _repeated_segments(judged: JudgedSystems) -> Iterator[str]:
    """Yield a warning if the texts of judged segments repeat those of others."""
    repeats = RepeatCounter()
    for segment in np.flatnonzero(judged.is_judged.any(axis=0)).tolist():
        outputs = [candidates[segment] for candidates in judged.candidates or ()]
        references = chain.from_iterable(of_system[segment] for of_system in judged.references)
        repeats.add([*references, *filter(None, outputs)])
    if repeats.warning:
        yield repeats.warning.removesuffix(".")


def _notes_of_gold(golds: Mapping[str, float]) -> Iterator[str]:
    """Yield which metrics are the human scores themselves."""
    for name, r in golds.items():
        yield (
            f"{name} is the human scores themselves, or linear in them, and has no rank: r = "
            f"{r:+.0f} is by construction"
        )


# Several language pairs.


AVERAGED: tuple[str, ...] = (OF_OUTPUTS, OF_SYSTEMS, R_OF_OUTPUTS, R_OF_SYSTEMS)
"""The measures whose means over language pairs are taken."""
_SOME_PAIRS = (
    "the metric has scores of {} of {} language pairs, and means over others cannot be compared"
)


def _pairs_with(results: Sequence[LanguagePairResult], key: str) -> list[int]:
    """Return the positions of the language pairs where a measure ranks metrics, else has values."""
    ranking = [pair for pair, result in enumerate(results) if result.is_ranked_by(key)]
    if ranking:
        return ranking
    with_values = []
    for pair, result in enumerate(results):
        if any(metric.measure(key) for metric in result.metrics):
            with_values.append(pair)
    return with_values


def _means(
    results: Sequence[LanguagePairResult],
    sums: Sequence[Mapping[str, Sums]],
    pairs_of: Mapping[str, Sequence[int]],
    permutations: int,
    seed: int,
) -> tuple[tuple[MetricMean, ...], dict[str, MeasureTests]]:
    """Return the means of metrics and then of sentinels, and the tests of these."""
    by_name: dict[tuple[Kind, str], dict[int, MetricAgreement]] = {}  # by name and pair
    golds = set[str]()
    keys: dict[str, None] = {}
    for pair, result in enumerate(results):
        keys |= dict.fromkeys(filter(result.is_ranked_by, result.ranked_by))
        for kind, metric in result.by_kind():
            by_name.setdefault((kind, metric.name), {})[pair] = metric
        golds.update(result.golds)
    # What ranks metrics in most language pairs comes first.
    ranked_by = sorted(keys, key=lambda key: -len(pairs_of[key]))
    tests = {}
    for key in ranked_by:
        names = []
        for (_, name), metrics in by_name.items():
            of_pairs = [metrics[pair] for pair in pairs_of[key] if pair in metrics]
            with_value = [metric for metric in of_pairs if metric.measure(key)]
            if name not in golds and len(with_value) == len(pairs_of[key]):
                names.append(name)
        sums_of_pairs = [sums[pair] for pair in pairs_of[key]]
        tests[key] = _compared(sums_of_pairs, key, names, permutations, seed)
    means = []
    for (kind, name), metrics in by_name.items():
        measures = {key: _average(metrics, key, pairs_of[key]) for key in AVERAGED}
        means.append(MetricMean(name, len(metrics), measures, _ranks(name, tests), kind))

    def place(mean: MetricMean) -> list[float]:
        values = [_falling(mean[key]) for key in (*ranked_by, *AVERAGED)]
        return [float(mean.kind == "sentinels"), *values]

    return tuple(sorted(means, key=place)), tests


def _average(metrics: Mapping[int, MetricAgreement], key: str, pairs: Sequence[int]) -> Measure:
    """Average over the language pairs with a measure, as independent (Zou and Donner, 2008)."""
    of_pairs = [metrics[pair].measure(key) for pair in pairs if pair in metrics]
    measures = list(filter(None, of_pairs))
    if not measures:
        return no_value("the metric has no such scores", 0)
    if len(measures) < len(pairs):
        return no_value(_SOME_PAIRS.format(len(measures), len(pairs)), len(measures))
    mean = average(measures)
    if mean.value is None or any(measure.low is None for measure in measures):
        return mean
    ends = [(measure.value, measure.low, measure.high) for measure in measures]
    values, lows, highs = np.array(ends, dtype=np.float64).T
    below = np.sqrt(((values - lows) ** 2).sum()) / len(measures)
    above = np.sqrt(((values - highs) ** 2).sum()) / len(measures)
    return replace(mean, low=mean.value - float(below), high=mean.value + float(above))
