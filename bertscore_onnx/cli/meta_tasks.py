"""`bertscore-onnx meta`: how metrics correlate with people."""

import os
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import typer
from numpy.typing import NDArray

from bertscore_onnx.cli.judgements import Table, read_table
from bertscore_onnx.cli.meta_options import MetaOptions
from bertscore_onnx.cli.meta_systems import (
    CANDIDATE_COLUMNS,
    REFERENCE_COLUMNS,
    is_eval_set,
    own_name,
    read_systems,
    references_of_rows,
    sacrebleu_options,
    scorer_of,
    scores_of_rows,
)
from bertscore_onnx.cli.terminal import tell
from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.auc import auc_of_labels
from bertscore_onnx.evaluation.challenge_sets import MIN_EXAMPLES, ChallengeExample, evaluate_challenge_set
from bertscore_onnx.evaluation.eval_set import score_files
from bertscore_onnx.evaluation.hybrid import hybrid_by_language_pair
from bertscore_onnx.evaluation.judged_systems import JudgedSystems
from bertscore_onnx.evaluation.meta import meta_evaluate
from bertscore_onnx.evaluation.metrics import SACREBLEU
from bertscore_onnx.evaluation.relative_ranking import THRESHOLD, darr_by_language_pair
from bertscore_onnx.files import unwritable, write_whole

# Writes scores into a folder as mt-metrics-eval has them: metric-scores/LP/METRIC-REFERENCE.{seg,sys}.score.


ALL_REFERENCES = "all"
"""What a name ends in that does not say its reference."""


def check_folder(options: MetaOptions) -> None:
    """Check that scores can be written, before work is put into them; nothing is written yet.

    Raises:
        typer.BadParameter: there would be none to write.
        InputError: the folder cannot be written to.
    """
    if options.output is None:
        return
    if is_eval_set(options) and not options.metrics:
        raise typer.BadParameter(
            "there is nothing to write, for all scores are read from files. Add --model or --metric.",
            param_hint="--output",
        )
    folder = Path(options.output).absolute()
    there = next(one for one in (folder, *folder.parents) if os.path.lexists(one))
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        raise InputError(
            f"Cannot write into the folder {options.output!r}: {there} is no folder that may be written to. Name "
            "another with --output."
        )


def write_scores(options: MetaOptions, language_pairs: Sequence[JudgedSystems]) -> None:
    """Write the scores of columns and of texts; each file in one step.

    Raises:
        InputError: a file cannot be written.
    """
    if options.output is None:
        return
    folder = Path(options.output)
    contents: dict[Path, str] = {}
    for judged in language_pairs:
        for name, content in _files(options, judged).items():
            contents[folder / "metric-scores" / judged.language_pair / name] = content
    for path, content in contents.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise unwritable(path.parent, error) from error
        if path.exists() and path not in path.parent.iterdir():
            raise InputError(f"Cannot write {path}: a file is there whose name differs in case alone. Move it away.")
        write_whole(str(path), content)
    if not options.quiet:
        tell(f"Wrote {len(contents)} files of scores into {folder / 'metric-scores'}.")


def _files(options: MetaOptions, judged: JudgedSystems) -> dict[str, str]:
    """Return the files of a language pair by name; of an EvalSet, not those of scores that were read."""
    files: dict[str, str] = {}
    chosen = {own_name(one, judged) for one in options.metrics} if is_eval_set(options) else judged.metrics
    for name in chosen:
        scores = judged.metrics[name]
        is_scored = ~np.isnan(scores.system) if scores.system is not None else np.zeros(len(judged.systems), bool)
        if scores.segment is not None and (missing := int(np.isnan(scores.segment[is_scored]).sum())):
            warnings.warn(
                f"{judged.language_pair}: {name} has no score of {missing} outputs, and mt-metrics-eval expects one of "
                "each.",
                UserWarning,
                stacklevel=2,
            )
        systems = [system for system, has_any in zip(judged.systems, is_scored, strict=True) if has_any]
        chosen_rows = {
            level: None if of_level is None else of_level[is_scored]
            for level, of_level in (("sys", scores.system), ("seg", scores.segment))
        }
        files |= score_files(_with_reference(name), systems, chosen_rows)
    return files


def _with_reference(name: str) -> str:
    _, hyphen, reference = name.rpartition("-")
    has_one = hyphen and (reference.startswith("ref") or reference in ("src", ALL_REFERENCES))
    return name if has_one else f"{name}-{ALL_REFERENCES}"


def run_correlation(options: MetaOptions) -> None:
    """Run the task, print its result, and write the scores where that is asked for."""
    check_folder(options)
    systems = read_systems(options)
    result = meta_evaluate(systems, permutations=options.permutations, seed=options.seed)
    try:
        print(result.to_json() if options.result_format == "json" else result.table(options.result_format), flush=True)
    finally:  # the scores are the costly part, and do not depend on who reads the result
        write_scores(options, systems)


# `bertscore-onnx meta --task auc`: how well metrics tell paraphrases from other pairs of texts.


LABEL_COLUMNS = ("label", "is_duplicate")
FIRST_TEXTS, SECOND_TEXTS = ("sentence1", "question1"), ("sentence2", "question2")
"""What PAWS and QQP call their columns; the first texts are the references."""


def run_auc(options: MetaOptions) -> None:
    """Run the task and print its result."""
    table = read_table(options.source, options.input_format)
    labels = _labels(table, table.find(options.columns.label or LABEL_COLUMNS, "--label-column"))
    metrics = scores_of_rows(options, table, (*CANDIDATE_COLUMNS, *SECOND_TEXTS), (*REFERENCE_COLUMNS, *FIRST_TEXTS))
    result = auc_of_labels(labels, metrics)
    print(result.to_json() if options.result_format == "json" else result.table(options.result_format))


def _labels(table: Table, column: str) -> NDArray[np.int64]:
    labels = table.numbers(column)
    for row in np.flatnonzero((labels != 0) & (labels != 1)):
        given = "nothing" if np.isnan(labels[row]) else f"{labels[row]:g}"
        raise InputError(f"{table.place(int(row))}: the column {column!r} holds {given}; expected 0 or 1.")
    return labels.astype(np.int64)


# `bertscore-onnx meta --task darr`: whether metrics rank outputs as their direct assessments do.


def run_darr(options: MetaOptions) -> None:
    """Run the task and print its result."""
    threshold, people = options.of_task.threshold, options.of_task.human_systems
    result = darr_by_language_pair(
        read_systems(options, several_judgements=True),
        threshold=THRESHOLD if threshold is None else threshold,
        human_systems=people or None,
    )
    print(result.to_json() if options.result_format == "json" else result.table(options.result_format))


# `bertscore-onnx meta --task hybrid`: how metrics correlate with people over hybrid systems, and choose among them.


def run_hybrid(options: MetaOptions) -> None:
    """Run the task and print its result."""
    of_corpora = {name: told for name, told in sacrebleu_options(options).items() if name in SACREBLEU}
    settings = {
        name: value
        for name in ("num_hybrids", "num_candidates", "num_trials")
        if (value := getattr(options.of_task, name)) is not None
    }
    if "num_candidates" not in settings and settings.get("num_hybrids", 100) < 100:
        settings["num_candidates"] = settings["num_hybrids"]
    result = hybrid_by_language_pair(
        read_systems(options, unscored=of_corpora, several_judgements=True),
        corpus_metrics=of_corpora,
        human_systems=options.of_task.human_systems,
        seed=options.seed,
        **settings,
    )
    print(result.to_json() if options.result_format == "json" else result.table(options.result_format))


# `bertscore-onnx meta --task phenomena`: what errors metrics see, by linguistic category.


def run_phenomena(options: MetaOptions) -> None:
    """Run the task and print its result."""
    if not options.metrics:
        raise typer.BadParameter("name a model, or a metric such as bleu.", param_hint="--model, --metric")
    examples = _examples(options)
    with scorer_of(options) as scorer:
        result = evaluate_challenge_set(
            examples,
            metrics=sacrebleu_options(options),
            scorer=scorer,
            min_examples=options.of_task.min_examples or MIN_EXAMPLES,
            verbose=False if options.quiet else None,
        )
    print(result.to_json() if options.result_format == "json" else result.table(options.result_format))


def _examples(options: MetaOptions) -> list[ChallengeExample]:
    table = read_table(options.source, options.input_format)
    categories = table.keys(table.find("category", ""))
    references = references_of_rows(options, table)
    good, bad = (table.lists(table.find(name, ""), may_be_empty=True) for name in ("good", "bad"))
    return [ChallengeExample(*fields) for fields in zip(categories, references, good, bad, strict=True)]
