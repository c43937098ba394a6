"""Rows of tables, and pipes that do not end."""

import os

import pytest

from bertscore_onnx.tables.columns import TextColumn
from bertscore_onnx.tables.formats import Dialect, format_of
from bertscore_onnx.tables.readers import open_table
from bertscore_onnx.tables.sources import open_source


@pytest.fixture
def read_rows():
    """Read the texts of a table by columns, those of a candidate and its references by default."""

    def read(path, candidate="candidate", *references, **dialect):
        alternatives = [(name,) for name in references] or [("reference", "references")]
        columns = [
            TextColumn((candidate,), "--columns candidate=NAME"),
            *(
                TextColumn(names, "--columns reference=NAME", may_hold_lists=True)
                for names in alternatives
            ),
        ]
        with open_source(str(path)) as source:
            table = open_table(source, format_of(str(path)), Dialect(**dialect))
            return [texts for texts, _ in table.rows(columns, keeps_rows=False)]

    return read


@pytest.fixture
def endless(tmp_path):
    """Return a function that makes a named pipe that holds some bytes and does not end."""
    descriptors = []

    def endless(name, content):
        os.mkfifo(tmp_path / name)
        # so that neither end waits for the other
        descriptors.append(os.open(tmp_path / name, os.O_RDWR))
        os.write(descriptors[-1], content)
        return tmp_path / name

    yield endless
    for descriptor in descriptors:
        os.close(descriptor)
