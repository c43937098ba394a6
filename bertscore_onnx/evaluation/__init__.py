"""Compare systems by their scores, and metrics by human judgements; needs the extra `evaluation`.

Every public name can be imported from here; a module is loaded when one of its names is first used.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bertscore_onnx.evaluation.auc import (
        AucResult,
        auc_of_labels,
        average_precision,
        roc_auc,
    )
    from bertscore_onnx.evaluation.baselines import (
        LayerBaseline,
        MeasuredBaseline,
        check_bundle,
        compute_baseline,
        draw_pairs,
        short_texts,
        write_baseline,
    )
    from bertscore_onnx.evaluation.challenge_sets import (
        ChallengeExample,
        ChallengeResult,
        ChallengeScores,
        check_challenges,
        evaluate_challenge_set,
    )
    from bertscore_onnx.evaluation.compare_systems import (
        compare,
    )
    from bertscore_onnx.evaluation.comparison import (
        Comparison,
        Example,
    )
    from bertscore_onnx.evaluation.correlation import (
        Measure,
        average,
        correlate,
        correlate_pairs,
        mean_by_system,
        outliers,
        pairwise_accuracy,
        soft_pairwise_accuracy,
        superiority,
        system_means,
        tie_calibrated_accuracy,
    )
    from bertscore_onnx.evaluation.eval_set import (
        EvalSet,
        check_names,
        read_eval_set,
        score_files,
    )
    from bertscore_onnx.evaluation.hybrid import (
        HybridDifference,
        HybridOfLanguagePair,
        HybridResult,
        HybridSystems,
        ModelSelection,
        binomial_interval,
        hybrid_by_language_pair,
        hybrid_systems,
        select_by_each,
        select_models,
    )
    from bertscore_onnx.evaluation.judged_systems import (
        JudgedSystems,
    )
    from bertscore_onnx.evaluation.layers import (
        LayerCorrelation,
        LayerResult,
        LayerTuning,
        pairs_into_one_language,
        tune_layers,
    )
    from bertscore_onnx.evaluation.meta import (
        meta_evaluate,
    )
    from bertscore_onnx.evaluation.meta_results import (
        Agreement,
        Difference,
        LanguagePairResult,
        MetaEvaluation,
        MetricAgreement,
        MetricMean,
        MetricPair,
    )
    from bertscore_onnx.evaluation.metric_tests import (
        PermBoth,
        Williams,
        clusters,
        perm_both,
        williams,
    )
    from bertscore_onnx.evaluation.metrics import (
        MetricScores,
        corpus_metric,
        preceding_sentences,
        score_systems,
    )
    from bertscore_onnx.evaluation.relative_ranking import (
        Darr,
        DarrOfLanguagePair,
        DarrResult,
        darr,
        darr_by_language_pair,
    )
    from bertscore_onnx.evaluation.segments import (
        ColumnChoice,
    )
    from bertscore_onnx.evaluation.significance import (
        PairedTestResult,
        SegmentMeans,
        SegmentOutcomes,
        SummedStatistics,
        approximate_randomization,
        confidence_interval,
        holm,
        paired_bootstrap,
        paired_permutation,
        segment_outcomes,
    )
    from bertscore_onnx.evaluation.verdicts import (
        MetricResult,
        PairResult,
        PlannedPower,
        SystemResult,
    )

__all__ = [
    "Agreement",
    "AucResult",
    "ChallengeExample",
    "ChallengeResult",
    "ChallengeScores",
    "ColumnChoice",
    "Comparison",
    "Darr",
    "DarrOfLanguagePair",
    "DarrResult",
    "Difference",
    "EvalSet",
    "Example",
    "HybridDifference",
    "HybridOfLanguagePair",
    "HybridResult",
    "HybridSystems",
    "JudgedSystems",
    "LanguagePairResult",
    "LayerBaseline",
    "LayerCorrelation",
    "LayerResult",
    "LayerTuning",
    "Measure",
    "MeasuredBaseline",
    "MetaEvaluation",
    "MetricAgreement",
    "MetricMean",
    "MetricPair",
    "MetricResult",
    "MetricScores",
    "ModelSelection",
    "PairResult",
    "PairedTestResult",
    "PermBoth",
    "PlannedPower",
    "SegmentMeans",
    "SegmentOutcomes",
    "SummedStatistics",
    "SystemResult",
    "Williams",
    "approximate_randomization",
    "auc_of_labels",
    "average",
    "average_precision",
    "binomial_interval",
    "check_bundle",
    "check_challenges",
    "check_names",
    "clusters",
    "compare",
    "compute_baseline",
    "confidence_interval",
    "corpus_metric",
    "correlate",
    "correlate_pairs",
    "darr",
    "darr_by_language_pair",
    "draw_pairs",
    "evaluate_challenge_set",
    "holm",
    "hybrid_by_language_pair",
    "hybrid_systems",
    "mean_by_system",
    "meta_evaluate",
    "outliers",
    "paired_bootstrap",
    "paired_permutation",
    "pairs_into_one_language",
    "pairwise_accuracy",
    "perm_both",
    "preceding_sentences",
    "read_eval_set",
    "roc_auc",
    "score_files",
    "score_systems",
    "segment_outcomes",
    "select_by_each",
    "select_models",
    "short_texts",
    "soft_pairwise_accuracy",
    "superiority",
    "system_means",
    "tie_calibrated_accuracy",
    "tune_layers",
    "williams",
    "write_baseline",
]

_MODULES = {
    "auc": "AucResult auc_of_labels average_precision roc_auc",
    "baselines": ("LayerBaseline MeasuredBaseline check_bundle compute_baseline draw_pairs short_texts write_baseline"),
    "challenge_sets": "ChallengeExample ChallengeResult ChallengeScores check_challenges evaluate_challenge_set",
    "compare_systems": "compare",
    "comparison": "Comparison Example",
    "correlation": (
        "Measure average correlate correlate_pairs mean_by_system outliers pairwise_accuracy "
        "soft_pairwise_accuracy superiority system_means tie_calibrated_accuracy"
    ),
    "eval_set": "EvalSet check_names read_eval_set score_files",
    "hybrid": (
        "HybridDifference HybridOfLanguagePair HybridResult HybridSystems ModelSelection binomial_interval "
        "hybrid_by_language_pair hybrid_systems select_by_each select_models"
    ),
    "judged_systems": "JudgedSystems",
    "layers": "LayerCorrelation LayerResult LayerTuning pairs_into_one_language tune_layers",
    "meta": "meta_evaluate",
    "meta_results": "Agreement Difference LanguagePairResult MetaEvaluation MetricAgreement MetricMean MetricPair",
    "metric_tests": "PermBoth Williams clusters perm_both williams",
    "metrics": "MetricScores corpus_metric preceding_sentences score_systems",
    "relative_ranking": "Darr DarrOfLanguagePair DarrResult darr darr_by_language_pair",
    "segments": "ColumnChoice",
    "significance": (
        "PairedTestResult SegmentMeans SegmentOutcomes SummedStatistics approximate_randomization "
        "confidence_interval holm paired_bootstrap paired_permutation segment_outcomes"
    ),
    "verdicts": "MetricResult PairResult PlannedPower SystemResult",
}
"""The public names of each module."""

_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used: `score` needs one function of all this."""
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
