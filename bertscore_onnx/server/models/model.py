"""One served model: what it is called, what it offers, and its scorers."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import partial

from bertscore_onnx.bundle.bundle import Bundle
from bertscore_onnx.concurrency.closeable import Closeable
from bertscore_onnx.errors import IdfError
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.models.scorer_slot import ScorerSlot, SharedModel
from bertscore_onnx.server.requests.errors import ApiError
from bertscore_onnx.server.requests.schemas import ModelInfo
from bertscore_onnx.similarity import TokenNames

LoadScorer = Callable[[Bundle], BERTScorer]
"""Loads the model of a bundle, without idf weights and without rescaling."""

CountDocuments = Callable[[Bundle], DocumentCounts]
"""Counts the documents of an idf table with the tokenizer of a bundle."""


class Model(Closeable):
    """One served model."""

    def __init__(
        self,
        name: str,
        bundle: Bundle,
        load: LoadScorer,
        idf_tables: Mapping[str, CountDocuments],
        limits: Limits,
        *,
        allow_fp32_baseline: bool = False,
    ) -> None:
        """Load the model, and compute the weights of all idf tables.

        Args:
            name: what requests call it.
            bundle: where it comes from.
            load: loads it.
            idf_tables: what counts the documents of each idf table; called once.
            limits: those of the server.
            allow_fp32_baseline: rescale with a baseline that was computed in fp32 also where the scores are not.

        Raises:
            BertScoreOnnxError: the model cannot be loaded or cannot score, or the weights cannot be computed.
        """
        self.name = name
        self.manifest = bundle.manifest
        """What the bundle says of the model."""
        self.token_names = TokenNames(bundle)
        self.slots: dict[str | None, ScorerSlot] = {}
        """The scorer of each idf table, and under None the one without idf."""
        with ExitStack() as opened:
            shared = opened.enter_context(SharedModel(partial(load, bundle)))
            self.slots[None] = opened.enter_context(ScorerSlot(shared, False, limits))
            for idf, count in idf_tables.items():
                try:
                    self.slots[idf] = opened.enter_context(ScorerSlot(shared, count(bundle), limits))
                except IdfError as error:
                    raise IdfError(f"The idf table {idf!r} does not fit the model {name!r}. {error}") from error
            self._opened = opened.pop_all()
        self.precision = self.slots[None].scorer.signature.precision
        """The compute precision in use, which on some devices is not that of the bundle."""
        self.baselines = {
            language: baselines
            for language, baselines in self.manifest.baselines.items()
            if allow_fp32_baseline or self.manifest.baseline_precision(language) == self.precision
        }
        """The baselines to rescale with, by language."""

    @property
    def idf_tables(self) -> list[str]:
        """The names of the idf tables."""
        return [name for name in self.slots if name is not None]

    def slot(self, idf: str | None) -> ScorerSlot:
        """Return the slot with an idf table.

        Raises:
            ApiError: 422: there is no such table.
        """
        if idf not in self.slots:
            known = ", ".join(self.idf_tables) or "none"
            raise ApiError(422, "unknown_idf", f"There is no idf table {idf!r}; the server has: {known}.")
        return self.slots[idf]

    def info(self) -> ModelInfo:
        """Describe the model."""
        scorer, manifest = self.slots[None].scorer, self.manifest
        return ModelInfo(
            self.name,
            manifest.num_layers,
            self.precision,
            scorer.provider,
            scorer.hash,
            scorer.max_length,
            sorted(self.baselines),
            self.idf_tables,
        )

    def close(self) -> None:
        """Stop the batchers, and release the model."""
        self._opened.close()
