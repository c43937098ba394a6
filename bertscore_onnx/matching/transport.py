"""Optimal matching of the tokens of a pair: one to one, or by the earth mover's distance.

Zhang et al., ICLR 2020, appendix C compare these with greedy matching; Zhao et al., "MoverScore", EMNLP 2019.
"""

import os
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import InputError, MissingExtraError, install_command
from bertscore_onnx.matching.variants import Cost, Matching

MAX_TOKENS = 1024
"""The most tokens of a text: a pair of two such texts takes about 0.2 s, and time grows faster than their product."""

_MAX_ITERATIONS = 10_000_000
"""Far more than two texts of that length take."""


def optimal_match(
    candidate: NDArray[np.float32],
    candidate_weights: NDArray[np.float32],
    reference: NDArray[np.float32],
    reference_weights: NDArray[np.float32],
    matching: Matching,
) -> tuple[float, float]:
    """Match the tokens of a pair one to one, or by transport.

    Args:
        candidate: unit token embeddings, (cand_tokens, hidden), at least one.
        candidate_weights: token weights, 0 or more and not all 0, (cand_tokens,).
        reference, reference_weights: likewise, with ref_tokens.
        matching: the method, and the settings of transport.

    Returns:
        Precision and recall; equal for transport.

    Raises:
        MissingExtraError: POT or SciPy is not installed.
    """
    left, right = _float64(candidate), _float64(reference)
    shares = [weights / weights.sum() for weights in (_float64(candidate_weights), _float64(reference_weights))]
    if matching.method == "assignment":
        return _assign(left @ right.T, *shares)
    if matching.ngram > 1:
        left, shares[0] = _ngrams(left, shares[0], matching.ngram)
        right, shares[1] = _ngrams(right, shares[1], matching.ngram)
    left, right = _unit(left), _unit(right)  # with norms of 1 ± 1e-7, vectors would be √(2e-7) from themselves
    rows, columns = (np.flatnonzero(of_side) for of_side in shares)
    cost = _costs(left[rows] @ right[columns].T, matching.cost)
    distance = _earth_movers_distance(shares[0][rows], shares[1][columns], cost)
    score = 1 / (1 + distance) if matching.inverse else 1 - distance
    return score, score


def bounded_length(matching: Matching, max_length: int | None, of_model: int | None, long_text: str) -> int | None:
    """Return the most tokens of a text, given the chosen and the model's maximum; None for the model's.

    Raises an InputError if a matching of all tokens at once would take too long.
    """
    if not matching.is_optimal:
        return max_length
    if long_text == "window" or (max_length is not None and max_length > MAX_TOKENS):
        raise InputError(
            f"Assignment and transport match at most {MAX_TOKENS:,} tokens of a text, since their time grows faster "
            f'than with its square. Leave long_text at "truncate", and max_length at {MAX_TOKENS:,} or less.'
        )
    return None if max_length is None and of_model is not None and of_model <= MAX_TOKENS else max_length or MAX_TOKENS


def check_installed(matching: Matching) -> None:
    """Raise a MissingExtraError unless the packages for a matching are installed."""
    if matching.method == "assignment":
        _linear_sum_assignment()
    elif matching.method == "transport":
        _load_pot()


def _float64(values: NDArray[np.float32]) -> NDArray[np.float64]:
    return values.astype(np.float64)


def _assign(
    similarity: NDArray[np.float64], candidate: NDArray[np.float64], reference: NDArray[np.float64]
) -> tuple[float, float]:
    """Return precision and recall of the one-to-one matching with the largest sum of similarities."""
    if not np.isfinite(similarity).all():
        return float("nan"), float("nan")
    rows, columns = _linear_sum_assignment()(similarity, maximize=True)
    matched = similarity[rows, columns]
    return float(matched @ candidate[rows]), float(matched @ reference[columns])


def _ngrams(
    vectors: NDArray[np.float64], weights: NDArray[np.float64], number: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the vector and the weight of each n-gram of tokens: the weighted sum, and the sum of the weights.

    A text of fewer tokens is one n-gram. Source: emnlp19-moverscore, `moverscore.py:load_ngram`.
    """
    number = min(number, len(weights))
    windows = np.lib.stride_tricks.sliding_window_view(weights, number)  # (n-grams, number)
    tokens = np.arange(len(windows))[:, None] + np.arange(number)
    sums = (windows[:, :, None] * vectors[tokens]).sum(axis=1)
    of_ngrams = windows.sum(axis=1)
    return sums, of_ngrams / of_ngrams.sum()


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return vectors, (tokens, hidden), at unit length, in place; those of length 0 stay."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: NDArray[np.float64] = np.divide(vectors, norms, out=vectors, where=norms > 0)
    return unit


def _costs(cosines: NDArray[np.float64], cost: Cost) -> NDArray[np.float64]:
    """Return the cost of moving each candidate token to each reference token."""
    if cost == "cosine":
        return 1 - cosines
    squared = np.maximum(2 - 2 * cosines, 0)  # of unit vectors
    return squared if cost == "squared" else np.sqrt(squared)


def _earth_movers_distance(
    candidate: NDArray[np.float64], reference: NDArray[np.float64], costs: NDArray[np.float64]
) -> float:
    """Return the least total cost of moving one distribution to the other."""
    if np.isnan(costs).any():
        return float("nan")
    return float(_load_pot().emd2(candidate, reference, np.ascontiguousarray(costs), numItermax=_MAX_ITERATIONS))


@cache
def _load_pot() -> Any:
    """Import POT without the frameworks that it would load beside it if they are installed."""
    names = [f"POT_BACKEND_DISABLE_{name}" for name in ("PYTORCH", "JAX", "CUPY", "TENSORFLOW")]
    added = [name for name in names if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        import ot
    except ModuleNotFoundError as error:
        raise _missing("POT", error) from error
    finally:
        for name in added:
            del os.environ[name]
    return ot


@cache
def _linear_sum_assignment() -> Any:
    try:
        from scipy.optimize import linear_sum_assignment
    except ModuleNotFoundError as error:
        raise _missing("SciPy", error) from error
    return linear_sum_assignment


def _missing(package: str, error: ModuleNotFoundError) -> MissingExtraError:
    return MissingExtraError(
        f"This matching needs {package}, which is not installed. Install it with {install_command('transport')}.",
        name=error.name or package,
    )
