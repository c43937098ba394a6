"""Runs a scoring graph as somebody without this package does: ONNX Runtime, and nothing else."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray


def idf_of(texts: Sequence[Sequence[int]], vocab_size: int) -> NDArray[np.float32]:
    """Return the idf of each id in texts, (vocab_size,)."""
    frequency = np.zeros(vocab_size)
    for ids in texts:
        frequency[[*set(ids)]] += 1
    return np.log((len(texts) + 1) / (frequency + 1)).astype(np.float32)


class PlainSession:
    """The scoring graph of a bundle."""

    def __init__(self, bundle: Path) -> None:
        self._session = onnxruntime.InferenceSession(bundle / "scoring.onnx", providers=["CPUExecutionProvider"])

    def run(
        self,
        candidates: Sequence[Sequence[int]],
        references: Sequence[Sequence[int]],
        *,
        weights: NDArray[np.float32] | None = None,
        padding: int = 0,
        pad_id: int = 0,
        token: int = 1,
        left: bool = False,
    ) -> NDArray[np.float32]:
        """Return P, R and F, (3, pairs), or with the layers before the pairs.

        Args:
            candidates, references: the ids of each text.
            weights: what each id weighs; None for the graph's own weights.
            padding: tokens of padding on every candidate, beside what the longest one needs.
            pad_id: the id on padding.
            token: what the masks have on tokens.
            left: whether padding stands before the tokens, where it must not.
        """
        feed = {} if weights is None else {"token_weights": weights}
        for side, texts, more in (("candidate", candidates, padding), ("reference", references, 0)):
            width = max(map(len, texts), default=0) + more
            mask = np.array([[token] * len(ids) + [0] * (width - len(ids)) for ids in texts], dtype=np.int64)
            padded = np.full_like(mask, pad_id)
            for row, ids in zip(padded, texts, strict=True):
                row[: len(ids)] = ids
            if left:
                padded, mask = padded[:, ::-1], mask[:, ::-1]
            feed |= {f"{side}_ids": padded.reshape(len(texts), width), f"{side}_mask": mask.reshape(len(texts), width)}
        return np.stack(self._session.run(["precision", "recall", "f1"], feed))
