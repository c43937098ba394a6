"""All the models that a server offers, by name."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from bertscore_onnx.bundle.resolver import resolve_bundle
from bertscore_onnx.bundle.store import Precision
from bertscore_onnx.concurrency.closeable import Closeable
from bertscore_onnx.errors import InputError, QueueFullError
from bertscore_onnx.hub import local_path
from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.models.model import CountDocuments, LoadScorer, Model
from bertscore_onnx.server.models.scorer_slot import ScorerSlot
from bertscore_onnx.server.requests.errors import ApiError


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
