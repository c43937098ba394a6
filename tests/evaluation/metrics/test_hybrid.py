"""Hybrid systems, against loops in float64: drawing them, selecting among them, and all by language pair."""

import json
from dataclasses import replace

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, CHRF, TER
from scipy import stats

from bertscore_onnx.errors import InputError
from bertscore_onnx_evaluation.metrics.hybrid import (
    _selection_curves,
    binomial_interval,
    hybrid_by_language_pair,
    hybrid_systems,
    select_by_each,
    select_models,
)
from tests.evaluation.judged import judged


@pytest.fixture
def human():
    """Judgements with gaps, of 4 systems × 6 segments; nobody judged segment 2."""
    scores = np.arange(24.0).reshape(4, 6)
    scores[0, 0] = scores[1, 1] = scores[2, 3] = scores[3, 3] = np.nan
    scores[:, 2] = np.nan
    return scores


def test_outputs_are_of_judged_systems(human):
    hybrids = hybrid_systems(human, num_hybrids=500)
    assert hybrids.segments.tolist() == [0, 1, 3, 4, 5]
    assert not np.isnan(human[hybrids.systems, hybrids.segments]).any()


def test_all_judged_systems_are_as_likely(human):
    drawn = hybrid_systems(human, num_hybrids=6000).systems
    for column, num_judged in enumerate([3, 3, 2, 4, 4]):
        counts = np.unique(drawn[:, column], return_counts=True)[1]
        assert len(counts) == num_judged
        assert stats.chisquare(counts).pvalue > 0.001


def test_scores_are_means_of_the_outputs(human, monkeypatch):
    monkeypatch.setattr("bertscore_onnx_evaluation.metrics.hybrid.CHUNK_CELLS", 35)
    hybrids = hybrid_systems(human, num_hybrids=50)
    expected = [
        np.mean([human[system, segment] for system, segment in zip(row, hybrids.segments, strict=True)])
        for row in hybrids.systems
    ]
    assert hybrids.scores(human) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: hybrid_systems(np.full((2, 2), np.nan)), "of 0 judged segments"),
        (
            lambda: hybrid_systems(np.eye(2), num_hybrids=2).scores(np.ones((2, 3))),
            r"\(2, 3\); expected \(2, 2\)",
        ),
        (lambda: hybrid_systems(np.eye(2), num_hybrids=9).scores(np.full((2, 2), np.inf)), "no finite score"),
        (lambda: select_models(np.arange(30), np.arange(30), num_candidates=1), "with 1 candidates of 30 systems"),
        (lambda: select_models(np.arange(30), np.arange(30), num_candidates=31), "with 31 candidates of 30 systems"),
        (lambda: select_models(np.array([1, np.nan, 2]), np.ones(3), num_candidates=2), "no human score"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_selection_is_as_a_loop_has_it():
    rng = np.random.default_rng(1)
    human, metric = rng.integers(0, 20, (2, 60)).astype(np.float64)
    draws, hits, reciprocal, diffs = np.random.default_rng(3), [], [], []
    for _ in range(400):
        drawn = draws.choice(60, 10, replace=False)
        chosen = human[drawn[np.argmax(metric[drawn])]]
        rank = 1 + sum(human[one] > chosen for one in drawn)
        hits.append(rank == 1)
        reciprocal.append(1 / rank)
        diffs.append(max(human[drawn]) - chosen)

    result = select_models(human, metric, num_candidates=10, trials=400, seed=3)

    for estimate, values in ((result.hits_at_1, hits), (result.mrr, reciprocal), (result.diff, diffs)):
        assert estimate.value == pytest.approx(np.mean(values), abs=1e-12)
    low, high = stats.norm.interval(0.95, np.mean(diffs), stats.sem(diffs, ddof=0))
    assert (result.diff.low, result.diff.high) == pytest.approx((low, high), abs=1e-12)


def test_several_metrics_choose_among_the_same_systems():
    rng = np.random.default_rng(4)
    human, *metrics = rng.normal(size=(3, 40))
    settings = {"num_candidates": 6, "trials": 50, "seed": 2}
    assert select_by_each(human, metrics, **settings) == [select_models(human, one, **settings) for one in metrics]


def test_a_metric_that_agrees_with_people_always_hits():
    human = np.random.default_rng(2).normal(size=30)
    result = select_models(human, 2 * human, num_candidates=5, trials=50)
    assert (result.hits_at_1.value, result.mrr.value, result.diff.value) == (1, 1, 0)


@pytest.mark.parametrize(("hits", "trials"), [(0, 10), (3, 10), (10, 10), (519, 10_000)])
def test_binomial_interval(hits, trials):
    expected = stats.binomtest(hits, trials).proportion_ci(0.95, method="wilson")
    estimate = binomial_interval(hits, trials)
    assert estimate.value == hits / trials
    assert (estimate.low, estimate.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


FEW = {"num_hybrids": 60, "num_candidates": 5, "num_trials": 200, "seed": 1}
RNG = np.random.default_rng(0)
HUMAN = RNG.normal(size=(4, 12))
HUMAN[1, 3] = HUMAN[:, 7] = np.nan
CLOSE, FAR = HUMAN + RNG.normal(size=HUMAN.shape) / 3, HUMAN + RNG.normal(size=HUMAN.shape)
CLOSE[np.isnan(HUMAN)] = FAR[np.isnan(HUMAN)] = 0
WORDS = ["the", "cat", "sat", "on", "a", "mat", "red", "dog"]
TEXTS = [[(" ".join(RNG.choice(WORDS, 6)), " ".join(RNG.choice(WORDS, 6))) for _ in range(12)] for _ in range(4)]


def only(result):
    [language_pair] = result.language_pairs
    return language_pair


def drawn():
    """Return the hybrid systems as lists of (system, segment)."""
    hybrids = hybrid_systems(HUMAN, num_hybrids=60, seed=1)
    return [list(zip(row, hybrids.segments, strict=True)) for row in hybrids.systems]


def loop_means(scores):
    return [sum(float(scores[system, segment]) for system, segment in hybrid) / len(hybrid) for hybrid in drawn()]


def test_pearson_is_that_of_a_loop():
    pearson = only(hybrid_by_language_pair([judged(HUMAN, {"close": CLOSE})], **FEW)).pearson["close"]
    expected = np.corrcoef(loop_means(HUMAN), loop_means(CLOSE))[0, 1]
    assert pearson.value == pytest.approx(expected, abs=1e-12)
    assert pearson.n == 60


@pytest.mark.parametrize(("name", "sign"), [("bleu", 1), ("chrf", 1), ("ter", -1)])
def test_a_corpus_metric_scores_each_hybrid_as_a_corpus(name, sign):
    metric = {"bleu": BLEU, "chrf": CHRF, "ter": TER}[name]()
    scores = []
    for hybrid in drawn():
        candidates, references = zip(*(TEXTS[system][segment] for system, segment in hybrid), strict=True)
        scores.append(sign * metric.corpus_score(list(candidates), [list(references)]).score)
    systems = judged(HUMAN, {}, texts=TEXTS)
    result = only(hybrid_by_language_pair([systems], corpus_metrics={name: {}}, **FEW))
    assert result.corpus_metrics == {name}
    assert result.pearson[name].value == pytest.approx(np.corrcoef(loop_means(HUMAN), scores)[0, 1], abs=1e-9)


def test_every_two_metrics_are_tested_the_better_one_first():
    result = hybrid_by_language_pair([judged(HUMAN, {"far": FAR, "close": CLOSE})], **FEW)
    [(pair, test)] = only(result).pairs.items()
    pearson = only(result).pearson
    assert pair == ("close", "far")
    assert test.delta == pytest.approx(pearson["close"].value - pearson["far"].value)
    assert 1 / 1001 <= test.p == test.p_holm <= 1


def equal_metrics(seed, segments=200):
    rng = np.random.default_rng(seed)
    human = rng.normal(size=(8, segments))
    shared = rng.normal(size=segments)
    return human, {name: human + shared + 1.5 * rng.normal(size=human.shape) for name in ("one", "other")}


def rates_of_equal_metrics(trials, **options):
    """Return how often equal metrics differ significantly, and intervals hold r and Hits@1 of other segments."""
    curves, r = _selection_curves(10)[1], (1 / 3.25) ** 0.5
    hits = np.interp(r, np.linspace(-1, 1, 81), curves["hits_at_1"])
    found = []
    for seed in range(trials):
        human, metrics = equal_metrics(seed)
        result = only(hybrid_by_language_pair([judged(human, metrics)], num_candidates=10, seed=seed, **options))
        pearson, of_hits = result.pearson["one"], result.selections["one"].hits_at_1
        found.append(
            (
                next(iter(result.pairs.values())).p < 0.05,
                pearson.low <= r <= pearson.high,
                of_hits.low <= hits <= of_hits.high,
            )
        )
    return np.mean(found, axis=0)


def test_more_hybrids_do_not_make_equal_metrics_differ():
    differ, r_held, hits_held = rates_of_equal_metrics(25, num_hybrids=1000, num_trials=1000)
    assert differ <= 0.2
    assert min(r_held, hits_held) >= 0.75


@pytest.mark.calibration
def test_rates_of_equal_metrics_over_many_trials(record_property):
    differ, r_held, hits_held = rates_of_equal_metrics(2000, num_hybrids=500, num_trials=500)
    record_property("two metrics on hybrid systems | meta", f"{differ:.3f}")
    record_property("`meta --task hybrid`: r and Hits@1 | coverage", f"{min(r_held, hits_held):.3f}")
    assert differ <= 0.06
    assert min(r_held, hits_held) >= 0.93


def test_json_has_each_estimate_with_its_interval():
    result = hybrid_by_language_pair([judged(HUMAN, {"close": CLOSE})], **FEW)
    whole = json.loads(json.dumps(result.to_dict(), allow_nan=False))["language_pairs"]["cs-en"]
    close = whole["metrics"]["close"]
    for name in ("hits_at_1", "mrr", "diff"):
        low, high = close[f"{name}_interval"]
        assert low <= close[name] <= high
    assert (close["n"], close["trials"], close["score"], whole["segments"]) == (60, 200, "mean of segments", 11)


def test_people_may_be_left_out():
    result = only(hybrid_by_language_pair([judged(HUMAN, {"close": CLOSE})], **FEW, human_systems=["B"]))
    assert (result.systems, result.human_systems) == (("A", "C", "D"), ("B",))


@pytest.mark.parametrize(
    ("human", "scores", "reason"),
    [
        (HUMAN[:1], CLOSE[:1], "two systems or more, and there are 1"),
        (np.full((2, 3), np.nan), np.ones((2, 3)), "no segment has a human score"),
        ([[1, 2], [3, 4]], [[1, 2], [3, np.nan]], "1 of 4 judged outputs have no score"),
        ([[1, 2], [3, 4]], np.ones((2, 2)), "the metric's scores are constant"),
        (np.ones((2, 2)), [[1, 2], [3, 4]], "the human scores are constant"),
    ],
)
def test_no_value_has_a_reason(human, scores, reason):
    result = hybrid_by_language_pair([judged(human, {"m": scores})], **FEW).to_dict()
    metric = json.loads(json.dumps(result, allow_nan=False))["language_pairs"]["cs-en"]["metrics"]["m"]
    assert (metric["pearson"], metric["hits_at_1"], metric["hits_at_1_interval"]) == (None, None, None)
    assert reason in metric["reason"]


@pytest.mark.parametrize(
    ("changes", "options", "message"),
    [
        ({}, {"num_candidates": 100, "num_trials": 9}, "Choose among 2 candidates or more"),
        ({}, {"num_candidates": 1, "num_trials": 9}, "Choose among 2 candidates or more"),
        ({}, {"num_candidates": 10, "num_trials": 0}, "Choose among 2 candidates or more"),
        ({"human_segment": None}, {"num_candidates": 5, "num_trials": 9}, "only whole systems have human scores"),
    ],
)
def test_systems_and_numbers_are_checked(changes, options, message):
    with pytest.raises(InputError, match=message):
        hybrid_by_language_pair([replace(judged(HUMAN, {}), **changes)], num_hybrids=50, **options)


@pytest.mark.parametrize("texts", [None, [[(None, "x")] * 12, *TEXTS[1:]]])
def test_judged_outputs_without_a_text_have_no_corpus_score(texts):
    result = hybrid_by_language_pair([judged(HUMAN, {}, texts=texts)], corpus_metrics={"bleu": {}}, **FEW)
    assert "judged outputs have no text" in only(result).pearson["bleu"].reason
