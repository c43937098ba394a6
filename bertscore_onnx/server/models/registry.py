"""The models a server offers: each with one batcher without idf, and one more for every idf table.

A batcher holds a scorer of its own, and so the weights once more: a server with two models and one idf table loads four
graphs. Rescaling costs nothing: it is a function of the raw scores, and happens after scoring.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Self

from bertscore_onnx.bundle.opening import Bundle
from bertscore_onnx.bundle.resolver import resolve_bundle
from bertscore_onnx.bundle.store import Precision
from bertscore_onnx.concurrency.closeable import Closeable
from bertscore_onnx.errors import InputError, QueueFullError
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.requests.errors import ApiError
from bertscore_onnx.server.requests.schemas import ModelInfo
from bertscore_onnx.serving import MicroBatcher
from bertscore_onnx.similarity import TokenNames

MakeScorer = Callable[[Bundle, Sequence[str] | None], BERTScorer]
"""Makes a scorer of a bundle, with idf weights from these sentences, or without."""


class ScorerSlot:
    """One model with one idf table, or none: a scorer and the batcher in front of it."""

    def __init__(self, make: Callable[[], BERTScorer], limits: Limits) -> None:
        """Load the model."""
        self._make = make
        self.scorer = make()
        """The scorer in use."""
        self.batcher = MicroBatcher(
            self.scorer,
            max_batch_tokens=limits.max_batch_tokens,
            max_queue=limits.max_queue,
            deadline=limits.deadline,
            make_scorer=self._make_again,
        )

    def close(self) -> None:
        """Stop the batcher and release the model."""
        self.batcher.close()
        self.scorer.close()

    def _make_again(self) -> BERTScorer:
        """Load the model once more, for a worker that takes the place of one that broke down."""
        self.scorer = self._make()
        return self.scorer


class Model:
    """One served model."""

    def __init__(
        self,
        name: str,
        bundle: Bundle,
        slots: Mapping[str | None, ScorerSlot],
        *,
        allow_fp32_baseline: bool = False,
    ) -> None:
        """Put a model together.

        Args:
            name: what requests call it.
            bundle: where it comes from.
            slots: the slot of each idf table, and under None the one without idf.
            allow_fp32_baseline: rescale with a baseline that was computed in fp32 also where the scores are not.
        """
        self.name = name
        self.manifest = bundle.manifest
        """What the bundle says of the model."""
        self.token_names = TokenNames(bundle)
        self.slots = slots
        signature = slots[None].scorer.signature
        self.precision = signature.precision
        """The arithmetic in use, which on some devices is not that of the bundle."""
        self.cut_at = None if signature.long_text == "window" else bundle.manifest.max_length
        """How many tokens are left of a longer text; None where it is scored as a whole."""

        rescales = allow_fp32_baseline or self.precision == "fp32"
        self.baselines = self.manifest.baselines if rescales else {}
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
            manifest.max_length,
            sorted(self.baselines),
            self.idf_tables,
        )


class Models(Closeable):
    """All the models of a server, by name."""

    def __init__(self, models: Sequence[Model]) -> None:
        """Take the models; closing this closes them."""
        self._models = {model.name: model for model in models}

    @classmethod
    def load(
        cls,
        models: Sequence[str],
        idf_sentences: Mapping[str, Sequence[str]],
        limits: Limits,
        make: MakeScorer,
        *,
        precision: Precision | None = None,
        allow_fp32_baseline: bool = False,
    ) -> Self:
        """Load models.

        Args:
            models: a model's name or the path of a bundle each; with `NAME=` before it, requests call it NAME.
            idf_sentences: the sentences of each idf table, which every model gets.
            limits: those of the server.
            make: makes the scorers.
            precision: that of all bundles; None for a bundle's own, and fp32 for a model's name.
            allow_fp32_baseline: as `Model` says.

        Raises:
            InputError: two models have one name.
            BertScoreOnnxError: as `BERTScorer` says.
        """
        loaded: list[Model] = []
        with ExitStack() as opened:
            for spec in models:
                alias, _, source = spec.rpartition("=")
                bundle = resolve_bundle(source, precision=precision)
                slots: dict[str | None, ScorerSlot] = {}
                for idf, sentences in [(None, None), *idf_sentences.items()]:
                    slots[idf] = ScorerSlot(partial(make, bundle, sentences), limits)
                    opened.callback(slots[idf].close)
                name = alias or bundle.manifest.model_id
                if any(name == other.name for other in loaded):
                    raise InputError(f"Two models are called {name!r}. Give one another name: --model NAME={source}.")
                loaded.append(Model(name, bundle, slots, allow_fp32_baseline=allow_fp32_baseline))
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
        """Refuse a request that nobody has read yet, where no model has room for it.

        Raises:
            QueueFullError: as `MicroBatcher.check_room` says.
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
        return ((model, idf, one) for model in self for idf, one in model.slots.items())

    def close(self) -> None:
        """Stop all batchers, so that nobody waits any longer, and release all models."""
        for _, _, slot in self.slots():
            slot.batcher.close()
        for _, _, slot in self.slots():
            slot.close()
