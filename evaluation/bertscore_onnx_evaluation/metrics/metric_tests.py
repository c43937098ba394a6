"""PERM-BOTH, the ranks that follow, and Williams' test of which metrics correlate better with human scores.

Deutsch, Dror and Roth, "A Statistical Analysis of Summarization Evaluation Metrics Using Resampling Methods",
TACL 2021, section 4.2. The ranks are those of the WMT metrics tasks (mt-metrics-eval: `data.py:AssignRanks`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import InputError
from bertscore_onnx_evaluation.metrics.correlation import (
    GROUPINGS,
    ROUNDING,
    Floats,
    correlate,
    correlate_pairs,
    judged_scores,
    pearson_of_moments,
    scipy_module,
    system_means,
)

Level = Literal["all", "segment", "system", "system_means"]
LEVELS = (*GROUPINGS, "system_means")
CHUNK_CELLS = 2_000_000
"""Signs in memory at a time: 16 MB."""
KENDALL_SAMPLE = 500
"""Outputs that each is compared with for the interval of Kendall's τ."""
MIN_PERMUTATIONS = 30
"""For each pair of metrics: Holm multiplies the smallest p by the number of pairs."""
MIN_SYSTEMS = 4
"""Of Williams' test, which has n − 3 degrees of freedom."""


@dataclass(frozen=True, slots=True)
class PermBoth:
    """Which of several metrics correlate better with human scores than which others."""

    correlations: Floats
    """Pearson's r of each metric, (metrics,)."""
    p: Floats
    """One-sided p that metric i correlates better than metric j, (metrics, metrics); 1 on the diagonal."""


def perm_both(
    human: Floats, metrics: Sequence[Floats], *, level: Level = "all", permutations: int = 1000, seed: int = 0
) -> PermBoth:
    """Test every metric against every other, by exchanging their scores.

    The scores of each metric are standardised (z). A permutation exchanges those of two metrics in each cell,
    system × segment, with probability ½. p is the share of permutations with Δ* ≥ Δ, the difference between the two
    correlations; differences that are equal but for rounding count as equal. All pairs share the permutations.

    Args:
        human: (systems, segments), NaN where nobody judged.
        metrics: each metric's scores, (systems, segments), finite where annotators judged.
        level: `all` judged cells at once; within each `segment` or `system`, then the mean of those that have a
            value; or `system_means`, where each system's score is the mean of its segments (of human scores, the judged
            ones).
        permutations: k, how often each pair is exchanged.
        seed: of the permutations.

    Raises:
        InputError: shapes differ, a score is missing or infinite, an option is unknown, there are fewer than two
            metrics, or one has no correlation; the error has the reason.
    """
    if level not in LEVELS:
        raise InputError(f"There is no level {level!r}; expected one of {', '.join(LEVELS)}.")
    if len(metrics) < 2 or permutations < 1:
        raise InputError(f"{len(metrics)} metrics and {permutations} permutations; expected at least 2 metrics and 1.")
    pairs = [judged_scores(human, metric) for metric in metrics]
    correlations = np.array([_observed(*pair, level, name) for name, pair in enumerate(pairs)])
    human = pairs[0][0]
    exchange = _MeanExchange(human) if level == "system_means" else _CellExchange(human, level)
    scores = np.stack([exchange.arrange(metric) for _, metric in pairs], axis=-1)  # (groups, cells, metrics)

    counts = np.zeros((len(metrics), len(metrics)))
    rng = np.random.default_rng(seed)
    groups, cells, _ = scores.shape
    chunk = max(1, CHUNK_CELLS // (groups * max(cells, len(metrics))))
    for start in range(0, permutations, chunk):
        coins = rng.random((min(chunk, permutations - start), groups, cells), dtype=np.float32)
        signs = 2 * np.rint(coins.swapaxes(0, 1)).astype(np.float64, order="C") - 1  # (groups, permutations, cells)
        for first in range(len(metrics) - 1):
            mean = (scores[..., first, None] + scores[..., first + 1 :]) / 2  # (groups, cells, later metrics)
            half = (scores[..., first, None] - scores[..., first + 1 :]) / 2
            delta = correlations[first] - correlations[first + 1 :]
            permuted = exchange.difference(mean, half, signs)  # (permutations, later metrics)
            counts[first, first + 1 :] += (permuted >= delta - ROUNDING).sum(axis=0)
            counts[first + 1 :, first] += (permuted <= delta + ROUNDING).sum(axis=0)
    p = counts / permutations
    np.fill_diagonal(p, 1)
    return PermBoth(correlations, p)


def clusters(scores: Floats, p: Floats, *, alpha: float = 0.05) -> NDArray[np.int64]:
    """Rank metrics (or systems); a rank ends where any member of it is significantly better than the next metric.

    Metrics in neighbouring ranks need not differ: only one member of the upper rank may be better than the lower ones.

    Args:
        scores: (metrics,), the higher, the better; equal ones are walked in the order given.
        p: p that i is better than j, (metrics, metrics), corrected for the number of pairs if that is wanted.
        alpha: p below which a difference is significant.

    Returns:
        Ranks from 1, (metrics,).

    Raises:
        InputError: shapes do not go together, or a value is missing.
    """
    scores, p = np.asarray(scores, dtype=np.float64), np.asarray(p, dtype=np.float64)
    if scores.ndim != 1 or p.shape != (len(scores), len(scores)) or not (np.isfinite(scores).all() and (p >= 0).all()):
        raise InputError(
            f"Scores of shape {scores.shape} and p of shape {p.shape}; expected (n,) and (n, n), without missing ones."
        )
    ranks = np.zeros(len(scores), dtype=np.int64)
    rank, members = 1, list[int]()
    for metric in np.argsort(-scores, kind="stable"):
        if (p[members, metric] < alpha).any():
            rank, members = rank + 1, []
        members.append(int(metric))
        ranks[metric] = rank
    return ranks


class _CellExchange:
    """Pearson's r over judged cells, after the scores of two metrics were exchanged in some of them.

    An exchange turns x and y into (x + y)/2 ± s·(x − y)/2 with s = ±1, so that the sums r is made of are linear in
    the signs, and one matrix product gives them for many permutations.
    """

    def __init__(self, human: Floats, level: Level) -> None:
        self._level = level
        self._is_judged = ~np.isnan(human)
        cells = self._grouped(human)
        is_judged = ~np.isnan(cells)
        low, high = (bound.reduce(cells, axis=1) for bound in (np.fmin, np.fmax))
        self._groups = low < high  # human scores vary
        cells, is_judged = cells[self._groups], is_judged[self._groups]
        self._counts = is_judged.sum(axis=1)[:, None, None]
        self._human = np.where(is_judged, cells, 0)
        self._human -= np.where(is_judged, self._human.sum(axis=1, keepdims=True) / self._counts[..., 0], 0)
        self._human /= np.linalg.norm(self._human, axis=1, keepdims=True)  # (groups, cells)

    def arrange(self, metric: Floats) -> Floats:
        """Standardise a metric's scores, 0 where nobody judged; (groups, cells)."""
        judged = metric[self._is_judged]
        standardised: Floats = np.where(self._is_judged, (metric - judged.mean()) / judged.std(), 0)
        groups: Floats = self._grouped(standardised)[self._groups]
        return groups

    def difference(self, mean: Floats, half: Floats, signs: Floats) -> Floats:
        """Return how much better the first metric correlates after each permutation, (permutations, pairs)."""
        human = self._human[..., None]
        base = np.stack([mean, mean * human, mean**2 + half**2]).sum(axis=2)[:, :, None]  # (3, groups, 1, pairs)
        change = np.stack([signs @ half, signs @ (half * human), signs @ (2 * mean * half)])
        return self._pearson(base + change) - self._pearson(base - change)

    def _pearson(self, sums: Floats) -> Floats:
        """Average r over the groups where the metric varies, (permutations, pairs), from Σx, Σxg and Σx²."""
        r = _pearson_of_unit(sums, self._counts, np.nan)
        mean: Floats = np.nansum(r, axis=0) / np.maximum(np.isfinite(r).sum(axis=0), 1)
        return mean

    def _grouped(self, matrix: Floats) -> Floats:
        if self._level == "all":
            return matrix.reshape(1, -1)
        return matrix.T if self._level == "segment" else matrix


class _MeanExchange:
    """The same over systems, each of which has the mean of its segments as its score."""

    def __init__(self, human: Floats) -> None:
        means = system_means(human)
        means -= means.mean()
        self._human = (means / np.linalg.norm(means))[:, None, None]

    def arrange(self, metric: Floats) -> Floats:
        """Standardise a metric's scores, (systems, segments)."""
        standardised: Floats = (metric - metric.mean()) / metric.std()
        return standardised

    def difference(self, mean: Floats, half: Floats, signs: Floats) -> Floats:
        """Return how much better the first metric correlates after each permutation, (permutations, pairs)."""
        base, change = mean.sum(axis=1)[:, None], signs @ half  # (systems, 1 or permutations, pairs)
        return self._pearson(base + change) - self._pearson(base - change)

    def _pearson(self, totals: Floats) -> Floats:
        sums = np.stack([totals, totals * self._human, totals**2]).sum(axis=1)
        return _pearson_of_unit(sums, np.array(len(totals)), 0.0)


def _pearson_of_unit(sums: Floats, counts: NDArray[np.int64], of_constant: float) -> Floats:
    """Correlate x with human scores g of mean 0 and norm 1, from Σx, Σxg and Σx², (3, …), and the number of x."""
    total, product, square = sums
    moments = (counts.astype(np.float64), np.zeros(1), np.ones(1), total, square, product)
    return pearson_of_moments(moments, of_constant)


def _observed(human: Floats, metric: Floats, level: Level, name: int) -> float:
    """Correlate a metric with human scores as it is; raise InputError if that has no value."""
    if level == "system_means":
        if (is_missing := np.isnan(metric)).any():
            system, segment = np.argwhere(is_missing)[0]
            raise InputError(
                f"Metric {name} (counted from 0) has no score at system {system}, segment {segment}; "
                f"expected one everywhere, since its system scores are means of all segments."
            )
        observed = correlate_pairs(system_means(human), system_means(metric))
    else:
        observed = correlate(human, metric, by=level, constant_is_zero=False)
    if observed.value is None:
        raise InputError(f"Metric {name} (counted from 0) does not correlate with human scores: {observed.reason}.")
    return observed.value


# Williams' test of two correlations that share the human scores. E. J. Williams, "Regression Analysis", 1959; for
# metrics: Graham and Baldwin, "Testing for Significance of Increased Correlation with Human Judgment", EMNLP 2014,
# equation 1.


@dataclass(frozen=True, slots=True)
class Williams:
    """Whether one metric correlates better with human scores than another."""

    t: float | None
    """The statistic: above 0 where the first metric correlates better. None where there is no value."""
    p: float | None
    """One-sided: the chance of such a t or a larger one, if the two correlated equally well."""
    n: int
    """Systems (or hybrid systems) that the correlations were computed from."""
    reason: str = ""
    """Why there is no value; empty where there is one."""


def williams(r12: float, r13: float, r23: float, n: int) -> Williams:
    """Test whether r12 is larger than r13.

    K = 1 − r12² − r13² − r23² + 2·r12·r13·r23 and
    t = (r12 − r13)·√((n−1)(1+r23)) / √(2K(n−1)/(n−3) + ((r12+r13)/2)²(1−r23)³), with n − 3 degrees of freedom.

    Args:
        r12: Pearson's r of human scores and the first metric, with its sign.
        r13: of human scores and the second.
        r23: of the two metrics.
        n: how many systems each was computed from, at least 4.

    Raises:
        InputError: a correlation is not within [-1, 1], the three cannot come from the same systems, or n < 4.
        MissingExtraError: scipy is not installed.
    """
    if n < MIN_SYSTEMS:
        raise InputError(
            f"Williams' test of {n} systems; expected at least {MIN_SYSTEMS}, since it has n - 3 degrees of freedom."
        )
    correlations = {"r12": r12, "r13": r13, "r23": r23}
    for name, value in correlations.items():
        if not -1 <= value <= 1:
            raise InputError(f"{name} is {value}; expected a correlation within [-1, 1].")
    k = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    if k < -1e-9:
        raise InputError(f"No three rows of scores correlate as {correlations}. Compute them from the same systems.")
    variance = 2 * max(k, 0.0) * (n - 1) / (n - 3) + ((r12 + r13) / 2) ** 2 * (1 - r23) ** 3
    if variance <= 1e-15:
        return Williams(None, None, n, reason="the metrics correlate perfectly, and leave nothing to test")
    t = float((r12 - r13) * np.sqrt((n - 1) * (1 + r23)) / np.sqrt(variance))
    return Williams(t, float(scipy_module("stats").t.sf(t, n - 3)), n)
