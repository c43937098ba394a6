"""Optimal matching against a linear program, brute force, and scores through a scorer."""

import sys

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment, linprog

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import InputError, MissingExtraError
from bertscore_onnx.matching.transport import check_installed, optimal_match
from bertscore_onnx.matching.variants import Matching
from tests.support.parity import unit
from tests.support.scores import CANDIDATES, REFERENCES

COSTS = {
    "cosine": lambda cosines: 1 - cosines,
    "squared": lambda cosines: 2 - 2 * cosines,
    "euclidean": lambda cosines: np.sqrt(np.maximum(2 - 2 * cosines, 0)),
}


def text(rng, weighing, most=30):
    """Draw the vectors and the weights of a text."""
    number = int(rng.integers(1, most + 1))
    vectors = unit(rng.normal(size=(number, 12)).astype(np.float32))
    if weighing == "uniform":
        return vectors, np.ones(number, dtype=np.float32)
    weights = np.log(100 / rng.integers(1, 100, size=number)).astype(np.float32)
    weights[rng.random(number) < 0.2] = 0
    weights[rng.integers(number)] = 1
    return vectors, weights


def least_cost(left, of_left, right, of_right, cost):
    """Solve the linear program of the earth mover's distance."""
    costs = COSTS[cost](left.astype(float) @ right.astype(float).T)
    of_left, of_right = (weights.astype(float) / weights.astype(float).sum() for weights in (of_left, of_right))
    rows = np.kron(np.eye(len(left)), np.ones(len(right)))
    columns = np.kron(np.ones(len(left)), np.eye(len(right)))
    solved = linprog(costs.ravel(), A_eq=np.vstack([rows, columns]), b_eq=np.r_[of_left, of_right], method="highs")
    assert solved.success
    return solved.fun


@pytest.mark.parametrize("weighing", ["uniform", "idf"])
@pytest.mark.parametrize(
    ("first", "last"), [(0, 25), pytest.param(25, 500, marks=pytest.mark.full)], ids=["25 pairs", "475 pairs"]
)
def test_transport_costs_what_the_linear_program_does(weighing, first, last):
    for seed in range(first, last):
        rng = np.random.default_rng(seed)
        pair = *text(rng, weighing), *text(rng, weighing)
        cost = [*COSTS][seed % 3]
        matching = Matching(method="transport", cost=cost)
        expected = 1 - least_cost(*pair, cost)
        assert optimal_match(*pair, matching) == pytest.approx((expected, expected), abs=1e-7, rel=0)


@pytest.mark.parametrize("weighing", ["uniform", "idf"])
def test_assignment_is_scipys(weighing):
    for seed in range(500):
        rng = np.random.default_rng(seed)
        (left, of_left), (right, of_right) = text(rng, weighing), text(rng, weighing)
        similarity = left.astype(float) @ right.astype(float).T
        rows, columns = linear_sum_assignment(-similarity)
        matched = similarity[rows, columns]
        expected = [
            float(matched @ (weights.astype(float) / weights.astype(float).sum())[places])
            for weights, places in ((of_left, rows), (of_right, columns))
        ]
        found = optimal_match(left, of_left, right, of_right, Matching(method="assignment"))
        assert found == pytest.approx(expected, abs=1e-12)


def by_hand(scorer, candidate, reference, weights_of):
    """Return the vectors and the weights of both sides, as the scorer encodes them."""
    sides = []
    for text in (candidate, reference):
        table = scorer.encode([text]).embeddings
        sides += [table.vectors_of(0, 0), weights_of(table.sequences[0])]
    return sides


@pytest.mark.parametrize("idf", [False, True])
@pytest.mark.parametrize("cost", COSTS)
def test_a_scorer_transports(tiny_bundle, cost, idf):
    with BERTScorer(tiny_bundle, matching=Matching(method="transport", cost=cost), idf=idf) as scorer:
        scores = scorer.score(CANDIDATES, REFERENCES)
        documents = [{*scorer.encode([reference]).embeddings.sequences[0].tolist()} for reference in REFERENCES]
        special = [*scorer.manifest.special_ids]

        def weights_of(ids):
            if not idf:
                return np.float32([token not in special for token in ids])
            counts = np.array([sum(token in document for document in documents) for token in ids])
            return np.log((len(REFERENCES) + 1) / (counts + 1)).astype(np.float32)

        for position, pair in enumerate(zip(CANDIDATES, REFERENCES, strict=True)):
            expected = 1 - least_cost(*by_hand(scorer, *pair, weights_of), cost)
            for values in scores:
                assert values[position] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("method", ["assignment", "transport"])
def test_windows_and_lengths_beyond_the_bound_are_refused(tiny_bundle, method):
    with pytest.raises(InputError, match="1,024 tokens"):
        BERTScorer(tiny_bundle, matching=Matching(method=method), long_text="window")
    with pytest.raises(InputError, match="1,024 tokens"):
        BERTScorer(tiny_bundle, matching=Matching(method=method), max_length=2000)


@pytest.mark.parametrize(
    ("method", "package", "name"), [("transport", "ot", "POT"), ("assignment", "scipy.optimize", "SciPy")]
)
def test_a_package_that_is_not_installed(tiny_bundle, monkeypatch, method, package, name):
    from bertscore_onnx.matching import transport

    monkeypatch.setitem(sys.modules, package, None)
    for load in (transport._load_pot, transport._linear_sum_assignment):
        load.cache_clear()
    with pytest.raises(MissingExtraError, match=name):
        BERTScorer(tiny_bundle, matching=Matching(method=method))


def test_greedy_matching_needs_no_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "ot", None)
    check_installed(Matching())


@pytest.mark.parametrize("cost", COSTS)
def test_a_text_moves_to_itself_for_nothing(cost):
    for seed in range(20):
        side = text(np.random.default_rng(seed), "idf")
        score, _ = optimal_match(*side, *side, Matching(method="transport", cost=cost, inverse=True))
        assert score == pytest.approx(1, abs=1e-7, rel=0)


def test_moverscore_of_equal_texts_is_1(tiny_bundle):
    with BERTScorer(tiny_bundle, matching="moverscore-2") as scorer:
        assert scorer.score(CANDIDATES, CANDIDATES).F.tolist() == [1] * len(CANDIDATES)
