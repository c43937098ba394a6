"""One system alone: its score with an interval."""

from dataclasses import replace

import numpy as np

from bertscore_onnx_evaluation.metrics.correlation import finite
from bertscore_onnx_evaluation.systems.corpus_scores import CorpusScores, SegmentMeans
from bertscore_onnx_evaluation.systems.paired_tests import (
    MIN_TESTED_UNITS,
    paired_permutation,
    sign_interval,
)
from bertscore_onnx_evaluation.systems.verdicts import SystemResult


def single_result(name: str, metric: CorpusScores, *, num_swaps: int, seed: int) -> SystemResult:
    """Return the score of one system with its 95 % interval.

    The interval holds the means of random subsets of the units, which are those of a paired
    permutation test against a system with one score: Hartigan, "Using subsample values as typical
    values", 1969. Of scores of 0 and 1, or documents of one size that are all 0 or all 1, it is
    Clopper and Pearson's.
    """
    all_scores, sizes = metric.unit_scores()
    [scores] = all_scores
    ratios = scores / sizes
    result = SystemResult(name, float(metric.observed()[0]))
    if _is_exact(metric) and len(ratios) >= MIN_TESTED_UNITS:
        num_right = int(ratios.sum())
        low, high = 0.5 + 0.5 * sign_interval(num_right, len(ratios) - num_right)
        result = replace(result, test="clopper-pearson")
        return replace(result, score_low=float(low), score_high=float(high))
    constant = float(ratios.min() - (np.ptp(ratios) or 1))  # all units differ from it
    against = SegmentMeans(np.stack([constant * sizes, scores])).with_sizes(sizes)
    tested = paired_permutation(against, num_swaps=num_swaps, seed=seed)
    low, high = map(finite, constant + tested.interval[0])
    return replace(result, score_low=low, score_high=high, test="subsets")


def _is_exact(metric: CorpusScores) -> bool:
    """Return whether all units are 0 or 1 and of one size, so that an exact interval exists."""
    if not isinstance(metric, SegmentMeans):
        return False
    are_binary = np.isin(metric.segment_scores / metric.sizes, (0, 1)).all()
    return bool(are_binary and np.ptp(metric.sizes) == 0)
