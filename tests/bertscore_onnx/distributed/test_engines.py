"""Jobs on Ray and Spark: the same files as on one machine, whatever dies on the way, and errors in our words."""

import os
import random
import signal
import threading
import time

import pytest

from bertscore_onnx.distributed.job import score_files, verify_files
from bertscore_onnx.errors import InputError
from tests.bertscore_onnx.distributed.conftest import ENGINES, processes_of


@pytest.fixture
def score(tiny_bundle, tmp_path):
    """Score files into a folder of the test's own."""

    def score(inputs, output, **options):
        options = {"part_rows": 50, "device": "cpu", "nthreads": 1, **options}
        return score_files(inputs, tmp_path / output, tiny_bundle, **options)

    return score


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_the_files_are_those_of_one_machine(score, write_pairs, write, contents, tmp_path, engine):
    pairs = write_pairs("a.parquet", 730)
    table = write("b.csv", "candidate,reference\n" + "the cat sat,a cat sat\n" * 120)
    options = {"idf": True, "errors": "null"}
    here, there = score([pairs, table], "here", **options), score([pairs, table], "there", engine=engine, **options)
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
    assert (there.rows, there.parts, there.f1) == (here.rows, here.parts, here.f1)


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_a_row_that_cannot_be_scored_ends_the_job_with_its_file_and_number(score, write_pairs, engine):
    pairs = write_pairs("a.parquet", 200, candidate=["it"] * 199 + [None])
    with pytest.raises(InputError, match=r"^\S+a.parquet, row 200: the column 'candidate' holds null; expected a text"):
        score(pairs, "there", engine=engine)


@pytest.mark.parametrize("engine", ENGINES[:1], indirect=True)
def test_a_job_that_was_begun_here_is_completed_there(score, write_pairs, contents, tmp_path, engine):
    pairs = write_pairs("a.parquet", 300)
    score(pairs, "here")
    score(pairs, "there")
    for part in ("part-00000-00001.parquet", "part-00000-00004.parquet"):
        (tmp_path / "there" / part).unlink()
    assert score(pairs, "there", engine=engine).parts_before == 4
    assert contents(tmp_path / "there") == contents(tmp_path / "here")


@pytest.mark.parametrize("engine", ENGINES, indirect=True)
def test_an_input_that_changes_meanwhile_ends_the_job_which_goes_on_with_what_holds(
    score, write_pairs, contents, tmp_path, engine
):
    pairs, there = write_pairs("a.parquet", 20_000), tmp_path / "there"
    score(pairs, "here", part_rows=500)
    here, original = contents(tmp_path / "here"), pairs.read_bytes()
    other = write_pairs("other.parquet", 20_000, candidate=["it"] * 20_000)
    moment = random.Random(engine).randrange(1, 36)  # noqa: S311 -- of 40 parts; the last ones may come together

    def change():
        while len([*there.glob("part-*")]) < moment:
            time.sleep(0.001)
        other.replace(pairs)

    changer = threading.Thread(target=change)
    changer.start()
    with pytest.raises(InputError, match=r"a.parquet has changed since the job began"):
        score(pairs, "there", part_rows=500, engine=engine)
    changer.join()
    parts = {name: content for name, content in contents(there).items() if name.startswith("part")}
    assert parts.items() <= here.items()
    damaged = bytearray(parts[min(parts)])
    damaged[len(damaged) // 3] ^= 1
    (there / min(parts)).write_bytes(damaged)
    pairs.write_bytes(original)
    assert 0 < score(pairs, "there", part_rows=500, engine=engine).parts_before < 40
    assert {name: content for name, content in contents(there).items() if name[0] != "."} == here
    assert verify_files(there) == []


@pytest.mark.parametrize("engine", ENGINES[:1], indirect=True)
def test_a_process_that_is_killed_in_the_middle_changes_nothing(score, write_pairs, contents, tmp_path, engine):
    pairs = write_pairs("a.parquet", 20_000)
    score(pairs, "here", part_rows=500)
    killed = []

    def kill_one():
        while not any((tmp_path / "there").glob("part-*")):
            time.sleep(0.001)
        killed.extend(processes_of(b"ray::_do")[:1])
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill_one)
    killer.start()
    score(pairs, "there", part_rows=500, engine=engine)
    killer.join()
    assert len(killed) == 1
    assert contents(tmp_path / "there") == contents(tmp_path / "here")
