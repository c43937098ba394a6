"""Readers of files and of answers raise our errors alone, whatever they read, in bounded memory and
time.
"""

import os
import re
import socket
import subprocess
import sys

import pytest

from bertscore_onnx.errors import BertScoreOnnxError, InputError

pytest.importorskip("pyarrow", reason="needs the extra parquet")
pytest.importorskip("huggingface_hub", reason="needs the extra hub")

from tests.support.file_fuzz import samples

linux = pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of memory in /proc")


@linux
@pytest.mark.parametrize(
    ("seed", "cases"),
    [
        pytest.param(1, 500, marks=pytest.mark.slow),
        *(pytest.param(seed, 2500, marks=pytest.mark.full) for seed in (2, 3, 4, 5)),
    ],
)
def test_damaged_files_and_answers_are_refused(tmp_path, seed, cases):
    command = [
        sys.executable,
        "-m",
        "tests.support.file_fuzz",
        str(tmp_path),
        str(seed),
        str(cases),
    ]
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "0",
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=1800, check=False
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stderr[-2000:]


NAMED_BY_USERS = re.compile("judgements|texts|lines|counts|baseline")
"""Readers of files that users name, which may be pipes: process substitution passes one."""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
@pytest.mark.parametrize("kind", ["pipe", "socket", "device", "folder"])
def test_readers_neither_wait_nor_fill_memory(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    for name, (path, read) in samples(tmp_path).items():
        if kind == "pipe" and NAMED_BY_USERS.match(name):
            continue
        sound = path.read_bytes()
        path.unlink()
        with socket.socket(socket.AF_UNIX) as listener:
            if kind == "socket":
                listener.bind(os.path.relpath(path))
            elif kind == "device":
                path.symlink_to("/dev/zero")
            else:
                (os.mkfifo if kind == "pipe" else os.mkdir)(path)
            if name == "names":
                assert read(path) == []
            else:
                with pytest.raises(BertScoreOnnxError):
                    read(path)
        (os.rmdir if kind == "folder" else os.unlink)(path)
        path.write_bytes(sound)


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="needs /dev/fd")
@pytest.mark.parametrize("name", ["counts", "baseline"])
def test_a_pipe_that_a_user_names_is_read(tmp_path, name):
    path, read = samples(tmp_path)[name]
    read_end, write_end = os.pipe()
    os.write(write_end, path.read_bytes())
    os.close(write_end)
    try:
        assert read(f"/dev/fd/{read_end}") == read(path)
    finally:
        os.close(read_end)


def test_rows_that_do_not_fit_into_memory_are_refused(tmp_path, monkeypatch):
    readers = samples(tmp_path)
    for module in ("sources", "whole_table"):
        monkeypatch.setattr(f"bertscore_onnx.tables.{module}.MAX_HELD_BYTES", 500)
    for name, (path, read) in readers.items():
        if name.startswith("judgements"):
            with pytest.raises(InputError, match="500 bytes"):
                read(path)
