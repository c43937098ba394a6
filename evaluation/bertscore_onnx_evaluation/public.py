"""The public names of `bertscore_onnx_evaluation`: functions, what they are given, and the results of whole tasks."""

from bertscore_onnx_evaluation.harness_logs import harness_scores
from bertscore_onnx_evaluation.layers import LayerTuning, pairs_into_one_language, tune_layers
from bertscore_onnx_evaluation.metric_scores import MetricScores, preceding_sentences, score_systems
from bertscore_onnx_evaluation.metrics.correlation import (
    correlate,
    correlate_pairs,
    soft_pairwise_accuracy,
    tie_calibrated_accuracy,
)
from bertscore_onnx_evaluation.metrics.eval_set import read_eval_set
from bertscore_onnx_evaluation.metrics.judged_systems import JudgedSystems
from bertscore_onnx_evaluation.metrics.meta import meta_evaluate
from bertscore_onnx_evaluation.metrics.meta_results import MetaEvaluation
from bertscore_onnx_evaluation.metrics.ranks import clusters
from bertscore_onnx_evaluation.systems.compare_systems import compare
from bertscore_onnx_evaluation.systems.comparison import Comparison
from bertscore_onnx_evaluation.systems.corpus_scores import SegmentMeans, SummedStatistics
from bertscore_onnx_evaluation.systems.paired_tests import holm, paired_permutation

__all__ = [
    "Comparison",
    "JudgedSystems",
    "LayerTuning",
    "MetaEvaluation",
    "MetricScores",
    "SegmentMeans",
    "SummedStatistics",
    "clusters",
    "compare",
    "correlate",
    "correlate_pairs",
    "harness_scores",
    "holm",
    "meta_evaluate",
    "paired_permutation",
    "pairs_into_one_language",
    "preceding_sentences",
    "read_eval_set",
    "score_systems",
    "soft_pairwise_accuracy",
    "tie_calibrated_accuracy",
    "tune_layers",
]
