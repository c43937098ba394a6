"""Prints scores: pair by pair as they come, and their means at the end; as text, or as one JSON object.

Every line is written in one piece, so that whatever ends the program, whole lines are left.
"""

import json
import sys

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.cli.tables import print_table
from bertscore_onnx.scores import Score

_FIELDS = ("precision", "recall", "f1")


class Means:
    """The means of scores, of which none is kept."""

    def __init__(self) -> None:
        """Start without scores."""
        self.pairs = 0
        """How many were added."""
        self._sums: NDArray[np.float64] = np.zeros((3, 1))  # (3, layers)

    def add(self, score: Score) -> None:
        """Count one more score."""
        self._sums = self._sums + np.reshape(np.array([*score], dtype=np.float64), (3, -1))
        self.pairs += 1

    def of_layers(self) -> list[list[float]]:
        """Return the means of P, R and F for each layer."""
        means: list[list[float]] = (self._sums / self.pairs).T.tolist()
        return means


class TextReport:
    """P, R and F1 of a pair in a line, separated by tabs; a last line with the signature and the means."""

    def __init__(self, signature: str, *, all_layers: bool) -> None:
        """Take what the scores were made with; with `all_layers` the means are a table."""
        self._signature = signature
        self._all_layers = all_layers

    def add(self, score: Score) -> None:
        """Print one pair."""
        precision, recall, f1 = score
        _print_line(f"{precision:.6f}\t{recall:.6f}\t{f1:.6f}")

    def finish(self, means: Means) -> None:
        """Print the means."""
        rows = [[f"{mean:.6f}" for mean in layer] for layer in means.of_layers()]
        if self._all_layers:
            print(self._signature)
            print_table([["layer", "P", "R", "F1"], *([str(layer), *row] for layer, row in enumerate(rows))])
        else:
            print("{} P: {} R: {} F1: {}".format(self._signature, *rows[0]))


class JsonReport:
    """One JSON object; the pairs, where they are wanted, come before the means, one a line."""

    def __init__(self, signature: str, *, all_layers: bool) -> None:
        """Take what the scores were made with; with `all_layers` the means are an array."""
        self._signature = signature
        self._all_layers = all_layers
        self._separator = ""

    def add(self, score: Score) -> None:
        """Print one pair."""
        if not self._separator:
            _print_line(f'{{"signature": {json.dumps(self._signature)}, "segments": [')
        segment = dict(zip((*_FIELDS, "best_reference"), (*score, score.best_reference), strict=True))
        _print_line(self._separator + json.dumps(segment, allow_nan=False))
        self._separator = ","

    def finish(self, means: Means) -> None:
        """Print the means, and whatever else completes the object."""
        layers = [dict(zip(_FIELDS, layer, strict=True)) for layer in means.of_layers()]
        if self._all_layers:
            rest = {"layers": [{"layer": number, **layer} for number, layer in enumerate(layers)], "pairs": means.pairs}
        else:
            rest = {**layers[0], "pairs": means.pairs}
        if self._separator:
            print("], " + json.dumps(rest, allow_nan=False).removeprefix("{"))
        else:
            print(json.dumps({"signature": self._signature, **rest}, allow_nan=False))


def _print_line(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()
