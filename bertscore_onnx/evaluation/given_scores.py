"""Segment scores that were computed elsewhere, such as those of COMET, of an LLM judge or of people."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bertscore_onnx.errors import InputError, InputTypeError
from bertscore_onnx.evaluation.correlation import Floats, mean_by_system
from bertscore_onnx.evaluation.metrics import METRICS, MetricScores
from bertscore_onnx.evaluation.significance import SegmentMeans

SegmentScores = Mapping[str, Any]
"""The scores of each system by its name, one for each segment; or a data frame with a column for each system."""


def given_metrics(
    scores: "SegmentScores | Mapping[str, SegmentScores]",
    systems: Sequence[str] | None = None,
    *,
    lower_is_better: Collection[str] = (),
) -> tuple[tuple[str, ...], dict[str, MetricScores]]:
    """Return the systems, the baseline first, and by metric their scores.

    Args:
        scores: the scores of each system by metric, or those of a single metric, which is called `score`.
        systems: the systems to take, the baseline first; None for all of the first metric, in their order.
        lower_is_better: the metrics whose lower scores are better.

    Raises:
        InputError: a metric lacks a system, two systems or metrics have different numbers of segments, a score is no
            finite number, or a metric has the name of one that is computed here.
    """
    metrics = {name: _columns(table) for name, table in _by_metric(scores).items()}
    for name in lower_is_better:
        if name not in metrics:
            raise InputError(
                f"There are no scores of {name!r}, whose lower scores are better; only of {_list(metrics)}."
            )
    names = tuple(next(iter(metrics.values()))) if systems is None else tuple(systems)
    matrices = {metric: _matrix(metric, columns, names) for metric, columns in metrics.items()}
    return names, {
        metric: MetricScores(
            mean_by_system(matrix),
            matrix,
            f"{metric}|scores:given",
            lower_is_better=metric in lower_is_better,
            corpus=SegmentMeans(matrix, lower_is_better=metric in lower_is_better),
        )
        for metric, matrix in matrices.items()
    }


def _by_metric(scores: "SegmentScores | Mapping[str, SegmentScores]") -> Mapping[str, SegmentScores]:
    if not (isinstance(scores, Mapping) and scores and all(map(_is_table, scores.values()))):
        return {"score": scores}
    for name in scores:
        if name.lower() in METRICS:
            raise InputError(f"The metric {name!r} is computed here. Give these scores another name.")
    return scores


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping) or hasattr(value, "columns")


def _columns(table: SegmentScores) -> dict[str, ArrayLike]:
    """Return the columns of a data frame, or of a mapping, by their names."""
    if not _is_table(table):
        raise InputTypeError(
            f"The scores are a {type(table).__name__}; expected a data frame with a column for each system, or a "
            "mapping of their names to lists of numbers."
        )
    return {str(name): table[name] for name in getattr(table, "columns", table)}


def _matrix(metric: str, columns: Mapping[str, ArrayLike], systems: Sequence[str]) -> Floats:
    """Return the scores of systems, (systems, segments)."""
    rows = []
    for name in systems:
        if name not in columns:
            raise InputError(f"The scores of {metric} lack the system {name!r}; there are {_list(columns)}.")
        try:
            row = np.asarray(columns[name], dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InputError(f"The scores of {metric} for {name} are not all numbers: {error}.") from error
        if row.ndim != 1 or not np.isfinite(row).all():
            missing = f"segment {int(np.argmin(np.isfinite(row))) + 1} has none" if row.ndim == 1 else "not a list"
            raise InputError(f"The scores of {metric} for {name}: {missing}. Give a finite number for each segment.")
        rows.append(row)
    lengths = {name: len(row) for name, row in zip(systems, rows, strict=True)}
    if len({*lengths.values()}) > 1 or not rows or not len(rows[0]):
        counts = ", ".join(f"{number} for {name}" for name, number in lengths.items())
        raise InputError(f"The scores of {metric} are {counts or 'none'}; expected one for each segment and system.")
    return np.stack(rows)


def _list(names: Collection[str]) -> str:
    return ", ".join(map(repr, names))
