"""acc*_eq, pairwise accuracy with tie calibration: Deutsch, Foster and Freitag, "Ties Matter", EMNLP 2023."""

from dataclasses import dataclass

import numpy as np

from bertscore_onnx.evaluation.agreement.judgements import Floats, judged_scores

DIGITS = 12
"""Accuracies that agree to this digit are equal: below it they differ by the rounding of sums."""


@dataclass(frozen=True, slots=True)
class TieCalibratedAccuracy:
    """How often a metric agrees with people on which of two systems did better on a segment, or that neither did."""

    value: float | None
    """acc*_eq in [0, 1]; None where no segment has two judged systems."""
    epsilon: float | None
    """The difference up to which two scores of the metric count as tied; None where there is no value."""
    pairs: int
    """Judged pairs of systems, over all segments."""
    segments: int
    """Segments with at least one such pair."""
    reason: str = ""
    """Why there is no value; empty where there is one."""


def tie_calibrated_accuracy(human: Floats, metric: Floats) -> TieCalibratedAccuracy:
    """Find the ε at which a metric agrees best with people, and how often it agrees then.

    A segment's accuracy is (concordant pairs + pairs tied in both) / all pairs, section 5 of the paper; ε is one for
    the whole set and maximises the mean over segments, section 6 (mt-metrics-eval: `tau_optimization.py`, with every
    pair in the sample). People tie where their scores are equal, the metric where |Δ| ≤ ε. Of several ε that are
    equally good, the smallest is taken; ε = 0 is among them.

    Args:
        human: (systems, segments), NaN where nobody judged; such pairs are left out.
        metric: (systems, segments), finite where people judged.

    Raises:
        InputError: shapes differ, or a score is missing or infinite.
    """
    human, metric = judged_scores(human, metric)
    first, second = np.triu_indices(len(human), 1)
    human_delta = (human[first] - human[second]).T  # (segments, pairs)
    is_judged = ~np.isnan(human_delta)
    counts = is_judged.sum(axis=1)
    pairs, segments = int(counts.sum()), int((counts > 0).sum())
    if not pairs:
        return TieCalibratedAccuracy(None, None, 0, 0, reason="no segment has two judged systems")

    share = np.repeat(1 / np.maximum(counts, 1), counts) / segments  # a pair's part in the mean, (judged pairs,)
    human_delta = human_delta[is_judged]
    metric_delta = (metric[first] - metric[second]).T[is_judged]
    is_concordant = np.sign(human_delta) * np.sign(metric_delta) > 0
    # Once ε reaches its |Δ|, a pair is tied for the metric: right if people tie too, and no longer concordant.
    gain = share * ((human_delta == 0).astype(np.int64) - is_concordant)
    distance = np.abs(metric_delta)
    order = np.argsort(distance)
    thresholds, starts = np.unique(distance[order], return_index=True)
    gains = np.add.reduceat(gain[order], starts)
    if thresholds[0] > 0:
        thresholds, gains = np.append(0, thresholds), np.append(0, gains)
    accuracy = share[is_concordant].sum() + np.cumsum(gains)
    best = int(accuracy.round(DIGITS).argmax())
    return TieCalibratedAccuracy(float(accuracy[best]), float(thresholds[best]), pairs, segments)
