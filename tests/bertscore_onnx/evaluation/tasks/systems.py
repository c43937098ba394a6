"""Systems with judgements and scores, made from arrays."""

import numpy as np

from bertscore_onnx.evaluation.judged_systems import JudgedSystems, MetricScores, SystemTexts


def judged(human, metrics, *, systems=None, texts=None, people=frozenset(), language_pair="cs-en"):
    """Return systems that people judged on segments.

    Args:
        human: (systems, segments), NaN where nobody judged.
        metrics: by name, in the same shape.
        systems: their names; A, B, C and so on.
        texts: a candidate and a reference by system and segment.
        people: those of the systems that are people.
        language_pair: its name.
    """
    human = np.asarray(human, dtype=np.float64)
    if texts is not None:
        texts = SystemTexts(
            tuple(tuple(candidate for candidate, _ in row) for row in texts),
            tuple(tuple((reference,) for _, reference in row) for row in texts),
        )
    return JudgedSystems(
        language_pair,
        tuple(systems or "ABCDEFGH"[: len(human)]),
        np.full(len(human), np.nan),
        human,
        {name: MetricScores(None, np.asarray(scores, dtype=np.float64)) for name, scores in metrics.items()},
        segments=tuple(str(number) for number in range(1, human.shape[1] + 1)),
        people=people,
        texts=texts,
    )
