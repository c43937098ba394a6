"""Jobs on Spark: the same files as on one machine, and errors in our words."""

import pytest

from bertscore_onnx.distributed.job import score_files
from bertscore_onnx.errors import InputError

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]


@pytest.fixture
def score(tiny_bundle, tmp_path):
    """Score files into a folder of the test's own."""

    def score(inputs, output, **options):
        options = {"part_rows": 50, "device": "cpu", "nthreads": 1, **options}
        return score_files(inputs, tmp_path / output, tiny_bundle, **options)

    return score


def test_the_files_are_those_of_one_machine(score, write_pairs, write, contents, tmp_path):
    pairs = write_pairs("a.parquet", 730)
    table = write("b.csv", "candidate,reference\n" + "the cat sat,a cat sat\n" * 120)
    options = {"idf": True, "errors": "null"}
    here, there = score([pairs, table], "here", **options), score([pairs, table], "there", engine="spark", **options)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    assert (there.rows, there.parts, there.f1) == (here.rows, here.parts, here.f1)


def test_a_row_that_cannot_be_scored_ends_the_job_with_its_file_and_number(score, write_pairs):
    pairs = write_pairs("a.parquet", 200, candidate=["it"] * 199 + [None])
    with pytest.raises(InputError, match=r"^\S+a.parquet, row 200: the column 'candidate' holds null; expected a text"):
        score(pairs, "there", engine="spark")
