"""Writes pairs as JSON lines, or as one JSON object with their means."""

import json
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.cli.inputs.pairs import TextPair
from bertscore_onnx.cli.outputs.means import Means
from bertscore_onnx.scores import Score

_FIELDS = ("precision", "recall", "f1")


class JsonLinesReport:
    """An object a pair, each in a line of its own, so that whatever ends the program, whole objects are left."""

    def __init__(self, file: TextIO) -> None:
        """Take what to write to."""
        self._file = file

    def add(self, score: Score, texts: TextPair | None) -> None:
        """Write one pair."""
        _write_line(self._file, _dumped(_pair(score, texts)))

    def finish(self, means: Means) -> None:
        """Write nothing: all lines are of one kind."""


class JsonReport:
    """One JSON object; the pairs, where they are wanted, come before the means, one a line."""

    def __init__(
        self, file: TextIO, signature: str, unrelated: NDArray[np.float64] | None, *, all_layers: bool
    ) -> None:
        """Take what to write to and what the scores were made with.

        Args:
            file: what to write to.
            signature: how the scores were made.
            unrelated: F of unrelated pairs, as `BERTScorer.unrelated_scores` has it; then means of F1 come with the
                percentage of these that are lower.
            all_layers: whether there is a mean for each layer, in an array.
        """
        self._file = file
        self._signature = signature
        self._unrelated = unrelated
        self._all_layers = all_layers
        self._separator = ""

    def add(self, score: Score, texts: TextPair | None) -> None:
        """Write one pair."""
        if not self._separator:
            _write_line(self._file, f'{{"signature": {_dumped(self._signature)}, "segments": [')
        _write_line(self._file, self._separator + _dumped(_pair(score, texts)))
        self._separator = ","

    def finish(self, means: Means) -> None:
        """Write the means, and whatever else completes the object."""
        layers: list[dict[str, Any]] = [dict(zip(_FIELDS, layer, strict=True)) for layer in means.of_layers()]
        if self._unrelated is not None:
            from bertscore_onnx.evaluation.baselines import percentile

            for layer, unrelated in zip(layers, np.atleast_2d(self._unrelated), strict=True):
                layer["f1_percentile"] = float(percentile(layer["f1"], unrelated))
        rest: dict[str, Any] = {**layers[0], "pairs": means.pairs}
        if self._all_layers:
            rest = {"layers": [{"layer": number, **layer} for number, layer in enumerate(layers)], "pairs": means.pairs}
        if self._separator:
            _write_line(self._file, "], " + _dumped(rest).removeprefix("{"))
        else:
            _write_line(self._file, _dumped({"signature": self._signature, **rest}))


def _pair(score: Score, texts: TextPair | None) -> dict[str, Any]:
    scores = dict(zip((*_FIELDS, "best_reference"), (*score, score.best_reference), strict=True))
    return scores if texts is None else {**scores, "candidate": texts[0], "references": texts[1]}


def _dumped(value: object) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False)


def _write_line(file: TextIO, line: str) -> None:
    file.write(line + "\n")
    file.flush()
