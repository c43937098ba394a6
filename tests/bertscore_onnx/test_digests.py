import hashlib
import os

import pytest

from bertscore_onnx.digests import file_digest, remembered_digest

ABC = hashlib.sha256(b"abc").hexdigest()


@pytest.fixture
def file(tmp_path, home):
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    return path


def change_unnoticed(file):
    """Change the content but neither the size nor the modification time."""
    status = file.stat()
    file.write_bytes(b"xyz")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_digest_is_the_sha256_of_the_content(file):
    assert file_digest(file) == remembered_digest(file) == ABC


def test_a_file_that_seems_unchanged_is_not_read_again(file):
    remembered_digest(file)
    change_unnoticed(file)
    assert remembered_digest(file) == ABC
    assert file_digest(file) != ABC


def test_a_new_modification_time_means_reading_again(file):
    remembered_digest(file)
    file.write_bytes(b"xyz")
    os.utime(file, ns=(0, 0))
    assert remembered_digest(file) == hashlib.sha256(b"xyz").hexdigest()


@pytest.mark.parametrize("memory", [b"{", b"[]", b'{"x": 1}', b"\xff"])
def test_a_damaged_memory_is_ignored(file, home, memory):
    home.mkdir()
    (home / "digests.json").write_bytes(memory)
    assert remembered_digest(file) == ABC


def test_a_home_that_cannot_be_written_costs_only_time(file, tmp_path, monkeypatch):
    monkeypatch.setenv("BERTSCORE_ONNX_HOME", str(file / "below-a-file"))
    assert remembered_digest(file) == ABC


def test_files_that_are_gone_are_forgotten(file, home, tmp_path):
    remembered_digest(file)
    other = tmp_path / "other"
    other.write_bytes(b"")
    file.unlink()
    remembered_digest(other)
    assert str(file) not in (home / "digests.json").read_text()
