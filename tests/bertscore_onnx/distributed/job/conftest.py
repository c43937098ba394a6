"""Tables to score as jobs, and what came out."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.scores import WORDS

WORD = WORDS.split()


def texts(number, seed):
    """Return different short texts of known words."""
    return [" ".join(WORD[(seed + row * step) % len(WORD)] for step in range(1, 3 + row % 5)) for row in range(number)]


@pytest.fixture
def write_pairs(tmp_path):
    """Write a Parquet file of pairs, with other columns if need be, and return its path."""

    def write(name, number, **others):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        table = {"id": range(number), "candidate": texts(number, 1), "reference": texts(number, 2), **others}
        pq.write_table(pa.table({key: pa.array(values) for key, values in table.items()}), path)
        return path

    return write


@pytest.fixture
def read_scores():
    """Read all parts of a folder, in order, as one table."""

    def read(folder):
        return pa.concat_tables(pq.read_table(part) for part in sorted(folder.glob("part-*.parquet")))

    return read


@pytest.fixture
def contents():
    """Return the bytes of all files of a folder."""
    return lambda folder: {file.name: file.read_bytes() for file in folder.iterdir()}
