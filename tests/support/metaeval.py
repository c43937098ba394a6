"""Where human judgements and metric scores of shared tasks lie, outside the project."""

import os
from pathlib import Path

import pytest

_DATA = Path(__file__).parents[3] / "shared" / "data"
FOLDER = Path(os.environ.get("METAEVAL", _DATA / "metaeval"))
needs_metaeval = pytest.mark.skipif(
    not FOLDER.exists(), reason="needs WMT judgements: set METAEVAL to their folder"
)
WMT16 = Path(os.environ.get("WMT16", _DATA / "wmt16" / "wmt16_da_seg.tsv.gz"))
needs_wmt16 = pytest.mark.skipif(
    not WMT16.exists(), reason="needs WMT16 judgements: set WMT16 to their table"
)
