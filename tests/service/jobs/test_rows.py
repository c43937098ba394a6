"""An input that changes while a job runs: no part ever has other rows than those whose digest is in the manifest."""

import gzip
import hashlib
import json
import os
import sys

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx_service.jobs import rows
from bertscore_onnx_service.jobs.job import verify_files
from tests.service.jobs.conftest import texts

NUMBER = 120


def write_table(path, seed):
    """Write texts in a format by the name; of all seeds the files have the same size, but for gzip."""
    width = max(map(len, texts(NUMBER, 1)))
    candidates = [text.ljust(width, "x") for text in texts(NUMBER, seed)]
    table = {"id": list(range(NUMBER)), "candidate": candidates, "reference": texts(NUMBER, 2)}
    if path.suffix == ".parquet":
        pq.write_table(pa.table(table), path, row_group_size=25, compression="none", use_dictionary=False)
    elif path.suffix == ".csv":
        pyarrow.csv.write_csv(pa.table(table), path)
    else:
        lines = [json.dumps(dict(zip(table, row, strict=True))) for row in zip(*table.values(), strict=True)]
        path.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))
    return table


def rewrite(path):
    """Give the file other rows, in place."""
    stamp = path.stat()
    other = path.with_name("other" + path.suffix)
    write_table(other, 2)
    path.write_bytes(other.read_bytes())
    other.unlink()
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


def replace(path):
    other = path.with_name("other" + path.suffix)
    write_table(other, 3)
    other.replace(path)


def append(path):
    with path.open("ab") as file:
        file.write(b"7,it,a\n")


def truncate(path):
    os.truncate(path, path.stat().st_size // 2)


CHANGES = [rewrite, replace, append, truncate, os.unlink]


@pytest.fixture
def at_name(monkeypatch):
    """Act once, when a file of the job gets its name."""

    def at_name(name, act):
        rename = os.replace
        acts = [act]

        def act_and_rename(file, path):
            if os.fspath(path).endswith(name) and acts:
                acts.pop()()
            rename(file, path)

        monkeypatch.setattr(os, "replace", act_and_rename)

    return at_name


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """Let a file have several blocks, and be read as it is scored."""
    monkeypatch.setattr(rows, "BLOCK", 500)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "name", ["pairs.parquet", *(pytest.param(name, marks=pytest.mark.full) for name in ("pairs.csv", "pairs.jsonl.gz"))]
)
@pytest.mark.parametrize("moment", ["_manifest.json", "part-00000-00001.parquet", "part-00000-00011.parquet"])
def test_a_job_whose_input_changes_fails_until_it_is_restored(score, contents, at_name, tmp_path, name, change, moment):
    path = tmp_path / name
    table = write_table(path, 1)
    original = path.read_bytes()
    at_name(moment, lambda: change(path))
    with pytest.raises(InputError, match=rf"{name} has changed|Cannot read .*{name}"):
        score(path)
    for part in (tmp_path / "scores").glob("part-*"):
        ids = pq.read_table(part)["id"].to_pylist()
        candidates = [table["candidate"][int(number)] for number in ids]
        assert pq.read_table(part)["candidate"].to_pylist() == candidates
    assert "not complete" in verify_files(tmp_path / "scores")[0]
    path.write_bytes(original)
    assert score(path).parts == 12
    score(path, "undisturbed")
    assert contents(tmp_path / "scores") == contents(tmp_path / "undisturbed")


def test_references_that_change_meanwhile_are_not_counted(score, at_name, contents, tmp_path):
    path = tmp_path / "pairs.csv"
    write_table(path, 1)
    original = path.read_bytes()
    at_name("_manifest.json", lambda: rewrite(path))
    with pytest.raises(InputError, match="has changed since"):
        score(path, idf=True)
    path.write_bytes(original)
    score(path, idf=True)
    score(path, "undisturbed", idf=True)
    assert contents(tmp_path / "scores") == contents(tmp_path / "undisturbed")


def test_an_input_that_is_only_touched_is_the_same(score, at_name, tmp_path):
    path = tmp_path / "pairs.csv"
    write_table(path, 1)
    at_name("part-00000-00001.parquet", path.touch)
    assert score(path).parts == 12


@pytest.mark.parametrize("name", ["pairs.parquet", "pairs.csv"])
def test_inputs_of_several_blocks_are_read_whole(score, tmp_path, name):
    table = write_table(tmp_path / name, 1)
    score(tmp_path / name)
    scores = pa.concat_tables(pq.read_table(part) for part in sorted((tmp_path / "scores").glob("part-*")))
    assert scores["candidate"].to_pylist() == table["candidate"]
    manifest = json.loads((tmp_path / "scores" / "_manifest.json").read_bytes())
    content = (tmp_path / name).read_bytes()
    assert manifest["inputs"][0]["sha256"] == hashlib.sha256(content).hexdigest()
    assert manifest["inputs"][0]["bytes"] == len(content)


@pytest.mark.skipif(sys.platform == "win32", reason="needs pipes in folders")
def test_an_input_that_is_a_pipe_is_refused(score, tmp_path):
    os.mkfifo(tmp_path / "pairs.csv")
    with pytest.raises(InputError, match="pipe"):
        score(tmp_path / "pairs.csv")
