"""Compare systems by their scores, and metrics by judgements.

The judgements are of annotators. It needs the extra `evaluation`.

Functions, their inputs and the results of whole tasks can be imported from here. Further functions,
and the records inside results, are in the modules.
"""

from importlib import import_module
from typing import TYPE_CHECKING

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
    "score_systems",
    "soft_pairwise_accuracy",
    "tie_calibrated_accuracy",
    "tune_layers",
]

_MODULES = {
    "Comparison": "systems.comparison",
    "JudgedSystems": "metrics.judged_systems",
    "LayerTuning": "layer_tuning",
    "MetaEvaluation": "metrics.meta_evaluation",
    "MetricScores": "metric_scores",
    "SegmentMeans": "systems.corpus_scores",
    "SummedStatistics": "systems.corpus_scores",
    "clusters": "metrics.ranks",
    "compare": "systems.compare_systems",
    "correlate": "metrics.correlation",
    "correlate_pairs": "metrics.correlation",
    "harness_scores": "harness_logs",
    "holm": "systems.paired_tests",
    "meta_evaluate": "metrics.meta",
    "paired_permutation": "systems.paired_tests",
    "pairs_into_one_language": "layers",
    "preceding_sentences": "metric_scores",
    "score_systems": "metric_scores",
    "soft_pairwise_accuracy": "metrics.correlation",
    "tie_calibrated_accuracy": "metrics.correlation",
    "tune_layers": "layers",
}

if TYPE_CHECKING:
    from bertscore_onnx_evaluation.harness_logs import harness_scores
    from bertscore_onnx_evaluation.layer_tuning import LayerTuning
    from bertscore_onnx_evaluation.layers import pairs_into_one_language, tune_layers
    from bertscore_onnx_evaluation.metric_scores import (
        MetricScores,
        preceding_sentences,
        score_systems,
    )
    from bertscore_onnx_evaluation.metrics.correlation import (
        correlate,
        correlate_pairs,
        soft_pairwise_accuracy,
        tie_calibrated_accuracy,
    )
    from bertscore_onnx_evaluation.metrics.judged_systems import JudgedSystems
    from bertscore_onnx_evaluation.metrics.meta import meta_evaluate
    from bertscore_onnx_evaluation.metrics.meta_evaluation import MetaEvaluation
    from bertscore_onnx_evaluation.metrics.ranks import clusters
    from bertscore_onnx_evaluation.systems.compare_systems import compare
    from bertscore_onnx_evaluation.systems.comparison import Comparison
    from bertscore_onnx_evaluation.systems.corpus_scores import SegmentMeans, SummedStatistics
    from bertscore_onnx_evaluation.systems.paired_tests import holm, paired_permutation
else:  # hidden from type checkers, to which every name would be a member

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used.

        Commands import this package for their help alone.
        """
        if name in _MODULES:
            return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        """List the public names and all names that were imported already."""
        return sorted({*globals(), *__all__})
