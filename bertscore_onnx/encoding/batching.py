"""Plans batches, short with short and long with long, capped by their padded tokens, and how to run them.

A batch of n sequences whose longest has t tokens costs n × t padded tokens, whatever the others need. Sorting by
length keeps that near the true number, and capping it, rather than the number of sequences, makes a run of short
texts need as much memory as a run of long ones.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

Batch = NDArray[np.int64]
"""Which items are processed together, (batch,)."""


SHORT_TOKENS = 64
"""Tokens up to which a text is short. A pair of such texts takes 0.4 ms less where the caller's thread encodes one of
them. With longer ones it would often be set aside by the system just when it holds Python's lock, and whatever else
needs that waits too: with batches of several short texts in line, the p99 of an overloaded server's refusals rose from
0.15 to 1.3 s, and it scored a third less."""


class RunMode(Enum):
    """How the batches of a plan are run."""

    THROUGHPUT = "throughput"
    """Side by side in worker threads, each with one CPU thread."""

    LATENCY = "latency"
    """One after the other in the caller's thread, each with all CPU threads."""

    IN_LINE = "in line"
    """Side by side as for throughput, but one of them in the caller's thread: each is one short text, so that the way
    to another thread counts."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The batches of some texts, and how to run them."""

    batches: list[Batch]
    mode: RunMode


def plan_runs(
    lengths: NDArray[np.int64],
    max_tokens: int,
    max_items: int | None = None,
    *,
    concurrency: int,
    splits_little_work: bool = True,
    padding: bool = True,
) -> Plan:
    """Decide on the batches of some texts and how to run them.

    Args:
        lengths: tokens of each text, (texts,), each at least 1.
        max_tokens, max_items, padding: as in `plan_batches`.
        concurrency: how many runs at a time keep the provider busy.
        splits_little_work: whether a few texts are split into a batch per run, so that no thread is idle.
    """
    if splits_little_work and 2 * len(lengths) < concurrency:  # too few to give every thread one
        return Plan(list(plan_batches(lengths, max_tokens, max_items, padding=padding)), RunMode.LATENCY)
    longest = int(lengths.max(initial=1))
    if splits_little_work:
        max_tokens = min(max_tokens, -(-len(lengths) // concurrency) * longest)
    batches = list(plan_batches(lengths, max_tokens, max_items, padding=padding))
    is_little = len(lengths) <= concurrency and longest <= SHORT_TOKENS
    return Plan(batches, RunMode.IN_LINE if is_little else RunMode.THROUGHPUT)


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
