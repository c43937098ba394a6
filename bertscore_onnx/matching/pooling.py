"""Pools the layers of a model to one: Zhao et al., "MoverScore", EMNLP 2019, section 3.2."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.bundle import Bundle
from bertscore_onnx.errors import UnknownLayerError
from bertscore_onnx.matching.variants import Matching, Pool


@dataclass(frozen=True, slots=True)
class Pooling:
    """The layers that a matching pools, and how."""

    layers: tuple[int, ...]
    """The layers of the model, ascending."""

    pool: Pool

    @classmethod
    def of(cls, matching: Matching, bundle: Bundle) -> Self | None:
        """Return the pooling of a matching, if it pools layers; raise an UnknownLayerError if the bundle lacks one."""
        if not matching.layers:
            return None
        number = bundle.stacked_layers
        unknown = [layer for layer in matching.layers if not -number <= layer < number]
        if unknown:
            has = f"layers 0 to {number - 1}" if number else f"layer {bundle.manifest.num_layers} only"
            raise UnknownLayerError(
                f"Cannot pool the layers {', '.join(map(str, matching.layers))}: the bundle {bundle.path} has {has}. "
                "Choose others, or export the model with --all-layers."
            )
        return cls(tuple(sorted({layer % number for layer in matching.layers})), matching.pool)

    def size_of(self, hidden_size: int) -> int:
        """Return the size of a pooled vector."""
        return hidden_size * (3 if self.pool == "p-means" else 1)

    def __call__(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        """Pool unit vectors of all layers, (layers, batch, tokens, hidden), to unit vectors, (batch, tokens, size)."""
        chosen = vectors[[*self.layers]]
        pooled = chosen.mean(axis=0)
        if self.pool == "p-means":
            pooled = np.concatenate([chosen.min(axis=0), pooled, chosen.max(axis=0)], axis=-1)
        norms = np.linalg.norm(pooled, axis=-1, keepdims=True)
        unit: NDArray[np.float32] = np.divide(pooled, norms, out=pooled, where=norms > 0)
        return unit
