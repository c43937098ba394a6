"""Conditions i to iii over good and bad outputs; TQ-AutoTest with the BLEU of the paper."""

import numpy as np
import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.challenge_sets import phenomena
from tests.support.metaeval import needs_metaeval, tq_autotest


def test_a_good_output_is_right_only_above_every_bad_one():
    result = phenomena(["a"] * 4, np.array([0.9, 0.9, 0.9, 0.9]), [[0.8, 0.1], [0.95], [0.9], []])
    assert (result.ii.right, result.ii.n, result.ii.value) == (1, 3, 1 / 3)  # above; below; tied; nothing to compare


def test_the_mean_of_good_outputs_is_over_those_there_are():
    result = phenomena(["a"] * 3, np.array([0.5, np.nan, 1.0]), [[], [], []])
    assert (result.i.value, result.i.n, result.i.right) == (0.75, 2, None)


def test_bad_outputs_are_right_only_where_they_fall():
    result = phenomena(["a"] * 4, np.full(4, np.nan), [[0.8, 0.4, 0.2], [0.8, 0.8], [0.2, 0.4], [0.5]])
    assert (result.iii.right, result.iii.n) == (1, 3)


def test_small_categories_count_but_are_not_shown():
    result = phenomena(["big"] * 5 + ["small"], np.ones(6), [[0.5]] * 4 + [[2.0]] * 2)
    assert result.ii.categories == {"big": (0.8, 5)}
    assert result.ii.value == 4 / 6


def test_a_condition_that_fits_no_example_has_no_value():
    condition = phenomena(["a"], np.array([1.0]), [[]]).iii
    assert (condition.n, condition.right, condition.value, condition.categories) == (0, 0, None, {})
    assert condition.reason


def test_lengths_are_checked():
    with pytest.raises(InputError, match="2 categories, 1 rows of good scores and 1 rows of bad"):
        phenomena(["a", "b"], np.ones(1), [[]])


def test_scores_are_checked():
    with pytest.raises(InputError, match="Example 1"):
        phenomena(["a", "b"], np.ones(2), [[], [np.nan]])


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

    result = phenomena(
        [one.category for one in examples],
        np.array([score(*one.good) for one in examples]),
        [[score(one.good[0], bad) for bad in one.bad] for one in examples],
    )
    assert (result.ii.right, result.ii.n) == (right, 163)
