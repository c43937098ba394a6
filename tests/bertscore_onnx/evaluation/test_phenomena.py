"""Conditions i to iii over good and bad outputs; TQ-AutoTest with the BLEU of the paper."""

import numpy as np
import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.challenge_sets import check_challenges
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


def test_lengths_are_checked():
    with pytest.raises(InputError, match="2 categories, 1 rows of good scores and 1 rows of bad"):
        check_challenges(["a", "b"], np.ones(1), [[]])


def test_scores_are_checked():
    with pytest.raises(InputError, match="Example 1"):
        check_challenges(["a", "b"], np.ones(2), [[], [np.nan]])


@needs_metaeval
@pytest.mark.parametrize(
    ("metric", "right"),
    [
        ("bleu", 59),
        ("chrf2", round(0.644 * 163)),
        ("chrf++", round(0.626 * 163)),
        ("sentence bleu", round(0.552 * 163)),
    ],
)
def test_tq_autotest(metric, right):
    metrics = pytest.importorskip("sacrebleu.metrics")
    scorer = {
        "bleu": metrics.BLEU(smooth_method="none", tokenize="13a"),
        "chrf2": metrics.CHRF(),
        "chrf++": metrics.CHRF(word_order=2),
        "sentence bleu": metrics.BLEU(effective_order=True),
    }[metric]
    examples = [one for one in tq_autotest() if len(one.good) == 2 and one.bad]

    def score(reference: str, candidate: str) -> float:
        return scorer.sentence_score(candidate, [reference]).score

    result = check_challenges(
        [one.category for one in examples],
        np.array([score(*one.good) for one in examples]),
        [[score(one.good[0], bad) for bad in one.bad] for one in examples],
    )
    above = result.checks["all_good_above_bad"]
    assert (above.value, above.n) == (pytest.approx(right / 163), 163)
