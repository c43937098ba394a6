"""Human judgements and metric scores of shared tasks, read as systems × segments; they lie outside the project."""

import csv
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bertscore_onnx_evaluation.metrics.eval_set import read_eval_set
from bertscore_onnx_evaluation.metrics.judged_systems import JudgedSystems

_DATA = Path(__file__).parents[3] / "shared" / "data"
FOLDER = Path(os.environ.get("METAEVAL", _DATA / "metaeval"))
needs_metaeval = pytest.mark.skipif(
    not FOLDER.exists(), reason="needs WMT and TQ-AutoTest judgements: set METAEVAL to their folder"
)
WMT16 = Path(os.environ.get("WMT16", _DATA / "wmt16" / "wmt16_da_seg.tsv.gz"))
needs_wmt16 = pytest.mark.skipif(not WMT16.exists(), reason="needs WMT16 judgements: set WMT16 to their table")

Floats = NDArray[np.float64]


def wmt23() -> JudgedSystems:
    """Return the systems of he-en with MQM and all metrics."""
    return read_eval_set(FOLDER / "wmt23", "he-en", gold="mqm", reference="refB")


def wmt20(metric: str) -> tuple[Floats, Floats]:
    """Return the mean raw assessments of cs-en and a metric's scores, (systems, segments)."""
    scores = {}
    for line in (FOLDER / "wmt20" / f"{metric}.cs-en.seg.score").read_text(encoding="utf-8").splitlines():
        *_, system, document, segment, score = line.split("\t")
        scores[system, f"{document}::{segment}"] = float(score)
    with (FOLDER / "wmt20" / "metrics-ad-seg-scores-cs-en.csv").open(encoding="utf-8") as file:
        human = {(row["SYS"], row["SEGID"]): float(row["RAW.SCR"]) for row in csv.DictReader(file, delimiter=" ")}
    systems, segments = sorted({system for system, _ in scores}), sorted({segment for _, segment in scores})
    return (
        np.array([[human.get((system, segment), np.nan) for segment in segments] for system in systems]),
        np.array([[scores[system, segment] for segment in segments] for system in systems]),
    )


def wmt19(language_pair: str) -> tuple[Floats, Floats]:
    """Return the system scores by people and of BLEU, (systems,)."""
    path = FOLDER / "wmt19" / f"DA-newstest2019-{language_pair}-sys-nohy-scores.csv"
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter=" "))
    human, bleu = (np.array([float(row[column]) for row in rows]) for column in ("HUMAN", "BLEU"))
    return human, bleu


@dataclass(frozen=True)
class Example:
    category: str
    good: list[str]
    bad: list[str]


def tq_autotest() -> list[Example]:
    """Return the examples of TQ-AutoTest, de-en."""
    (path,) = (FOLDER / "tq_autotest").iterdir()
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
    kinds = [name.split()[0] for name in header]
    return [
        Example(
            row[header.index("Category")],
            [text for kind, text in zip(kinds, row, strict=False) if kind == "Correct" and text.strip()],
            [text for kind, text in zip(kinds, row, strict=False) if kind == "Incorrect" and text.strip()],
        )
        for row in rows
    ]
