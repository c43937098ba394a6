"""Floating-point operations: of a model, by formula, and per second of this machine; a multiply-add
counts as two.
"""

import json
import time
from collections.abc import Callable, Iterable
from functools import partial

from harness.models import Model
from harness.processes import call_in_child

PRODUCT_SECONDS = 600.0  # the time limit


def model_flops(model: Model, texts: list[str]) -> float:
    """Return the operations of encoding texts, each distinct text once."""
    config = json.loads((model.folder / "config.json").read_text(encoding="utf-8"))
    return encode_flops(
        model.token_counts(list(dict.fromkeys(texts))),
        layers=model.num_layers,
        hidden=config["hidden_size"],
        intermediate=config["intermediate_size"],
    )


def encode_flops(lengths: Iterable[int], *, layers: int, hidden: int, intermediate: int) -> float:
    """Return the operations of encoding texts of these lengths, without padding, embeddings, norms
    and activations.

    In each layer a token passes four projections (hidden × hidden) and two of the feed-forward
    block (hidden × intermediate), and meets every token of its text twice (scores and weighted
    sum), with 2·hidden operations each time.
    """
    projections = 2 * (4 * hidden**2 + 2 * hidden * intermediate)
    return float(sum(layers * length * (projections + 4 * length * hidden) for length in lengths))


def product_rate(device: str, dtype: str, sizes: list[int]) -> float:
    """Measure in a process of its own the most operations per second of a product of square
    matrices.
    """
    rate: float = call_in_child(_product_rate, device, dtype, sizes, limit=PRODUCT_SECONDS)
    return rate


def _product_rate(device: str, dtype: str, sizes: list[int]) -> float:
    import numpy as np
    import torch

    best = 0.0
    for size in sizes:
        left, right = torch.rand(2, size, size, device=device, dtype=getattr(torch, dtype))
        products: list[Callable[[], object]] = [partial(torch.mm, left, right)]
        if device == "cpu":
            arrays = np.random.default_rng(0).random((2, size, size), dtype=np.float32)
            products.append(partial(np.matmul, *arrays))
        for product in products:
            seconds = min(_seconds(product, device) for _ in range(5))
            best = max(best, 2 * size**3 / seconds)
    return best


def _seconds(call: Callable[[], object], device: str) -> float:
    import torch

    begin = time.perf_counter()
    call()
    if device != "cpu":
        torch.cuda.synchronize()
    return time.perf_counter() - begin
