"""Segments won, lost and tied."""

import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.significance import segment_outcomes

SCORES = [[1, 2, 3, 4], [1, 3, 3, 1], [2, 3, 4, 5]]


def counts(outcomes):
    return [outcomes.won.tolist(), outcomes.lost.tolist(), outcomes.tied.tolist()]


def test_segments_are_counted_against_the_baseline():
    assert counts(segment_outcomes(SCORES)) == [[0, 1, 4], [0, 1, 0], [4, 2, 0]]


def test_another_system_may_be_the_baseline():
    assert counts(segment_outcomes(SCORES, baseline=2)) == [[0, 0, 0], [4, 3, 0], [0, 1, 4]]


def test_an_error_rate_is_won_by_the_lower():
    assert counts(segment_outcomes(SCORES, lower_is_better=True)) == [[0, 1, 0], [0, 1, 4], [4, 2, 0]]


def test_scores_within_the_tolerance_tie():
    assert counts(segment_outcomes(SCORES, tolerance=1)) == [[0, 0, 0], [0, 1, 0], [4, 3, 4]]


@pytest.mark.parametrize(
    ("options", "said"), [({"baseline": 3}, "row 3"), ({"baseline": -1}, "row -1"), ({"tolerance": -1}, "positive")]
)
def test_bad_options_are_refused(options, said):
    with pytest.raises(InputError, match=said):
        segment_outcomes(SCORES, **options)
