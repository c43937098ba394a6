"""Is one system better than another, or is it luck? Paired tests over the segments that both translated."""

from bertscore_onnx.evaluation.significance.corpus_metrics import CorpusMetric, corpus_metric
from bertscore_onnx.evaluation.significance.corpus_scores import SegmentMeans, SummedStatistics
from bertscore_onnx.evaluation.significance.holm import holm
from bertscore_onnx.evaluation.significance.interval import confidence_interval
from bertscore_onnx.evaluation.significance.outcomes import SegmentOutcomes, segment_outcomes
from bertscore_onnx.evaluation.significance.paired_tests import (
    PairedTestResult,
    approximate_randomization,
    paired_bootstrap,
)

__all__ = [
    "CorpusMetric",
    "PairedTestResult",
    "SegmentMeans",
    "SegmentOutcomes",
    "SummedStatistics",
    "approximate_randomization",
    "confidence_interval",
    "corpus_metric",
    "holm",
    "paired_bootstrap",
    "segment_outcomes",
]
