"""The engines that can be measured, and the work that each of them does.

Imports stand in the functions, so that a process has only what its own engine needs in its memory.
"""

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from functools import partial
from typing import Any

from harness.texts import distinct_pairs

_COMPUTE = "bertscore_onnx.encoding.session.OrtGraph.run"

Runs = list[Callable[[], object]]  # made one after the other, in one thread
# the seconds of every timed call, and the F of every pair
Outcome = tuple[list[float], list[float]]


def load_ours(path: str, **settings: Any) -> Any:
    """Load a bundle into this library's scorer."""
    from bertscore_onnx import BERTScorer

    return BERTScorer(path, **settings)


def load_peer(
    path: str, *, device: str, num_layers: int, dtype: str = "float32", use_fast: bool = False
) -> Any:
    """Load a model folder into bert-score's scorer, and cast its model to another type by hand."""
    import torch
    import transformers
    from bert_score import BERTScorer

    transformers.logging.set_verbosity_error()
    scorer = BERTScorer(path, num_layers=num_layers, device=device, use_fast_tokenizer=use_fast)
    scorer._model.to(getattr(torch, dtype))
    return scorer


class ModelAlone:
    """Repeats only the runs of the model that scoring the same texts made, in the same session and
    as concurrently.
    """

    def __init__(self, path: str, **settings: Any) -> None:
        self._scorer = load_ours(path, **settings)
        self._recorded: dict[tuple[str, str], tuple[Runs, list[Runs], Any]] = {}
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
        """Keep the arrays that a run reads and writes, to which ONNX Runtime holds only
        pointers.
        """

        def keep(*arguments: Any) -> Any:
            self._arrays.append(arguments)
            return compute(*arguments)

        return keep

    def _record(self, candidates: list[str], references: list[str]) -> tuple[Runs, list[Runs], Any]:
        """Return the runs in this thread, those in other threads, and the scores."""
        from benchmarks.stages import STAGES, replaced

        by_thread: dict[int, Runs] = defaultdict(list)
        with ExitStack() as patches:
            patches.enter_context(replaced(_COMPUTE, self._keep_arrays))
            for name in STAGES["encode"]:
                patches.enter_context(replaced(name, partial(_recording, by_thread)))
            scores = self._scorer.score(candidates, references)
        if not by_thread:
            raise RuntimeError(f"Scoring a pair never called {' or '.join(STAGES['encode'])}.")
        own = by_thread.pop(threading.get_ident(), [])
        return own, list(by_thread.values()), scores


def _run_all(runs: Runs) -> None:
    for run in runs:
        run()


def _recording(by_thread: dict[int, Runs], function: Callable[..., Any]) -> Callable[..., Any]:
    def record(*arguments: Any, **named: Any) -> Any:
        by_thread[threading.get_ident()].append(partial(function, *arguments, **named))
        return function(*arguments, **named)

    return record


def score_by(pipeline: Any, candidates: list[str], references: list[str]) -> Any:
    """Return P, R and F of each pair by a pipeline, with uniform weights."""
    from bertscore_onnx.matching.weights import uniform
    from bertscore_onnx.scores import join_scores
    from bertscore_onnx.scoring.inputs import collect_pairs

    pairs = collect_pairs(candidates, references)
    chunks = [scores for scores, _ in pipeline.score(pairs.slices(), uniform(pipeline.manifest))]
    return [values[0] for values in join_scores(chunks, pipeline.num_layers)]


class HostAlone:
    """Does what precedes the runs of a model, and none of these: tokenises, plans and pads."""

    def __init__(self, path: str, **settings: Any) -> None:
        from bertscore_onnx.bundle.bundle import open_bundle
        from bertscore_onnx.encoding.session import OnnxSession
        from bertscore_onnx.scoring.pipeline import Pipeline

        self._pipeline = Pipeline(open_bundle(path), **settings)
        OnnxSession.run = lambda session, *arguments, **named: None  # type: ignore[method-assign]  # of this process alone

    def prepare(self, candidates: list[str], references: list[str]) -> None:
        """Prepare all pairs for the model, chunk by chunk."""
        from bertscore_onnx.encoding.encoder import Call
        from bertscore_onnx.scoring.inputs import collect_pairs
        from bertscore_onnx.scoring.pipeline import ChunkLimit

        slices = collect_pairs(candidates, references).slices()
        for chunk in self._pipeline.chunks(slices, Call(), ChunkLimit()):
            chunk.runs.finish()


def load_script(path: str, **settings: Any) -> Any:
    """Load a bundle into a plain script."""
    from benchmarks.rivals import Script

    return Script(path, **settings)


def load_torch(path: str, **settings: Any) -> Any:
    """Load a model folder into BERTScore in plain PyTorch."""
    from benchmarks.rivals import TorchScorer

    return TorchScorer(path, **settings)


ENGINES: dict[str, Callable[..., Any]] = {
    "ours": load_ours,
    "bert-score": load_peer,
    "script": load_script,
    "torch": load_torch,
    "host-alone": HostAlone,
    "model-alone": ModelAlone,
}


def score_together(scorer: Any, candidates: list[str], references: list[Any]) -> Outcome:
    """Score all pairs in one call."""
    begin = time.perf_counter()
    _, _, f = scorer.score(candidates, references)
    return [time.perf_counter() - begin], [float(value) for value in f]


def prepare(host: Any, candidates: list[str], references: list[str]) -> Outcome:
    """Prepare all pairs for the model in one call."""
    begin = time.perf_counter()
    host.prepare(candidates, references)
    return [time.perf_counter() - begin], []


def score_singly(scorer: Any, candidates: list[str], references: list[str]) -> Outcome:
    """Score one pair per call."""
    seconds, scores = [], []
    for candidate, reference in zip(candidates, references, strict=True):
        begin = time.perf_counter()
        _, _, f = scorer.score([candidate], [reference])
        seconds.append(time.perf_counter() - begin)
        scores.append(float(f[0]))
    return seconds, scores


def score_systems(
    scorer: Any, systems: list[list[str]], references: list[str], *, encode_once: bool
) -> Outcome:
    """Score the outputs of several systems against the same references."""
    begin = time.perf_counter()
    against = scorer.encode(references) if encode_once else references
    results = [scorer.score(candidates, against) for candidates in systems]
    return [time.perf_counter() - begin], [float(value) for _, _, f in results for value in f]


def compare_systems(
    scorer: Any, systems: list[list[str]], references: list[str], *, test: bool
) -> Outcome:
    """Compare systems, with the paired test and the segments that differ most, or only score
    them.
    """
    if not test:
        return score_systems(scorer, systems, references, encode_once=True)
    from bertscore_onnx_evaluation import compare

    named = {f"system {number}": texts for number, texts in enumerate(systems)}
    begin = time.perf_counter()
    comparison = compare(named, references, scorer=scorer)
    return [time.perf_counter() - begin], comparison.metrics[0].segment_scores.ravel().tolist()


def stream(scorer: Any, count: int) -> Outcome:
    """Score pairs that are made up on demand, and keep none of the scores."""
    begin = time.perf_counter()
    scored = sum(1 for _ in scorer.stream(distinct_pairs(count)))
    if scored != count:
        raise RuntimeError(f"The stream gave {scored} scores for {count} pairs.")
    return [time.perf_counter() - begin], []


WORKLOADS: dict[str, Callable[..., Outcome]] = {
    "together": score_together,
    "singly": score_singly,
    "prepared": prepare,
    "systems": score_systems,
    "compared": compare_systems,
    "stream": stream,
}
