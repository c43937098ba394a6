"""The values of shared tasks and papers, from their own judgements, to the printed digits."""

import pytest

from bertscore_onnx.evaluation.correlation import (
    correlate,
    correlate_pairs,
    soft_pairwise_accuracy,
    tie_calibrated_accuracy,
)
from bertscore_onnx.evaluation.relative_ranking import darr
from tests.support.metaeval import needs_metaeval, wmt19, wmt20, wmt23

pytestmark = [pytest.mark.slow, needs_metaeval]


@pytest.mark.parametrize(("metric", "pearson"), [("BERTscore-refB", 0.895), ("BLEU-refB", 0.769)])
def test_system_pearson_of_wmt23(metric, pearson):
    measure = correlate_pairs(wmt23().human_system, wmt23().metrics[metric].system)
    assert (round(measure.value, 3), measure.n) == (pearson, 13)


@pytest.mark.parametrize(("metric", "pearson"), [("BERTscore-refB", 0.335), ("BLEU-refB", 0.220)])
def test_segment_pearson_of_wmt23(metric, pearson):
    measure = correlate(wmt23().human_segment, wmt23().metrics[metric].segment)
    assert (round(measure.value, 3), measure.n) == (pearson, 13 * 820)


@pytest.mark.parametrize(("metric", "accuracy"), [("BERTscore-refB", 0.515), ("BLEU-refB", 0.442)])
def test_tie_calibrated_accuracy_of_wmt23(metric, accuracy):
    result = tie_calibrated_accuracy(wmt23().human_segment, wmt23().metrics[metric].segment)
    assert (round(result.value, 3), result.n, result.groups) == (accuracy, 78 * 820, 820)


@pytest.mark.parametrize(("metric", "spa"), [("BERTscore-refB", 0.902), ("BLEU-refB", 0.832), ("chrF-refB", 0.805)])
def test_soft_pairwise_accuracy_of_wmt23(metric, spa):
    measure = soft_pairwise_accuracy(wmt23().human_segment, wmt23().metrics[metric].segment)
    assert (round(measure.value, 3), measure.n) == (spa, 78)


@pytest.mark.parametrize(("metric", "tau"), [("chrF", 0.0863), ("TER", -0.0401)])
def test_darr_of_wmt20(metric, tau):
    result = darr(*wmt20(metric))
    assert (round(result.tau, 4), result.pairs) == (tau, 14_018)


def test_ties_make_ter_of_wmt20_disagree():
    result = darr(*wmt20("TER"))
    assert (result.ties, round(result.tau_without_ties, 3)) == (1880, 0.109)


@pytest.mark.parametrize(
    ("language_pair", "pearson", "n"),
    [("deen", 0.849, 16), ("fien", 0.982, 12), ("ruen", 0.879, 14), ("ende", 0.921, 22)],
)
def test_system_pearson_of_bleu_in_wmt19(language_pair, pearson, n):
    human, bleu = wmt19(language_pair)
    measure = correlate_pairs(human, bleu)
    assert (round(measure.value, 3), measure.n) == (pearson, n)
