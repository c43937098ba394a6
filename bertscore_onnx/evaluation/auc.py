"""How well metrics tell paraphrases from other pairs of texts, as in PAWS and QQP."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.correlation import Floats, Measure, midranks, no_value
from bertscore_onnx.evaluation.metrics import SegmentScores
from bertscore_onnx.evaluation.tables import (
    TableFormat,
    format_number,
    is_tsv,
    missing_note,
    tabulated,
    to_tsv,
    with_notes,
)

# How well scores tell two classes apart, such as paraphrases from other pairs (PAWS, QQP): ROC AUC and AP. Papers
# report either as "AUC"; they differ, so each has its name here.


def roc_auc(labels: ArrayLike, scores: Floats) -> Measure:
    """Return the area under the ROC curve: how often a positive has a higher score than a negative, ties half.

    By ranks, U / (n₊·n₋) of Mann and Whitney (scipy: `stats.mannwhitneyu`).

    Args:
        labels: 1 for positives and 0 for negatives, (n,).
        scores: finite, (n,).

    Returns:
        The area in [0, 1]; no value where one class is empty.

    Raises:
        InputError: shapes differ, a label is neither 0 nor 1, or a score is not finite.
    """
    classes, scores = _labelled(labels, scores)
    n, positive = len(classes), int(classes.sum())
    if positive in (0, n):
        return no_value(f"of {n} pairs {positive} are positive, and both classes are needed", n)
    wins = midranks(scores)[classes == 1].sum() - positive * (positive + 1) / 2
    return Measure(float(wins / (positive * (n - positive))), n)


def average_precision(labels: ArrayLike, scores: Floats) -> Measure:
    """Return the average precision, Σ (Rₖ − Rₖ₋₁)·Pₖ over the distinct scores, from the highest down.

    Equal scores come in together, so that their order does not matter (scikit-learn: `average_precision_score`).

    Args:
        labels: 1 for positives and 0 for negatives, (n,).
        scores: finite, (n,).

    Returns:
        The average in [0, 1]; no value where nothing is positive.

    Raises:
        InputError: as `roc_auc` says.
    """
    classes, scores = _labelled(labels, scores)
    n = len(classes)
    if not classes.any():
        return no_value(f"of {n} pairs none is positive", n)
    order = np.argsort(-scores)
    last = np.flatnonzero(np.diff(scores[order], append=-np.inf))  # the last place of each distinct score
    hits = np.cumsum(classes[order])[last]
    precision = hits / (last + 1)
    return Measure(float(np.diff(hits, prepend=0) @ precision / hits[-1]), n)


def _labelled(labels: ArrayLike, scores: Floats) -> tuple[NDArray[np.int64], Floats]:
    labels, scores = np.asarray(labels), np.asarray(scores, dtype=np.float64)
    if labels.ndim != 1 or labels.shape != scores.shape:
        raise InputError(f"Labels of shape {labels.shape} and scores of shape {scores.shape}; expected both as (n,).")
    if (is_wrong := ~np.isin(labels, (0, 1))).any():
        raise InputError(f"Label {labels[is_wrong][0]} at {is_wrong.argmax()} (counted from 0); expected 0 or 1.")
    if (is_wrong := ~np.isfinite(scores)).any():
        raise InputError(f"Score {scores[is_wrong][0]} at {is_wrong.argmax()} (counted from 0); expected a number.")
    return labels.astype(np.int64), scores


@dataclass(frozen=True, slots=True)
class AucOfMetric:
    """One metric as a classifier."""

    metric: str
    n: int
    """Pairs of texts, of which `positive` are paraphrases."""

    positive: int
    roc_auc: Measure
    average_precision: Measure

    @property
    def reason(self) -> str:
        """Why a value is missing; empty where both are there."""
        return self.roc_auc.reason or self.average_precision.reason


@dataclass(frozen=True, slots=True)
class AucResult:
    """What `auc_of_labels` found."""

    metrics: tuple[AucOfMetric, ...]

    def table(self, table_format: TableFormat = "text") -> str:
        """Write a table to read, or with "tsv" one with all digits; without a line end after its last line.

        Raises:
            InputError: there is no such format.
            MissingExtraError: tabulate is not installed.
        """
        return auc_table(self, table_format)

    def to_json(self) -> str:
        """Return it as JSON; what is missing is null, with a reason."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False)

    def to_dict(self) -> dict[str, Any]:
        """Return what `to_json` writes."""
        return {"metrics": {one.metric: _as_dict(one) for one in self.metrics}}


def auc_of_labels(labels: NDArray[np.integer], metrics: Sequence[SegmentScores]) -> AucResult:
    """Measure how well scores tell the positive pairs of texts from the negative ones.

    Args:
        labels: 1 for positive pairs and 0 for negative ones, (pairs,).
        metrics: scores of the pairs, (pairs,) each.

    Returns:
        The area under the ROC curve and the average precision of each metric. A metric that lacks scores has neither;
        with one class alone there is no area.

    Raises:
        InputError: a label is neither 0 nor 1, or there are not as many labels as scores.
    """
    return AucResult(tuple(_of_metric(labels, metric) for metric in metrics))


def _of_metric(labels: NDArray[np.integer], metric: SegmentScores) -> AucOfMetric:
    n, positive = len(labels), int(np.sum(labels))
    scores = metric.oriented
    if lacking := int((~np.isfinite(scores)).sum()):
        nothing = no_value(f"{lacking} of {n} pairs have no score", n)
        return AucOfMetric(metric.name, n, positive, nothing, nothing)
    return AucOfMetric(metric.name, n, positive, roc_auc(labels, scores), average_precision(labels, scores))


def _as_dict(result: AucOfMetric) -> dict[str, Any]:
    values = {
        "n": result.n,
        "positive": result.positive,
        "roc_auc": result.roc_auc.value,
        "average_precision": result.average_precision.value,
    }
    return {**values, **({"reason": result.reason} if result.reason else {})}


def auc_table(result: "AucResult", table_format: TableFormat) -> str:
    """Write a row for each metric.

    Raises:
        InputError: there is no such format; likewise of the functions below.
        MissingExtraError: tabulate is not installed; likewise.
    """
    if is_tsv(table_format):
        return to_tsv([{"metric": name, **values} for name, values in result.to_dict()["metrics"].items()])
    rows = [
        [
            one.metric,
            f"{one.n:,}",
            f"{one.positive:,}",
            format_number(one.roc_auc.value),
            format_number(one.average_precision.value),
        ]
        for one in result.metrics
    ]
    header = ["metric", "pairs", "positive", "ROC AUC", "average precision"]
    return with_notes(tabulated(rows, header), [missing_note(one.metric, one.reason) for one in result.metrics])
