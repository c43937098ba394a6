"""The means of scores, and the line that tells them."""

from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.cli.tables import print_table
from bertscore_onnx.scores import Score


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


def print_summary(signature: str, means: Means, *, all_layers: bool, file: TextIO) -> None:
    """Print a line with the signature and the means; with `all_layers` the means are a table below it."""
    rows = [[f"{mean:.6f}" for mean in layer] for layer in means.of_layers()]
    if all_layers:
        print(signature, file=file)
        print_table([["layer", "P", "R", "F1"], *([str(layer), *row] for layer, row in enumerate(rows))], file=file)
    else:
        print("{} P: {} R: {} F1: {}".format(signature, *rows[0]), file=file)
