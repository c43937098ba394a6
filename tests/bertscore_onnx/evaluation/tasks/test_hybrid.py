"""Hybrid systems by language pair, against loops in float64."""

import json
from dataclasses import replace

import numpy as np
import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.hybrid import hybrid_by_language_pair, hybrid_systems
from bertscore_onnx.evaluation.metric_tests import williams
from tests.bertscore_onnx.evaluation.tasks.systems import judged

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
def test_a_corpus_metric_scores_the_texts_of_each_hybrid_as_a_corpus(name, sign):
    sacrebleu = pytest.importorskip("sacrebleu.metrics")
    metric = {"bleu": sacrebleu.BLEU, "chrf": sacrebleu.CHRF, "ter": sacrebleu.TER}[name]()
    scores = []
    for hybrid in drawn():
        candidates, references = zip(*(TEXTS[system][segment] for system, segment in hybrid), strict=True)
        scores.append(sign * metric.corpus_score(list(candidates), [list(references)]).score)
    systems = judged(HUMAN, {}, texts=TEXTS)
    result = only(hybrid_by_language_pair([systems], corpus_metrics={name: {}}, **FEW))
    assert result.corpus_metrics == {name}
    assert result.pearson[name].value == pytest.approx(np.corrcoef(loop_means(HUMAN), scores)[0, 1], abs=1e-9)


def test_every_two_metrics_are_tested_the_better_one_first():
    pytest.importorskip("scipy")
    result = hybrid_by_language_pair([judged(HUMAN, {"far": FAR, "close": CLOSE})], **FEW)
    [(pair, test)] = only(result).pairs.items()
    people, close, far = loop_means(HUMAN), loop_means(CLOSE), loop_means(FAR)
    correlations = np.corrcoef([people, close, far])
    expected = williams(correlations[0, 1], correlations[0, 2], correlations[1, 2], 60)
    assert (*pair, test.n) == ("close", "far", 60)
    assert (test.t, test.p) == pytest.approx((expected.t, expected.p), rel=1e-9)


def test_json_has_each_estimate_with_its_interval():
    result = hybrid_by_language_pair([judged(HUMAN, {"close": CLOSE})], **FEW)
    whole = json.loads(json.dumps(result.to_dict(), allow_nan=False))
    close = whole["language_pairs"]["cs-en"]["metrics"]["close"]
    intervals = {f"{name}_interval" for name in ("hits_at_1", "mrr", "diff")}
    assert {*close} == {"n", "score", "pearson", "hits_at_1", "mrr", "diff", "trials", *intervals}
    for name in ("hits_at_1", "mrr", "diff"):
        low, high = close[f"{name}_interval"]
        assert low <= close[name] <= high
    assert (close["n"], close["trials"], close["score"]) == (60, 200, "mean of segments")
    assert whole["language_pairs"]["cs-en"]["segments"] == 11


def test_people_may_be_left_out():
    result = hybrid_by_language_pair([judged(HUMAN, {"close": CLOSE})], **FEW, human_systems=["B"])
    assert (only(result).systems, only(result).human_systems) == (("A", "C", "D"), ("B",))


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


def test_judged_outputs_without_a_text_have_no_corpus_score():
    pytest.importorskip("sacrebleu")
    texts = [[(None, "x")] * 12, *TEXTS[1:]]
    for systems in (judged(HUMAN, {}, texts=texts), judged(HUMAN, {})):
        bleu = only(hybrid_by_language_pair([systems], corpus_metrics={"bleu": {}}, **FEW)).pearson["bleu"]
        assert "judged outputs have no text" in bleu.reason


@pytest.mark.parametrize(("num_candidates", "num_trials"), [(100, 9), (1, 9), (10, 0)])
def test_numbers_are_checked(num_candidates, num_trials):
    with pytest.raises(InputError, match="Choose among 2 candidates or more"):
        hybrid_by_language_pair(
            [judged(HUMAN, {})], num_hybrids=50, num_candidates=num_candidates, num_trials=num_trials
        )


def test_judgements_of_segments_are_needed():
    with pytest.raises(InputError, match="only whole systems have human scores"):
        hybrid_by_language_pair([replace(judged(HUMAN, {}), human_segment=None)])
