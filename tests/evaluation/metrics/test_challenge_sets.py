"""Checks of challenge sets: of scores, and of texts that metrics score."""

import json

import numpy as np
import pytest
from sacrebleu.metrics import CHRF
from scipy import stats

from bertscore_onnx.errors import InputError
from bertscore_onnx_evaluation.metrics.challenge_sets import (
    CHECKS,
    ChallengeExample,
    check_challenges,
    compare_checks,
    evaluate_challenge_set,
    example_outcomes,
)
from tests.evaluation.simulations import challenges, units_of
from tests.support.metaeval import needs_metaeval, tq_autotest


def value_and_n(measure):
    return measure.value, measure.n


def test_a_good_output_is_right_only_above_every_bad_one():
    result = check_challenges(["a"] * 4, np.array([0.9, 0.9, 0.9, 0.9]), [[0.8, 0.1], [0.95], [0.9], []])
    assert value_and_n(result.checks["all_good_above_bad"]) == (1 / 3, 3)  # above; below; tied; nothing to compare


def test_the_mean_of_good_outputs_is_over_those_there_are():
    result = check_challenges(["a"] * 3, np.array([0.5, np.nan, 1.0]), [[], [], []])
    assert value_and_n(result.checks["mean_good"]) == (0.75, 2)


def test_bad_outputs_are_right_only_where_they_fall():
    result = check_challenges(["a"] * 4, np.full(4, np.nan), [[0.8, 0.4, 0.2], [0.8, 0.8], [0.2, 0.4], [0.5]])
    assert value_and_n(result.checks["order_kept"]) == (1 / 3, 3)


def test_small_categories_count_but_are_not_shown():
    result = check_challenges(["big"] * 5 + ["small"], np.ones(6), [[0.5]] * 4 + [[2.0]] * 2)
    assert value_and_n(result.categories["big"]["all_good_above_bad"]) == (0.8, 5)
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
    assert value_and_n(metric.checks["all_good_above_bad"]) == (0.5, 2)


def test_references_may_be_several():
    example = ChallengeExample("x", ["no", "the cat"], ["the cat"], ["a dog"])
    metric = evaluate_challenge_set([example], metrics=["chrf"]).metrics["chrf"]
    assert metric.checks["mean_good"].value == 100


def test_json_has_shares_and_reasons():
    result = evaluate_challenge_set(EXAMPLES[3:], metrics=["chrf"], min_examples=1).to_dict()
    chrf = json.loads(json.dumps(result, allow_nan=False))["metrics"]["chrf"]
    assert chrf["checks"]["mean_good"] == {"mean": 100.0, "n": 1, "interval": None}
    assert chrf["checks"]["all_good_above_bad"]["share"] is None
    assert chrf["checks"]["all_good_above_bad"]["reason"]
    assert chrf["categories"] == {"number": {"mean_good": {"mean": 100.0, "n": 1, "interval": None}}}


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


def test_the_interval_of_a_share_is_that_of_wilson():
    result = check_challenges(["a"] * 60, np.ones(60), [[0.5]] * 50 + [[2.0]] * 10)
    found = result.checks["all_good_above_bad"]
    # Student's t in place of the normal distribution, and a variance estimated from 59 degrees of freedom.
    level = stats.chi2.cdf(stats.t.ppf(0.975, 59) ** 2 * 60 / 59, 1)
    expected = stats.binomtest(50, 60).proportion_ci(level, method="wilson")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_the_interval_of_a_mean_is_that_of_student():
    scores = np.random.default_rng(1).uniform(size=40)
    found = check_challenges(["a"] * 40, scores, [[]] * 40).checks["mean_good"]
    expected = stats.ttest_1samp(scores, 0).confidence_interval()
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_a_share_of_one_has_an_interval():
    found = check_challenges(["a"] * 20, np.ones(20), [[0.5]] * 20).checks["all_good_above_bad"]
    assert (found.value, found.high) == (1, 1)
    assert 0.75 < found.low < 0.9


def test_repeated_examples_of_a_unit_change_no_interval():
    rng = np.random.default_rng(2)
    good, bad = rng.normal(1, 1, 50), rng.normal(size=(50, 2))
    once = check_challenges(["a"] * 50, good, bad)
    units = [str(row) for row in np.arange(50).repeat(3)]
    again = check_challenges(["a"] * 150, good.repeat(3), bad.repeat(3, axis=0), units=units)
    for check in once.checks:
        assert [once.checks[check].low, once.checks[check].high] == pytest.approx(
            [again.checks[check].low, again.checks[check].high]
        )


def test_examples_of_one_reference_are_a_unit_and_units_may_be_given():
    assert evaluate_challenge_set([*EXAMPLES, EXAMPLES[0]], metrics=["chrf"]).units == 5
    assert evaluate_challenge_set(EXAMPLES, metrics=["chrf"], units=["a", "a", "b", "b", "b"]).units == 2
    with pytest.raises(InputError, match="5 rows and 1 units"):
        evaluate_challenge_set(EXAMPLES, metrics=["chrf"], units=["a"])


def test_p_of_few_examples_is_that_of_mcnemar():
    rng = np.random.default_rng(3)
    one, other = rng.integers(0, 2, (2, 12)).astype(float)
    outcomes = {"one": {"order_kept": one}, "other": {"order_kept": other}}
    [difference] = compare_checks("order_kept", outcomes, np.arange(12), 1000, 0)[0].values()
    wins = (one > other).sum(), (one < other).sum()
    assert difference.p == pytest.approx(stats.binomtest(max(wins), sum(wins)).pvalue)


def test_metrics_are_compared_over_all_examples(scorer):
    result = evaluate_challenge_set(EXAMPLES * 5, metrics=["bertscore", "chrf", "ter"], scorer=scorer)
    assert [len(differences) for differences in result.differences.values()] == [3, 3]
    for (better, worse), one in result.differences["order_kept"].items():
        values = [result.metrics[name].checks["order_kept"].value for name in (better, worse)]
        assert one.delta == values[0] - values[1] >= 0


def rates(trials, number, most):
    """Return how often equal metrics differ in the last two checks, and how often intervals of all three hold."""
    good, *bad = challenges(np.random.default_rng(0), np.arange(40_000))[0]
    truth = [outcomes.mean() for outcomes in example_outcomes(40_000, good, np.transpose(bad)).values()]
    found = []
    for seed in range(1, trials + 1):
        rng = np.random.default_rng([seed, number, most])
        units = units_of(rng, number, most)
        scores = [(good, np.transpose(bad)) for good, *bad in challenges(rng, units)]
        outcomes = {str(at): example_outcomes(len(units), *one) for at, one in enumerate(scores)}
        checks = check_challenges(["a"] * len(units), *scores[0], units=[*map(str, units)]).checks.values()
        tests = [compare_checks(check, outcomes, units, 299, seed)[0].popitem()[1].p < 0.05 for check in CHECKS[1:]]
        found.append([*tests, *(one.low <= value <= one.high for one, value in zip(checks, truth, strict=True))])
    return np.split(np.mean(found, axis=0), [2])


def test_equal_metrics_seldom_differ_and_intervals_hold_the_truth():
    differ, held = rates(60, 60, 1)
    assert differ.max() <= 0.15
    assert held.min() >= 0.85


@pytest.mark.calibration
@pytest.mark.parametrize(
    ("number", "most", "title"),
    [(60, 1, "60 examples"), (300, 1, "300 examples"), (60, 5, "60 references of 1 to 5 examples")],
)
def test_rates_over_many_trials(number, most, title, record_property):
    differ, held = rates(2000, number, most)
    record_property(f"challenge set: {title} | equal metrics differ", f"{differ.max():.3f}")
    record_property(f"challenge set: {title} | coverage", f"{held.min():.3f}")
    assert differ.max() <= 0.06
    assert held.min() >= 0.92
