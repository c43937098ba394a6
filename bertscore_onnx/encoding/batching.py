"""Plans batches, short with short and long with long, capped by their padded tokens.

A batch of n sequences whose longest has t tokens costs n × t padded tokens, whatever the others need. Sorting by
length keeps that near the true number, and capping it, rather than the number of sequences, makes a run of short
texts need as much memory as a run of long ones.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Batch = NDArray[np.int64]
"""Which items are processed together, (batch,)."""


def plan_runs(
    lengths: NDArray[np.int64],
    max_tokens: int,
    max_items: int | None = None,
    *,
    concurrency: int,
    splits_little_work: bool = True,
    padding: bool = True,
) -> list[Batch]:
    """Decide on the batches of some texts, at least one for each concurrent run where there are as many texts.

    Args:
        lengths: tokens of each text, (texts,), each at least 1.
        max_tokens, max_items, padding: as in `plan_batches`.
        concurrency: how many runs at a time keep the provider busy.
        splits_little_work: whether a few texts are split into a batch per run, so that no thread is idle.
    """
    if splits_little_work:
        max_tokens = min(max_tokens, -(-len(lengths) // concurrency) * int(lengths.max(initial=1)))
    return list(plan_batches(lengths, max_tokens, max_items, padding=padding))


def plan_batches(
    lengths: NDArray[np.int64],
    max_tokens: int,
    max_items: int | None = None,
    *,
    padding: bool = True,
) -> Iterator[Batch]:
    """Group items of similar length, the longest first, so that memory peaks at the start.

    Args:
        lengths: tokens of each item, (items,), each at least 1.
        max_tokens: the most padded tokens in a batch; a longer item makes a batch of its own.
        max_items: the most items in a batch.
        padding: whether items of different lengths may share a batch.

    Yields:
        Indices into `lengths`, by descending length, equal ones in their order; each index occurs in exactly one batch.
    """
    order = np.argsort(-lengths, kind="stable")
    ascending = -lengths[order]  # (items,), sorted
    start = 0
    while start < len(order):
        size = max(1, max_tokens // int(lengths[order[start]]))
        end = start + (size if max_items is None else min(size, max_items))
        if not padding:
            end = min(end, int(np.searchsorted(ascending, ascending[start], side="right")))
        yield order[start:end]
        start = end
