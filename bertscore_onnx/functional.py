"""`score()`: BERTScore in a single call, by a scorer that is kept for the next one."""

import os
from collections.abc import Hashable, Iterable
from contextlib import ExitStack
from os import PathLike
from typing import Literal, overload

from bertscore_onnx.bundle.store import MANIFEST, Precision
from bertscore_onnx.errors import BaselineError
from bertscore_onnx.matching.weights import Idf
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.scorer_cache import ScorerCache
from bertscore_onnx.scores import Scores
from bertscore_onnx.scoring.inputs import Reference, collect_pairs
from bertscore_onnx.text.tokenizer import LongText

MAX_SCORERS = 2
"""How many models `score` keeps loaded."""


class ScoreFunction:
    """Score in a single call; the arguments are those of bert-score's `score` and mean what `BERTScorer` says.

    The models of the last two settings stay loaded, so that further calls with these cost what those of a `BERTScorer`
    do; idf and rescaling may change from call to call. A bundle that was replaced is loaded again. Threads may call it
    at the same time.
    """

    __name__ = "score"

    def __init__(self) -> None:
        """Start without models."""
        self._scorers = ScorerCache(MAX_SCORERS)

    @overload
    def __call__(
        self,
        cands: Iterable[str],
        refs: Iterable[Reference],
        model_type: str | PathLike[str] | None = ...,
        num_layers: int | None = ...,
        verbose: bool = ...,
        idf: Idf = ...,
        device: object = ...,
        batch_size: int | None = ...,
        nthreads: int | None = ...,
        all_layers: bool = ...,
        lang: str | None = ...,
        return_hash: Literal[False] = ...,
        rescale_with_baseline: bool = ...,
        baseline_path: str | PathLike[str] | None = ...,
        use_fast_tokenizer: bool | None = ...,
        *,
        idf_sents: Iterable[str] | None = ...,
        precision: Precision | None = ...,
        allow_fp32_baseline: bool = ...,
        long_text: LongText = ...,
        max_length: int | None = ...,
    ) -> Scores: ...

    @overload
    def __call__(
        self,
        cands: Iterable[str],
        refs: Iterable[Reference],
        model_type: str | PathLike[str] | None = ...,
        num_layers: int | None = ...,
        verbose: bool = ...,
        idf: Idf = ...,
        device: object = ...,
        batch_size: int | None = ...,
        nthreads: int | None = ...,
        all_layers: bool = ...,
        lang: str | None = ...,
        *,
        return_hash: Literal[True],
        rescale_with_baseline: bool = ...,
        baseline_path: str | PathLike[str] | None = ...,
        use_fast_tokenizer: bool | None = ...,
        idf_sents: Iterable[str] | None = ...,
        precision: Precision | None = ...,
        allow_fp32_baseline: bool = ...,
        long_text: LongText = ...,
        max_length: int | None = ...,
    ) -> tuple[Scores, str]: ...

    def __call__(
        self,
        cands: Iterable[str],
        refs: Iterable[Reference],
        model_type: str | PathLike[str] | None = None,
        num_layers: int | None = None,
        verbose: bool = False,
        idf: Idf = False,
        device: object = None,
        batch_size: int | None = None,
        nthreads: int | None = None,
        all_layers: bool = False,
        lang: str | None = None,
        return_hash: bool = False,
        rescale_with_baseline: bool = False,
        baseline_path: str | PathLike[str] | None = None,
        use_fast_tokenizer: bool | None = None,
        *,
        idf_sents: Iterable[str] | None = None,
        precision: Precision | None = None,
        allow_fp32_baseline: bool = False,
        long_text: LongText = "truncate",
        max_length: int | None = None,
    ) -> Scores | tuple[Scores, str]:
        """Score candidates against their references; results, errors and warnings are those of `BERTScorer.score`."""

        def load() -> BERTScorer:
            return BERTScorer(
                model_type,
                num_layers,
                all_layers=all_layers,
                device=device,
                lang=lang,
                use_fast_tokenizer=use_fast_tokenizer,
                nthreads=nthreads,
                precision=precision,
                long_text=long_text,
                max_length=max_length,
            )

        if rescale_with_baseline and lang is None and baseline_path is None:
            raise BaselineError("Rescaling needs the language, `lang`, or a file of your own, `baseline_path`.")
        pairs = collect_pairs(cands, refs)
        device = None if device is None else str(device)
        settings = (num_layers, all_layers, device, use_fast_tokenizer, nthreads, precision, long_text, max_length)
        with ExitStack() as stack:
            scorer = stack.enter_context(self._scorers.get((_bundle_named(model_type, lang), settings), load))
            if rescale_with_baseline:
                scorer = stack.enter_context(
                    scorer.with_rescaling(lang, baseline_path, allow_fp32_baseline=allow_fp32_baseline)
                )
            if idf is not False or idf_sents is not None:
                scorer = stack.enter_context(scorer.with_idf(idf, idf_sents))
            scores, counts = scorer.score_pairs(pairs, verbose=verbose, batch_size=batch_size)
            counts.warn(scorer.max_length, stacklevel=2)
            return (scores, scorer.hash) if return_hash else scores

    def clear(self) -> None:
        """Release the models that are kept; one that is scoring is released when it is done."""
        self._scorers.clear()


score: ScoreFunction = ScoreFunction()


def _bundle_named(model_type: str | PathLike[str] | None, lang: str | None) -> Hashable:
    """Return what tells one bundle from another, whatever becomes the working directory or the store."""
    store = os.environ.get("BERTSCORE_ONNX_HOME")
    if model_type is None:
        return lang, None, store
    is_path = os.path.isfile(os.path.join(model_type, MANIFEST))  # unlike Path, it takes any string
    return None, os.path.abspath(model_type) if is_path else str(model_type), store
