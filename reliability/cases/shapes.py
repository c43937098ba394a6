"""The graph runs on random shapes: memory settles, and the same check finds a planted leak."""

import random

import numpy as np

from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.encoding.encoder import Encoder
from harness.results import Figure
from reliability.bounds import at_least, at_most
from reliability.memory import late_spread, resident_mb
from reliability.settings import Settings

BOUND_MB = 100.0
PLANTED_MB = 2 * BOUND_MB
"""What the planted leak loses in the second half."""

LEAKING_RUNS = 30
MOST_TOKENS = 1024
"""Padded tokens of a run; twice what the encoder puts into one."""


def measure(settings: Settings) -> list[Figure]:
    """Run sound, then with a leak."""
    bundle = open_bundle(settings.minilm)
    model, hidden_size = Encoder(bundle, device="cpu"), bundle.manifest.hidden_size
    runs = settings.sizes.shapes
    sound = late_spread(_memory_over_runs(model, hidden_size, runs, leak_mb=0))
    leaking = late_spread(_memory_over_runs(model, hidden_size, LEAKING_RUNS, 2 * PLANTED_MB / LEAKING_RUNS))
    model.close()
    return [
        at_most(f"spread of memory in the second half of {runs:,} runs", sound, "MB", BOUND_MB),
        at_least("the same with a planted leak", leaking, "MB", BOUND_MB),
    ]


def _memory_over_runs(model: Encoder, hidden_size: int, runs: int, leak_mb: float) -> list[float]:
    draw = random.Random(0)  # noqa: S311 -- nothing secret
    lost, samples = [], []
    for _ in range(runs):
        tokens = round(2 ** draw.uniform(1, 9))
        batch = draw.randint(1, max(1, MOST_TOKENS // tokens))
        mask = np.ones((batch, tokens), dtype=np.int64)
        vectors = np.empty((1, *mask.shape, hidden_size), dtype=np.float32)
        model.run_batch(np.full_like(mask, 5), mask, vectors)
        lost.append(np.ones(int(leak_mb * 1e6), dtype=np.uint8))
        samples.append(resident_mb())
    return samples
