from itertools import combinations

import numpy as np

from bertscore_onnx_evaluation.metric_scores import MetricScores
from bertscore_onnx_evaluation.metrics.judged_systems import JudgedSystems


def judged(human, metrics, *, systems=None, texts=None, language_pair="cs-en", **fields):
    """Return systems with human scores of segments.

    Args:
        human: (systems, segments), NaN where nobody judged.
        metrics: by name, in the same shape.
        systems: their names; A, B, C and so on.
        texts: a candidate and a reference by system and segment.
        language_pair: its name.
        fields: other fields of JudgedSystems.
    """
    human = np.asarray(human, dtype=np.float64)
    scores = {name: np.asarray(scores, dtype=np.float64) for name, scores in metrics.items()}
    return JudgedSystems(
        language_pair,
        tuple(systems or "ABCDEFGH"[: len(human)]),
        human,
        {name: MetricScores(matrix.mean(axis=1), matrix) for name, matrix in scores.items()},
        segments=tuple(str(number) for number in range(1, human.shape[1] + 1)),
        candidates=texts and tuple(tuple(candidate for candidate, _ in row) for row in texts),
        references=tuple(tuple((reference,) for _, reference in row) for row in texts or ()),
        **fields,
    )


def accuracies_at(epsilon, human, metric):
    """Return acc*_eq of each segment that has a judged pair, its definition as it is written."""
    accuracies = []
    for g, m in zip(human.T, metric.T, strict=True):
        right = []
        for i, j in combinations(np.flatnonzero(~np.isnan(g)), 2):
            if abs(m[i] - m[j]) <= epsilon:
                right.append(g[i] == g[j])
            else:
                right.append((g[i] - g[j]) * (m[i] - m[j]) > 0)
        if right:
            accuracies.append(np.mean(right))
    return np.array(accuracies)
