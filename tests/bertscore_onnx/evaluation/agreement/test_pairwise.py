"""Pairwise accuracy and SPA, against loops over pairs and permutations."""

import itertools

import numpy as np
import pytest
from scipy import stats

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.correlation import pairwise_accuracy, soft_pairwise_accuracy, superiority


def test_accuracy_is_pooled_over_language_pairs():
    right = (np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.0]))
    wrong = (np.array([1.0, 2.0]), np.array([2.0, 1.0]))
    measure = pairwise_accuracy([right, wrong])
    assert (measure.value, measure.n) == (3 / 4, 4)


@pytest.mark.parametrize(
    ("human", "metric", "value"), [([1, 1], [2, 2], 1), ([1, 1], [2, 3], 0), ([1, 2], [3, 3], 0), ([1, 2], [3, 4], 1)]
)
def test_a_tie_agrees_with_a_tie_alone(human, metric, value):
    assert pairwise_accuracy([(np.array(human), np.array(metric))]).value == value


def test_unjudged_systems_are_left_out():
    assert pairwise_accuracy([(np.array([1.0, np.nan, 2.0]), np.array([1.0, 9.0, 2.0]))]).n == 1


@pytest.mark.parametrize("language_pairs", [[], [(np.array([1.0]), np.array([1.0]))]])
def test_accuracy_of_no_pair_has_no_value(language_pairs):
    measure = pairwise_accuracy(language_pairs)
    assert (measure.value, measure.reason) == (None, "no language pair has two judged systems")


def test_superiority_counts_permutations_as_a_loop_does():
    scores = np.random.default_rng(1).integers(0, 4, (4, 9)).astype(np.float64)
    signs = 2 * np.rint(np.random.default_rng(4).random((200, 9), dtype=np.float32)) - 1
    p = superiority(scores, permutations=200)
    for i, j in itertools.permutations(range(4), 2):
        difference = scores[i] - scores[j]
        assert p[i, j] == np.mean([(sign * difference).sum() >= difference.sum() for sign in signs])


def test_superiority_does_not_depend_on_rounding():
    tenths = np.random.default_rng(1).integers(0, 30, (4, 50))
    assert np.array_equal(superiority(tenths * 0.1), superiority(tenths.astype(np.float64)))


def test_superiority_is_near_the_exact_permutation_test():
    scores = np.random.default_rng(2).normal(size=(2, 10))
    difference = scores[0] - scores[1]
    exact = np.mean([np.dot(sign, difference) >= difference.sum() for sign in itertools.product((-1, 1), repeat=10)])
    p = superiority(scores, permutations=20_000)[0, 1]
    assert abs(p - exact) < 4 * np.sqrt(exact * (1 - exact) / 20_000)


def test_superiority_is_uniform_under_the_null():
    p = []
    for seed in range(400):
        difficulty, *outputs = np.random.default_rng(seed).normal(size=(3, 60))
        p.append(superiority(difficulty + outputs, permutations=499, seed=seed)[0, 1])
    assert stats.kstest(p, "uniform").pvalue > 0.01


def test_spa_is_one_minus_the_mean_difference_of_p():
    rng = np.random.default_rng(5)
    human, metric = rng.normal(size=(2, 5, 30))
    people, machine = superiority(human), superiority(metric)
    difference = np.mean([abs(people[i, j] - machine[i, j]) for i, j in itertools.combinations(range(5), 2)])
    measure = soft_pairwise_accuracy(human, metric)
    assert (measure.value, measure.n) == (pytest.approx(1 - difference, abs=1e-12), 10)


def test_spa_uses_segments_judged_for_every_system():
    rng = np.random.default_rng(6)
    human, metric = rng.normal(size=(2, 4, 20))
    expected = soft_pairwise_accuracy(human[:, 5:], metric[:, 5:])
    human[1, :5] = np.nan
    assert soft_pairwise_accuracy(human, metric) == expected


@pytest.mark.parametrize(
    ("human", "reason"),
    [(np.ones((1, 3)), "a pair needs two systems"), (np.full((2, 3), np.nan), "no segment is judged for every system")],
)
def test_spa_without_a_value_says_why(human, reason):
    measure = soft_pairwise_accuracy(human, np.ones(human.shape))
    assert (measure.value, measure.reason) == (None, reason)


@pytest.mark.parametrize("scores", [np.ones(3), np.array([[1.0, np.nan]])])
def test_scores_are_checked(scores):
    with pytest.raises(InputError, match=r"expected \(systems, segments\), all finite"):
        superiority(scores)


def test_permutations_are_checked():
    with pytest.raises(InputError, match="0 permutations; expected at least one"):
        superiority(np.ones((2, 2)), permutations=0)
