import hashlib
import os
import time

import pytest

from bertscore_onnx.bundle.digests import cached_digest, file_digest

XYZ = hashlib.sha256(b"xyz").hexdigest()
ABC = hashlib.sha256(b"abc").hexdigest()


@pytest.fixture
def file(tmp_path, home):
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    return path


@pytest.fixture
def read(monkeypatch):
    """Return the files that are read from now on."""
    paths = []

    def count(path):
        paths.append(path)
        return file_digest(path)

    monkeypatch.setattr("bertscore_onnx.bundle.digests.file_digest", count)
    return paths


def test_a_digest_is_the_sha256_of_the_content(file):
    assert file_digest(file) == cached_digest(file) == ABC


def test_an_unchanged_file_is_read_once(file, read):
    assert [cached_digest(file), cached_digest(file)] == [ABC, ABC]
    assert read == [file]


def test_an_unchanged_file_can_be_read_again(file, read):
    cached_digest(file)
    cached_digest(file, read_again=True)
    assert read == [file, file]


def test_a_modification_time_that_was_set_back_hides_no_change(file):
    cached_digest(file)
    status = file.stat()
    time.sleep(0.02)  # a clock of the kernel ticks every 10 ms at most
    file.write_bytes(b"xyz")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert cached_digest(file) == XYZ


def test_a_new_modification_time_means_reading_again(file):
    cached_digest(file)
    file.write_bytes(b"xyz")
    os.utime(file, ns=(0, 0))
    assert cached_digest(file) == XYZ


@pytest.mark.parametrize("memory", [b"{", b"[]", b'{"x": 1}', b"\xff"])
def test_a_damaged_memory_is_ignored(file, home, memory):
    home.mkdir()
    (home / "digests.json").write_bytes(memory)
    assert cached_digest(file) == ABC


def test_a_home_that_cannot_be_written_costs_only_time(file, tmp_path, monkeypatch):
    monkeypatch.setenv("BERTSCORE_ONNX_HOME", str(file / "below-a-file"))
    assert cached_digest(file) == ABC


def test_files_that_are_gone_are_forgotten(file, home, tmp_path):
    cached_digest(file)
    other = tmp_path / "other"
    other.write_bytes(b"")
    file.unlink()
    cached_digest(other)
    assert str(file) not in (home / "digests.json").read_text()
