"""One scorer for many callers.

`MicroBatcher` scores the texts of its callers together.
"""

import asyncio
import atexit
import os
import threading
from collections.abc import Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from numbers import Real

from bertscore_onnx.concurrency.closeable import Closeable
from bertscore_onnx.errors import ForkError, InputError, InputTypeError
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.scores import Scores
from bertscore_onnx.scoring.inputs import Pairs, check_positive, collect_pairs
from bertscore_onnx.text.texts import Context, Reference, Text, describe
from bertscore_onnx_service.batcher.queue import BatchSize, Request, RequestQueue
from bertscore_onnx_service.batcher.stats import BatcherStats
from bertscore_onnx_service.batcher.worker import DeadlineKeeper, Worker, count_warnings, probe

BATCH_SHARE = 1 / 120
"""The share of the deadline that a batch may take: it is how long a small request waits for
others.
"""

MIN_STALL = 30.0
"""Seconds that a call of the scorer may take, even if `deadline` is shorter, before the worker
counts as stalled.
"""

JOIN_SECONDS = 1.0
"""Seconds that closing waits for each thread."""

TOKENISERS = 2
"""Threads that tokenise for callers in asyncio: a long text does not hold up all others."""


class MicroBatcher(Closeable):
    """Scores the texts of many threads or tasks together.

    Texts are scored in batches, on one worker thread.

    Each call submits one request, which has its place and its deadline from then on, and is
    answered as a whole; a large one is scored in several sub-batches, between which smaller ones
    get their turn. Its scores are those it would get alone, within 1e-5, except with bf16
    (OpenVINO): see docs/differences.md. Callbacks of futures run on the batcher's own threads and
    must not block. In a fork of the process that made it, all but `live`, `ready` and `close` raise
    a ForkError.
    """

    def __init__(
        self,
        scorer: BERTScorer,
        *,
        max_batch_tokens: int = 16_384,
        max_delay: float = 0.002,
        max_queue: int = 512,
        deadline: float = 30.0,
    ) -> None:
        """Score a probe in the calling thread, and start the threads.

        Args:
            scorer: the caller closes it, after the batcher.
            max_batch_tokens: the most tokens in a batch; a larger pair makes a batch of its own. On
                a slow model a batch has fewer: as many as take a 120th of `deadline`, but at least
                512.
            max_delay: how many seconds to wait for more requests. A request to an idle batcher does
                not wait.
            max_queue: the most requests that wait.
            deadline: how many seconds a request has until its scores, unless its caller sets
                another deadline.

        Raises:
            InputError: a limit is out of range, or the scorer takes idf weights from the references
                of each call.
            BertScoreOnnxError: the scorer cannot score; other errors of its runtime are raised
                unchanged.
        """
        check_positive("max_batch_tokens", max_batch_tokens)
        check_positive("max_queue", max_queue)
        check_seconds("max_delay", max_delay, zero=True)
        check_seconds("deadline", deadline)
        if scorer.signature.idf == "references":
            raise InputError(
                "This scorer takes its idf weights from the references of each call, so that "
                "scores would depend on the other requests of a batch. Give BERTScorer "
                "idf_sents, or call compute_idf first."
            )
        probe(scorer)
        scorer.warm_up()
        self._pid = os.getpid()
        self._scorer = scorer
        self._deadline = deadline
        self._queue = RequestQueue(
            max_queue, max_delay, BatchSize(max_batch_tokens, deadline * BATCH_SHARE)
        )
        self._worker = Worker(scorer, self._queue, max(deadline, MIN_STALL))
        self._deadlines = DeadlineKeeper(self._queue)
        self._worker.start()
        self._deadlines.start()
        # for callers in asyncio
        self._tokenisers = ThreadPoolExecutor(TOKENISERS, "bertscore-onnx-tokeniser")
        # a daemon thread inside ONNX Runtime may abort an interpreter that ends
        atexit.register(self.close)

    def submit(
        self,
        cands: Sequence[Text],
        refs: Sequence[Reference],
        *,
        contexts: Sequence[Context] | None = None,
        deadline: float | None = None,
        client: Hashable = None,
    ) -> "Future[Scores]":
        """Submit candidates and references.

        The texts are tokenised in the calling thread.

        Args:
            cands, refs, contexts: as `BERTScorer.score` takes them.
            deadline: how many seconds to wait for the scores; None for the batcher's own.
            client: whose request it is, known by its hash: the client with fewer tokens waiting
                comes first. None for one of its own.

        Returns:
            A future of the scores. It can be cancelled until the request is being scored. Its error
            is a DeadlineError, a WorkerError, a ClosedError, or the scorer's error for this request
            alone.

        Raises:
            InputError: the texts cannot be scored.
            QueueFullError: as many requests as allowed are waiting; its `retry_after` is the time
                they take, about.
            ClosedError: the batcher was closed, or is draining (DrainingError).
        """
        pairs = collect_pairs(cands, refs, contexts)
        return self.submit_pairs(pairs, deadline=deadline, client=client)

    def tokenise(self, pairs: Pairs) -> Pairs:
        """Tokenise pairs for `submit_pairs`.

        Before that, raise the error of `check_capacity`.
        """
        self.check_capacity()
        return self._tokenise(pairs)

    def submit_pairs(
        self, pairs: Pairs, *, deadline: float | None = None, client: Hashable = None
    ) -> "Future[Scores]":
        """Submit pairs that were checked already.

        This batcher may have tokenised them. Otherwise it is as `submit`.
        """
        return self._submit(pairs, deadline, client, in_thread=False)

    async def score(
        self,
        cands: Sequence[Text],
        refs: Sequence[Reference],
        *,
        contexts: Sequence[Context] | None = None,
        deadline: float | None = None,
        client: Hashable = None,
    ) -> Scores:
        """Score in asyncio, tokenising in another thread.

        As `submit`, and cancelling the task cancels the request.
        """
        self.check_capacity()  # first, since thousands may be refused at once
        pairs = collect_pairs(cands, refs, contexts)
        return await self.score_pairs(pairs, deadline=deadline, client=client)

    async def score_pairs(
        self, pairs: Pairs, *, deadline: float | None = None, client: Hashable = None
    ) -> Scores:
        """Score in asyncio; as `score`, with pairs as `submit_pairs` takes them."""
        return await asyncio.wrap_future(self._submit(pairs, deadline, client, in_thread=True))

    def check_capacity(self) -> None:
        """Raise the error that `submit` would raise for any request now.

        A QueueFullError is counted as a rejected request.
        """
        self._check_process()
        self._queue.check_capacity()

    @property
    def ready(self) -> bool:
        """Whether a request would be admitted and scored now."""
        return self.live and self._queue.is_open

    @property
    def live(self) -> bool:
        """Whether the worker scores; if it stays False, restart the process.

        The value is False while a call of the scorer takes longer than `deadline` and 30 seconds;
        after the scorer failed at a probe, until it scores again; and once the batcher is closed.
        """
        return os.getpid() == self._pid and self._worker.is_working

    def stats(self) -> BatcherStats:
        """Return the counts so far."""
        self._check_process()
        return self._queue.stats()

    def drain(self, timeout: float = 30.0) -> bool:
        """Admit no more requests, and finish all.

        Those that are left after `timeout` seconds fail with a ClosedError.

        Return whether all were finished. It blocks: in asyncio call it with `asyncio.to_thread`.
        """
        self._check_process()
        check_seconds("timeout", timeout, zero=True)
        return self._queue.drain(timeout)

    def close(self) -> None:
        """Fail all unanswered requests with a ClosedError, and end the threads.

        A run in progress ends first.
        """
        if os.getpid() != self._pid:
            return
        try:
            self._queue.drain(0)
        finally:
            self._queue.close()
            self._deadlines.stop()
            for thread in (self._deadlines, self._worker):
                if thread is not threading.current_thread():  # that of a callback
                    thread.join(JOIN_SECONDS)
            self._tokenisers.shutdown(wait=False)
            atexit.unregister(self.close)

    def __reduce__(self) -> str:
        """Refuse to be pickled or copied."""
        raise InputTypeError(
            "A MicroBatcher cannot be pickled or copied: its threads belong to one process. Make "
            "one in each process."
        )

    def _submit(
        self, pairs: Pairs, deadline: float | None, client: Hashable, *, in_thread: bool
    ) -> "Future[Scores]":
        """Queue a request with its deadline and prepare it; an error frees its place."""
        self._check_process()
        seconds = self._deadline if deadline is None else deadline
        check_seconds("deadline", seconds)
        request = Request(pairs, float(seconds), _hash_of(client))
        try:
            self._queue.admit(request)
            self._deadlines.wake_at(request.deadline)
            if in_thread and pairs.tokenised is None:
                self._tokenisers.submit(self._prepare, request)
            else:
                self._prepare(request)
        except BaseException as error:
            self._queue.answer(request, error)
            raise
        return request.future

    def _prepare(self, request: Request) -> None:
        """Tokenise a request, and let batches take it.

        A request that was answered meanwhile is left as it is.
        """
        if not request.is_open:
            return
        try:
            if request.pairs.tokenised is None:
                request.prepare(self._tokenise(request.pairs).tokenised or {})
            self._queue.notify()
        except BaseException as error:
            self._queue.answer(request, error)
            raise

    def _tokenise(self, pairs: Pairs) -> Pairs:
        tokenised, counts = self._scorer.tokenise(pairs)
        count_warnings(counts, self._scorer, self._queue)
        return tokenised

    def _check_process(self) -> None:
        # Before any lock is touched: a fork copies locks as they are, and a held lock stays held
        # for ever.
        if os.getpid() != self._pid:
            raise ForkError(
                f"This MicroBatcher was made in process {self._pid} and its threads run there; "
                f"this is the forked process {os.getpid()}. Make scorer and batcher after the "
                "fork (gunicorn: without preload), or spawn."
            )


def check_seconds(name: str, seconds: float, *, zero: bool = False) -> None:
    """Raise an InputError unless a thread can wait that long.

    Endless waits are refused.
    """
    if not (isinstance(seconds, Real) and 0 <= seconds <= threading.TIMEOUT_MAX) or (
        seconds == 0 and not zero
    ):
        least = "0 or more" if zero else "more than 0"
        raise InputError(
            f"{name} is {seconds!r}; expected {least} seconds, and at most "
            f"{threading.TIMEOUT_MAX:.0f}."
        )


def _hash_of(client: Hashable) -> int | None:
    """Return a number in place of a client.

    The worker compares numbers without any code of the caller.
    """
    if client is None:
        return None
    try:
        return hash(client)
    except Exception as error:
        raise InputTypeError(f"client is {describe(client)}; expected a hashable value.") from error
