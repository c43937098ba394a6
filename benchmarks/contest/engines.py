"""The engines that can be measured: each has `score(candidates, references)`, which gives P, R and F, or `score_files`.

Imports stand in the functions: a worker has in its memory what its own engine needs, and nothing else.
"""

import threading
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any


def load_ours(path: str, **settings: Any) -> Any:
    """Load a bundle into this library's scorer."""
    from bertscore_onnx import BERTScorer

    return BERTScorer(path, **settings)


def load_peer(path: str, *, device: str, num_layers: int, dtype: str = "float32") -> Any:
    """Load a model folder into bert-score's scorer, its model cast to another type by hand."""
    import torch
    import transformers
    from bert_score import BERTScorer

    transformers.logging.set_verbosity_error()
    scorer = BERTScorer(path, num_layers=num_layers, device=device)
    scorer._model.to(getattr(torch, dtype))
    return scorer


_COMPUTE = "bertscore_onnx.encoding.session.OnnxSession._compute"

Lane = list[Callable[[], object]]
"""Runs that were made one after the other, in one thread."""


class ModelAlone:
    """Runs the model and nothing else: repeats the runs that scoring the same texts made, in the same session.

    What ran side by side does so again.
    """

    def __init__(self, scorer: Any) -> None:
        self._scorer = scorer
        self._recorded: dict[tuple[str, str], tuple[Lane, list[Lane], Any]] = {}
        self._arrays: list[Any] = []
        self._threads = ThreadPoolExecutor()

    def score(self, candidates: list[str], references: list[str]) -> Any:
        """Record the runs of one pair the first time, and repeat them from then on."""
        pair = candidates[0], references[0]
        if pair not in self._recorded:
            self._recorded[pair] = self._record(candidates, references)
        own, others, scores = self._recorded[pair]
        running = self._threads.map(_run_all, others)  # all of them begin here
        _run_all(own)
        list(running)
        return scores

    def _keep_arrays(self, compute: Callable[..., Any]) -> Callable[..., Any]:
        """Keep the arrays that a run reads and writes, of which ONNX Runtime knows only where they are."""

        def keep(*arguments: Any) -> Any:
            self._arrays.append(arguments)
            return compute(*arguments)

        return keep

    def _record(self, candidates: list[str], references: list[str]) -> tuple[Lane, list[Lane], Any]:
        """Return the runs in this thread, those in others, and the scores."""
        from benchmarks.contest.stages import STATIONS, replaced

        lanes: dict[int, Lane] = defaultdict(list)
        with ExitStack() as patches:
            patches.enter_context(replaced(_COMPUTE, self._keep_arrays))
            for name in STATIONS["encode"]:
                patches.enter_context(replaced(name, partial(_recorded, lanes)))
            scores = self._scorer.score(candidates, references)
        if not lanes:
            raise RuntimeError(f"Scoring a pair never came to {' or '.join(STATIONS['encode'])}.")
        own = lanes.pop(threading.get_ident(), [])
        return own, list(lanes.values()), scores


def _run_all(lane: Lane) -> None:
    for run in lane:
        run()


def _recorded(lanes: dict[int, Lane], function: Callable[..., Any]) -> Callable[..., Any]:
    def record(*arguments: Any, **named: Any) -> Any:
        lanes[threading.get_ident()].append(partial(function, *arguments, **named))
        return function(*arguments, **named)

    return record


def load_model_alone(path: str, **settings: Any) -> ModelAlone:
    """Load a bundle for its model's time alone."""
    return ModelAlone(load_ours(path, **settings))


def load_for_rows(path: str, *, way: str) -> Any:
    """Start a way to score many rows."""
    from benchmarks.contest import many_rows

    return getattr(many_rows, way)(path)


ENGINES: dict[str, Callable[..., Any]] = {
    "ours": load_ours,
    "bert-score": load_peer,
    "model-alone": load_model_alone,
    "many-rows": load_for_rows,
}
