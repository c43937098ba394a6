"""The models that a server offers, by name and idf table."""

import asyncio
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self, cast

from bertscore_onnx.bundle.bundle import Bundle
from bertscore_onnx.concurrency.closeable import Closeable
from bertscore_onnx.errors import IdfError, InputError, QueueFullError
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.matching.rescaling import Rescaling
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.scores import Scores, Signature
from bertscore_onnx.scoring.inputs import Pairs
from bertscore_onnx.settings import ScorerSettings, find_bundle
from bertscore_onnx.similarity import TokenNames
from bertscore_onnx_service import MicroBatcher
from bertscore_onnx_service.http.bodies import ModelInfo
from bertscore_onnx_service.http.errors import ApiError
from bertscore_onnx_service.http.limits import Limits

CountDocuments = Callable[[Bundle], DocumentCounts]
"""Counts the documents of an idf table with the tokenizer of a bundle."""


class Model(Closeable):
    """One model with one idf table, or without.

    It has a scorer, and the batcher in front of it.
    """

    def __init__(
        self,
        *,
        name: str,
        idf: str | None,
        scorer: BERTScorer,
        token_names: TokenNames,
        limits: Limits,
        allow_fp32_baseline: bool,
    ) -> None:
        """Start a batcher of the scorer, which this model closes."""
        self.name = name
        self.idf = idf
        self.token_names = token_names
        self.scorer = scorer
        try:
            self.batcher = MicroBatcher(
                self.scorer,
                max_batch_tokens=limits.max_batch_tokens,
                max_queue=limits.max_queue,
                deadline=limits.deadline,
            )
        except BaseException:
            self.scorer.close()
            raise
        self._rescalings: dict[str, Rescaling] = {}
        if not self.scorer.matching.is_default:
            return
        manifest = self.scorer.manifest
        precision = self.scorer.signature.precision
        for language, baselines in manifest.baselines.items():
            if allow_fp32_baseline or manifest.baseline_precision(language) == precision:
                self._rescalings[language] = Rescaling(language, tuple(baselines))

    def __str__(self) -> str:
        """Return the model's name, and the name of its idf table."""
        if self.idf:
            return f"{self.name} with idf {self.idf}"
        return self.name

    @property
    def languages(self) -> list[str]:
        """The languages to rescale for, in order."""
        return sorted(self._rescalings)

    def rescaling(self, language: str | bool | None) -> Rescaling:
        """Return the rescaling that a request names by its language.

        The error is 422 if the model has no baseline for it.
        """
        if language is True:
            message = '`rescale` is true; expected a language, such as "en", or false.'
            raise ApiError(422, "invalid", message)
        if not language:
            return Rescaling()
        if language.lower() not in self._rescalings:
            languages = "nor for any other language"
            if self._rescalings:
                languages = f"only for {', '.join(self.languages)}"
            message = f"{self.name} has no baseline for {language!r}, {languages}."
            raise ApiError(422, "unknown_baseline", message)
        return self._rescalings[language.lower()]

    def signature(self, rescaling: Rescaling, pairs: Pairs) -> Signature:
        """Return the signature of the scores of pairs.

        It is as of the scores that a `BERTScorer` of the same settings gives them.
        """
        return replace(self.scorer.signature_of(pairs), rescale=rescaling.name)

    async def score(
        self,
        pairs: Pairs,
        rescaling: Rescaling,
        until: float,
        client: Hashable = None,
    ) -> Scores:
        """Score tokenised pairs in batches with pairs of other requests.

        They are scored before `until` by the running loop's clock. If the queue is full by now,
        wait for capacity rather than discard the tokenised texts.
        """
        now = asyncio.get_running_loop().time
        while True:
            try:
                deadline = max(until - now(), 0.001)
                scores = await self.batcher.score_pairs(pairs, deadline=deadline, client=client)
            except QueueFullError as error:
                if now() + error.retry_after > until:
                    raise
                await asyncio.sleep(error.retry_after)
            else:
                return rescaling.apply(scores)

    def close(self) -> None:
        """Stop the batcher, and close the scorer."""
        self.batcher.close()
        self.scorer.close()


class Models(Closeable):
    """All the models of a server."""

    def __init__(self) -> None:
        """Begin without models; `load` adds them."""
        self._models: dict[str, dict[str | None, Model]] = {}

    @classmethod
    def load(
        cls,
        models: Sequence[str],
        idf_tables: Mapping[str, CountDocuments],
        limits: Limits,
        settings: ScorerSettings | None = None,
    ) -> Self:
        """Load models, each once for scores without idf and every idf table.

        A model is named by its name, or by the path of a bundle; `NAME=` before it sets the name
        that requests use. An existing path may contain a `=` itself. All scorers have the same
        `settings`, as `BERTScorer` takes them.
        """
        loaded = cls()
        with ExitStack() as on_failure:
            on_failure.enter_context(loaded)
            for spec in models:
                loaded._load(spec, idf_tables, limits, dict(settings or {}))
            on_failure.pop_all()
        return loaded

    def _load(
        self,
        spec: str,
        idf_tables: Mapping[str, CountDocuments],
        limits: Limits,
        settings: dict[str, Any],
    ) -> None:
        """Load a model, once for all its idf tables."""
        alias, source = _name_and_source(spec)
        named = cast(ScorerSettings, {**settings, "model_type": source})
        bundle = find_bundle(named, all_layers=False)
        name = alias or bundle.manifest.model_id
        if name in self._models:
            advice = f"Give one another name: --model NAME={source}."
            raise InputError(f"Two models are called {name!r}. {advice}")
        make = partial(
            Model,
            name=name,
            token_names=TokenNames(bundle),
            limits=limits,
            allow_fp32_baseline=settings.get("allow_fp32_baseline", False),
        )
        with BERTScorer(**{**settings, "model_type": bundle.path}) as base:
            by_idf: dict[str | None, Model] = {None: make(idf=None, scorer=base.shared())}
            self._models[name] = by_idf  # before all are made, so that a failure closes those made
            for idf, count in idf_tables.items():
                try:
                    by_idf[idf] = make(idf=idf, scorer=base.with_idf(count(bundle)))
                except IdfError as error:
                    message = f"The idf table {idf!r} does not fit the model {name!r}. {error}"
                    raise IdfError(message) from error

    def select(self, name: str | None = None, idf: str | None = None) -> Model:
        """Return a model by its name, or the only model.

        It has the idf table, or none. The error is 422 if there is no such model or table.
        """
        names = ", ".join(self._models)
        if name is None and len(self._models) > 1:
            raise ApiError(422, "model_missing", f"Name a `model`; the server has: {names}.")
        if name is not None and name not in self._models:
            message = f"There is no model {name!r}; the server has: {names}."
            raise ApiError(422, "unknown_model", message)
        by_idf = next(iter(self._models.values())) if name is None else self._models[name]
        if idf not in by_idf:
            tables = ", ".join(table for table in by_idf if table is not None) or "none"
            message = f"There is no idf table {idf!r}; the server has: {tables}."
            raise ApiError(422, "unknown_idf", message)
        return by_idf[idf]

    def __iter__(self) -> Iterator[Model]:
        """Iterate over the models, each without idf and with every idf table."""
        for by_idf in self._models.values():
            yield from by_idf.values()

    @property
    def names(self) -> list[str]:
        """The names of the models."""
        return list(self._models)

    def info(self) -> list[ModelInfo]:
        """Describe the models."""
        return [_info(by_idf) for by_idf in self._models.values()]

    def check_capacity(self) -> None:
        """Raise a QueueFullError if the queues of all models are full."""
        refusal = None
        for model in self:
            try:
                model.batcher.check_capacity()
            except QueueFullError as error:
                refusal = error
            else:
                return
        if refusal is not None:
            raise refusal

    def close(self) -> None:
        """Stop all batchers, so that no caller waits any longer; close scorers."""
        for model in self:
            model.batcher.close()
        for model in self:
            model.close()


def _info(by_idf: Mapping[str | None, Model]) -> ModelInfo:
    """Describe a model and its idf tables."""
    model = by_idf[None]
    scorer = model.scorer
    return ModelInfo(
        model.name,
        scorer.manifest.num_layers,
        scorer.signature.precision,
        scorer.provider,
        scorer.hash,
        scorer.max_length,
        model.languages,
        [idf for idf in by_idf if idf is not None],
    )


def _name_and_source(spec: str) -> tuple[str, str]:
    """Return the name before a model, empty if there is none, and the model."""
    name, equals, source = spec.partition("=")
    if not equals or Path(spec).exists():
        return "", spec
    return name, source
