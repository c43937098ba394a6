"""All the models that a server offers, by name."""

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Self

from bertscore_onnx.bundle.bundle import Bundle
from bertscore_onnx.bundle.resolver import resolve_bundle
from bertscore_onnx.bundle.store import Precision
from bertscore_onnx.concurrency.closeable import Closeable
from bertscore_onnx.errors import IdfError, InputError, QueueFullError
from bertscore_onnx.hub import local_path
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.matching.weights import Idf, Rescaling
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.scores import Scores
from bertscore_onnx.scoring.inputs import Pairs
from bertscore_onnx.server.errors import ApiError
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.schemas import ModelInfo
from bertscore_onnx.serving import MicroBatcher
from bertscore_onnx.similarity import TokenNames

# The scorers of one served model: without idf and with each idf table, all sharing the model that is loaded.


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


# One served model: what it is called, what it offers, and its scorers.


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


class Models(Closeable):
    """All the models of a server, by name."""

    def __init__(self, models: Sequence[Model]) -> None:
        """Take the models; closing this closes them."""
        self._models = {model.name: model for model in models}

    @classmethod
    def load(
        cls,
        models: Sequence[str],
        idf_tables: Mapping[str, CountDocuments],
        limits: Limits,
        load: LoadScorer,
        *,
        precision: Precision | None = None,
        allow_fp32_baseline: bool = False,
    ) -> Self:
        """Load models.

        Args:
            models: a model's name or the path of a bundle each; with `NAME=` before it, requests call it NAME. A path
                that there is may hold a `=` itself.
            idf_tables: what counts the documents of each idf table, which every model gets.
            limits: those of the server.
            load: loads one model.
            precision: that of all bundles; None for a bundle's own, and fp32 for a model's name.
            allow_fp32_baseline: rescale with baselines that were computed in fp32 also where the scores are not.

        Raises:
            InputError: two models have one name.
            BertScoreOnnxError: a model cannot be found, loaded or scored with.
        """
        loaded: list[Model] = []
        with ExitStack() as opened:
            for spec in models:
                alias, source = _name_and_source(spec)
                bundle = resolve_bundle(local_path(source), precision=precision)
                name = alias or bundle.manifest.model_id
                if any(name == other.name for other in loaded):
                    raise InputError(f"Two models are called {name!r}. Give one another name: --model NAME={source}.")
                model = Model(name, bundle, load, idf_tables, limits, allow_fp32_baseline=allow_fp32_baseline)
                loaded.append(opened.enter_context(model))
            opened.pop_all()
        return cls(loaded)

    def model(self, name: str | None) -> Model:
        """Return the model of a name, or the only one.

        Raises:
            ApiError: 422: there is no such model, or none was named where there are several.
        """
        known = ", ".join(self._models)
        if name is None and len(self._models) > 1:
            raise ApiError(422, "model_missing", f"Name a `model`; the server has: {known}.")
        if name is not None and name not in self._models:
            raise ApiError(422, "unknown_model", f"There is no model {name!r}; the server has: {known}.")
        return next(iter(self._models.values())) if name is None else self._models[name]

    def check_room(self) -> None:
        """Refuse a request before it is read, where no model has room for it.

        Raises:
            QueueFullError: all queues are full; this is the error of the last.
        """
        refusal = None
        for _, _, slot in self.slots():
            try:
                slot.batcher.check_room()
            except QueueFullError as error:
                refusal = error
            else:
                return
        if refusal is not None:
            raise refusal

    def __iter__(self) -> Iterator[Model]:
        """Go through the models."""
        return iter(self._models.values())

    def slots(self) -> Iterator[tuple[Model, str | None, ScorerSlot]]:
        """Go through the slots of all models, with their idf tables."""
        return ((model, idf, slot) for model in self for idf, slot in model.slots.items())

    def close(self) -> None:
        """Stop all batchers, so that no caller waits any longer, and release all models."""
        for _, _, slot in self.slots():
            slot.batcher.close()
        for model in self:
            model.close()


def _name_and_source(spec: str) -> tuple[str, str]:
    name, equals, source = spec.partition("=")
    return ("", spec) if not equals or Path(spec).exists() else (name, source)


# What one request asks for: a model, an idf table and a rescaling.


class Selection:
    """The model, the idf table and the rescaling that one request asks for."""

    def __init__(self, model: Model, idf: str | None, rescale: str | bool | None) -> None:
        """Find what a request asks for.

        Raises:
            ApiError: 422: the model does not have it.
        """
        if rescale is True:
            raise ApiError(422, "invalid", '`rescale` is true; expected a language, such as "en", or false.')
        language = rescale.lower() if rescale else "no"
        if rescale and language not in model.baselines:
            known = ", ".join(sorted(model.baselines)) or "none"
            raise ApiError(422, "unknown_baseline", f"{model.name} has no baseline for {rescale!r}; it has: {known}.")
        self.model = model
        self.slot = model.slot(idf)
        self._rescaling = Rescaling(language, tuple(model.baselines.get(language, ())))
        self.signature = str(replace(self.slot.scorer.signature, rescale=language))
        """That of a `BERTScorer` with the same settings."""

    async def score(self, pairs: Pairs, deadline: float, client: Hashable = None) -> Scores:
        """Score tokenised pairs, in batches with those of other requests.

        Raises:
            BertScoreOnnxError: as `MicroBatcher.score_pairs` says.
        """
        raw = await self.slot.batcher.score_pairs(pairs, deadline=deadline, client=client)
        return self._rescaling.apply(raw)
