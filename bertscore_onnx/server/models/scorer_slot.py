"""The scorers of one served model: without idf and with each idf table, all sharing the model that is loaded."""

import threading
from collections.abc import Callable

from bertscore_onnx.concurrency.closeable import Closeable
from bertscore_onnx.matching.weights import Idf
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.serving import MicroBatcher

MIN_STALL = 30.0
"""Seconds that a run may take at least before its worker is replaced; a model has as long to load."""


class SharedModel(Closeable):
    """A model that is loaded once for all its scorers, and once more when one of them finds that it fails.

    The caller that asked for a scorer closes it; a loaded model is released with the last scorer that shares it.
    """

    def __init__(self, load: Callable[[], BERTScorer]) -> None:
        """Take what loads the model; it is called with the first scorer."""
        self._load = load
        self._base: BERTScorer | None = None
        self._version = 0
        self._loading = threading.Lock()

    def make_scorer(self, idf: Idf, *, failed_version: int | None = None) -> tuple[BERTScorer, int]:
        """Return a scorer, and which version of the model it shares.

        Args:
            idf: how tokens are weighted, as for `BERTScorer`.
            failed_version: a version that must not be used any more: where it is the newest, the model is loaded again.

        Raises:
            BertScoreOnnxError: the model cannot be loaded, or the weights cannot be computed.
        """
        with self._loading:
            if failed_version == self._version:
                self._release()  # before loading, since a device may not have room for two
            if self._base is None:
                self._base = self._load()
                self._version += 1
            return self._base.with_idf(idf), self._version

    def close(self) -> None:
        """Stop sharing the model."""
        with self._loading:
            self._release()

    def _release(self) -> None:
        if self._base is not None:
            self._base.close()
            self._base = None


class ScorerSlot(Closeable):
    """One model with one idf table, or none: a scorer and the batcher in front of it."""

    def __init__(self, model: SharedModel, idf: Idf, limits: Limits) -> None:
        """Make the scorer, and start the batcher.

        Raises:
            BertScoreOnnxError: the model cannot be loaded or cannot score, or the weights cannot be computed.
        """
        self._model = model
        self._idf = idf
        self.scorer, self._version = model.make_scorer(idf)
        """The scorer in use."""
        try:
            self.batcher = MicroBatcher(
                self.scorer,
                max_batch_tokens=limits.max_batch_tokens,
                max_queue=limits.max_queue,
                deadline=limits.deadline,
                max_stall=max(limits.deadline, MIN_STALL),
                make_scorer=self._replace_scorer,
            )
        except BaseException:
            self.scorer.close()
            raise

    def close(self) -> None:
        """Stop the batcher, and close the scorer."""
        self.batcher.close()
        self.scorer.close()

    def _replace_scorer(self) -> BERTScorer:
        """Return a scorer for a worker that takes the place of one that broke down or stalled."""
        self.scorer, self._version = self._model.make_scorer(self._idf, failed_version=self._version)
        return self.scorer
