"""Segment scores that were computed elsewhere, such as those of COMET, of an LLM judge or of people."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from bertscore_onnx.errors import InputError, InputTypeError
from bertscore_onnx.tables.batches import check_form
from bertscore_onnx_evaluation.metric_scores import METRICS, MetricScores
from bertscore_onnx_evaluation.systems.corpus_scores import SegmentMeans
from bertscore_onnx_evaluation.systems.segments import (
    RUN,
    SegmentColumns,
    ids_of,
    is_frame,
    scores_of,
    system_scores,
    table_of,
)

SegmentScores = Any
"""The scores of each system by its name, one for each segment or (runs, segments); or a data frame of
`system_scores`."""


def score_columns(
    scores: SegmentScores | Mapping[str, SegmentScores],
    systems: Sequence[str] | None = None,
    *,
    id_column: str | None = None,
    by: str | None = None,
) -> dict[str, SegmentColumns]:
    """Return by metric the scores of systems, in a column for each.

    Args:
        scores: the scores of each system by metric, or those of a single metric, which is called `score`.
        systems: the systems to take; None for all of the first metric.
        id_column: the column of ids, or "none"; None for the first known one.
        by: the column of groups, which is no system.

    Raises:
        InputError: a metric lacks a system, a score is no finite number, the columns of systems are not clear, or a
            metric has the name of another, or of one that is computed here.
        InputTypeError: the scores are of another type.
    """
    check_form(scores, "scores")
    found: dict[str, SegmentColumns] = {}
    for name, table in _by_metric(scores).items():
        rows = table_of(_with_runs(table), "scores" if table is scores else f"scores[{name!r}]")
        names = systems
        if names is None and isinstance(table, Mapping) and "system" not in table:  # its names are explicit
            names = [column for column in table if column not in (ids_of(rows, id_column)[0], RUN, by)]
        for metric, columns in system_scores(rows, name, systems=names, id_column=id_column, by=by).items():
            if metric.lower() in METRICS:
                raise InputError(f"The metric {metric!r} is computed here. Give these scores another name.")
            if metric in found:
                raise InputError(f"{rows.title} has scores of {metric}, which another input has too. Rename one.")
            found[metric] = columns
            systems = [*columns.columns] if systems is None else systems
    return found


def _with_runs(table: SegmentScores) -> SegmentScores:
    """Return a mapping of systems to scores of runs, (runs, segments), as rows; and anything else as it is."""
    if not isinstance(table, Mapping) or not any(np.ndim(scores) == 2 for scores in table.values()):
        return table
    rows = [
        (system, segment, run, score)
        for system, of_runs in table.items()
        for run, of_run in enumerate(np.atleast_2d(of_runs).tolist(), 1)
        for segment, score in enumerate(of_run, 1)
    ]
    return dict(zip(("system", "segment", RUN, "score"), zip(*rows, strict=True), strict=True))


def _by_metric(scores: SegmentScores | Mapping[str, SegmentScores]) -> Mapping[str, SegmentScores]:
    if isinstance(scores, Mapping) and scores and all(map(is_frame, scores.values())):
        return scores
    if not is_frame(scores):
        raise InputTypeError(
            f"The scores are a {type(scores).__name__}; expected a data frame with a column for each system, or a "
            "mapping of their names to lists of numbers."
        )
    return {"score": scores}


def given_metrics(
    scores: Mapping[str, Sequence[Sequence[float | tuple[float, ...]]]], lower_is_better: Collection[str] = ()
) -> dict[str, MetricScores]:
    """Return metrics of given segment scores, (systems, segments), by their names; a tuple holds those of runs.

    InputError is raised if `lower_is_better` names another metric.
    """
    for name in lower_is_better:
        if name not in scores:
            available = ", ".join(map(repr, scores)) or "none"
            raise InputError(f"There are no scores of {name!r}, whose lower scores are better; only of {available}.")
    metrics = {}
    for name, rows in scores.items():
        corpus = SegmentMeans([scores_of(of_system) for of_system in rows], lower_is_better=name in lower_is_better)
        metrics[name] = MetricScores(
            corpus.observed(),
            corpus.segment_scores,
            f"{name}|scores:given",
            lower_is_better=corpus.lower_is_better,
            corpus=corpus,
        )
    return metrics
