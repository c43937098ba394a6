"""Compare systems.

`compare` reads the inputs, scores the systems by several metrics, tests their differences by the
same swaps, and puts the results together.
"""

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from itertools import product
from numbers import Integral, Real
from os import PathLike
from typing import TYPE_CHECKING, Any, Never, cast

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import Argument, InputError, InputTypeError, meant, shortened
from bertscore_onnx.similarity import TokenNames, TokenSimilarity, pair_similarities
from bertscore_onnx_evaluation.column_roles import roles_of
from bertscore_onnx_evaluation.metric_scores import (
    BERTSCORE,
    TIE_TOLERANCE,
    MetricScores,
    given_metrics,
    is_bertscore,
    means_of_runs,
    metric_options,
    preceding_sentences,
    score_systems,
)
from bertscore_onnx_evaluation.systems.comparison import Comparison
from bertscore_onnx_evaluation.systems.comparison_record import Example
from bertscore_onnx_evaluation.systems.corpus_scores import (
    CorpusScores,
    SegmentMeans,
    document_numbers,
)
from bertscore_onnx_evaluation.systems.input_reader import (
    Candidates,
    InputReader,
    Inputs,
    Missing,
    SystemScores,
    Value,
)
from bertscore_onnx_evaluation.systems.join import JoinedInputs, join_inputs
from bertscore_onnx_evaluation.systems.margins import margin_bounds
from bertscore_onnx_evaluation.systems.metric_results import (
    group_results,
    mean_of_groups,
    metric_result,
    result_of_systems,
    single_groups,
)
from bertscore_onnx_evaluation.systems.paired_tests import (
    NUM_SWAPS,
    SEED,
    check_draws,
    effective_units,
    paired_permutation,
)
from bertscore_onnx_evaluation.systems.segment_inputs import (
    Documents,
    References,
    documents_of_tables,
    read_documents,
    read_groups,
    read_references,
)
from bertscore_onnx_evaluation.systems.single import single_result
from bertscore_onnx_evaluation.systems.verdicts import (
    MetricResult,
    test_fields,
)

if TYPE_CHECKING:
    from bertscore_onnx.scorer import BERTScorer

Options = Mapping[str, Mapping[str, Any]]
"""The options of metrics by their names."""

_Metrics = dict[str, MetricScores]


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
    score_range: tuple[float, float] | None = None,
    num_examples: int = 5,
    verbose: bool | None = False,
    **unknown: Never,
) -> Comparison:
    """Compare the outputs of systems for the same segments.

    Of one system alone the result has the scores with their intervals. References are encoded once
    for all systems, and all metrics share the swaps. Scores are those of sacreBLEU; the score of
    BERTScore is the mean of F over the segments.

    A data frame is long, with a row for each system and segment and the columns `system` and
    `candidate` or `score`; or wide, with a column for each of the `systems`; or of one system. Its
    rows are joined with those of others by ids, or else by position, as their values show;
    docs/tables.md has the rules.

    Several runs of a system, or of a judge, are one system whose scores of segments are the means
    of its runs: a list of texts for each run, scores (runs, segments), or a column `run` in data
    frames. Units stay segments; where both systems have several runs, an interval over other runs
    stands beside.

    Args:
        candidates: the texts of each system by its name: a list with one for each segment, or a
            data frame of one system; or a long or wide data frame.
        references: for each segment a reference, or a list of several; or a data frame with the
            column `reference`, and perhaps `reference2` and so on; None for those in the data frame
            of the candidates. They and the texts may be left out if there are `scores`.
        scores: segment scores that other metrics, or people, gave: a mapping of the names of
            systems to numbers, `Scores`, or data frames of one system; or a long or wide data
            frame, where a long one may have a column `metric`; or for several metrics a mapping of
            their names to these. Scores are in the column `score` or `f1`, or in those that
            `columns` names, each of which is a metric. True counts as 1 and false as 0. The score
            of a system is the mean of its scores.
        systems: the systems to compare, by name; None for all.
        baseline: the system that the others are compared with; None for the first.
        columns: the columns of data frames by their roles, unless they have their usual names:
            `system`, `candidate`, `reference`, `score`, `metric`, `segment`, `document`, `run`.
            References and scores may have several. `{"segment": ["A", "B"]}` is the first that a
            table has, `{"segment": "A+B"}` a key of two columns, and `{"segment": "none"}` joins by
            position. A role that is named is used, or refused.
        value: which numbers of `Scores` are compared: "P", "R" or "F".
        lower_is_better: the names of those given metrics whose lower scores are better.
        higher_is_better: the names of those whose higher scores are better, as is assumed of all
            others too; the `regressions` of a comparison need the direction of each.
        missing: "raise", or "drop" to leave out segments that some input lacks; the result counts
            them.
        scorer: for BERTScore; a scorer of one layer.
        metrics: `bertscore`, its P and R as `bertscore,value=P` and `bertscore,value=R`, `bleu`,
            `chrf`, `ter`, or the last three with options of sacreBLEU's class, such as
            `["bleu,tokenize=zh"]` or `{"bleu": {"tokenize": "zh"}}`; None for `bertscore`, or with
            `scores` and without a scorer for none. The first chooses the examples.
        num_resamples: the swaps of the test, which is `paired_permutation`, at least 1.
        seed: of the swaps, 0 or more.
        all_pairs: whether to test every pair of systems too.
        documents: the document of each segment, by any name, or a data frame with the column
            `document`; None for such a column of the other data frames. Segments of one document
            resemble each other, so that tests and intervals then take whole documents; without any
            they assume that segments are independent.
        by: the group of each segment, such as its domain: names, or the column of the data frames
            that has them. The systems are then also compared within each group of 20 segments, or
            documents, or more.
        context_sentences: how many of the preceding references in its document are the context of
            each segment, for BERTScore; Doc-BERTScore takes two.
        margin: a difference in the score, above 0; for each system, and in each group, the result
            then has the largest loss that is not excluded, and whether it is below the margin. Only
            with a single metric.
        score_range: the lowest and the highest score that a segment can have, beside a margin: a
            loss is at most from one end to the other. Given scores other than 0 and 1 need it; None
            for what an empty text scores and 1 by BERTScore.
        num_examples: how many of the segments that differ most to keep, for each system and
            direction.
        verbose: show a progress bar on standard error; None for one on a terminal, after 2 seconds.

    Raises:
        InputError: no system, one with a margin or all pairs, no segment, a segment that some input
            lacks or has twice, tables without ids that may be in different orders, an unknown
            metric, BERTScore without a scorer, or an option out of its range.
        InputTypeError: something is not a text, or an argument is unknown.
        MissingExtraError: scipy is not installed; or sacreBLEU is not, and a metric comes from it.
    """
    # All arguments are checked before any text is scored, which may take long.
    for name in unknown:
        advice = meant(name, signature(compare).parameters)
        if name in ("model", "model_type", "lang"):
            advice = " Make a `BERTScorer` and give it as `scorer`."
        raise InputTypeError(f"compare takes no {name!r}.{advice}")
    for name, given, form, expected in (
        ("metrics", metrics, Iterable, "names of metrics"),
        ("columns", columns, Mapping, "a mapping of roles to columns"),
        ("margin", margin, Real, "a number"),
        ("score_range", score_range, Sequence, "two numbers, the lowest and the highest score"),
        ("num_resamples", num_resamples, Real, "a number"),
        ("seed", seed, Real, "a number"),
        ("context_sentences", context_sentences, Integral, "an integer"),
        ("num_examples", num_examples, Integral, "an integer"),
    ):
        if not (given is None or isinstance(given, form)):
            kind = type(given).__name__
            raise InputTypeError(f"{name} is {kind} {given!r}; expected {expected}.")
    if isinstance(scorer, str | PathLike):
        expected = f"a scorer, such as BERTScorer({scorer!r})"
        raise InputTypeError(f"scorer is {scorer!r}; expected {expected}.")
    if num_examples < 0:
        raise InputError(f"num_examples is {num_examples}; expected 0 or more.")
    if context_sentences < 0:
        raise InputError(
            f"context_sentences is {context_sentences}; expected an integer of 0 or more.",
        )
    check_draws(num_resamples, seed)
    is_given_only = metrics is None and scorer is None and scores is not None
    options: Options = {}
    if not is_given_only:
        options = metric_options([BERTSCORE] if metrics is None else metrics)
    if not any(map(is_bertscore, options)):
        no_effect = "has no effect without the metric bertscore. Add it, or leave"
        if context_sentences:
            raise InputError(f"context_sentences {no_effect} them out.")
        if scorer is not None:
            raise InputError(f"scorer {no_effect} the scorer out.")
    reader = InputReader(roles_of(columns, by), missing, value)
    joined = _read(
        reader,
        candidates,
        references,
        scores,
        documents,
        by,
        systems=_names(systems),
        baseline=baseline,
        needs_texts=bool(options),
    )
    plan = _Plan(num_resamples, seed, all_pairs, margin, score_range)
    directions = (lower_is_better, higher_is_better)
    inputs = _prepare(joined, options, directions, plan, context_sentences)
    scored, examples = _score(inputs, scorer, num_examples, verbose)
    results = _test(inputs, scored, plan)
    return _tell(inputs, plan, results, examples)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The tests that a caller asks for."""

    num_swaps: int
    seed: int
    all_pairs: bool
    margin: float | None
    score_range: tuple[float, float] | None


@dataclass(frozen=True, slots=True, eq=False)
class _Inputs:
    """What is compared, and by which metrics."""

    joined: JoinedInputs
    first_runs: tuple[tuple[str, ...], ...]
    options: Options
    """The metrics that score the texts, with their options."""
    given: _Metrics
    """The metrics whose scores were given."""
    undirected: tuple[str, ...]
    """Given metrics of which nobody said whether higher scores are better."""
    documents: NDArray[np.int64] | None
    """The number of each segment's document."""
    contexts: list[list[str]] | None
    """The sentences before each segment."""


# Read.


def _names(systems: str | Sequence[str] | None) -> list[str] | None:
    """Return the names of systems that a caller gives, if any.

    InputTypeError is raised for anything else.
    """
    if systems is None:
        return None
    if isinstance(systems, str | Mapping) or not isinstance(systems, Iterable):
        raise InputTypeError(
            f"systems is {shortened(repr(systems))}; expected a list of names, the baseline first. "
            "Texts are given as `candidates`."
        )
    return list(map(str, systems))


def _read(
    reader: InputReader,
    candidates: Candidates | None,
    references: References | None,
    scores: SystemScores | Mapping[str, SystemScores] | None,
    documents: Documents | None,
    by: str | Iterable[Hashable] | None,
    *,
    systems: Sequence[str] | None,
    baseline: str | None,
    needs_texts: bool,
) -> JoinedInputs:
    """Read all inputs, and join them by segment."""
    if candidates is None and (needs_texts or scores is None or references is not None):
        raise InputError(
            "There are no texts of systems. Give them as ",
            Argument("candidates", option="--cand"),
            ", or give ",
            Argument("scores"),
            " alone.",
        )
    texts: Inputs = {}
    if candidates is not None:
        texts = reader.systems(candidates, "candidate", systems)
    inputs = {**texts}
    if texts:
        inputs |= read_references(reader, references, candidates)
    if documents is not None:
        inputs |= read_documents(reader, documents)
    given: Inputs = {}
    if scores is not None:
        given = reader.systems(scores, "score", [str(name) for *_, name in texts] or systems)
    if by is not None:
        inputs |= read_groups(reader, by)
    if documents is None:
        # All tables have been read by now, so that any of them may have the documents.
        inputs |= documents_of_tables(reader)
    inputs |= given
    return join_inputs(inputs, reader, baseline, are_systems_named=systems is not None)


def _prepare(
    joined: JoinedInputs,
    options: Options,
    directions: tuple[Collection[str], Collection[str]],
    plan: _Plan,
    context_sentences: int,
) -> _Inputs:
    """Put the inputs and the options together; raise InputError if options do not fit."""
    lower, higher = map(_listed, directions)
    given = given_metrics(joined.scores, lower, options, higher_is_better=higher)
    # Of `Scores` it is known that higher ones are better, and what an empty text scores.
    prf_ranges = joined.ranges_of_prf
    for name, score_range in prf_ranges.items():
        given[name] = replace(given[name], score_range=score_range)
    undirected = tuple(name for name in given if name not in {*lower, *higher, *prf_ranges})
    _check_plan(plan, joined.systems, len(options) + len(given))
    documents = None
    if joined.documents:
        documents = document_numbers(joined.documents, len(joined.segments))
    if context_sentences and documents is None:
        raise InputError(
            "Preceding sentences are those of a document. Give the document of each segment with ",
            Argument("documents"),
            ".",
        )
    contexts = None
    if context_sentences and documents is not None:
        contexts = preceding_sentences(joined.references, documents.tolist(), context_sentences)
    return _Inputs(
        joined,
        tuple(tuple(runs[0]) for runs in joined.candidates),
        options,
        given,
        undirected,
        documents,
        contexts,
    )


def _check_plan(plan: _Plan, names: Sequence[str], num_metrics: int) -> None:
    """Raise InputError for tests that these systems or metrics cannot have."""
    margin = plan.margin
    if margin is not None and not (0 < margin < math.inf and num_metrics == 1):
        raise InputError(
            f"The margin is {margin}, with {num_metrics} metrics; expected a number above 0, and "
            "one metric, since others have another scale."
        )
    ends = plan.score_range
    if ends is not None:
        is_range = len(ends) == 2 and all(isinstance(end, Real) for end in ends)
        if margin is None or not (is_range and -math.inf < ends[0] < ends[1] < math.inf):
            given = f"The range of scores is {ends}, with the margin {margin}"
            raise InputError(f"{given}; expected the lowest and the highest score, and a margin.")
    if len(names) > 1:
        return
    alone = f"is about two systems, and {names[0]} is alone. Leave it out, or add another."
    if margin is not None:
        raise InputError(f"A margin {alone}")
    if plan.all_pairs:
        raise InputError(f"A test of all pairs {alone}")


def _listed(names: str | Collection[str]) -> Collection[str]:
    return [names] if isinstance(names, str) else names


# Score.


def _score(
    inputs: _Inputs, scorer: "BERTScorer | None", num_examples: int, verbose: bool | None
) -> tuple[_Metrics, tuple[Example, ...]]:
    """Score the systems, and find the segments that differ most."""
    names = inputs.joined.systems
    references = inputs.joined.references
    contexts = inputs.contexts
    scored = inputs.given
    with nullcontext() if scorer is None else scorer.with_fixed_weights(references) as weighted:
        if inputs.options:
            texts: list[Sequence[str]] = []
            names_of_texts: list[str] = []
            rows: list[range] = []
            for name, runs in zip(names, inputs.joined.candidates, strict=True):
                rows.append(range(len(texts), len(texts) + len(runs)))
                texts += runs
                names_of_texts += [name] * len(runs)
            computed = score_systems(
                inputs.options,
                texts,
                [references] * len(texts),
                scorer=weighted,
                contexts=contexts,
                verbose=verbose,
                names=names_of_texts,
            )
            if len(texts) > len(names):
                for name, metric in computed.items():
                    computed[name] = means_of_runs(metric, rows)
            scored = computed | scored
        first = next(iter(scored.values()))
        if not inputs.first_runs:
            return scored, ()
        # The tokens of a pair in context have no best match each.
        matcher = weighted if contexts is None else None
        examples = find_examples(
            names,
            inputs.first_runs,
            references,
            first,
            matcher,
            num_examples,
        )
    return scored, examples


# Test.


def _test(inputs: _Inputs, scored: _Metrics, plan: _Plan) -> list[MetricResult]:
    """Test differences under each metric; one system has an interval."""
    joined = inputs.joined
    names = joined.systems
    documents = inputs.documents
    settings = partial(_signature, inputs, plan)
    test = partial(paired_permutation, num_swaps=plan.num_swaps, seed=plan.seed)
    measure = partial(single_result, names[0], num_swaps=plan.num_swaps, seed=plan.seed)
    results = []
    for name, metric in scored.items():
        by_segment = cast("CorpusScores", metric.corpus)  # there is one: no system lacks a text
        corpus = by_segment if documents is None else by_segment.by_document(documents)
        units = (corpus.shape[1], "segment" if documents is None else "document")
        if len(names) == 1:
            num_effective = effective_units(corpus.sizes)
            result = result_of_systems(name, metric, [measure(corpus)], units, num_effective)
            groups = single_groups(by_segment, joined.groups, documents, measure)
            results.append(settings(replace(result, groups=groups)))
            continue

        # The largest losses that are not excluded rest on the scores that there can be.
        bounds = bounds_of = None
        if plan.margin is not None:
            score_range = _score_range(name, metric, plan.score_range, joined)
            bounds_of = partial(margin_bounds, score_range=score_range, seed=plan.seed)
        tested = test(corpus, all_pairs=plan.all_pairs)
        if bounds_of is not None:
            bounds = bounds_of(corpus, len(names) - 1)
        result = metric_result(
            name,
            metric,
            tested,
            names,
            units,
            all_pairs=plan.all_pairs,
            margin=plan.margin,
            bounds=bounds,
        )
        if joined.groups:
            of_groups = (by_segment, names, joined.groups, documents, test)
            groups = group_results(*of_groups, margin=plan.margin, bounds_of=bounds_of)
            result = replace(result, groups=groups, mean_of_groups=mean_of_groups(*of_groups))
        if plan.margin is not None:
            result = replace(result, score_range=score_range)
        results.append(settings(result))
    return results


def _signature(inputs: _Inputs, plan: _Plan, result: MetricResult) -> MetricResult:
    """Return a result whose signature has the tests, too."""
    num_documents = 0 if inputs.documents is None else int(inputs.documents.max()) + 1
    swaps = f"|resamples:{plan.num_swaps}|seed:{plan.seed}"
    fields = test_fields([result], num_documents, len(inputs.joined.dropped), swaps)
    return replace(result, signature=f"{result.signature}{fields}")


def _score_range(
    name: str, metric: MetricScores, stated: tuple[float, float] | None, joined: JoinedInputs
) -> tuple[float, float]:
    """Return the lowest and the highest score of a segment, stated or known.

    InputError is raised if neither is so, or a score is outside.
    """
    if not isinstance(metric.corpus, SegmentMeans):
        if stated is not None:
            given = f"A range of scores was stated, and {name} is no mean of scores"
            raise InputError(f"{given}. Leave it out.")
        return cast("tuple[float, float]", metric.score_range)
    remedy = Argument("score_range", ["LOW", "HIGH"])
    known = (0.0, 1.0) if metric.corpus.is_binary else metric.score_range
    score_range = stated or known
    if score_range is None:
        needed = f"A margin on scores of {name} needs the lowest and the highest that there can be"
        raise InputError(f"{needed}, since a loss may be from one to the other. Add ", remedy, ".")
    low, high = score_range
    rounding = TIE_TOLERANCE * (high - low)
    all_scores = metric.corpus.runs or metric.corpus.segment_scores
    for system, scores in zip(joined.systems, all_scores, strict=True):
        for *_, segment in np.argwhere((scores < low - rounding) | (scores > high + rounding)):
            outside = np.atleast_2d(scores)[:, segment]
            score = outside[np.abs(outside - (low + high) / 2).argmax()]
            raise InputError(
                f"{system} has the score {score:.9g} for segment {joined.segments[segment]!r}; "
                f"expected {low:.9g} to {high:.9g}. State the lowest and the highest that there "
                "can be with ",
                remedy,
                ", or clip the scores.",
            )
    return score_range


# Tell.


def _tell(
    inputs: _Inputs,
    plan: _Plan,
    results: list[MetricResult],
    examples: tuple[Example, ...],
) -> Comparison:
    """Put the comparison together from the results."""
    joined = inputs.joined
    documents = () if inputs.documents is None else tuple(inputs.documents.tolist())
    return Comparison(
        plan.num_swaps,
        plan.seed,
        joined.systems,
        inputs.first_runs,
        joined.references,
        tuple(results),
        examples,
        joined.segments,
        documents,
        joined.dropped,
        joined.choices,
        inputs.undirected,
        joined.is_baseline_named,
        joined.lacking,
        joined.precisions,
    )


# The segments on which a system differs most from the baseline, with the tokens that match.

_Matches = tuple[TokenSimilarity, TokenSimilarity] | None

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
    """Return the largest gains and losses of each system under one metric.

    The first system is the baseline, and has none. There are at most `number` of each, gains
    before losses; segments that tie are neither, and equal texts stand once. With BERTScore the
    scorer adds the token matches.
    """
    segment_scores = np.asarray(metric.segment)
    best = metric.best_reference
    token_names = TokenNames(scorer.bundle) if scorer else None

    def matches_of(system: int, segments: Sequence[int]) -> Iterable[_Matches]:
        if scorer is None or token_names is None or best is None:
            return [None] * len(segments)
        pairs = []
        for row, segment in product((0, system), segments):
            reference = references[segment][best[row, segment]]
            pairs.append((candidates[row][segment], reference))
        similarities = pair_similarities(scorer, token_names, pairs)
        middle = len(segments)
        return zip(similarities[:middle], similarities[middle:], strict=True)

    examples = []
    for system in range(1, len(names)):
        delta = segment_scores[system] - segment_scores[0]  # (segments,)
        gain = -delta if metric.lower_is_better else delta
        texts = list(zip(candidates[0], candidates[system], map(tuple, references), strict=True))
        segments = _largest(gain, texts, number) + _largest(-gain, texts, number)
        for start in range(0, len(segments), EXAMPLES_AT_ONCE):
            batch = segments[start : start + EXAMPLES_AT_ONCE]
            for segment, matches in zip(batch, matches_of(system, batch), strict=True):
                example = Example(segment, names[system], float(delta[segment]), matches)
                examples.append(example)
    return tuple(examples)


def _largest(gain: NDArray[np.float64], texts: Sequence[Hashable], number: int) -> list[int]:
    """Return the segments of the largest gains above 0, the largest first.

    Of segments with equal texts it is the first.
    """
    largest: dict[Hashable, int] = {}
    for segment in np.argsort(-gain, kind="stable").tolist():
        if len(largest) == number or gain[segment] <= 0:
            break
        largest.setdefault(texts[segment], segment)
    return list(largest.values())
