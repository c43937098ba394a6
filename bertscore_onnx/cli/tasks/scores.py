"""The scores that a task judges, one per row: columns of the table, and metrics of its texts."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import typer

from bertscore_onnx.cli.inputs.judgements import Table
from bertscore_onnx.cli.tasks.options import MetaOptions
from bertscore_onnx.evaluation.metrics import SegmentScores, score_texts
from bertscore_onnx.scorer import BERTScorer

CANDIDATE_COLUMNS = ("candidate",)
REFERENCE_COLUMNS = ("reference", "references")


def scores_of_rows(
    options: MetaOptions,
    table: Table,
    candidate_columns: Sequence[str] = CANDIDATE_COLUMNS,
    reference_columns: Sequence[str] = REFERENCE_COLUMNS,
) -> tuple[SegmentScores, ...]:
    """Return the scores of each metric that was asked for, those of columns first.

    Args:
        options: which metrics.
        table: the rows.
        candidate_columns, reference_columns: what the columns of texts may be called where no option says it.

    Raises:
        typer.BadParameter: no metric was asked for, or two have one name.
        InputError: a column is missing, or holds something else than scores or texts.
    """
    if not options.scores and not options.metrics:
        raise typer.BadParameter(
            "name columns of scores, --score COLUMN, or score the texts, --model MODEL or --metric bleu.",
            param_hint="--score, --model, --metric",
        )
    if both := sorted({*options.scores} & {*options.metrics}):
        raise typer.BadParameter(
            f"{both[0]!r} is both a column and a metric of --metric; rename the column.", param_hint="--score"
        )
    given = [SegmentScores(name, table.numbers(table.find(name, "--score"))) for name in dict.fromkeys(options.scores)]
    if not options.metrics:
        return tuple(given)
    candidates = table.texts(table.find(options.columns.candidate or candidate_columns, "--candidate-column"))
    references = references_of_rows(options, table, reference_columns)
    with scorer_of(options) as scorer:
        told, verbose = sacrebleu_options(options), False if options.quiet else None
        own = score_texts(options.metrics, candidates, references, scorer=scorer, options=told, verbose=verbose)
    return (*given, *own)


def references_of_rows(
    options: MetaOptions, table: Table, columns: Sequence[str] = REFERENCE_COLUMNS
) -> list[list[str]]:
    """Return the references of each row, one or more.

    Raises:
        InputError: a column is missing, or holds something else than texts.
    """
    wanted = options.columns.reference or (columns,)
    lists = [table.lists(table.find(names, "--reference-column")) for names in wanted]
    return [[text for texts in row for text in texts] for row in zip(*lists, strict=True)]


@contextmanager
def scorer_of(options: MetaOptions) -> Iterator[BERTScorer | None]:
    """Open the scorer for as long as the block lasts; None where no model was named."""
    if "bertscore" not in options.metrics:
        yield None
        return
    with BERTScorer(options.model, options.num_layers, device=options.device, nthreads=options.num_threads) as scorer:
        yield scorer


def sacrebleu_options(options: MetaOptions) -> Mapping[str, Mapping[str, Any]]:
    """Return what sacreBLEU's classes are told, by metric."""
    told: Mapping[str, Mapping[str, Any]] = {
        "bleu": {"smooth_method": options.bleu_smooth},
        "chrf": {"word_order": options.chrf_word_order},
    }
    return {metric: some for metric, some in told.items() if metric in options.metrics}
