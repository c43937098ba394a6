"""Greedy matching of pairs whose vectors are on a device.

It runs a graph of the equations in `matching.greedy`. `bertscore_onnx_export.graph.matching` writes
the graph, which has no weights and fits every model.
"""

import logging
import threading
from pathlib import Path
from typing import Any

import numpy as np

from bertscore_onnx.arrays import Float32Array, Int64Array, joined_ranges
from bertscore_onnx.concurrency.native_code import native_code
from bertscore_onnx.encoding.device import DeviceVectors
from bertscore_onnx.encoding.encoder import plan_batches
from bertscore_onnx.encoding.providers import Provider
from bertscore_onnx.encoding.session import is_out_of_memory, open_in_onnxruntime
from bertscore_onnx.errors import (
    DeviceError,
    EncodingError,
    OutOfMemoryError,
    is_interrupt,
    one_line,
)
from bertscore_onnx.matching.pairs import PairMatching

_log = logging.getLogger(__name__)

GRAPH = Path(__file__).with_name("greedy.onnx")

SIDES = ("candidate", "reference")

BATCH_TOKENS = 32_768
"""Padded tokens of either side that a device matches at a time; their vectors are copied side by
side before.
"""

MIN_WIDTH = 16
"""The least width of padded texts. That of references is a power of two by their own length: a
product of matrices has the same bits beside any other pairs, but not with other numbers of
columns."""

Side = tuple[DeviceVectors, Int64Array, Int64Array, Float32Array]
"""One side of some pairs: vectors, the row where each text begins, its length, (pairs,), and its
normalised weights, (pairs, tokens), 0 on padding."""


class MatchingGraph:
    """The matching graph on one provider; threads may share it."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._opened: Any = None
        self._opening = threading.Lock()

    def match_pairs(self, pairs: PairMatching) -> bool:
        """Match all pairs.

        Return False if the vectors of a side are on the host, or the device lacks memory.
        """
        vectors = [table for table in pairs.vectors if isinstance(table, DeviceVectors)]
        if len(vectors) < len(pairs.vectors):
            return False
        # (pairs,)
        reference_widths = 1 << np.ceil(np.log2(np.maximum(pairs.lengths[1], MIN_WIDTH))).astype(
            np.int64
        )
        try:
            for width in np.unique(reference_widths).tolist():
                alike = np.flatnonzero(reference_widths == width)
                for part in plan_batches(np.maximum(pairs.widths[alike], width), BATCH_TOKENS):
                    batch, sides = alike[part], []
                    for side, least in enumerate((MIN_WIDTH, width)):
                        begins, lengths = pairs.begins[side, batch], pairs.lengths[side, batch]
                        weights = np.zeros(
                            (len(batch), max(int(lengths.max()), least)), dtype=np.float32
                        )
                        is_token = np.arange(weights.shape[1]) < lengths[:, None]
                        weights[is_token] = pairs.weights[joined_ranges(begins, lengths)]
                        sides.append((vectors[side], pairs.rows[side, batch], lengths, weights))
                    pairs.precision[:, batch], pairs.recall[:, batch] = self.match(*sides)
        except OutOfMemoryError as error:
            _log.warning("Vectors are matched on the host, which takes longer: %s", error)
            return False
        return True

    def match(self, candidates: Side, references: Side) -> tuple[Float32Array, Float32Array]:
        """Return precision and recall of pairs, (layers, pairs) each.

        NaN if a vector is not finite.

        Raises an OutOfMemoryError if the device has too little memory.
        """
        binding = self._session().io_binding()
        for name, (vectors, _, lengths, weights) in zip(
            SIDES, (candidates, references), strict=True
        ):
            binding.bind_ortvalue_input(f"{name}_vectors", vectors.buffer)
            binding.bind_cpu_input(f"{name}_lengths", lengths)
            binding.bind_cpu_input(f"{name}_weights", weights)
        scores = [
            self._match_layer(binding, layer, candidates, references)
            for layer in range(len(candidates[0]))
        ]
        precision, recall = np.stack(scores, axis=1)
        return precision, recall

    def _match_layer(
        self, binding: Any, layer: int, candidates: Side, references: Side
    ) -> Float32Array:
        for name, (vectors, starts, _, _) in zip(SIDES, (candidates, references), strict=True):
            binding.bind_cpu_input(f"{name}_starts", vectors.rows(layer, starts))
        scores = np.empty((2, len(candidates[1])), dtype=np.float32)
        for name, values in zip(("precision", "recall"), scores, strict=True):
            binding.bind_output(name, "cpu", 0, np.float32, values.shape, values.ctypes.data)
        try:
            with native_code():
                self._session().run_with_iobinding(binding)
        except Exception as error:  # ONNX Runtime raises its own untyped exceptions
            if is_interrupt(error):
                raise
            kind = OutOfMemoryError if is_out_of_memory(error) else EncodingError
            raise kind(
                f"{self._provider.name} failed to match {scores.shape[1]} pairs: {one_line(error)}"
            ) from error
        return scores

    def _session(self) -> Any:
        with self._opening:
            if self._opened is None:
                graph, failure = open_in_onnxruntime(str(GRAPH), self._provider)
                if graph is None:
                    raise DeviceError(f"{self._provider.name} cannot run {GRAPH}: {failure}.")
                self._opened = graph.session
        return self._opened

    def close(self) -> None:
        """Release the graph; a match in progress finishes first."""
        with self._opening:
            self._opened = None
