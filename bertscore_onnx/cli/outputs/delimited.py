"""Writes pairs as TSV or CSV, under a header, as numpy, pandas, polars and spreadsheets read it."""

import csv
import io
from collections.abc import Sequence
from typing import TextIO

from bertscore_onnx.cli.inputs.pairs import TextPair
from bertscore_onnx.cli.outputs.means import Means
from bertscore_onnx.scores import Score


class DelimitedReport:
    """P, R and F1 of a pair in a row; with its texts too, where they are asked for."""

    def __init__(self, file: TextIO, delimiter: str) -> None:
        """Take what to write to, and what stands between fields."""
        self._file = file
        self._delimiter = delimiter
        self._has_header = False

    def add(self, score: Score, texts: TextPair | None) -> None:
        """Write one pair, and before the first one the header; the reference is the one of the best F1."""
        row = [f"{value:.6f}" for value in score]
        names = ["precision", "recall", "f1"]
        if texts is not None:
            candidate, references = texts
            row += [candidate, references[score.best_reference]]
            names += ["candidate", "reference"]
        if not self._has_header:
            self._write(names)
            self._has_header = True
        self._write(row)

    def finish(self, means: Means) -> None:
        """Write nothing: a line of another kind would spoil the table."""

    def _write(self, fields: Sequence[str]) -> None:
        """Write a row in one piece."""
        row = io.StringIO()
        csv.writer(row, delimiter=self._delimiter, lineterminator="\r\n").writerow(fields)  # so that it quotes \r too
        self._file.write(row.getvalue().removesuffix("\r\n") + "\n")
        self._file.flush()
