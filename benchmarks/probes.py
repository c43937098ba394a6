"""What to find out first on a new GPU: each probe runs in a process of its own and prints its figures.

On a CPU they are rehearsed: its provider gets the limits of CUDA, but runs as short as its memory likes them.
"""

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.engines import score_by
from benchmarks.settings import Settings
from harness.gpu import CHOICE, like_cuda
from harness.models import Model
from harness.processes import ChildError, call_in_child, environment, resident_mb
from harness.texts import distinct_pairs, synthetic_pairs

LIMIT = 3600.0
FREE_MEMORY = 1_500_000_000
CAT = ["A cat sat on the mat."], ["The cat sat on a mat."]
FIRST_SCORE = """
import sys
from bertscore_onnx import BERTScorer
BERTScorer(sys.argv[1], device=sys.argv[2]).score(["A cat sat on the mat."], ["The cat sat on a mat."])
"""

Rows = list[tuple[str, str]]


@dataclass(frozen=True)
class Sizes:
    """How much the probes do."""

    pairs: tuple[int, ...] = (3004, 20_000)
    widths: tuple[int, ...] = (24, 28, 32, 48, 64, 96, 128, 256, 512)
    run_tokens: tuple[int, ...] = (2048, 4096, 8192, 16_384)
    chunk_scales: tuple[int, ...] = (1, 9, 72)
    fresh_shapes: int = 40
    repeats: int = 10
    soak: float = 600.0


TINY = Sizes((60,), (24, 64), (256, 512), (1, 9), 6, 2, 1.0)


@dataclass(frozen=True)
class Subject:
    """The bundles to try, and where."""

    fp16: str
    fp32: str
    device: str
    sizes: Sizes


def run_probes(settings: Settings, numbers: list[int], soak: float, results: dict[int, Rows]) -> bool:
    """Run probes by their numbers, add their figures and write them; return whether none failed."""
    model = settings.gpu_model
    sizes = TINY if settings.is_rehearsal else replace(Sizes(), soak=soak)
    failed = False
    for number in numbers:
        probe = PROBES[number]
        print(f"\n({number}) {probe.__doc__}", flush=True)
        try:
            results[number] = rows = _call(probe, model, settings.device, sizes)
        except ChildError as error:
            failed, rows = True, [("failed", error.reason)]
            print(error, file=sys.stderr)
        for name, value in rows:
            print(f"  {name}: {value}", flush=True)
        (settings.output / "probes.json").write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    return not failed


def _call(probe: Callable[..., Rows], model: Model, device: str, sizes: Sizes) -> Rows:
    begin = time.perf_counter()
    fp16, fp32 = str(model.bundle("fp16")), str(model.bundle())
    exported = time.perf_counter() - begin
    if probe is exporting:
        size = sum(file.stat().st_size for file in Path(fp16).rglob("*") if file.is_file())
        return [("both bundles exported, or found, in", f"{exported:.0f} s"), ("in fp16", f"{size / 1e6:,.0f} MB")]
    rows: Rows = call_in_child(probe, Subject(fp16, fp32, device, sizes), limit=LIMIT)
    return rows


# --- in the process of a probe ---


class RawEncoder:
    """The session of a bundle, with batches of any shape."""

    def __init__(self, subject: Subject) -> None:
        """Open the session."""
        from bertscore_onnx.bundle.bundle import open_bundle
        from bertscore_onnx.encoding.encoder import Encoder

        _set_provider(subject)
        bundle = open_bundle(subject.fp16)
        self._encoder, self._manifest, self._device = Encoder(bundle), bundle.manifest, subject.device
        self.longest: int = bundle.manifest.max_length or 512
        """The most tokens of a text."""

    def run(self, number: int, width: int, *, on_device: bool = False) -> None:
        """Encode a batch, and copy its vectors to the host or leave them on the device."""
        import numpy as np

        ids = np.full((number, width), self._manifest.pad_id + 1, dtype=np.int64)
        if not on_device:
            vectors = np.empty((1, number, width, self._manifest.hidden_size), dtype=np.float32)
            self._encoder.run_batch(ids, np.ones_like(ids), vectors)
            return
        session = self._encoder.session.get()
        binding = session.io_binding()
        for name in self._manifest.inputs:
            binding.bind_cpu_input(name, ids if name == "input_ids" else np.ones_like(ids))
        binding.bind_output(self._manifest.output, self._device)
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()


def _set_provider(
    subject: Subject, *, chunk_scale: int = 9, run_tokens: int = 0, tf32: int = 0, plain: bool = False
) -> None:
    """Let sessions of this process open on the device of the subject, with other limits; or as usual, if `plain`."""
    from bertscore_onnx.encoding.providers import CUDA

    mock.patch.stopall()
    if plain:
        return
    limits: dict[str, Any] = {"chunk_scale": chunk_scale}
    if subject.device == "cpu":
        provider = like_cuda(batch_values=(run_tokens or 512) * 32, **limits)
    else:
        limits |= {"batch_values": run_tokens * 1024} if run_tokens else {}
        provider = replace(CUDA, options=lambda *about: {**CUDA.options(*about), "use_tf32": tf32}, **limits)
    mock.patch(CHOICE, return_value=[provider]).start()


def _pipeline(subject: Subject) -> Any:
    from bertscore_onnx.bundle.bundle import open_bundle
    from bertscore_onnx.scoring.pipeline import Pipeline

    return Pipeline(open_bundle(subject.fp16), device=subject.device)


def _score(pipeline: Any, candidates: list[str], references: list[str]) -> list[float]:
    """Return F of each pair."""
    f1: list[float] = score_by(pipeline, candidates, references)[2].tolist()
    return f1


def _largest(one: list[float], other: list[float]) -> float:
    return max(abs(left - right) for left, right in zip(one, other, strict=True))


def _timed(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def _rate(call: Callable[[], object], repeats: int, amount: int) -> float:
    """Return the amount of a call in a second, at the best of some calls after the first."""
    call()
    return amount / min(_timed(call) for _ in range(repeats))


def _in_both(threads: ThreadPoolExecutor, call: Callable[[], object]) -> None:
    """Make a call in two threads at a time."""
    for future in [threads.submit(call) for _ in range(2)]:
        future.result()


def _device_mb(device: str) -> float:
    """Return the memory of the device that is in use, by any process."""
    if device == "cpu":
        return 0.0
    query = ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "--id=0"]
    used = subprocess.run(query, capture_output=True, text=True, check=True).stdout
    return float(used) * 2**20 / 1e6


def agreement(subject: Subject) -> Rows:
    """Run the doctor, and compare the scores of the GPU with those of the CPU, and of pairs alone."""
    done = subprocess.run(
        [sys.executable, "-m", "bertscore_onnx", "doctor", subject.fp16, "--format", "json"],
        capture_output=True,
        text=True,
        env=environment(),
        check=False,
    )
    trial = json.loads(done.stdout)["trial"] or {}
    candidates, references = synthetic_pairs(subject.sizes.pairs[0])
    _set_provider(subject)
    pipeline = _pipeline(subject)
    found = _score(pipeline, candidates, references)
    few = slice(50)
    alone = [_score(pipeline, [one], [other])[0] for one, other in zip(candidates[few], references[few], strict=True)]
    _set_provider(replace(subject, device="cpu"), plain=True)
    on_cpu = _score(_pipeline(replace(subject, device="cpu")), candidates, references)
    return [
        ("doctor", f"status {done.returncode}; provider {trial.get('provider')}; {trial.get('error') or 'no error'}"),
        ("one pair a call", str(trial.get("pair_ms"))),
        ("against the CPU", f"{_largest(found, on_cpu):.1e}"),
        ("alone, against in a batch", f"{_largest(alone, found[few]):.1e}"),
    ]


def attention(subject: Subject) -> Rows:
    """Find the kernels that compute attention; fail if they are not fused."""
    from benchmarks.attention import UNFUSED, attention_kernels, describe_kernels

    kernels = attention_kernels(Path(subject.fp16), subject.device)
    if UNFUSED in kernels or (subject.device == "cuda" and not kernels):
        raise RuntimeError(describe_kernels(kernels))
    return [("attention", describe_kernels(kernels))]


def exporting(subject: Subject) -> Rows:
    """Export the bundles."""
    raise NotImplementedError(f"The parent process exports {subject.fp16}.")


def raw_session(subject: Subject) -> Rows:
    """Time the session alone by shape, with vectors copied or left on the device, in one thread and in two."""
    encoder = RawEncoder(subject)
    rows = []
    with ThreadPoolExecutor(2) as threads:
        for tokens in subject.sizes.run_tokens:
            for width in (width for width in subject.sizes.widths if width <= encoder.longest):
                number = max(1, tokens // width)
                run = partial(encoder.run, number, width)
                calls = (run, partial(run, on_device=True), partial(_in_both, threads, run))
                to_host, on_device, of_two = (_rate(call, subject.sizes.repeats, number * width) for call in calls)
                rates = f"{to_host:,.0f}, on the device {on_device:,.0f}, in two threads {2 * of_two:,.0f}"
                rows.append((f"{number} × {width}, tokens/s", rates))
    return rows


def plans(subject: Subject) -> Rows:
    """Time first and second runs of new shapes, in one thread and then in another, and measure their memory."""
    encoder = RawEncoder(subject)
    draw = random.Random(0)
    longest = min(encoder.longest, 200)
    shapes = [(draw.randint(1, 40), draw.randint(8, longest)) for _ in range(subject.sizes.fresh_shapes)]
    before, rows = resident_mb(), []
    for name in ("first thread", "second thread"):
        with ThreadPoolExecutor(1) as thread:
            for again in ("first run", "second run"):
                seconds = [thread.submit(_timed, partial(encoder.run, *shape)).result() for shape in shapes]
                rows.append((f"{name}, {again}", f"{1000 * sum(seconds) / len(seconds):.1f} ms a shape"))
    rows.append(("host memory", f"{resident_mb() - before:.0f} MB more after {len(shapes)} shapes in two threads"))
    return rows


def end_to_end(subject: Subject) -> Rows:
    """Time scoring with chunks and runs of several sizes, cold and warm."""
    rows = []
    for number in subject.sizes.pairs:
        candidates, references = synthetic_pairs(number)
        for scale in subject.sizes.chunk_scales:
            for tokens in subject.sizes.run_tokens[-3:]:
                _set_provider(subject, chunk_scale=scale, run_tokens=tokens)
                with _pipeline(subject) as pipeline:
                    score = partial(_score, pipeline, candidates, references)
                    cold, warm = _timed(score), min(_timed(score) for _ in range(2))
                name = f"{number:,}, chunks × {scale}, runs of {tokens:,}"
                rows.append((name, f"{number / cold:,.0f} pairs/s cold, {number / warm:,.0f} warm"))
    return rows


def failures(subject: Subject) -> Rows:
    """Score with too little memory, on a card that does not exist, and in a forked child."""
    from bertscore_onnx import BERTScorer
    from bertscore_onnx.errors import BertScoreOnnxError

    rows = []
    candidates, references = synthetic_pairs(subject.sizes.pairs[0])
    _set_provider(subject)
    expected = _score(_pipeline(subject), candidates, references)
    os.environ["BERTSCORE_ONNX_GPU_MEM_LIMIT"] = str(FREE_MEMORY)
    try:
        found = _score(_pipeline(subject), candidates, references)
        rows.append((f"with {FREE_MEMORY:,} bytes of memory", f"the same to {_largest(found, expected):.1e}"))
    except BertScoreOnnxError as error:
        rows.append((f"with {FREE_MEMORY:,} bytes of memory", f"{type(error).__name__}: {error}"))
    del os.environ["BERTSCORE_ONNX_GPU_MEM_LIMIT"]
    _set_provider(subject, plain=True)
    try:
        BERTScorer(subject.fp16, device="cuda:7")
        raise RuntimeError("There is a device cuda:7?")
    except BertScoreOnnxError as error:
        rows.append(("cuda:7", f"{type(error).__name__}: {error}"))
    with BERTScorer(subject.fp16, device=subject.device) as scorer:
        scorer.score(*CAT)
        reader, writer = os.pipe()
        if not (child := os.fork()):
            try:
                outcome = f"F = {float(scorer.score(*CAT).F[0]):.4f}"
            except Exception as error:
                outcome = f"{type(error).__name__}: {error}"
            os.write(writer, outcome.encode())
            os._exit(0)
        os.close(writer)
        os.waitpid(child, 0)
        rows.append(("a forked child", os.read(reader, 10_000).decode()))
    return rows


def precision(subject: Subject) -> Rows:
    """Compare fp32, with TF32 off and on, and fp16 with the CPU, and time them."""
    candidates, references = synthetic_pairs(subject.sizes.pairs[0])
    _set_provider(replace(subject, device="cpu"), plain=True)
    on_cpu = _score(_pipeline(replace(subject, device="cpu", fp16=subject.fp32)), candidates, references)
    rows = []
    ways = (("fp32", subject.fp32, 0), ("fp32 with TF32", subject.fp32, 1), ("fp16", subject.fp16, 0))
    for name, bundle, tf32 in ways:
        _set_provider(subject, tf32=tf32)
        with _pipeline(replace(subject, fp16=bundle)) as pipeline:
            found = _score(pipeline, candidates, references)
            seconds = _timed(partial(_score, pipeline, candidates, references))
        difference = _largest(found, on_cpu)
        rows.append(
            (name, f"the largest difference of F is {difference:.1e}; {len(candidates) / seconds:,.0f} pairs/s")
        )
    return rows


def soak(subject: Subject) -> Rows:
    """Time the first score of a process, then score batches of changing sizes and watch the memory."""
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", FIRST_SCORE, subject.fp16, subject.device], env=environment(), check=True)
    rows = [("from the start of a process to its first score", f"{time.perf_counter() - begin:.1f} s")]
    _set_provider(subject)
    draw = random.Random(0)
    with _pipeline(subject) as pipeline:
        seconds = _timed(pipeline.warm_up)
        rows.append(("warming up all shapes", f"{seconds:.1f} s"))
        supply, count, memory = distinct_pairs(10**9), 0, []
        end = time.perf_counter() + subject.sizes.soak
        while time.perf_counter() < end:
            pairs = [next(supply) for _ in range(draw.randint(1, subject.sizes.pairs[0]))]
            _score(pipeline, *map(list, zip(*pairs, strict=True)))
            count += len(pairs)
            memory.append((resident_mb(), _device_mb(subject.device)))
    (host_before, device_before), (host, device) = memory[len(memory) // 4], memory[-1]
    rows.append((f"memory after {count:,} pairs", f"{host:,.0f} MB, on the device {device:,.0f} MB"))
    growth = f"{host - host_before:+,.0f} MB, on the device {device - device_before:+,.0f} MB"
    rows.append(("growth since a quarter of the time", growth))
    return rows


PROBES: Mapping[int, Callable[[Subject], Rows]] = {
    1: agreement,
    2: attention,
    3: exporting,
    4: raw_session,
    5: plans,
    6: end_to_end,
    8: failures,
    9: precision,
    10: soak,
}
"""The probes by their numbers; 7 is the case h."""
