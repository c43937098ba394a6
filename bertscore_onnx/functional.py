"""`score()`: BERTScore in a single call.

The scorer is kept for the next call.
"""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable
from contextlib import ExitStack
from typing import Any, Literal, Unpack, cast, overload

from bertscore_onnx.bundle.store import MANIFEST, default_model
from bertscore_onnx.concurrency.shared import Shared
from bertscore_onnx.errors import BaselineError, ClosedError, DigestError
from bertscore_onnx.files import StrPath, path_text
from bertscore_onnx.matching.variants import checked_matching
from bertscore_onnx.matching.weights import Idf
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.scores import Scores
from bertscore_onnx.scoring.inputs import Contexts, collect_pairs
from bertscore_onnx.settings import ScorerSettings, check_language, key_of
from bertscore_onnx.text.texts import Reference, Text


class ScorerCache:
    """A cache of a few scorers by their settings.

    The least recently used is removed first. Threads may share it.
    """

    def __init__(self, max_scorers: int) -> None:
        self._max_scorers = max_scorers
        self._kept: OrderedDict[Hashable, Shared[BERTScorer]] = OrderedDict()
        self._change = threading.Lock()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._follow_fork)

    def get(
        self, settings: ScorerSettings, load: Callable[[], BERTScorer] | None = None
    ) -> BERTScorer:
        """Return a scorer that shares the model of the kept one.

        The caller closes it.

        If none is kept, or its bundle was replaced, one thread loads it, and others that need it
        wait. `load` may make a scorer of these settings from an existing scorer.
        """
        key = _key_of(settings)
        while True:
            kept = self._keep(key, load or (lambda: BERTScorer(**settings)))
            try:
                scorer = kept.acquire()
            except BaseException as error:
                if isinstance(error, ClosedError) and kept.is_closed:  # dropped by another thread
                    continue
                self._drop(key, kept)
                raise
            try:
                scorer.bundle.check_unchanged()
                return scorer.shared()
            except DigestError:
                kept.replace(scorer)
            finally:
                kept.release(scorer)

    def clear(self) -> None:
        """Close all scorers.

        The model of a scorer at work is released when it is done.
        """
        with self._change:
            dropped = self._kept
            self._kept = OrderedDict()
        for kept in dropped.values():
            kept.close()

    def _keep(self, key: Hashable, load: Callable[[], BERTScorer]) -> Shared[BERTScorer]:
        dropped = None
        with self._change:
            kept = self._kept.setdefault(key, Shared(load))
            self._kept.move_to_end(key)
            if len(self._kept) > self._max_scorers:
                _, dropped = self._kept.popitem(last=False)
        if dropped is not None:
            dropped.close()
        return kept

    def _drop(self, key: Hashable, failed: Shared[BERTScorer]) -> None:
        """Free the place of a scorer that could not be loaded.

        Threads that wait for it try again.
        """
        with self._change:
            if self._kept.get(key) is failed:
                del self._kept[key]
        failed.close()

    def _follow_fork(self) -> None:
        """Drop the scorers that other threads were loading.

        A forked child has no threads to finish them.
        """
        self._change = threading.Lock()
        self._kept = OrderedDict(
            (key, kept) for key, kept in self._kept.items() if not kept.is_being_made
        )


def _key_of(settings: ScorerSettings) -> Hashable:
    """Return a key for the settings that takes account of the working directory and the home of
    bundles, which may change.
    """
    model_type = settings.get("model_type") or None
    if model_type is None and settings.get("lang") is None:
        model_type = default_model()
    if model_type is not None:
        model_type = path_text(model_type, "model_type")
        # unlike Path, it takes any string
        if os.path.isfile(os.path.join(model_type, MANIFEST)):
            model_type = os.path.abspath(model_type)
    return os.environ.get("BERTSCORE_ONNX_HOME"), key_of({**settings, "model_type": model_type})


MAX_SCORERS = 2
"""How many models `score` keeps loaded."""


class ScoreFunction:
    """Score in a single call.

    The arguments are bert-score's, as `BERTScorer` documents them.

    The models of the last two settings stay loaded, so that further calls with them cost as little
    as those of a `BERTScorer`; idf and rescaling may change from call to call. A bundle that was
    replaced is loaded again. Threads may call it at the same time.
    """

    __name__ = "score"

    def __init__(self) -> None:
        self._scorers = ScorerCache(MAX_SCORERS)

    @overload
    def __call__(
        self,
        cands: Iterable[Text],
        refs: Iterable[Reference],
        *positional: Any,
        return_hash: Literal[False] = ...,
        verbose: bool = ...,
        contexts: Contexts = ...,
        **settings: Unpack[ScorerSettings],
    ) -> Scores: ...

    @overload
    def __call__(
        self,
        cands: Iterable[Text],
        refs: Iterable[Reference],
        *positional: Any,
        return_hash: Literal[True],
        verbose: bool = ...,
        contexts: Contexts = ...,
        **settings: Unpack[ScorerSettings],
    ) -> tuple[Scores, str]: ...

    def __call__(  # type: ignore[misc]  # not any number of positional arguments, but bert-score's
        self,
        cands: Iterable[Text],
        refs: Iterable[Reference],
        model_type: StrPath | None = None,
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
        baseline_path: StrPath | None = None,
        use_fast_tokenizer: bool | None = None,
        *,
        contexts: Contexts = None,
        idf_sents: Iterable[str] | None = None,
        allow_fp32_baseline: bool = False,
        **settings: Any,
    ) -> Scores | tuple[Scores, str]:
        """Score candidates against their references.

        Results, errors and warnings are as of `BERTScorer.score`.
        """
        if rescale_with_baseline and lang is None and baseline_path is None:
            raise BaselineError(
                "Rescaling needs the language, `lang`, or a file of your own, `baseline_path`."
            )
        pairs = collect_pairs(cands, refs, contexts)
        device_name = None if device is None else str(device)
        settings |= {
            "model_type": model_type,
            "num_layers": num_layers,
            "all_layers": all_layers,
            "device": device_name,
            "lang": lang if model_type is None else None,
            "use_fast_tokenizer": use_fast_tokenizer,
            "nthreads": nthreads,
            "matching": checked_matching(settings.get("matching", "bertscore")),
        }
        # The kept scorer has neither rescaling nor idf: both may change from call to call.
        with ExitStack() as stack:
            scorer = stack.enter_context(self._scorers.get(cast(ScorerSettings, settings)))
            check_language(lang, scorer.manifest)
            if rescale_with_baseline:
                rescaled = scorer.with_rescaling(
                    lang, baseline_path, allow_fp32_baseline=allow_fp32_baseline
                )
                scorer = stack.enter_context(rescaled)
            if idf is not False or idf_sents is not None:
                scorer = stack.enter_context(scorer.with_idf(idf, idf_sents))
            scores, stats = scorer.score_pairs(pairs, verbose=verbose, batch_size=batch_size)
            stats.warn(scorer.max_length, stacklevel=2)
            return (scores, str(scores.signature)) if return_hash else scores

    def clear(self) -> None:
        """Release the kept models; a model in use is released when it is done."""
        self._scorers.clear()


score: ScoreFunction = ScoreFunction()
