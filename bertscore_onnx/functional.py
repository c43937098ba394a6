"""`score()`: BERTScore in a single call, by a scorer that is kept for the next one."""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from contextlib import ExitStack
from os import PathLike
from typing import Literal, overload

from bertscore_onnx.bundle.store import MANIFEST, Precision
from bertscore_onnx.errors import BaselineError, DigestError
from bertscore_onnx.matching.weights import Idf
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.scores import Scores
from bertscore_onnx.scoring.inputs import Reference, collect_pairs
from bertscore_onnx.text.tokenizer import LongText

# Keeps the scorers of the last few settings, so that scoring again with the same settings need not load a model.


class ScorerCache:
    """A few scorers by their settings, of which the least recently used goes first; threads may share it."""

    def __init__(self, max_scorers: int) -> None:
        """Start without scorers.

        Args:
            max_scorers: how many to keep, at least 1.
        """
        self._max_scorers = max_scorers
        self._entries: OrderedDict[Hashable, _Entry] = OrderedDict()
        self._change = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._follow_fork)

    def get(self, settings: Hashable, load: Callable[[], BERTScorer]) -> BERTScorer:
        """Return a scorer that shares the model of the one that is kept; the caller closes it.

        Args:
            settings: what tells the scorer from others.
            load: makes a scorer, where none is kept or its bundle was replaced. Its errors are passed
                on. Of threads that ask for the same settings one loads it and the others wait.
        """
        while True:
            entry = self._entry(settings)
            with entry.lock:
                if not entry.is_dropped:
                    try:
                        return entry.share(load)
                    except BaseException:
                        self._forget(settings, entry)
                        raise

    def clear(self) -> None:
        """Close all scorers; the model of one that is scoring is released when it is done."""
        with self._change:
            dropped, self._entries = [*self._entries.values()], OrderedDict()
        for entry in dropped:
            entry.drop()

    def _entry(self, settings: Hashable) -> "_Entry":
        dropped = None
        with self._change:
            entry = self._entries.setdefault(settings, _Entry())
            self._entries.move_to_end(settings)
            if len(self._entries) > self._max_scorers:
                _, dropped = self._entries.popitem(last=False)
        if dropped is not None:
            dropped.drop()
        return entry

    def _forget(self, settings: Hashable, entry: "_Entry") -> None:
        """Leave the place of an entry that could not be loaded to others; threads that wait for it try again."""
        with self._change:
            if self._entries.get(settings) is entry:
                del self._entries[settings]
        entry.is_dropped = True

    def _follow_fork(self) -> None:
        """Forget what other threads were about to load: they are not in this process to finish it."""
        self._change = threading.Lock()
        self._entries = OrderedDict((key, entry) for key, entry in self._entries.items() if not entry.lock.locked())


class _Entry:
    """The scorer of some settings, once it is loaded."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        """Held while the scorer is loaded or shared, not while it scores."""
        self.is_dropped = False
        self._scorer: BERTScorer | None = None

    def share(self, load: Callable[[], BERTScorer]) -> BERTScorer:
        """Return one more user of the model, loaded if need be; the caller holds the lock."""
        if self._scorer is not None:
            try:
                self._scorer.bundle.check_unchanged()
            except DigestError:
                self._close()
        if self._scorer is None:
            self._scorer = load()
        return self._scorer.shared()

    def drop(self) -> None:
        """Close the scorer, and let none be loaded here again."""
        with self.lock:
            self.is_dropped = True
            self._close()

    def _close(self) -> None:
        if self._scorer is not None:
            self._scorer.close()
            self._scorer = None


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
