"""acc*_eq against every ε tried in turn."""

import itertools

import numpy as np
import pytest

from bertscore_onnx.evaluation.correlation import tie_calibrated_accuracy


def accuracy_at(epsilon, human, metric):
    """Score every segment in turn, the definition as it is written."""
    segments = []
    for g, m in zip(human.T, metric.T, strict=True):
        right = []
        for i, j in itertools.combinations(np.flatnonzero(~np.isnan(g)), 2):
            tie_of_people, tie_of_metric = g[i] == g[j], abs(m[i] - m[j]) <= epsilon
            concordant = not tie_of_metric and (g[i] - g[j]) * (m[i] - m[j]) > 0
            right.append(concordant or (tie_of_people and tie_of_metric))
        if right:
            segments.append(np.mean(right))
    return np.mean(segments)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("gaps", [0, 0.3])
def test_it_is_the_best_of_all_thresholds(seed, gaps):
    rng = np.random.default_rng(seed)
    human = rng.integers(0, 3, (5, 12)).astype(np.float64)
    metric = (human + rng.normal(scale=2, size=human.shape)).round(1)
    human[rng.random(human.shape) < gaps] = np.nan
    candidates = {0.0} | {abs(a - b) for column in metric.T for a, b in itertools.combinations(column, 2)}
    accuracies = {epsilon: accuracy_at(epsilon, human, metric) for epsilon in candidates}

    result = tie_calibrated_accuracy(human, metric)

    assert result.value == pytest.approx(max(accuracies.values()), abs=1e-12)
    assert accuracies[result.epsilon] == pytest.approx(result.value, abs=1e-12)


def test_a_difference_of_epsilon_is_a_tie():
    result = tie_calibrated_accuracy(np.array([[1.0], [1.0]]), np.array([[0.0], [0.5]]))
    assert (result.value, result.epsilon) == (1, 0.5)


def test_of_equal_thresholds_the_smallest_is_taken():
    result = tie_calibrated_accuracy(np.array([[1.0, 1.0], [2.0, 1.0]]), np.array([[1.0, 1.0], [1.5, 2.0]]))
    assert (result.value, result.epsilon) == (0.5, 0)  # at 1 it is one half again


def test_an_error_of_order_is_wrong_at_every_threshold():
    result = tie_calibrated_accuracy(np.array([[1.0], [2.0]]), np.array([[2.0], [1.0]]))
    assert (result.value, result.epsilon) == (0, 0)


def test_segments_of_one_judged_system_do_not_count():
    human = np.array([[1.0, 1.0], [2.0, np.nan]])
    result = tie_calibrated_accuracy(human, np.array([[1.0, 5.0], [2.0, np.nan]]))
    assert (result.value, result.n, result.groups) == (1, 1, 1)


def test_no_pairs_have_no_value():
    result = tie_calibrated_accuracy(np.array([[1.0, np.nan], [np.nan, 1.0]]), np.ones((2, 2)))
    assert (result.value, result.epsilon, result.reason) == (None, None, "no segment has two judged systems")
