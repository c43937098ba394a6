"""The values of shared tasks and papers, from their own judgements, to the printed digits."""

import pytest

from bertscore_onnx_evaluation.metrics.correlation import (
    correlate,
    correlate_pairs,
    soft_pairwise_accuracy,
    tie_calibrated_accuracy,
)
from tests.support.metaeval import needs_metaeval, wmt23

pytestmark = [pytest.mark.slow, needs_metaeval]


@pytest.mark.parametrize(
    ("metric", "of_systems", "of_segments", "accuracy"),
    [("BERTscore-refB", 0.895, 0.335, 0.515), ("BLEU-refB", 0.769, 0.220, 0.442)],
)
def test_correlations_and_tie_calibrated_accuracy_of_wmt23(
    metric, of_systems, of_segments, accuracy
):
    judged = wmt23()
    systems = correlate_pairs(judged.human_system, judged.metrics[metric].system)
    assert (round(systems.value, 3), systems.n) == (of_systems, 13)
    segments = correlate(judged.human_segment, judged.metrics[metric].segment)
    assert (round(segments.value, 3), segments.n) == (of_segments, 13 * 820)
    tied = tie_calibrated_accuracy(judged.human_segment, judged.metrics[metric].segment)
    assert (round(tied.value, 3), tied.n, tied.groups) == (accuracy, 78 * 820, 820)


@pytest.mark.parametrize(
    ("metric", "spa"), [("BERTscore-refB", 0.902), ("BLEU-refB", 0.832), ("chrF-refB", 0.805)]
)
def test_soft_pairwise_accuracy_of_wmt23(metric, spa):
    judged = wmt23()
    measure = soft_pairwise_accuracy(judged.human_segment, judged.metrics[metric].segment)
    assert (round(measure.value, 3), measure.n) == (spa, 78)
