"""Tokenises pairs, cuts many into chunks, and scores these in order with little ahead of the client."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from bertscore_onnx.errors import QueueFullError
from bertscore_onnx.scores import Scores
from bertscore_onnx.scoring.inputs import Pairs, Texts, singles
from bertscore_onnx.server.models.selection import Selection
from bertscore_onnx.server.requests.errors import ApiError
from bertscore_onnx.server.requests.schemas import PairBody, ScoreValue

T = TypeVar("T")
U = TypeVar("U")

_AHEAD = 1
"""Chunks that wait to be sent on, besides the one that is awaited and the one that is being added."""


def tokenised(selection: Selection, decoded: Sequence[PairBody]) -> Pairs:
    """Return what a scorer takes, with its tokens; it takes time in proportion to the texts."""
    return selection.slot.batcher.tokenise(to_pairs(decoded))


def to_pairs(decoded: Sequence[PairBody]) -> Pairs:
    """Return what a scorer takes; decoding has checked the pairs."""
    references = [pair.all_references for pair in decoded]
    counts = np.array([*map(len, references)], dtype=np.int64)
    texts = [text for group in references for text in group]
    return Pairs(singles([pair.candidate for pair in decoded]), Texts(texts, counts))


def check_tokens(tokens: int, max_tokens: int, position: int | None = None) -> None:
    """Check the tokens of a candidate and its references.

    Raises:
        ApiError: 422: they are more than `max_tokens`.
    """
    if tokens > max_tokens:
        raise ApiError(
            422,
            "too_long",
            f"The candidate and its references have {tokens:,} tokens together; at most {max_tokens:,} are scored. "
            "Give fewer or shorter references.",
            pair=position,
        )


def cut(sizes: Iterable[int], max_size: int) -> Iterator[slice]:
    """Cut a row of things into slices of at most `max_size` together, each as long as may be."""
    start = end = size = 0
    for one in sizes:
        if end > start and size + one > max_size:
            yield slice(start, end)
            start, size = end, 0
        size += one
        end += 1
    if end > start:
        yield slice(start, end)


async def score_chunk(selection: Selection, pairs: Pairs, until: float, client: Hashable = None) -> list[ScoreValue]:
    """Score a request, or one chunk of it; where the queue is full, wait for room.

    A request is refused before it is tokenised or not at all, so that no work is thrown away.

    Args:
        selection: how to score.
        pairs: what to score, tokenised.
        until: the latest time for an answer, of the running loop's clock.
        client: whose request it is.

    Raises:
        BertScoreOnnxError: as `MicroBatcher.score_pairs` says.
    """
    now = asyncio.get_running_loop().time
    while True:
        try:
            return score_values(await selection.score(pairs, max(until - now(), 0.001), client))
        except QueueFullError as error:
            if now() + error.retry_after > until:
                raise
            await asyncio.sleep(error.retry_after)


def score_values(scores: Scores) -> list[ScoreValue]:
    """Return what is answered for each candidate."""
    columns = [column.tolist() for column in (*scores, scores.best_reference)]
    return [ScoreValue(*row) for row in zip(*columns, strict=True)]


async def in_order(
    chunks: AsyncIterator[T],
    work: Callable[[T], Coroutine[Any, Any, U]],
    emit: Callable[[U], Awaitable[None]],
) -> None:
    """Work on chunks as they come, and emit the results in their order.

    At most three chunks are under way; then no more is taken from `chunks` until a result has been emitted.

    Raises:
        ApiError: the one that ended `chunks`, after the results of those before it.
        Exception: the first other error of `chunks`, `work` or `emit`, at once; what is under way is cancelled.
    """
    begun: asyncio.Queue[asyncio.Task[U] | ApiError | None] = asyncio.Queue(_AHEAD)

    async def begin_all() -> None:
        try:
            async for chunk in chunks:
                await begun.put(group.create_task(work(chunk)))
        except ApiError as error:
            await begun.put(error)
        else:
            await begun.put(None)

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(begin_all())
            while (task := await begun.get()) is not None:
                if isinstance(task, ApiError):
                    raise task
                await emit(await task)
    except ExceptionGroup as errors:  # early releases of Python 3.11 put what `except*` raises into a group again
        raise _first(errors) from None


def _first(group: BaseException) -> BaseException:
    while isinstance(group, BaseExceptionGroup):
        group = group.exceptions[0]
    return group
