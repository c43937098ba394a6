"""The results of systems under a metric, put together from their tests."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx_evaluation.metric_scores import MetricScores
from bertscore_onnx_evaluation.metrics.correlation import finite
from bertscore_onnx_evaluation.systems.corpus_scores import CorpusScores, SegmentMeans, by_group
from bertscore_onnx_evaluation.systems.margins import MarginBounds
from bertscore_onnx_evaluation.systems.paired_tests import (
    MIN_UNITS,
    PairedTestResult,
    holm,
    segment_outcomes,
)
from bertscore_onnx_evaluation.systems.verdicts import (
    GroupResult,
    MetricResult,
    PairResult,
    SystemResult,
    losses_again,
    with_ranks,
)


def metric_result(
    name: str,
    metric: MetricScores,
    tested: PairedTestResult,
    names: Sequence[str],
    units: tuple[int, str],
    *,
    all_pairs: bool = False,
    margin: float | None = None,
    bounds: MarginBounds | None = None,
) -> MetricResult:
    """Put together the scores and the tests of one metric.

    With a margin it takes the bounds.
    """
    outcomes = segment_outcomes(
        np.asarray(metric.segment),
        tolerance=metric.tie_tolerance,
        lower_is_better=metric.lower_is_better,
    )
    won, lost, tied = outcomes.tolist()
    lower = metric.lower_is_better
    systems = _system_results(names, tested.score.tolist(), tested, lower, margin, bounds)
    for row in range(1, len(systems)):
        counts = {"won": won[row], "lost": lost[row], "tied": tied[row]}
        systems[row] = replace(systems[row], **counts)
    pairs = []
    if all_pairs:
        for row, (first, second) in enumerate(tested.pairs):
            fields = _pair_fields(tested, row)
            pairs.append(PairResult(names[first], names[second], **fields))
    result = result_of_systems(name, metric, systems, units, tested.effective_units)
    return with_ranks(replace(result, pairs=tuple(pairs), margin=margin))


def result_of_systems(
    name: str,
    metric: MetricScores,
    systems: Sequence[SystemResult],
    units: tuple[int, str],
    num_effective: float,
) -> MetricResult:
    """Return the results of systems under a metric, with the number of their runs."""
    signature = metric.signature
    runs = metric.corpus.runs if isinstance(metric.corpus, SegmentMeans) else ()
    num_runs = () if metric.corpus is None else metric.corpus.num_runs
    if num_runs:
        signature += f"|runs:{'/'.join(map(str, num_runs))}"
    counted = []
    for row, system in enumerate(systems):
        if num_runs:
            system = replace(system, runs=num_runs[row])
        if runs:
            system = replace(system, missing_runs=int(np.isnan(runs[row]).sum()))
        counted.append(system)
    return MetricResult(
        name,
        signature,
        metric.lower_is_better,
        tuple(counted),
        (),
        np.asarray(metric.segment),
        units=units,
        effective_units=num_effective,
    )


def _pair_fields(tested: PairedTestResult, row: int) -> dict[str, Any]:
    """Return the test of a pair of systems, as fields of its result."""
    low, high = map(finite, tested.interval[row])
    fields = {
        "delta": float(tested.delta[row]),
        "p": float(tested.p[row]),
        "p_holm": float(tested.p_holm[row]),
        "delta_error": float(tested.error[row]),
        "delta_low": low,
        "delta_high": high,
        "test": tested.tests[row],
    }
    if tested.runs_interval is not None:
        runs_low, runs_high = map(finite, tested.runs_interval[row])
        fields |= {"runs_low": runs_low, "runs_high": runs_high}
    return fields


def _system_results(
    names: Sequence[str],
    scores: Sequence[float],
    tested: PairedTestResult | None,
    lower_is_better: bool,
    margin: float | None,
    bounds: MarginBounds | None,
) -> list[SystemResult]:
    """Return the scores of systems, with their tests against the first and bounds, if any."""
    systems = [SystemResult(names[0], scores[0])]
    for row, (name, score) in enumerate(zip(names[1:], scores[1:], strict=True)):
        result = SystemResult(name, score, delta=score - scores[0])
        if tested is not None:
            result = replace(result, **_pair_fields(tested, row))
            result = replace(result, differing=int(tested.differing[row]))
        if margin is not None and bounds is not None:
            again = losses_again(result, lower_is_better=lower_is_better)
            result = replace(result, **margin_result(margin, bounds, row, again))
        systems.append(result)
    return systems


def margin_result(
    margin: float, bounds: MarginBounds, row: int, again: tuple[float, float] | None = None
) -> dict[str, Any]:
    """Return what the bounds of a pair, and its loss and gain trained again, say of a margin.

    They are fields of `SystemResult`.
    """
    loss = float(bounds.loss[row])
    gain = float(bounds.gain[row])
    loss_again, gain_again = again or (loss, gain)
    return {
        "not_worse": max(loss, loss_again) < margin,
        "equivalent": max(loss, gain, loss_again, gain_again) < margin,
        "largest_loss": loss,
        "largest_gain": gain,
    }


def group_results(
    corpus: CorpusScores,
    names: Sequence[str],
    groups: Sequence[str],
    documents: NDArray[np.int64] | None,
    test: Callable[[CorpusScores], PairedTestResult],
    *,
    margin: float | None = None,
    bounds_of: Callable[[CorpusScores, int], MarginBounds] | None = None,
) -> tuple[GroupResult, ...]:
    """Score and test the systems on the segments of each group.

    The name of its group is given for each segment. Groups of fewer than `MIN_UNITS` units are not
    tested. p and bounds are corrected for all groups and systems.
    """
    num_claims = len({*groups}) * (len(names) - 1)
    scored = list(by_group(corpus, groups, documents))
    tests: list[PairedTestResult | None] = []
    all_bounds: list[MarginBounds | None] = []
    for _, _, group in scored:
        tests.append(test(group) if group.shape[1] >= MIN_UNITS else None)
        all_bounds.append(None if bounds_of is None else bounds_of(group, num_claims))
    p_values = [tested.p for tested in tests if tested]
    corrected = iter(holm(list(chain.from_iterable(p_values))))

    results = []
    for (name, num_segments, group), tested, bounds in zip(scored, tests, all_bounds, strict=True):
        if tested:
            p_holm = np.array(list(islice(corrected, len(names) - 1)))
            tested = replace(tested, p_holm=p_holm)
        results.append(_group_result(name, num_segments, group, names, tested, margin, bounds))
    return tuple(results)


def mean_of_groups(
    corpus: CorpusScores,
    names: Sequence[str],
    groups: Sequence[str],
    documents: NDArray[np.int64] | None,
    test: Callable[[CorpusScores], PairedTestResult],
) -> GroupResult | None:
    """Test the means of the scores of groups; None for few units.

    p is corrected for the systems; fewer than `MIN_UNITS` units are few. Where a task has many
    segments and others have few, this is the question of who compares by tasks.
    """
    _, numbers = np.unique(np.array(groups), return_inverse=True)
    mean = corpus.mean_of_groups(numbers)
    if documents is not None:
        mean = mean.by_document(documents)
    if mean.shape[1] < MIN_UNITS:
        return None
    return _group_result("mean of the groups", len(groups), mean, names, test(mean))


def _group_result(
    name: str,
    num_segments: int,
    corpus: CorpusScores,
    names: Sequence[str],
    tested: PairedTestResult | None,
    margin: float | None = None,
    bounds: MarginBounds | None = None,
) -> GroupResult:
    scores = corpus.observed().tolist()
    systems = _system_results(names, scores, tested, corpus.lower_is_better, margin, bounds)
    return GroupResult(name, num_segments, corpus.shape[1], tuple(systems))


def single_groups(
    metric: CorpusScores,
    groups: Sequence[str],
    documents: NDArray[np.int64] | None,
    measured: Callable[[CorpusScores], SystemResult],
) -> tuple[GroupResult, ...]:
    """Return the score of one system in each group, if there are any.

    Small groups have no interval.
    """
    results = []
    for group, num_segments, of_group in by_group(metric, groups, documents):
        result = measured(of_group)
        num_units = of_group.shape[1]
        if num_units < MIN_UNITS:
            result = replace(result, score_low=None, score_high=None)
        results.append(GroupResult(group, num_segments, num_units, (result,)))
    return tuple(results)
