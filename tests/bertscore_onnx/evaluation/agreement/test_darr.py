"""DARR: pairs that people told apart, and ties of the metric that count as discordant."""

import itertools

import numpy as np
import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.relative_ranking import darr


def test_it_counts_as_a_loop_does():
    rng = np.random.default_rng(3)
    human, metric = rng.integers(0, 100, (7, 40)).astype(np.float64), rng.integers(0, 9, (7, 40)).astype(np.float64)
    human[rng.random(human.shape) < 0.3] = np.nan
    counts = {1: 0, 0: 0, -1: 0}
    for g, m in zip(human.T, metric.T, strict=True):
        for i, j in itertools.combinations(range(7), 2):
            if abs(g[i] - g[j]) >= 25:
                counts[int(np.sign((g[i] - g[j]) * (m[i] - m[j])))] += 1

    result = darr(human, metric)

    assert (result.concordant, result.discordant, result.ties) == (counts[1], counts[-1] + counts[0], counts[0])
    assert result.tau == (counts[1] - counts[-1] - counts[0]) / sum(counts.values())
    assert result.tau_without_ties == (counts[1] - counts[-1]) / (counts[1] + counts[-1])


def test_a_difference_of_25_is_a_pair():
    human = np.array([[0.0, 0.0], [25.0, 24.9]])
    assert darr(human, human).pairs == 1


def test_no_pairs_have_no_value():
    result = darr(np.zeros((3, 2)), np.zeros((3, 2)))
    assert (result.tau, result.tau_without_ties) == (None, None)
    assert result.reason == "no two outputs of a segment are far enough apart in the judgements"


def test_all_ties_are_discordant():
    result = darr(np.array([[0.0], [90.0]]), np.zeros((2, 1)))
    assert (result.tau, result.tau_without_ties, result.reason) == (-1, None, "")


def test_the_threshold_is_checked():
    with pytest.raises(InputError, match="The threshold is 0; expected points of assessment above 0"):
        darr(np.zeros((2, 1)), np.zeros((2, 1)), threshold=0)
