"""How much worse than the baseline a system may be.

The bound is for losses that are few, rare or skewed.

N. Gaffke, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a
nonnegative variable", 2005; E. Learned-Miller and P. Thomas, "A new confidence interval for the
mean of a bounded random variable", arXiv:1905.06208, 2019. For losses of 0 and 1 it is Clopper and
Pearson's.
"""

from math import ceil
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx_evaluation.systems.corpus_scores import CorpusScores
from bertscore_onnx_evaluation.systems.paired_tests import BLOCK_CELLS, SEED, SIGNIFICANT

MIN_DRAWS = 1000
"""The least draws of the weights."""
MAX_DRAWS = 10_000
"""The most draws."""

MAX_WEIGHTS = 200_000_000
"""Weights of all draws, where these are more than `MIN_DRAWS`: a second or two for each
100,000,000.
"""


class MarginBounds(NamedTuple):
    """How far systems may be from the first one."""

    loss: NDArray[np.float64]
    """The largest loss that is not excluded, (pairs,); below 0 for a system that is shown to be
    better.
    """
    gain: NDArray[np.float64]
    """The largest gain, likewise."""


def margin_bounds(
    metric: CorpusScores, num_claims: int, *, score_range: tuple[float, float], seed: int = SEED
) -> MarginBounds:
    """Bound the losses and gains against the first system.

    The bounds are at 2.5 % over the number of claims. The mean loss is weighted at random: a unit
    has an exponential weight, and so has one more unit, with the largest size and the largest loss
    that there can be: from one end of the range of scores to the other. A weight belongs to a rank,
    by size and then by loss, so that the order of units changes nothing, and a smaller loss never
    raises a bound.
    """
    pairs = np.array([(0, other) for other in range(1, metric.shape[0])])
    gains, sizes = metric.unit_values(pairs)
    losses = gains if metric.lower_is_better else -gains
    possible_loss = metric.largest_losses(pairs, score_range)
    possible_gain = metric.largest_losses(pairs[:, ::-1], score_range)
    loss_of_extra = sizes.max() * np.maximum(possible_loss, (losses / sizes).max(axis=1))
    gain_of_extra = sizes.max() * np.maximum(possible_gain, (-losses / sizes).max(axis=1))
    order = np.lexsort([losses, np.broadcast_to(sizes, losses.shape)])
    values = np.take_along_axis(losses, order, axis=1)
    weighted_sizes = np.sort(sizes)
    num_units = len(sizes)
    rng = np.random.default_rng(seed)
    bounds = []
    draws = min(MAX_DRAWS, max(MIN_DRAWS, MAX_WEIGHTS // num_units))
    rows = max(1, BLOCK_CELLS // num_units)
    for start in range(0, draws, rows):
        weights = rng.standard_exponential((min(rows, draws - start), num_units + 1))
        of_units = weights[:, :-1]
        extra = weights[:, -1:]  # of the further unit
        total = of_units @ weighted_sizes + weights[:, -1] * sizes.max()
        sums = of_units @ values.T
        drawn_losses = sums + extra * loss_of_extra
        drawn_gains = extra * gain_of_extra - sums
        bounds.append(np.stack([drawn_losses, drawn_gains]) / total[:, None])
    place = min(draws, ceil((1 - SIGNIFICANT / 2 / num_claims) * (draws + 1))) - 1
    drawn = np.ascontiguousarray(np.concatenate(bounds, axis=1).swapaxes(1, 2))  # (2, pairs, draws)
    loss, gain = np.partition(drawn, place)[:, :, place]
    return MarginBounds(loss, gain)
