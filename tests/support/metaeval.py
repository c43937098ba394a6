"""Human judgements and metric scores of shared tasks, read as systems × segments; they lie outside the project."""

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bertscore_onnx_evaluation.metrics.eval_set import read_eval_set
from bertscore_onnx_evaluation.metrics.judged_systems import JudgedSystems

_DATA = Path(__file__).parents[3] / "shared" / "data"
FOLDER = Path(os.environ.get("METAEVAL", _DATA / "metaeval"))
needs_metaeval = pytest.mark.skipif(not FOLDER.exists(), reason="needs WMT judgements: set METAEVAL to their folder")
WMT16 = Path(os.environ.get("WMT16", _DATA / "wmt16" / "wmt16_da_seg.tsv.gz"))
needs_wmt16 = pytest.mark.skipif(not WMT16.exists(), reason="needs WMT16 judgements: set WMT16 to their table")

Floats = NDArray[np.float64]


def wmt23() -> JudgedSystems:
    """Return the systems of he-en with MQM and all metrics."""
    return read_eval_set(FOLDER / "wmt23", "he-en", gold="mqm", reference="refB")


def wmt19(language_pair: str) -> tuple[Floats, Floats]:
    """Return the system scores by people and of BLEU, (systems,)."""
    path = FOLDER / "wmt19" / f"DA-newstest2019-{language_pair}-sys-nohy-scores.csv"
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter=" "))
    human, bleu = (np.array([float(row[column]) for row in rows]) for column in ("HUMAN", "BLEU"))
    return human, bleu
