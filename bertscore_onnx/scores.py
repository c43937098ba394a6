"""The result of scoring: precision, recall and F as arrays, and which reference was best."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class _PRF(NamedTuple):
    P: NDArray[np.float32]
    R: NDArray[np.float32]
    F: NDArray[np.float32]


class Scores(_PRF):
    """Precision, recall and F of every candidate; unpacks as `P, R, F`.

    Each is a float32 array (candidates,), in [-1, 1] before rescaling and at most 1 after it. With several
    references each of P, R and F is the best over the references, on its own, as in bert-score.
    """

    best_reference: NDArray[np.int64]
    """For every candidate the position of the reference with the best F, (candidates,); the first of equals."""

    def __new__(
        cls,
        P: NDArray[np.float32],  # noqa: N803 -- the paper's names, as in bert-score
        R: NDArray[np.float32],  # noqa: N803
        F: NDArray[np.float32],  # noqa: N803
        best_reference: NDArray[np.int64],
    ) -> "Scores":
        """Put the arrays together."""
        scores = super().__new__(cls, P, R, F)
        scores.best_reference = best_reference
        return scores

    def __getnewargs__(self) -> tuple[NDArray[np.generic], ...]:
        """Let copies and pickles keep `best_reference`."""
        return (*self, self.best_reference)


def best_of_references(
    precision: NDArray[np.float32], recall: NDArray[np.float32], f1: NDArray[np.float32], counts: NDArray[np.int64]
) -> Scores:
    """Reduce one score a pair to one score a candidate: the maximum of P, of R and of F, each on its own.

    Args:
        precision, recall, f1: scores of the pairs, (pairs,), the pairs of one candidate side by side.
        counts: how many references each candidate has, (candidates,), each at least 1.
    """
    if len(counts) == 0:
        return Scores(precision, recall, f1, counts)
    starts = np.cumsum(counts) - counts  # (candidates,)
    best_f1 = np.maximum.reduceat(f1, starts)  # (candidates,)
    position = np.arange(len(f1)) - np.repeat(starts, counts)  # (pairs,)
    contenders = np.where(f1 == np.repeat(best_f1, counts), position, len(f1))  # (pairs,)
    return Scores(
        np.maximum.reduceat(precision, starts),
        np.maximum.reduceat(recall, starts),
        best_f1,
        np.minimum.reduceat(contenders, starts),
    )
