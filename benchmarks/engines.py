"""The engines that can be measured: each has `score(candidates, references)`, which gives P, R and F.

Imports stand in the functions: a worker has in its memory what its own engine needs, and nothing else.
"""

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pkgutil import resolve_name
from typing import Any


def load_ours(path: str, *, device: str) -> Any:
    """Load a bundle into this library's scorer."""
    from bertscore_onnx import BERTScorer

    return BERTScorer(path, device=device)


def load_peer(path: str, *, device: str, num_layers: int, dtype: str = "float32") -> Any:
    """Load a model folder into bert-score's scorer, its model cast to another type by hand."""
    import torch
    import transformers
    from bert_score import BERTScorer

    transformers.logging.set_verbosity_error()
    scorer = BERTScorer(path, num_layers=num_layers, device=device)
    scorer._model.to(getattr(torch, dtype))
    return scorer


class ModelAlone:
    """Runs the model and nothing else: repeats the runs that scoring the same texts made, in the same session."""

    def __init__(self, scorer: Any) -> None:
        self._scorer = scorer
        self._recorded: dict[tuple[str, str], tuple[list[Callable[[], object]], Any]] = {}

    def score(self, candidates: list[str], references: list[str]) -> Any:
        """Record the runs of one pair the first time, and repeat them from then on."""
        pair = candidates[0], references[0]
        if pair not in self._recorded:
            self._recorded[pair] = self._record(candidates, references)
        runs, scores = self._recorded[pair]
        for run in runs:
            run()
        return scores

    def _record(self, candidates: list[str], references: list[str]) -> tuple[list[Callable[[], object]], Any]:
        from unittest import mock

        from benchmarks.stages import MODEL_RUNS

        runs: list[Callable[[], object]] = []
        with ExitStack() as patches:
            for name in MODEL_RUNS:
                patches.enter_context(mock.patch(name, _recorded(resolve_name(name), runs)))
            scores = self._scorer.score(candidates, references)
        if not runs:
            raise RuntimeError(f"Scoring a pair never came to {' or '.join(MODEL_RUNS)}. Adjust benchmarks/stages.py.")
        return runs, scores


def _recorded(function: Callable[..., Any], runs: list[Callable[[], object]]) -> Callable[..., Any]:
    def record(*arguments: Any, **named: Any) -> Any:
        runs.append(partial(function, *arguments, **named))
        return function(*arguments, **named)

    return record


def load_model_alone(path: str, *, device: str) -> ModelAlone:
    """Load a bundle for its model's time alone."""
    return ModelAlone(load_ours(path, device=device))


ENGINES: dict[str, Callable[..., Any]] = {
    "ours": load_ours,
    "bert-score": load_peer,
    "model-alone": load_model_alone,
}
