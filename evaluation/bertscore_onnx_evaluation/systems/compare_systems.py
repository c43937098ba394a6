"""Compare systems: score them by several metrics, and test their differences by the same swaps."""

import math
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from inspect import signature
from numbers import Integral, Real
from os import PathLike
from typing import TYPE_CHECKING, Any, Never, cast

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import Argument, InputError, InputTypeError, meant
from bertscore_onnx.similarity import TokenNames, TokenSimilarity, pair_similarities
from bertscore_onnx_evaluation.metric_scores import (
    BERTSCORE,
    MetricScores,
    given_metrics,
    is_bertscore,
    means_of_runs,
    metric_options,
    preceding_sentences,
    score_systems,
)
from bertscore_onnx_evaluation.metrics.correlation import finite
from bertscore_onnx_evaluation.systems.comparison import Comparison
from bertscore_onnx_evaluation.systems.comparison_record import Example
from bertscore_onnx_evaluation.systems.corpus_scores import (
    ROUNDING,
    CorpusScores,
    SegmentMeans,
    by_group,
    document_numbers,
)
from bertscore_onnx_evaluation.systems.inputs import (
    Candidates,
    Documents,
    References,
    SystemScores,
    Value,
    is_prf,
    join_inputs,
)
from bertscore_onnx_evaluation.systems.join import Missing
from bertscore_onnx_evaluation.systems.margins import MarginBounds, margin_bounds
from bertscore_onnx_evaluation.systems.paired_tests import (
    MIN_UNITS,
    NUM_SWAPS,
    SEED,
    PairedTestResult,
    check_draws,
    holm,
    over_runs,
    paired_permutation,
    segment_outcomes,
)
from bertscore_onnx_evaluation.systems.single import single_groups, single_metric, single_result
from bertscore_onnx_evaluation.systems.verdicts import (
    GroupResult,
    MetricResult,
    PairResult,
    SystemResult,
    with_ranks,
)

if TYPE_CHECKING:
    from bertscore_onnx.scorer import BERTScorer


def compare(
    candidates: Candidates | None = None,
    references: References | None = None,
    *,
    scores: SystemScores | Mapping[str, SystemScores] | None = None,
    systems: str | Sequence[str] | None = None,
    baseline: str | None = None,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    value: Value = "F",
    lower_is_better: Collection[str] = (),
    higher_is_better: Collection[str] = (),
    missing: Missing = "raise",
    scorer: "BERTScorer | None" = None,
    metrics: Iterable[str] | Mapping[str, Mapping[str, Any]] | None = None,
    num_resamples: int = NUM_SWAPS,
    seed: int = SEED,
    all_pairs: bool = False,
    documents: Documents | None = None,
    by: str | Iterable[Hashable] | None = None,
    context_sentences: int = 0,
    margin: float | None = None,
    worst: float | None = None,
    num_examples: int = 5,
    verbose: bool | None = False,
    **unknown: Never,
) -> Comparison:
    """Compare the outputs of systems for the same segments; of one system alone return scores with their intervals.

    References are encoded once for all systems, and all metrics share the swaps. Scores are those of
    sacreBLEU; the score of BERTScore is the mean of F over the segments.

    Data frames are joined by the ids in a column `segment`, `segment_id`, `seg_id`, `id` or `line`, and their segments
    are taken in the natural order of the ids; without such a column an index of pandas that does not count 0, 1, 2, …
    has the ids. Other data frames are joined by position. docs/tables.md says how the values of their columns have to
    show that, and lists have their order.

    Several runs of a system, or of a judge, are one system whose scores of segments are the means of its runs: a list
    of texts for each run, scores (runs, segments), or a column `run` in data frames with several rows for a segment.
    Units stay segments; where both systems have several runs, an interval over other runs stands beside.

    Args:
        candidates: the texts of each system by its name: a list with one for each segment, or a data frame with the
            column `candidate`. Or a data frame with the columns `system`, `segment` and `candidate`, or with a column
            of texts for each of the `systems`.
        references: for each segment a reference, or a list of several; or a data frame with the column `reference` or
            `references`; None for those in the data frame of the candidates. They and the texts may be left out if
            there are `scores`.
        scores: segment scores that other metrics, or people, gave: a mapping of the names of systems to numbers, or to
            `Scores`; or a data frame with the columns `system`, `segment`, `score` and perhaps `metric`, or with a
            column for each of the `systems`; or for several metrics a mapping of their names to these. Or a mapping
            of the names of systems to data frames without these columns, where each column of numbers is a metric.
            True counts as 1 and false as 0. The score of a system is the mean of its scores.
        systems: the systems to compare, by name; "all" for those that there are, or in a data frame with a column for
            each system for all columns without another role.
        baseline: the system that the others are compared with; None for the first.
        columns: the columns of data frames by their roles, unless they have the usual names: `system`, `candidate`,
            `reference`, `score`, `metric`, `segment`, `document`, `run`. References and scores may have several.
            `{"segment": ["A", "B"]}` is the first that a table has, `{"segment": "A+B"}` a key of two columns, and
            `{"segment": "none"}` joins by position. A role that the inputs do not use is refused.
        value: which numbers of `Scores` are compared: "P", "R" or "F".
        lower_is_better: the names of those given metrics whose lower scores are better.
        higher_is_better: the names of those whose higher scores are better, as is assumed of all others too; the
            `regressions` of a comparison need the direction of each.
        missing: "raise", or "drop" to leave out segments that some input lacks; the result counts them.
        scorer: for BERTScore; a scorer of one layer.
        metrics: `bertscore`, its P and R as `bertscore,value=P` and `bertscore,value=R`, `bleu`, `chrf`, `ter`, or the
            last three with options of sacreBLEU's class, such as `["bleu,tokenize=zh"]` or `{"bleu": {"tokenize":
            "zh"}}`; None for `bertscore`, or with `scores` and without a scorer for none. The first chooses the
            examples.
        num_resamples: the swaps of the test, which is `paired_permutation`, at least 1.
        seed: of the swaps, 0 or more.
        all_pairs: whether to test every pair of systems too.
        documents: the document of each segment, by any name, or a data frame with the column `document`; None for the
            column `document`, `document_id` or `doc` of the other data frames. Segments of one document resemble each
            other, so that tests and intervals then take whole documents; without any they assume that segments are
            independent.
        by: the group of each segment, such as its domain: names, or the column of the data frames that has them. The
            systems are then also compared within each group of 20 segments, or documents, or more.
        context_sentences: how many of the preceding references in its document are the context of each segment, for
            BERTScore; Doc-BERTScore takes two.
        margin: a difference in the score, above 0; for each system, and in each group, the result then has the largest
            loss that is not excluded, and whether it is below the margin. Only with a single metric.
        worst: the worst score that a segment can have, beside a margin: a loss is at most from the baseline's best
            score to it. None for 0, for 1 where lower scores are better, and for what an empty text scores by
            BERTScore; the `regressions` of given scores other than 0 and 1 need it.
        num_examples: how many of the segments that differ most to keep, for each system and direction.
        verbose: show a progress bar on standard error; None for one on a terminal, after 2 seconds.

    Raises:
        InputError: no system, one with a margin or all pairs, no segment, a segment that some input lacks or has twice,
            tables without ids that may be in different orders, an unknown metric, BERTScore without a scorer, or an
            option out of its range.
        InputTypeError: something is not a text, or an argument is unknown.
        MissingExtraError: scipy is not installed; or sacreBLEU is not, and a metric comes from it.
    """
    for name in unknown:
        raise InputTypeError(f"compare takes no {name!r}.{meant(name, signature(compare).parameters)}")
    for name, given, form, expected in (
        ("metrics", metrics, Iterable, "names of metrics"),
        ("columns", columns, Mapping, "a mapping of roles to columns"),
        ("margin", margin, Real, "a number"),
        ("worst", worst, Real, "a number"),
        ("num_resamples", num_resamples, Real, "a number"),
        ("seed", seed, Real, "a number"),
        ("context_sentences", context_sentences, Integral, "an integer"),
        ("num_examples", num_examples, Integral, "an integer"),
    ):
        if not (given is None or isinstance(given, form)):
            raise InputTypeError(f"{name} is {type(given).__name__} {given!r}; expected {expected}.")
    if isinstance(scorer, str | PathLike):
        raise InputTypeError(f"scorer is {scorer!r}; expected a scorer, such as BERTScorer({scorer!r}).")
    if num_examples < 0:
        raise InputError(f"num_examples is {num_examples}; expected 0 or more.")
    if context_sentences < 0:
        raise InputError(f"context_sentences is {context_sentences}; expected an integer of 0 or more.")
    check_draws(num_resamples, seed)
    is_given_only = metrics is None and scorer is None and scores is not None
    options = {} if is_given_only else metric_options([BERTSCORE] if metrics is None else metrics)
    if context_sentences and not any(map(is_bertscore, options)):
        raise InputError("context_sentences has no effect without the metric bertscore. Add it, or leave them out.")
    if scorer is not None and not any(map(is_bertscore, options)):
        raise InputError("scorer has no effect without the metric bertscore. Add it, or leave the scorer out.")
    joined = join_inputs(
        candidates,
        references,
        scores,
        documents,
        by,
        systems=systems,
        baseline=baseline,
        columns=columns,
        value=value,
        missing=missing,
        needs_texts=bool(options),
    )
    if value != "F" and not _has_ours(scores):
        raise InputError(f"value={value!r} has no effect: no scores are `Scores` of a scorer. Leave it out.")
    names, lists = joined.systems, joined.references
    runs = [_runs_of(texts) for texts in joined.candidates]
    first_runs = tuple(texts[0] for texts in runs)
    directions = (lower_is_better, higher_is_better)
    lower_is_better, higher_is_better = ([names] if isinstance(names, str) else names for names in directions)
    precomputed = given_metrics(joined.scores, lower_is_better, options, higher_is_better=higher_is_better)
    ours = _our_scores(scores)
    if ours:
        precomputed = {name: replace(metric, worst=_worst_of(ours, value)) for name, metric in precomputed.items()}
    known = {*lower_is_better, *higher_is_better}
    num_segments = len(joined.segments)
    num_metrics = len(options) + len(precomputed)
    if margin is not None and not (0 < margin < math.inf and num_metrics == 1):
        raise InputError(
            f"The margin is {margin}, with {num_metrics} metrics; expected a number above 0, and one metric, since "
            "others have another scale."
        )
    if worst is not None and (margin is None or not math.isfinite(worst)):
        raise InputError(f"The worst score is {worst}, with the margin {margin}; expected two numbers, or neither.")
    for kind, is_given in (("A margin", margin is not None), ("A test of all pairs", all_pairs)):
        if is_given and len(names) == 1:
            raise InputError(f"{kind} is about two systems, and {names[0]} is alone. Leave it out, or add another.")
    numbers = document_numbers(joined.documents, num_segments) if joined.documents else None
    contexts = None
    if context_sentences:
        if numbers is None:
            raise InputError(
                "Preceding sentences are those of a document. Give the document of each segment with ",
                Argument("documents"),
                ".",
            )
        contexts = preceding_sentences(lists, numbers.tolist(), context_sentences)
    with nullcontext() if scorer is None else scorer.with_fixed_weights(lists) as weighted:
        texts = [texts for system in runs for texts in system]
        scored = precomputed
        if options:
            computed = score_systems(
                options,
                texts,
                [lists] * len(texts),
                scorer=weighted,
                contexts=contexts,
                verbose=verbose,
                names=[name for name, system in zip(names, runs, strict=True) for _ in system],
            )
            if len(texts) > len(names):
                rows = iter(range(len(texts)))
                rows_of_systems = [[next(rows) for _ in system] for system in runs]
                computed = {name: means_of_runs(metric, rows_of_systems) for name, metric in computed.items()}
            scored = computed | precomputed
        first = next(iter(scored.values()))
        matcher = weighted if contexts is None else None  # the tokens of a pair in context have no best match each
        examples = find_examples(names, first_runs, lists, first, matcher, num_examples) if runs else ()
    num_documents = None if numbers is None else int(numbers.max()) + 1
    of_documents = f"|documents:{num_documents}" if num_documents else ""
    settings = f"test:permutation{of_documents}|resamples:{num_resamples}|seed:{seed}"
    settings += f"|dropped:{len(joined.dropped)}" if joined.dropped else ""

    test = partial(paired_permutation, num_swaps=num_resamples, seed=seed)
    results = []
    for name, metric in scored.items():
        by_segment = cast("CorpusScores", metric.corpus)  # there is one: no system lacks a text
        corpus = by_segment if numbers is None else by_segment.by_document(numbers)
        units = corpus.shape[1], "segment" if numbers is None else "document"
        if len(names) == 1:
            measured = partial(single_result, names[0], num_swaps=num_resamples, seed=seed)
            result = single_metric(name, metric, measured(corpus), settings, corpus, units)
            groups = single_groups(by_segment, joined.groups, numbers, measured)
            results.append(replace(result, groups=groups))
            continue
        bounds_of = None
        if margin is not None:
            worst_score, is_assumed = _worst_score(metric, worst, names, joined.segments)
            bounds_of = partial(margin_bounds, worst=worst_score, seed=seed)
        result = metric_result(
            name,
            metric,
            test(corpus, all_pairs=all_pairs),
            names,
            settings,
            units,
            all_pairs=all_pairs,
            margin=margin,
            bounds=None if bounds_of is None else bounds_of(corpus, len(names) - 1),
        )
        if joined.groups:
            groups = group_results(by_segment, names, joined.groups, numbers, test, margin=margin, bounds_of=bounds_of)
            mean = mean_of_groups(by_segment, names, joined.groups, numbers, test)
            result = replace(result, groups=groups, mean_of_groups=mean)
        if margin is not None:
            result = replace(result, worst=worst_score, is_worst_assumed=is_assumed)
        results.append(result)
    return Comparison(
        num_resamples,
        seed,
        names,
        first_runs,
        lists,
        tuple(results),
        examples,
        joined.segments,
        () if numbers is None else tuple(numbers.tolist()),
        joined.dropped,
        joined.choices,
        () if ours else tuple(name for name in precomputed if name not in known),
        joined.is_baseline_named,
        joined.lacking,
        _precisions(scores),
    )


def _precisions(scores: object) -> tuple[str, ...]:
    """Return the precisions in the signatures of scores, of `Scores` and of Parquet files."""
    lines = [str(run.signature) for run in _runs_of_systems(scores) if hasattr(run, "signature")]
    found = [re.search(r"\|precision:([^|]+)", line) for line in lines]
    return tuple(sorted({match[1] for match in found if match}))


def _has_ours(scores: object) -> bool:
    """Return whether scores, or some of those in a mapping or of runs in a list, are `Scores`."""
    parts: Iterable[object] = scores.values() if isinstance(scores, Mapping) else ()
    if isinstance(scores, list):
        parts = scores
    return is_prf(scores) or any(map(_has_ours, parts))


def _our_scores(scores: object) -> list[Any]:
    """Return the `Scores` of all systems, or of all their runs; none if there are other scores."""
    runs = _runs_of_systems(scores)
    return runs if all(map(is_prf, runs)) else []


def _runs_of_systems(scores: object) -> list[Any]:
    """Return the scores of all systems, or of all their runs; None where they are not by system."""
    systems = scores.values() if isinstance(scores, Mapping) else [None]
    return [run for of_system in systems for run in (of_system if type(of_system) is list else [of_system])]


def _worst_of(ours: Sequence[Any], value: Value) -> float | None:
    """Return what an empty text scores under the settings of all these `Scores`; None if some have no settings."""
    ends = [getattr(scores.worst, value).item() for scores in ours if scores.worst is not None]
    return min(ends) if len(ends) == len(ours) else None


def _worst_score(
    metric: MetricScores, stated: float | None, names: Sequence[str], segments: Sequence[str | int]
) -> tuple[float, bool]:
    """Return the worst score that a segment can have, as stated or as usual, and whether it is a mere assumption.

    InputError is raised for a score beyond it.
    """
    usual = 1.0 if metric.lower_is_better else 0.0
    worst = next(score for score in (stated, metric.worst, usual) if score is not None)
    if not isinstance(metric.corpus, SegmentMeans):
        if stated is not None:
            raise InputError(f"The worst score is {stated:.9g}, of a metric that is no mean of scores. Leave it out.")
        return worst, False
    for name, scores in zip(names, metric.corpus.runs or metric.corpus.segment_scores, strict=True):
        beyond = scores - worst if metric.lower_is_better else worst - scores
        places = np.argwhere(beyond > ROUNDING * np.abs(scores))
        if len(places):
            *_, segment = places[0]
            side = "above" if metric.lower_is_better else "below"
            raise InputError(
                f"{name} has the score {scores[tuple(places[0])]:.9g} for segment {segments[segment]!r}, {side} the "
                f"worst score, {worst:.9g}. State the worst that there can be with ",
                Argument("worst"),
                ".",
            )
    return worst, stated is None and metric.worst is None and not metric.corpus.is_binary


def _runs_of(texts: Sequence[str | tuple[str, ...]]) -> list[tuple[str, ...]]:
    """Return the texts of a system, (runs, segments)."""
    return [*zip(*([text] if isinstance(text, str) else text for text in texts), strict=True)]


def metric_result(
    name: str,
    metric: MetricScores,
    tested: PairedTestResult,
    names: Sequence[str],
    settings: str,
    units: tuple[int, str],
    *,
    all_pairs: bool = False,
    margin: float | None = None,
    bounds: MarginBounds | None = None,
) -> MetricResult:
    """Put together the scores and the tests of one metric; with a margin it takes the bounds."""
    segment_scores = np.asarray(metric.segment)
    won, lost, tied = segment_outcomes(
        segment_scores, tolerance=metric.tie_tolerance, lower_is_better=metric.lower_is_better
    ).tolist()
    rows = {(first, second): row for row, (first, second) in enumerate(tested.pairs.tolist())}
    runs = metric.corpus.runs if isinstance(metric.corpus, SegmentMeans) else ()
    num_runs = () if metric.corpus is None else metric.corpus.num_runs

    def test_result(row: int) -> dict[str, Any]:
        columns = {"delta": tested.delta, "p": tested.p, "p_holm": tested.p_holm}
        values = {name: float(column[row]) for name, column in (columns | {"delta_error": tested.error}).items()}
        low, high = map(finite, tested.interval[row])
        return {**values, "delta_low": low, "delta_high": high}

    def system_result(system: int) -> SystemResult:
        row = rows.get((0, system))  # None for the baseline
        score = SystemResult(
            names[system],
            float(tested.score[system]),
            num_runs[system] if num_runs else None,
            int(np.isnan(runs[system]).sum()) if runs else 0,
        )
        if row is None:
            return score
        of_pair = test_result(row)
        ends = of_pair["delta_low"], of_pair["delta_high"]
        retrained = over_runs(runs[0], runs[system], of_pair["delta"], *ends) if runs else {}
        return replace(
            score,
            **of_pair,
            **retrained,
            won=won[system],
            lost=lost[system],
            tied=tied[system],
            differing=int(tested.differing[row]),
            **({} if margin is None or bounds is None else margin_result(margin, bounds, row)),
        )

    runs_signature = f"|runs:{'/'.join(map(str, num_runs))}" if num_runs else ""
    result = MetricResult(
        name,
        f"{metric.signature}{runs_signature}|{settings}",
        metric.lower_is_better,
        tuple(map(system_result, range(len(names)))),
        tuple(PairResult(names[one], names[other], **test_result(row)) for (one, other), row in rows.items())
        if all_pairs
        else (),
        segment_scores,
        margin,
        units,
        tested.effective_units,
    )
    return with_ranks(result)


def margin_result(margin: float, bounds: MarginBounds, row: int) -> dict[str, Any]:
    """Return what the bounds of a pair say of a margin, as fields of `SystemResult`."""
    loss, gain = float(bounds.loss[row]), float(bounds.gain[row])
    if math.isnan(loss) or math.isnan(gain):
        return {}
    judged = {"not_worse": loss < margin, "equivalent": max(loss, gain) < margin}
    return {**judged, "largest_loss": loss, "largest_gain": gain}


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
    """Score and test the systems on the segments of each group, whose name is given for each segment.

    Groups of fewer than `MIN_UNITS` units are not tested. p and bounds are corrected for all groups and systems.
    """
    num_claims = len({*groups}) * (len(names) - 1)
    scored: list[tuple[str, int, int, list[float], PairedTestResult | None, MarginBounds | None]] = []
    for name, num_segments, group in by_group(corpus, groups, documents):
        tested = test(group) if group.shape[1] >= MIN_UNITS else None
        bounds = None if bounds_of is None else bounds_of(group, num_claims)
        scored.append((name, num_segments, group.shape[1], group.observed().tolist(), tested, bounds))
    corrected = iter(holm([p for *_, tested, _ in scored if tested for p in tested.p.tolist()]).tolist())
    results = []
    for name, num_segments, num_units, scores, tested, bounds in scored:
        systems = _tested_in_group(names, scores, tested, [next(corrected) for _ in names[1:]] if tested else [])
        if margin is not None and bounds is not None:
            judged = (margin_result(margin, bounds, row) for row in range(len(names) - 1))
            systems = [systems[0], *(replace(one, **values) for one, values in zip(systems[1:], judged, strict=True))]
        results.append(GroupResult(name, num_segments, num_units, tuple(systems)))
    return tuple(results)


def mean_of_groups(
    corpus: CorpusScores,
    names: Sequence[str],
    groups: Sequence[str],
    documents: NDArray[np.int64] | None,
    test: Callable[[CorpusScores], PairedTestResult],
) -> GroupResult | None:
    """Test the means of the scores of groups, with p corrected for the systems; None for fewer than `MIN_UNITS` units.

    Where a task has many segments and others have few, this is the question of who compares by tasks.
    """
    _, numbers = np.unique(np.array(groups), return_inverse=True)
    mean = corpus.mean_of_groups(numbers)
    mean = mean if documents is None else mean.by_document(documents)
    if mean.shape[1] < MIN_UNITS:
        return None
    tested = test(mean)
    systems = _tested_in_group(names, tested.score.tolist(), tested, tested.p_holm.tolist())
    return GroupResult("mean of the groups", len(groups), mean.shape[1], tuple(systems))


def _tested_in_group(
    names: Sequence[str], scores: Sequence[float], tested: PairedTestResult | None, p_holm: Sequence[float]
) -> list[SystemResult]:
    """Return the scores of systems in a group, and their tests if there were any."""
    systems = [SystemResult(names[0], scores[0])]
    for row, (name, score) in enumerate(zip(names[1:], scores[1:], strict=True)):
        result = SystemResult(name, score, delta=score - scores[0])
        if tested is not None:
            low, high = map(finite, tested.interval[row])
            result = replace(result, delta_low=low, delta_high=high, p=float(tested.p[row]), p_holm=p_holm[row])
        systems.append(result)
    return systems


# The segments on which a system differs most from the baseline, with the tokens that match.

EXAMPLES_AT_ONCE = 16
"""The examples whose texts are encoded together: four texts each, which bounds the memory."""


def find_examples(
    names: Sequence[str],
    candidates: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    metric: MetricScores,
    scorer: "BERTScorer | None",
    number: int,
) -> tuple[Example, ...]:
    """Return for each system but the first its largest gains, and then its largest losses, under one metric.

    At most `number` of each; segments that tie are neither, and equal texts stand once. With BERTScore the scorer adds
    the token matches.
    """
    segment_scores = np.asarray(metric.segment)

    def matches_of(system: int, segments: Sequence[int]) -> Iterable[tuple[TokenSimilarity, TokenSimilarity] | None]:
        if scorer is None or token_names is None or metric.best_reference is None:
            return [None] * len(segments)
        best = metric.best_reference
        pairs = [
            (candidates[row][segment], references[segment][best[row, segment]])
            for row in (0, system)
            for segment in segments
        ]
        similarities = pair_similarities(scorer, token_names, pairs)
        return zip(similarities[: len(segments)], similarities[len(segments) :], strict=True)

    token_names = TokenNames(scorer.bundle) if scorer else None
    examples = []
    for system in range(1, len(names)):
        delta = segment_scores[system] - segment_scores[0]  # (segments,)
        gain = -delta if metric.lower_is_better else delta
        texts = list(zip(candidates[0], candidates[system], map(tuple, references), strict=True))
        segments = [*_largest(gain, texts, number), *_largest(-gain, texts, number)]
        for start in range(0, len(segments), EXAMPLES_AT_ONCE):
            batch = segments[start : start + EXAMPLES_AT_ONCE]
            for segment, matches in zip(batch, matches_of(system, batch), strict=True):
                examples.append(Example(segment, names[system], float(delta[segment]), matches))
    return tuple(examples)


def _largest(gain: NDArray[np.float64], texts: Sequence[Hashable], number: int) -> list[int]:
    """Return the segments of the largest gains above 0, the largest first; of segments with equal texts the first."""
    largest: dict[Hashable, int] = {}
    for segment in np.argsort(-gain, kind="stable").tolist():
        if len(largest) == number or gain[segment] <= 0:
            break
        largest.setdefault(texts[segment], segment)
    return list(largest.values())
