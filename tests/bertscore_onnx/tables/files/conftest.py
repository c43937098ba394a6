"""Reads the rows of a file."""

import pytest

from bertscore_onnx.cli.inputs import InputFile, candidate_column, open_input, reference_columns
from bertscore_onnx.tables.sources import format_of


@pytest.fixture
def read_rows():
    """Read the texts of a file by columns, those of a candidate and its references by default."""

    def read(path, candidate=None, references=(), **how):
        columns = (candidate_column(candidate), *reference_columns(references))
        with open_input(InputFile(str(path), format_of(str(path)), columns=columns, **how)) as file:
            return list(file.rows())

    return read
