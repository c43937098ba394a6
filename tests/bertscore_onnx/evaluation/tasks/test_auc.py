"""ROC AUC and average precision of metrics, against scipy and a plain loop."""

import json

import numpy as np
import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.auc import auc_of_labels


def loop_average_precision(labels, scores):
    """Σ over positives of precision at their score, each score taken with all that are equal or higher."""
    total = 0.0
    for label, score in zip(labels, scores, strict=True):
        if label:
            above = [other for other, value in zip(labels, scores, strict=True) if value >= score]
            total += sum(above) / len(above)
    return total / sum(labels)


@pytest.mark.parametrize("levels", [3, 1000])
def test_values_are_those_of_scipy_and_a_loop(levels):
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(levels)
    labels = rng.integers(2, size=200)
    scores = rng.integers(levels, size=200) + labels
    result = auc_of_labels(labels, {"m": scores.astype(float)})
    u = stats.mannwhitneyu(scores[labels == 1], scores[labels == 0]).statistic
    assert result.roc_auc["m"].value == pytest.approx(u / (labels.sum() * (1 - labels).sum()), abs=1e-12)
    assert result.average_precision["m"].value == pytest.approx(loop_average_precision(labels, scores), abs=1e-12)
    assert (result.n, result.positive) == (200, labels.sum())


@pytest.mark.parametrize(
    ("labels", "scores", "values", "reason"),
    [
        ([1, 1], [1, 2], (None, 1.0), "of 2 pairs 2 are positive, and both classes are needed"),
        ([0, 0], [1, 2], (None, None), "of 2 pairs 0 are positive, and both classes are needed"),
        ([0, 1], [1, np.nan], (None, None), "1 of 2 pairs have no score"),
        ([0, 1], [1, np.inf], (None, None), "1 of 2 pairs have no score"),
    ],
)
def test_no_value_has_a_reason(labels, scores, values, reason):
    result = auc_of_labels(np.array(labels), {"m": np.array(scores, dtype=float)})
    of_json = json.loads(json.dumps(result.to_dict(), allow_nan=False))["metrics"]["m"]
    assert (of_json["roc_auc"], of_json["average_precision"], of_json["reason"]) == (*values, reason)


def test_scores_that_are_all_equal_tell_nothing():
    result = auc_of_labels(np.array([1, 0, 0, 0]), {"m": np.ones(4)})
    assert result.to_dict()["metrics"]["m"] == {"n": 4, "positive": 1, "roc_auc": 0.5, "average_precision": 0.25}


def test_labels_are_checked():
    with pytest.raises(InputError, match="Label 2 at 1"):
        auc_of_labels(np.array([1, 2]), {"m": np.ones(2)})
