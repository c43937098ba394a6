"""ROC AUC and average precision, against scipy and a plain loop."""

import json

import numpy as np
import pytest
from scipy import stats

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.auc import auc_of_labels, average_precision, roc_auc


@pytest.fixture
def labelled():
    """Labels and scores with many ties."""
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 200)
    return labels, (labels + rng.normal(scale=2, size=200)).round()


def test_roc_auc(labelled):
    labels, scores = labelled
    positive, negative = scores[labels == 1], scores[labels == 0]
    expected = stats.mannwhitneyu(positive, negative).statistic / (len(positive) * len(negative))
    assert roc_auc(labels, scores).value == pytest.approx(expected, abs=1e-12)


def test_average_precision(labelled):
    labels, scores = labelled
    expected, recall = 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        taken = labels[scores >= threshold]
        expected += (taken.sum() / labels.sum() - recall) * taken.mean()
        recall = taken.sum() / labels.sum()
    assert average_precision(labels, scores).value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("scores", "roc", "ap"), [([1, 2, 3, 4], 1, 1), ([4, 3, 2, 1], 0, 5 / 12), ([1] * 4, 0.5, 0.5)]
)
def test_known_orders(scores, roc, ap):
    labels = np.array([0, 0, 1, 1])
    assert roc_auc(labels, np.array(scores)).value == roc
    assert average_precision(labels, np.array(scores)).value == pytest.approx(ap, abs=1e-15)


@pytest.mark.parametrize(
    ("labels", "scores", "message"),
    [
        ([0, 1], [1], r"Labels of shape \(2,\) and scores of shape \(1,\)"),
        ([0, 2], [1, 1], r"Label 2 at 1 \(counted from 0\); expected 0 or 1"),
        ([0, 1], [1, np.nan], r"Score nan at 1 \(counted from 0\)"),
    ],
)
def test_bad_input(labels, scores, message):
    for measure in (roc_auc, average_precision):
        with pytest.raises(InputError, match=message):
            measure(np.array(labels), np.array(scores))


@pytest.mark.parametrize(
    ("labels", "scores", "values", "reason"),
    [
        ([1, 1], [1, 2], (None, 1.0), "of 2 pairs 2 are positive"),
        ([0, 0], [1, 2], (None, None), "of 2 pairs 0 are positive"),
        ([0, 1], [1, np.nan], (None, None), "1 of 2 pairs have no score"),
        ([0, 1], [1, np.inf], (None, None), "1 of 2 pairs have no score"),
    ],
)
def test_no_value_has_a_reason(labels, scores, values, reason):
    result = auc_of_labels(np.array(labels), {"m": np.array(scores, dtype=float)})
    of_json = json.loads(json.dumps(result.to_dict(), allow_nan=False))["metrics"]["m"]
    assert (of_json["roc_auc"], of_json["average_precision"]) == values
    assert reason in of_json["reason"]
