"""ROC AUC and AP: how well scores separate two classes, such as paraphrases from other pairs (PAWS, QQP).

Papers report either as "AUC"; they differ, so each has its name here.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.correlation import Floats, Measure, midranks, no_value
from bertscore_onnx.evaluation.tables import Column, Result, Table, count, number, with_notes


def roc_auc(labels: ArrayLike, scores: Floats) -> Measure:
    """Return the area under the ROC curve: how often a positive has a higher score than a negative, ties half.

    By ranks, U / (n₊·n₋) of Mann and Whitney (scipy: `stats.mannwhitneyu`).

    Args:
        labels: 1 for positives and 0 for negatives, (n,).
        scores: finite, (n,).

    Returns:
        The area in [0, 1]; no value if one class is empty.

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
        The average in [0, 1]; no value if nothing is positive.

    Raises:
        InputError: shapes differ, a label is neither 0 nor 1, or a score is not finite.
    """
    classes, scores = _labelled(labels, scores)
    n = len(classes)
    if not classes.any():
        return no_value(f"of {n} pairs none is positive", n)
    order = np.argsort(-scores)
    last = np.flatnonzero(np.diff(scores[order], append=-np.inf))  # the last place of each distinct score
    hits = np.cumsum(classes[order])[last]
    precision = hits / (last + 1)
    return Measure(float((np.diff(hits, prepend=0) * precision).sum() / hits[-1]), n)


def _labelled(labels: ArrayLike, scores: Floats) -> tuple[NDArray[np.int64], Floats]:
    labels, scores = np.asarray(labels), np.asarray(scores, dtype=np.float64)
    if labels.ndim != 1 or labels.shape != scores.shape:
        raise InputError(f"Labels of shape {labels.shape} and scores of shape {scores.shape}; expected both as (n,).")
    if (is_wrong := ~np.isin(labels, (0, 1))).any():
        raise InputError(f"Label {labels[is_wrong][0]} at {is_wrong.argmax()} (counted from 0); expected 0 or 1.")
    if (is_wrong := ~np.isfinite(scores)).any():
        raise InputError(f"Score {scores[is_wrong][0]} at {is_wrong.argmax()} (counted from 0); expected a number.")
    return labels.astype(np.int64), scores


_COLUMNS: tuple[Column, ...] = (
    ("metric", "metric", str),
    ("pairs", "n", count),
    ("positive", "positive", count),
    ("ROC AUC", "roc_auc", number(4)),
    ("average precision", "average_precision", number(4)),
)


@dataclass(frozen=True, slots=True)
class AucResult(Result):
    """Metrics as classifiers of pairs of texts."""

    n: int
    """Pairs of texts."""
    positive: int
    """Those of them that are positive, such as paraphrases."""
    roc_auc: Mapping[str, Measure]
    """By metric."""
    average_precision: Mapping[str, Measure]
    """By metric."""

    def to_dict(self) -> dict[str, Any]:
        """Return what `to_json` writes; a missing value is None, with a reason."""
        return {
            "metrics": {
                name: {
                    "n": self.n,
                    "positive": self.positive,
                    "roc_auc": area.value,
                    "average_precision": self.average_precision[name].value,
                    **(area.reasons or self.average_precision[name].reasons),
                }
                for name, area in self.roc_auc.items()
            }
        }

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        return ({"metric": name, **values} for name, values in self.to_dict()["metrics"].items())

    def _blocks(self) -> Iterator[str]:
        rows = [*self._rows()]
        yield with_notes(Table(_COLUMNS, rows).text(), {row["metric"]: row.get("reason", "") for row in rows})


def auc_of_labels(labels: NDArray[np.integer], metrics: Mapping[str, Floats]) -> AucResult:
    """Measure how well scores separate the positive pairs of texts from the negative ones.

    Args:
        labels: 1 for positive pairs and 0 for negative ones, (pairs,).
        metrics: by name the scores of the pairs, (pairs,) each, the higher, the better; NaN where there is none.

    Returns:
        The area under the ROC curve and the average precision of each metric. A metric that lacks scores has neither;
        with one class alone there is no area.

    Raises:
        InputError: a label is neither 0 nor 1, or there are not as many labels as scores.
    """
    n = len(labels)
    areas, precisions = {}, {}
    for name, scores in metrics.items():
        if lacking := int((~np.isfinite(scores)).sum()):
            areas[name] = precisions[name] = no_value(f"{lacking} of {n} pairs have no score", n)
        else:
            areas[name], precisions[name] = roc_auc(labels, scores), average_precision(labels, scores)
    return AucResult(n, int(np.sum(labels)), areas, precisions)
