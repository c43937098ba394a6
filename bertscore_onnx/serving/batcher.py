"""`MicroBatcher`: many callers, one scorer, and their texts scored together."""

import asyncio
import atexit
import os
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future

from bertscore_onnx.concurrency.closeable import Closeable
from bertscore_onnx.errors import ForkError, InputError, InputTypeError
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.scores import Scores
from bertscore_onnx.scoring.inputs import Pairs, Reference, collect_pairs
from bertscore_onnx.serving.queue import RequestQueue
from bertscore_onnx.serving.request import BatcherLimits, BatchSize, Request, check_seconds
from bertscore_onnx.serving.stats import BatcherStats
from bertscore_onnx.serving.worker import Supervisor, count_warnings, probe, time_batch


class MicroBatcher(Closeable):
    """Scores what many threads or tasks hand in, in batches, on one worker thread.

    What one call hands in is a request: it is admitted and answered as a whole, by its deadline at the latest. Its
    texts are tokenised where it is handed in, so that its cost is known; a large one is scored in pieces, between which
    smaller ones get their turn. Its scores are those it would get alone, within 1e-5, but for bf16 (OpenVINO), where
    they depend on the batch: see docs/differences.md. Callbacks of futures run on the batcher's own threads and must
    not block.
    """

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
        """Score a probe in the calling thread, find out how fast the scorer is, and start.

        Args:
            scorer: stays the caller's to close, after the batcher; but where `make_scorer` is given, it is closed when
                it is replaced and no run uses it any more.
            max_batch_tokens: the most tokens in a batch; a pair of more makes a batch of its own. On a slow model it
                is what takes a 120th of `deadline`, by the pace of the batches before, but at least 512.
            max_delay: how many seconds to wait for more requests. One that comes to an idle batcher does not wait.
            max_queue: the most requests that wait.
            deadline: how many seconds a request has, from its submission to its scores, unless its caller says else.
            max_stall: how many seconds a run may take before its worker is given up and replaced; `make_scorer` has
                as long.
            make_scorer: makes a scorer to go on with after a worker broke down, or after two stalled in a row; it must
                tokenise as the first does. Otherwise a new worker takes the same scorer.

        Raises:
            InputError: a limit is out of range, or the scorer takes idf weights from the references of each call, so
                that scores would depend on who else is in the batch.
            BertScoreOnnxError: the scorer cannot score; other errors of its runtime come as they are.
        """
        self._limits = BatcherLimits(max_batch_tokens, max_delay, max_queue, deadline, max_stall)
        if scorer.signature.idf == "references":
            raise InputError(
                "This scorer takes its idf weights from the references of each call, so that scores would depend on "
                "the other requests of a batch. Give BERTScorer idf_sents, or call compute_idf first."
            )
        probe(scorer)
        batch_size = BatchSize(self._limits, *time_batch(scorer))
        self._pid = os.getpid()
        self._scorer = scorer
        self._queue = RequestQueue(self._limits, batch_size)
        self._supervisor = Supervisor(scorer, self._queue, self._limits, make_scorer)
        atexit.register(self.close)  # a daemon thread inside ONNX Runtime may abort an interpreter that ends

    def submit(
        self,
        cands: Sequence[str],
        refs: Sequence[Reference],
        *,
        deadline: float | None = None,
        client: Hashable = None,
    ) -> "Future[Scores]":
        """Hand in candidates and references; they are tokenised in the calling thread.

        Args:
            cands, refs: as `BERTScorer.score` takes them.
            deadline: how many seconds to wait for the scores; None for the batcher's own.
            client: whose request it is: of two clients the one with fewer tokens waiting gets the next turn. None for
                a client of its own.

        Returns:
            A future of the scores. It can be cancelled until the request is being scored. Its error is one of
            DeadlineError, WorkerError, ClosedError (the batcher was closed first), or what the scorer raised for this
            request alone.

        Raises:
            InputError: these cannot be scored.
            QueueFullError: as many requests as allowed are waiting; its `retry_after` says when to try again.
            DrainingError, ClosedError: nothing is admitted any more.
            ForkError: this process is a fork of the one that made the batcher.
        """
        return self.submit_pairs(collect_pairs(cands, refs), deadline=deadline, client=client)

    def tokenise(self, pairs: Pairs) -> Pairs:
        """Tokenise pairs that were checked already, for `submit_pairs`; it takes time in proportion to their texts."""
        tokenised, counts = self._scorer.tokenise(pairs)
        count_warnings(counts, self._scorer, self._queue)
        return tokenised

    def submit_pairs(self, pairs: Pairs, *, deadline: float | None = None, client: Hashable = None) -> "Future[Scores]":
        """Hand in pairs that were checked already, and maybe tokenised by this batcher; otherwise as `submit`."""
        self._check_process()
        if pairs.token_ids is None:
            self.check_room()
            pairs = self.tokenise(pairs)
        if deadline is not None:
            check_seconds("deadline", deadline)
        request = Request(pairs, self._limits.deadline if deadline is None else deadline, client)
        self._supervisor.timer.set(request.deadline)
        self._queue.admit(request)
        return request.future

    async def score(
        self,
        cands: Sequence[str],
        refs: Sequence[Reference],
        *,
        deadline: float | None = None,
        client: Hashable = None,
    ) -> Scores:
        """Score in asyncio, tokenising in another thread; as `submit`, and cancelling the task cancels the request."""
        return await self.score_pairs(collect_pairs(cands, refs), deadline=deadline, client=client)

    async def score_pairs(self, pairs: Pairs, *, deadline: float | None = None, client: Hashable = None) -> Scores:
        """Score in asyncio; as `score`, with pairs as `submit_pairs` takes them."""
        if pairs.token_ids is None:
            self.check_room()
            pairs = await asyncio.to_thread(self.tokenise, pairs)
        return await asyncio.wrap_future(self.submit_pairs(pairs, deadline=deadline, client=client))

    def check_room(self) -> None:
        """Refuse a request before it is made, where `submit` would refuse it now; it counts as one that was.

        Raises:
            QueueFullError, DrainingError, ClosedError, ForkError: as `submit` does.
        """
        self._check_process()
        self._queue.check_room()

    @property
    def ready(self) -> bool:
        """Whether a request handed in now would be scored, were there room for it.

        False while draining, while a run stalls, from a worker's breakdown until its successor has scored a probe, and
        in a forked process.
        """
        return os.getpid() == self._pid and self._queue.is_open and self._supervisor.is_healthy

    @property
    def queue_depth(self) -> int:
        """How many requests are waiting."""
        return self._queue.depth

    def stats(self) -> BatcherStats:
        """Return what has been done so far.

        Raises:
            ForkError: as `submit` does.
        """
        self._check_process()
        return self._queue.stats()

    def drain(self, timeout: float = 30.0) -> bool:
        """Admit nothing more, finish what is there, and fail with a ClosedError what is left after `timeout` seconds.

        It blocks: in asyncio call it with `asyncio.to_thread`.

        Returns:
            Whether nothing was left.

        Raises:
            InputError: the time is out of range.
            ForkError: as `submit` does.
        """
        self._check_process()
        check_seconds("timeout", timeout, zero=True)
        return self._queue.drain(timeout)

    def close(self) -> None:
        """Fail what is not answered yet with a ClosedError, and end the threads.

        A run in progress cannot be stopped; its thread ends after it. Closeable twice, or in a forked process, does
        nothing.
        """
        if os.getpid() != self._pid:
            return
        self._queue.drain(0)
        self._queue.close()
        self._supervisor.stop()
        atexit.unregister(self.close)

    def __reduce__(self) -> str:
        """Refuse to be pickled or copied."""
        raise InputTypeError(
            "A MicroBatcher cannot be pickled or copied: its threads belong to one process. Make one in each process."
        )

    def _check_process(self) -> None:
        # Before any lock is touched: a fork copies locks as they are, and one that was held stays held for ever.
        if os.getpid() != self._pid:
            raise ForkError(
                f"This MicroBatcher was made in process {self._pid} and its threads run there; this is the forked "
                f"process {os.getpid()}. Make scorer and batcher after the fork (gunicorn: without preload), or spawn."
            )
