"""Checks of challenge sets: of scores, and of texts that metrics score."""

import json

import numpy as np
import pytest
from sacrebleu.metrics import CHRF

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.challenge_sets import ChallengeExample, check_challenges, evaluate_challenge_set
from bertscore_onnx.evaluation.correlation import Measure
from tests.support.metaeval import needs_metaeval, tq_autotest


def test_a_good_output_is_right_only_above_every_bad_one():
    result = check_challenges(["a"] * 4, np.array([0.9, 0.9, 0.9, 0.9]), [[0.8, 0.1], [0.95], [0.9], []])
    assert result.checks["all_good_above_bad"] == Measure(1 / 3, 3)  # above; below; tied; nothing to compare


def test_the_mean_of_good_outputs_is_over_those_there_are():
    result = check_challenges(["a"] * 3, np.array([0.5, np.nan, 1.0]), [[], [], []])
    assert result.checks["mean_good"] == Measure(0.75, 2)


def test_bad_outputs_are_right_only_where_they_fall():
    result = check_challenges(["a"] * 4, np.full(4, np.nan), [[0.8, 0.4, 0.2], [0.8, 0.8], [0.2, 0.4], [0.5]])
    assert result.checks["order_kept"] == Measure(1 / 3, 3)


def test_small_categories_count_but_are_not_shown():
    result = check_challenges(["big"] * 5 + ["small"], np.ones(6), [[0.5]] * 4 + [[2.0]] * 2)
    assert result.categories["big"]["all_good_above_bad"] == Measure(0.8, 5)
    assert "small" not in result.categories
    assert result.checks["all_good_above_bad"].value == 4 / 6


def test_a_condition_that_fits_no_example_has_no_value():
    result = check_challenges(["a"], np.array([1.0]), [[]])
    check = result.checks["order_kept"]
    assert (check.n, check.value, result.categories) == (0, None, {})
    assert check.reason


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        (np.ones(1), [[]], "2 categories, 1 rows of good scores and 1 rows of bad"),
        (np.ones(2), [[], [np.nan]], "Example 1"),
    ],
)
def test_scores_are_checked(good, bad, message):
    with pytest.raises(InputError, match=message):
        check_challenges(["a", "b"], good, bad)


EXAMPLES = [
    ChallengeExample("negation", "the cat is not here", ["the cat is not there"], ["the cat is here", "a dog"]),
    ChallengeExample("negation", "he never sleeps", ["he does not sleep"], ["he never eats"]),
    ChallengeExample("number", "two red cats", [], ["two red dogs", "ten blue dogs"]),
    ChallengeExample("number", "three cats", ["three cats"], []),
    ChallengeExample("number", "four cats"),
]


def test_scores_are_those_of_sacrebleu():
    metric = evaluate_challenge_set(EXAMPLES[:1], metrics={"chrf": {"word_order": 2}}).metrics["chrf"]
    expected = CHRF(word_order=2).sentence_score(EXAMPLES[0].good[0], [EXAMPLES[0].reference]).score
    assert metric.checks["mean_good"].value == pytest.approx(expected, abs=1e-9)
    assert "nw:2" in metric.signature


def test_fewer_errors_are_better_and_shown_as_they_are():
    example = ChallengeExample("x", "the cat sat", ["the cat sat down"], ["a dog"])
    metric = evaluate_challenge_set([example], metrics=["ter"], min_examples=1).metrics["ter"]
    assert metric.checks["all_good_above_bad"].value == 1
    assert metric.checks["mean_good"].value == pytest.approx(100 / 3)
    assert metric.categories["x"]["mean_good"].value == pytest.approx(100 / 3)


def test_bertscore_is_that_of_the_scorer_and_shows_progress(scorer, capsys):
    bertscore = evaluate_challenge_set(EXAMPLES, scorer=scorer).metrics["bertscore"]
    assert capsys.readouterr().err == ""
    candidates = ["the cat is not there", "he does not sleep", "three cats"]
    expected = scorer.score(candidates, ["the cat is not here", "he never sleeps", "three cats"]).F
    assert bertscore.checks["mean_good"].value == pytest.approx(float(expected.mean(dtype=float)), abs=1e-6)
    assert bertscore.signature == str(scorer.signature)
    evaluate_challenge_set(EXAMPLES, scorer=scorer, verbose=True)
    assert "100%" in capsys.readouterr().err


def test_each_good_translation_has_to_beat_the_bad_ones():
    close, far = "the cat is not there", "felines are absent"
    right = ChallengeExample("x", "the cat is not here", [close], ["the cat is here somewhere else"])
    wrong = ChallengeExample("x", "the cat is not here", [close, far], ["the cat is here somewhere else"])
    metric = evaluate_challenge_set([right, wrong], metrics=["chrf"]).metrics["chrf"]
    assert metric.checks["all_good_above_bad"] == Measure(0.5, 2)


def test_references_may_be_several():
    example = ChallengeExample("x", ["no", "the cat"], ["the cat"], ["a dog"])
    metric = evaluate_challenge_set([example], metrics=["chrf"]).metrics["chrf"]
    assert metric.checks["mean_good"].value == 100


def test_json_has_shares_and_reasons():
    result = evaluate_challenge_set(EXAMPLES[3:], metrics=["chrf"], min_examples=1).to_dict()
    chrf = json.loads(json.dumps(result, allow_nan=False))["metrics"]["chrf"]
    assert chrf["checks"]["mean_good"] == {"mean": 100.0, "n": 1}
    assert chrf["checks"]["all_good_above_bad"]["share"] is None
    assert chrf["checks"]["all_good_above_bad"]["reason"]
    assert chrf["categories"] == {"number": {"mean_good": {"mean": 100.0, "n": 1}}}


@needs_metaeval
@pytest.mark.parametrize(
    ("metric", "options", "right"),
    [
        ("bleu", {"smooth_method": "none"}, 59),
        ("bleu", {}, round(0.552 * 163)),
        ("chrf", {}, round(0.644 * 163)),
        ("chrf", {"word_order": 2}, round(0.626 * 163)),
    ],
)
def test_tq_autotest(metric, options, right):
    examples = [ChallengeExample(one.category, one.good[0], one.good[1:], one.bad) for one in tq_autotest() if one.good]
    result = evaluate_challenge_set(examples, metrics={metric: options}).to_dict()["metrics"][metric]
    above = result["checks"]["all_good_above_bad"]
    assert (above["right"], above["n"]) == (right, 163)
