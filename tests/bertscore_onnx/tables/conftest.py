"""Reads the rows of a table."""

import pytest

from bertscore_onnx.tables.columns import Column
from bertscore_onnx.tables.readers import open_table
from bertscore_onnx.tables.sources import format_of, open_source


@pytest.fixture
def read_rows():
    """Read the texts of a table by columns, those of a candidate and its references by default."""

    def read(path, candidate="candidate", *references, **dialect):
        alternatives = [(name,) for name in references] or [("reference", "references")]
        columns = [
            Column((candidate,), "--candidate-column"),
            *(Column(names, "--reference-column", may_hold_lists=True) for names in alternatives),
        ]
        with open_source(str(path)) as source:
            return list(open_table(source, format_of(str(path)), **dialect).texts(columns))

    return read
