"""Rows that are no evidence of their own: such as repeat others, and neighbours that are alike."""

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
    candidates: Sequence[Sequence[str]], references: Sequence[Sequence[str]], scores: Sequence[NDArray[np.float64]]
) -> str:
    """Return a warning where rows repeat others; nothing where few do.

    A row repeats another if its references and all outputs do, in more than one row in 20. Where only scores are given
    all of them do, scores are fine, and at most one in 20 different rows stands once: grades repeat by chance.
    """
    rows: list[Hashable] = [*zip(references, *candidates, strict=True)]
    if not candidates:
        matrix = np.concatenate(list(scores))
        if not any(map(_are_fine, matrix)):
            return ""
        rows = [row.tobytes() for row in np.ascontiguousarray(matrix.T)]
    counts = Counter(rows)
    single = sum(number == 1 for number in counts.values())
    is_few = (len(rows) - len(counts)) * FEW <= len(rows) if candidates else single * FEW > len(counts)
    if is_few:
        return ""
    return (
        f"{plural(len(rows), 'row')}, {count(len(counts))} different: the others repeat them, and tests count each. "
        "Give the same document to rows that repeat each other (--documents)."
    )


def _are_fine(scores: NDArray[np.float64]) -> bool:
    values = np.unique(scores)
    return len(values) > 1 and np.ptp(values) >= FINE * len(values) * np.diff(values).min()


def alike_neighbours(differences: Sequence[NDArray[np.float64]]) -> str:
    """Return a warning where neighbouring segments are alike in one of the differences, (segments,) each.

    It goes by the rank autocorrelation of lag 1, in the order of the ids, or else of the rows.
    """
    number = len(differences[0])
    if number < MIN_UNITS:
        return ""
    found = max(map(_autocorrelation, differences))
    if (found + 1 / number) * number**0.5 <= NormalDist().inv_cdf(1 - FALSE_ALARMS / len(differences)):
        return ""
    return (
        f"Neighbouring segments are alike (autocorrelation {found:.2f}), so that p may be too small: if they belong to "
        "documents, give these (--documents)."
    )


def _autocorrelation(values: NDArray[np.float64]) -> float:
    _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[places]
    ranks = ranks - ranks.mean()
    total = float(ranks @ ranks)
    return float(ranks[1:] @ ranks[:-1]) / total if total else 0.0
