"""The tasks of `bertscore-onnx meta`: each reads judgements and scores, evaluates the metrics and prints the result."""

import os
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from bertscore_onnx.cli.inputs import references_of_table
from bertscore_onnx.cli.options import check_effects, option_name
from bertscore_onnx.cli.terminal import echo
from bertscore_onnx.errors import InputError
from bertscore_onnx.files import unwritable, write_whole
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.tables.sources import STANDARD_INPUT
from bertscore_onnx.tables.whole_table import WholeTable, read_table
from bertscore_onnx_evaluation.cli.meta_options import MetaOptions
from bertscore_onnx_evaluation.cli.meta_table import documents_of_rows, systems_of_table, texts_of_rows
from bertscore_onnx_evaluation.metric_scores import (
    BERTSCORE,
    MetricScores,
    References,
    preceding_sentences,
    sacrebleu_metric,
    score_systems,
)
from bertscore_onnx_evaluation.metrics.auc import auc_of_labels
from bertscore_onnx_evaluation.metrics.challenge_sets import MIN_EXAMPLES, ChallengeExample, evaluate_challenge_set
from bertscore_onnx_evaluation.metrics.correlation import Floats
from bertscore_onnx_evaluation.metrics.eval_set import EvalSetFiles, check_names, golds, read_eval_set, score_files
from bertscore_onnx_evaluation.metrics.hybrid import NUM_CANDIDATES, NUM_HYBRIDS, NUM_TRIALS, hybrid_by_language_pair
from bertscore_onnx_evaluation.metrics.judged_systems import JudgedSystems
from bertscore_onnx_evaluation.metrics.meta import meta_evaluate
from bertscore_onnx_evaluation.metrics.relative_ranking import THRESHOLD, darr_by_language_pair
from bertscore_onnx_evaluation.metrics.sentinels import (
    check_metric_names,
    notes_of_sentinels,
    sentinels_of_pairs,
    with_sentinels,
)


def _print(options: MetaOptions, result: Any) -> None:
    is_json = options.output_format == "json"
    print(result.to_json() if is_json else result.table(options.output_format), flush=True)


# How metrics are computed from texts.


class _Texts(NamedTuple):
    """Outputs and their references, by system and segment."""

    candidates: Sequence[Sequence[str | None]]
    references: Sequence[References]
    documents: Sequence[str] = ()
    """The document of each segment; none if that is not known."""

    def contexts(self, number: int) -> list[list[str]] | None:
        """Return up to this many sentences before each segment in its document; None for 0."""
        if not number:
            return None
        if not self.documents:
            raise InputError(
                "The sentences before a segment are those of its document, and there are no documents. Name their "
                "column with --columns document=NAME, or give --context-sentences 0."
            )
        of_segments = ([*filter(None, of_segment), ()][0] for of_segment in zip(*self.references, strict=True))
        return preceding_sentences(of_segments, self.documents, number)


def _scores_of_texts(
    options: MetaOptions, texts: Sequence[_Texts], corpus_metrics: Mapping[str, Mapping[str, Any]]
) -> list[dict[str, MetricScores]]:
    """Score texts by metrics of sacreBLEU, and then by those of the model, which is loaded for each in turn."""
    found = [
        score_systems(corpus_metrics, some.candidates, some.references) if corpus_metrics else {} for some in texts
    ]
    of_model: list[dict[str, MetricScores]] = [{} for _ in texts]
    for name, settings in options.scorers.items():
        contexts = [some.contexts(options.num_context(name)) for some in texts]
        with BERTScorer(**settings) as scorer:
            for scores, some, before in zip(of_model, texts, contexts, strict=True):
                [scores[name]] = score_systems(
                    [BERTSCORE],
                    some.candidates,
                    some.references,
                    scorer=scorer,
                    contexts=before,
                    verbose=_verbose(options),
                ).values()
    return [first | then for first, then in zip(of_model, found, strict=True)]


def _verbose(options: MetaOptions) -> bool | None:
    return False if options.quiet else None


def _check_scores(options: MetaOptions) -> None:
    if not options.score and not options.metrics:
        raise typer.BadParameter(
            "name columns of scores, --score COLUMN, or score the texts, --model MODEL or --metric bleu.",
            param_hint="--score, --model, --metric",
        )


# Systems, from an EvalSet or a table.


def is_eval_set(options: MetaOptions) -> bool:
    """Return whether the source is a folder, and not a table."""
    return Path(options.source).is_dir()


def own_name(metric: str, judged: JudgedSystems) -> str:
    """Return the name of scores computed from texts: as in an EvalSet, it ends with the reference."""
    return f"{metric}-{judged.reference}" if judged.reference else metric


def read_systems(
    options: MetaOptions, *, unscored: Collection[str] = (), several_judgements: bool = False
) -> list[JudgedSystems]:
    """Return the systems of each language pair, with given scores and then those of texts.

    `unscored` are metrics that the task computes itself. With `several_judgements` a table may have several rows for
    one output, whose judgements are averaged.
    """
    language_pairs = _of_eval_set(options) if is_eval_set(options) else _of_table(options, several_judgements)
    if options.output is not None:  # before the costly scores
        for judged in language_pairs:
            check_names(judged.language_pair, judged.systems, judged.metrics)
    corpus_metrics = {name: each for name, each in options.corpus_metrics.items() if name not in unscored}
    if not (corpus_metrics or options.scorers):
        return language_pairs
    with_texts = [judged for judged in language_pairs if judged.candidates is not None]
    texts = [_Texts(judged.candidates or (), judged.references, judged.documents) for judged in with_texts]
    scores = _scores_of_texts(options, texts, corpus_metrics)
    return [_with_scores(judged, of_pair) for judged, of_pair in zip(with_texts, scores, strict=True)]


def _of_eval_set(options: MetaOptions) -> list[JudgedSystems]:
    of_tables = [name for name in options.given if name in ("score", "input_format", "columns")]
    check_effects(*((option_name(name), True, "on an EvalSet") for name in of_tables))
    by_pair = golds(options.source)
    available = {name: EvalSetFiles(Path(options.source), name).metrics for name in by_pair}
    chosen = options.language_pair or [
        name for name, of_pair in by_pair.items() if {options.gold, options.hold_out} - {None} <= {*of_pair}
    ]
    language_pairs = [
        read_eval_set(
            options.source,
            name,
            gold=options.gold,
            reference=options.reference,
            metrics=_metrics_of(available, name, options.metric_scores or ()),
            hold_out=options.hold_out,
            with_texts=True if options.metrics else None if options.sentinels else False,
        )
        for name in dict.fromkeys(chosen or by_pair)
    ]
    for judged in language_pairs:
        if not judged.metrics and not options.metrics:
            there = ", ".join(available[judged.language_pair]) or "none at all"
            raise InputError(
                f"{options.source} has no scores of metrics of {judged.language_pair} with the reference "
                f"{judged.reference}; it has {there}. Name some with --metric-scores, or score the texts, with "
                "--model MODEL or --metric bleu."
            )
    return language_pairs


def _metrics_of(available: Mapping[str, Sequence[str]], language_pair: str, requested: Sequence[str]) -> list[str]:
    """Return the requested metrics without those that only another language pair has, with its reference."""
    others = {metric for metrics in available.values() for metric in metrics}.difference(
        available.get(language_pair, ())
    )
    return [name for name in requested if name not in others] or [*requested]


def _of_table(options: MetaOptions, several_judgements: bool) -> list[JudgedSystems]:
    of_folders = [name for name in ("gold", "reference", "metric_scores") if name in options.given]
    check_effects(*((option_name(name), True, "on a table") for name in of_folders))
    _check_scores(options)
    if options.source != STANDARD_INPUT and not Path(options.source).exists():
        raise InputError(f"There is no folder or file {options.source!r}. Name an EvalSet or a table.")
    table = read_table(options.source, options.input_format)
    language_pairs = systems_of_table(table, options, several_judgements=several_judgements)
    for judged in language_pairs:
        if judged.dropped and not options.quiet:
            echo(f"{judged.language_pair}: left out {', '.join(judged.dropped)}, which lack a score.")
    return language_pairs


def _with_scores(judged: JudgedSystems, scores: Mapping[str, MetricScores]) -> JudgedSystems:
    own = {own_name(name, judged): replace(of_metric.negated, base_name=name) for name, of_metric in scores.items()}
    for name in own:
        if name in judged.metrics:
            raise InputError(
                f"{judged.language_pair}: scores called {name!r} exist already. Rename them, or leave out this "
                "`metric`."
            )
    return replace(judged, metrics={**judged.metrics, **own})


# Task correlation.


def run_correlation(options: MetaOptions) -> None:
    """Print how metrics correlate with human judgements, and write the scores if a folder is given."""
    _check_folder(options)
    systems = read_systems(options)
    result = meta_evaluate(
        systems,
        permutations=options.resamples,
        seed=options.seed,
        test=options.test,
        sentinels=options.sentinels,
    )
    try:
        _print(options, result)
    finally:  # the scores are the costly part, and do not depend on who reads the result
        _write_scores(options, systems)


def _check_folder(options: MetaOptions) -> None:
    """Check before any work is done that scores can be written."""
    if options.output is None:
        return
    if is_eval_set(options) and not options.metrics:
        raise typer.BadParameter(
            "there is nothing to write, since all scores are read from files. Add --model or --metric.",
            param_hint="--output",
        )
    folder = Path(options.output).absolute()
    existing = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise InputError(
            f"Cannot write into the folder {options.output!r}: {existing} is not a writable folder. Name another with "
            "--output."
        )


def _write_scores(options: MetaOptions, language_pairs: Sequence[JudgedSystems]) -> None:
    """Write the files metric-scores/LP/METRIC-REFERENCE.{seg,sys}.score of mt-metrics-eval, each in one step."""
    if options.output is None:
        return
    folder = Path(options.output) / "metric-scores"
    contents = {
        folder / judged.language_pair / name: content
        for judged in language_pairs
        for name, content in _files(options, judged).items()
    }
    for path, content in contents.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(path.parent, error) from error
        if path.exists() and path not in path.parent.iterdir():
            raise InputError(f"Cannot write {path}: a file exists whose name differs only in case. Move it away.")
        write_whole(str(path), content)
    if not options.quiet:
        echo(f"Wrote {len(contents)} files of scores into {folder}.")


def _files(options: MetaOptions, judged: JudgedSystems) -> dict[str, str]:
    """Return the files of a language pair by name; of an EvalSet, without the scores that were read from it."""
    files: dict[str, str] = {}
    chosen = {own_name(name, judged) for name in options.metrics} if is_eval_set(options) else judged.metrics
    for name in chosen:
        scores = judged.metrics[name]
        is_scored = ~np.isnan(scores.system) if scores.system is not None else np.zeros(len(judged.systems), bool)
        if scores.segment is not None and (missing := int(np.isnan(scores.segment[is_scored]).sum())):
            warnings.warn(
                f"{judged.language_pair}: {name} lacks the scores of {missing} outputs; mt-metrics-eval expects all.",
                UserWarning,
                stacklevel=2,
            )
        systems = [system for system, has_any in zip(judged.systems, is_scored, strict=True) if has_any]
        levels = {
            level: None if of_level is None else of_level[is_scored]
            for level, of_level in (("sys", scores.system), ("seg", scores.segment))
        }
        files |= score_files(_with_reference(name), systems, levels)
    return files


def _with_reference(name: str) -> str:
    """Return a name that ends with its reference, `all` if it names none."""
    _, hyphen, reference = name.rpartition("-")
    has_one = hyphen and (reference.startswith("ref") or reference in ("src", "all"))
    return name if has_one else f"{name}-all"


# Task darr.


def _with_sentinels(options: MetaOptions, language_pairs: Sequence[JudgedSystems]) -> Sequence[JudgedSystems]:
    """Add sentinels, and print why some are left out."""
    if not options.sentinels:
        return language_pairs
    found = [with_sentinels(one, options.seed) for one in language_pairs]
    for judged, note in ((one, note) for one in found for note in notes_of_sentinels(one, one.metrics)):
        if not options.quiet:
            echo(f"{judged.language_pair}: {note}.")
    return found


def run_darr(options: MetaOptions) -> None:
    """Print whether metrics rank outputs as their direct assessments do."""
    result = darr_by_language_pair(
        _with_sentinels(options, read_systems(options, several_judgements=True)),
        threshold=THRESHOLD if options.threshold is None else options.threshold,
        human_systems=options.human_system or None,
        permutations=options.resamples,
        seed=options.seed,
    )
    _print(options, result)


# Task hybrid.


def run_hybrid(options: MetaOptions) -> None:
    """Print how metrics correlate with human judgements over hybrid systems, and select among them."""
    for name, settings in options.corpus_metrics.items():
        sacrebleu_metric(name, settings)  # which raises errors before the costly scores
    num_hybrids = options.num_hybrids or NUM_HYBRIDS
    result = hybrid_by_language_pair(
        _with_sentinels(options, read_systems(options, unscored=options.corpus_metrics, several_judgements=True)),
        corpus_metrics=options.corpus_metrics,
        num_hybrids=num_hybrids,
        num_candidates=options.num_candidates or min(NUM_CANDIDATES, num_hybrids),
        num_trials=options.num_trials or NUM_TRIALS,
        seed=options.seed,
        human_systems=options.human_system or (),
    )
    _print(options, result)


# Task auc.


LABEL_COLUMNS = ("label", "is_duplicate")
CANDIDATE_COLUMNS, REFERENCE_COLUMNS = (
    ("candidate", "sentence2", "question2"),
    ("reference", "references", "sentence1", "question1"),
)
"""The last two are the names of PAWS and QQP; their first texts are the references."""


def run_auc(options: MetaOptions) -> None:
    """Print how well metrics separate paraphrases from other pairs of texts."""
    table = read_table(options.source, options.input_format)
    labels = _labels(table, table.find(options.named("label") or LABEL_COLUMNS, "--columns label=NAME"))
    units = documents_of_rows(table, options) or _references_of_rows(options, table)
    scores = _scores_of_rows(options, table)
    if options.sentinels:
        check_metric_names(scores, table.title)
    scores |= _sentinels_of_rows(options, table)
    _print(options, auc_of_labels(labels, scores, units=units, permutations=options.resamples, seed=options.seed))


def _sentinels_of_rows(options: MetaOptions, table: WholeTable) -> dict[str, Floats]:
    """Return the scores of each row by each sentinel of texts; none if the table has no texts."""
    if not options.sentinels:
        return {}
    try:
        candidates = texts_of_rows(options, table, CANDIDATE_COLUMNS)
        references = references_of_table(table, options.named, REFERENCE_COLUMNS)
    except InputError:
        return {}
    return sentinels_of_pairs(candidates, references, options.seed)


def _references_of_rows(options: MetaOptions, table: WholeTable) -> list[str] | None:
    """Return the references of each row, which its candidate shares with those of other rows; None without a column."""
    if not options.named("reference") and not {*REFERENCE_COLUMNS} & {*table.names}:
        return None
    return [*map(str, references_of_table(table, options.named, REFERENCE_COLUMNS))]


def _labels(table: WholeTable, column: str) -> NDArray[np.int64]:
    labels = table.numbers(column)
    for row in np.flatnonzero((labels != 0) & (labels != 1)):
        value = "nothing" if np.isnan(labels[row]) else f"{labels[row]:g}"
        raise InputError(f"{table.place(int(row))}: the column {column!r} holds {value}; expected 0 or 1.")
    return labels.astype(np.int64)


def _scores_of_rows(options: MetaOptions, table: WholeTable) -> dict[str, Floats]:
    """Return the scores of each row by each metric, higher is better; those of columns come first."""
    _check_scores(options)
    columns = [*dict.fromkeys(options.score or ())]
    if both := sorted({*columns} & {*options.metrics}):
        raise typer.BadParameter(
            f"{both[0]!r} is both a column and a metric of --metric; rename the column.", param_hint="--score"
        )
    given = {name: table.numbers(table.find(name, "--score")) for name in columns}
    if not options.metrics:
        return given
    candidates = texts_of_rows(options, table, CANDIDATE_COLUMNS)
    references = references_of_table(table, options.named, REFERENCE_COLUMNS)
    [computed] = _scores_of_texts(options, [_Texts([candidates], [references])], options.corpus_metrics)
    return given | {name: np.asarray(scores.negated.segment)[0] for name, scores in computed.items()}


# Task phenomena.


def run_phenomena(options: MetaOptions) -> None:
    """Print which errors metrics detect, by linguistic category."""
    if not options.metrics:
        raise typer.BadParameter("name a model, or a metric such as bleu.", param_hint="--model, --metric")
    table = read_table(options.source, options.input_format)
    categories = table.keys(table.find("category", ""))
    references = references_of_table(table, options.named)
    good, bad = (table.lists(table.find(name, ""), may_be_empty=True) for name in ("good", "bad"))
    [(name, settings)] = options.scorers.items() or [(BERTSCORE, None)]
    with nullcontext() if settings is None else BERTScorer(**settings) as scorer:
        result = evaluate_challenge_set(
            [ChallengeExample(*fields) for fields in zip(categories, references, good, bad, strict=True)],
            metrics={**({} if settings is None else {BERTSCORE: {}}), **options.corpus_metrics},
            scorer=scorer,
            units=documents_of_rows(table, options),
            min_examples=options.min_examples or MIN_EXAMPLES,
            permutations=options.resamples,
            seed=options.seed,
            sentinels=options.sentinels,
            verbose=_verbose(options),
        )
    named = {name if metric == BERTSCORE else metric: scores for metric, scores in result.metrics.items()}
    _print(options, replace(result, metrics=named))


_OF_SYSTEMS = frozenset(
    {
        "language_pair",
        "gold",
        "reference",
        "metric_scores",
        "score",
        "missing",
        "sentinels",
        "context_sentences",
        *(f"columns {role}" for role in ("candidate", "id", "document", "system", "lang_pair", "human")),
    }
)

TASKS: Mapping[str, tuple[Callable[[MetaOptions], None], frozenset[str]]] = {
    "correlation": (
        run_correlation,
        _OF_SYSTEMS | {"output", "test", "hold_out", "columns annotator"},
    ),
    "darr": (run_darr, _OF_SYSTEMS | {"threshold", "human_system"}),
    "hybrid": (run_hybrid, _OF_SYSTEMS | {"human_system", "num_hybrids", "num_candidates", "num_trials"}),
    "auc": (run_auc, frozenset({"score", "sentinels", "columns candidate", "columns label", "columns document"})),
    "phenomena": (run_phenomena, frozenset({"min_examples", "sentinels", "columns document"})),
}
"""The function of each task, and the options that it reads beside those common to all tasks."""
