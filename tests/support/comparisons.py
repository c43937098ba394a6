"""Comparisons without a model: of scores and texts that are given, or drawn at random."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from bertscore_onnx.similarity import TokenSimilarity
from bertscore_onnx_evaluation.metric_scores import MetricScores
from bertscore_onnx_evaluation.systems import metric_results
from bertscore_onnx_evaluation.systems.comparison import Comparison
from bertscore_onnx_evaluation.systems.comparison_record import Example
from bertscore_onnx_evaluation.systems.corpus_scores import SegmentMeans
from bertscore_onnx_evaluation.systems.paired_tests import paired_permutation
from bertscore_onnx_evaluation.systems.verdicts import MetricResult

NUM_SWAPS = 200


def metric_result(
    name: str,
    systems: Sequence[str],
    scores: ArrayLike,
    *,
    all_pairs: bool = False,
    signature: str = "",
) -> MetricResult:
    """Test systems by the means of their segment scores, (systems, segments)."""
    matrix = np.asarray(scores, dtype=np.float64)
    lower = name == "ter"
    metric = MetricScores(matrix.mean(axis=1), matrix, signature or name, lower_is_better=lower)
    means = SegmentMeans(matrix, lower_is_better=lower)
    tested = paired_permutation(means, all_pairs=all_pairs, num_swaps=NUM_SWAPS)
    return metric_results.metric_result(
        name,
        metric,
        tested,
        systems,
        (matrix.shape[1], "segment"),
        all_pairs=all_pairs,
    )


def comparison_of(
    metrics: Sequence[MetricResult],
    candidates: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    *,
    num_examples: int = 3,
    matches: dict[tuple[int, int], TokenSimilarity] | None = None,
) -> Comparison:
    """Put metrics together; the examples are the largest gains and losses under the first.

    Args:
        matches: the token matches of a system's row and a segment, where there are some.
    """
    first = metrics[0]
    names = tuple(one.name for one in first.systems)
    examples = []
    for row, name in enumerate(names[1:], start=1):
        deltas = first.segment_scores[row] - first.segment_scores[0]
        order = np.argsort(deltas if first.lower_is_better else -deltas, kind="stable")
        for segment in dict.fromkeys(
            [*order[:num_examples].tolist(), *order[::-1][:num_examples].tolist()]
        ):
            pair = (matches[0, segment], matches[row, segment]) if matches else None
            examples.append(Example(segment, name, float(deltas[segment]), pair))
    return Comparison(
        NUM_SWAPS,
        12345,
        names,
        tuple(tuple(texts) for texts in candidates),
        tuple(tuple(texts) for texts in references),
        tuple(metrics),
        tuple(examples),
        tuple(range(1, metrics[0].segment_scores.shape[1] + 1)),
    )


def random_comparison(
    num_systems: int = 3,
    num_segments: int = 40,
    metrics: Sequence[str] = ("bertscore", "bleu", "ter"),
    *,
    names: Sequence[str] | None = None,
    all_pairs: bool = False,
) -> Comparison:
    """Return a comparison of random scores; from system to system they get better."""
    rng = np.random.default_rng(3)
    names = names or ["base", *(f"system-{row}" for row in range(1, num_systems))]
    texts = [
        [f"text {segment} of {row} " + "word " * (segment % 7) for segment in range(num_segments)]
        for row in names
    ]
    results = []
    for metric in metrics:
        width = 1.0 if metric == "bertscore" else 100.0
        quality = rng.normal(0.6, 0.1, num_segments) + rng.normal(
            0, 0.03, (len(names), num_segments)
        )
        quality += 0.01 * np.arange(len(names))[:, None]
        results.append(metric_result(metric, names, width * quality, all_pairs=all_pairs))
    references = [["reference " * (1 + segment % 11)] for segment in range(num_segments)]
    return comparison_of(results, texts, references)
