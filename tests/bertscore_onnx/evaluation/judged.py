"""Systems with judgements and scores, made from arrays."""

import numpy as np

from bertscore_onnx.evaluation.judged_systems import JudgedSystems
from bertscore_onnx.evaluation.metrics import MetricScores


def judged(human, metrics, *, systems=None, texts=None, human_systems=frozenset(), language_pair="cs-en"):
    """Return systems with human scores of segments.

    Args:
        human: (systems, segments), NaN where nobody judged.
        metrics: by name, in the same shape.
        systems: their names; A, B, C and so on.
        texts: a candidate and a reference by system and segment.
        human_systems: those of the systems that are human translations.
        language_pair: its name.
    """
    human = np.asarray(human, dtype=np.float64)
    return JudgedSystems(
        language_pair,
        tuple(systems or "ABCDEFGH"[: len(human)]),
        np.full(len(human), np.nan),
        human,
        {name: MetricScores(None, np.asarray(scores, dtype=np.float64)) for name, scores in metrics.items()},
        segments=tuple(str(number) for number in range(1, human.shape[1] + 1)),
        human_systems=human_systems,
        candidates=texts and tuple(tuple(candidate for candidate, _ in row) for row in texts),
        references=tuple(tuple((reference,) for _, reference in row) for row in texts or ()),
    )
