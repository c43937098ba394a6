"""Human judgements and metric scores of shared tasks, read as systems × segments; they lie outside
the project.
"""

import os
from pathlib import Path

import pytest

from bertscore_onnx_evaluation.metrics.eval_set import read_eval_set
from bertscore_onnx_evaluation.metrics.judged_systems import JudgedSystems

_DATA = Path(__file__).parents[3] / "shared" / "data"
FOLDER = Path(os.environ.get("METAEVAL", _DATA / "metaeval"))
needs_metaeval = pytest.mark.skipif(
    not FOLDER.exists(), reason="needs WMT judgements: set METAEVAL to their folder"
)
WMT16 = Path(os.environ.get("WMT16", _DATA / "wmt16" / "wmt16_da_seg.tsv.gz"))
needs_wmt16 = pytest.mark.skipif(
    not WMT16.exists(), reason="needs WMT16 judgements: set WMT16 to their table"
)


def wmt23() -> JudgedSystems:
    """Return the systems of he-en with MQM and all metrics."""
    return read_eval_set(FOLDER / "wmt23", "he-en", gold="mqm", reference="refB")
