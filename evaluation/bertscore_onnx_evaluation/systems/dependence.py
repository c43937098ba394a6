"""Rows that are no evidence of their own.

They repeat others, or are like their neighbours.
"""

from collections import Counter
from collections.abc import Hashable, Sequence
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.tables.table import count, plural
from bertscore_onnx_evaluation.systems.paired_tests import MIN_UNITS

FEW = 20
"""Where one in so many repeats or stands alone, it may be by chance."""

FINE = 10
"""Scores are fine if so many times as many values as occur are possible between them."""

FALSE_ALARMS = 0.04
"""How often independent rows are called alike, in any difference."""


def repeated_rows(
    candidates: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    scores: Sequence[NDArray[np.float64]],
) -> str:
    """Warn if rows repeat others; empty if few do.

    A row repeats another if its references and all outputs do, in more than one row in 20. Where
    only scores are given all of them do, scores are fine, and at most one in 20 different rows
    stands once: grades repeat by chance.
    """
    rows: list[Hashable]
    if candidates:
        rows = list(zip(references, *candidates, strict=True))
        counts = Counter(rows)
        do_repeat = (len(rows) - len(counts)) * FEW > len(rows)
    else:
        matrix = np.concatenate(list(scores))
        if not any(map(_are_fine, matrix)):
            return ""
        rows = [row.tobytes() for row in np.ascontiguousarray(matrix.T)]
        counts = Counter(rows)
        num_single = list(counts.values()).count(1)
        do_repeat = num_single * FEW <= len(counts)
    if not do_repeat:
        return ""
    return (
        f"{plural(len(rows), 'row')}, {count(len(counts))} different: the others repeat them, "
        "and tests count each. "
        "Give the same document to rows that repeat each other (--documents)."
    )


def _are_fine(scores: NDArray[np.float64]) -> bool:
    values = np.unique(scores)
    return len(values) > 1 and np.ptp(values) >= FINE * len(values) * np.diff(values).min()


def alike_neighbours(differences: Sequence[NDArray[np.float64]]) -> str:
    """Warn if neighbouring segments are alike in one of the differences.

    These are (segments,) each. It goes by the rank autocorrelation of lag 1, in the order of the
    ids, or else of the rows.
    """
    num_segments = len(differences[0])
    if num_segments < MIN_UNITS:
        return ""
    found = max(map(_autocorrelation, differences))
    deviation = (found + 1 / num_segments) * num_segments**0.5
    if deviation <= NormalDist().inv_cdf(1 - FALSE_ALARMS / len(differences)):
        return ""
    return (
        f"Neighbouring segments are alike (autocorrelation {found:.2f}), so that p may be too "
        "small: if they belong to documents, give these (--documents)."
    )


def _autocorrelation(values: NDArray[np.float64]) -> float:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    ranks = ranks - ranks.mean()
    total = float(ranks @ ranks)
    if not total:
        return 0.0
    return float(ranks[1:] @ ranks[:-1]) / total
