import copy
import pickle

import numpy as np
import pytest

from bertscore_onnx.scores import best_of_references


@pytest.fixture
def scores():
    """One layer and two candidates, with two references and with one."""
    return best_of_references(
        np.float32([[0.9, 0.1, 0.5]]), np.float32([[0.2, 0.8, 0.5]]), np.float32([[0.3, 0.4, 0.5]]), np.array([2, 1])
    )


def test_each_score_is_the_best_over_the_references_on_its_own(scores):
    precision, recall, f1 = scores
    assert precision[0].tolist() == pytest.approx([0.9, 0.5])
    assert recall[0].tolist() == pytest.approx([0.8, 0.5])
    assert f1[0].tolist() == pytest.approx([0.4, 0.5])


def test_the_reference_with_the_best_f_is_named(scores):
    assert scores.best_reference.tolist() == [[1, 0]]


def test_the_first_of_equal_references_is_named():
    equal = np.float32([[0.5, 0.5]])
    assert best_of_references(equal, equal, equal, np.array([2])).best_reference.tolist() == [[0]]


def test_no_candidates_give_no_scores():
    nothing = np.zeros((1, 0), dtype=np.float32)
    assert [array.size for array in best_of_references(nothing, nothing, nothing, np.zeros(0, dtype=np.int64))] == [
        0
    ] * 3


@pytest.mark.parametrize("clone", [copy.copy, copy.deepcopy, lambda scores: pickle.loads(pickle.dumps(scores))])  # noqa: S301
def test_copies_keep_the_best_reference(scores, clone):
    assert clone(scores).best_reference.tolist() == [[1, 0]]


def test_scores_have_names(scores):
    assert scores.F is scores[2]


def test_every_layer_is_reduced_by_itself():
    scores = np.float32([[0.1, 0.2], [0.4, 0.3]])
    assert best_of_references(scores, scores, scores, np.array([2])).best_reference.tolist() == [[1], [0]]
