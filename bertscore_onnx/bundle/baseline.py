"""Baselines: the scores of unrelated sentences, which bert-score's `journal/rescale_baseline.md` rescales with."""

import csv
import math
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

from bertscore_onnx.errors import BaselineError, InputError

_COLUMNS = ("LAYER", "P", "R", "F")


@dataclass(frozen=True, slots=True)
class Baseline:
    """The mean scores of unrelated sentence pairs for one model, layer and language, each below 1."""

    precision: float
    recall: float
    f1: float


def read_baseline_file(path: str | PathLike[str], num_layers: int) -> Baseline:
    """Read the row of one layer.

    Args:
        path: a comma-separated file with the columns LAYER, P, R and F.
        num_layers: the layer whose row is wanted.

    Raises:
        BaselineError: the file has no row for this layer.
        InputError: the file cannot be read, or its figures are not numbers below 1.
    """
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"Cannot read the baseline file {path}: {error}") from error
    try:
        table = {int(row["LAYER"]): Baseline(float(row["P"]), float(row["R"]), float(row["F"])) for row in rows}
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"The baseline file {path} is not in the expected form: a header {','.join(_COLUMNS)}, then one row of "
            f"numbers a layer ({error!r})."
        ) from error
    if num_layers not in table:
        layers = ", ".join(map(str, sorted(table))) or "none"
        raise BaselineError(f"The baseline file {path} has no row for layer {num_layers}; it has: {layers}.")
    baseline = table[num_layers]
    if not all(math.isfinite(b) and b < 1 for b in (baseline.precision, baseline.recall, baseline.f1)):
        raise InputError(f"The baseline file {path} holds {baseline} for layer {num_layers}; each must be below 1.")
    return baseline
