import errno
import hashlib
import os
import threading
import time

import pytest

from bertscore_onnx.bundle import store
from bertscore_onnx.bundle.store import cached_digest, file_digest

XYZ = hashlib.sha256(b"xyz").hexdigest()
ABC = hashlib.sha256(b"abc").hexdigest()

users = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="this system has no users of POSIX")


@pytest.fixture
def file(tmp_path, home):
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    return path


@pytest.fixture
def read(monkeypatch):
    """Record the files that are read from now on."""
    paths = []

    def count(path):
        paths.append(path)
        return file_digest(path)

    monkeypatch.setattr("bertscore_onnx.bundle.store.file_digest", count)
    return paths


def test_an_unchanged_file_is_read_once_unless_asked_again(file, read):
    assert file_digest(file) == ABC
    assert [cached_digest(file), cached_digest(file)] == [ABC, ABC]
    assert read == [file]
    assert cached_digest(file, read_again=True) == ABC
    assert read == [file, file]


@pytest.mark.parametrize("is_set_back", [True, False])
def test_a_changed_file_is_read_again_whatever_its_time(file, is_set_back):
    cached_digest(file)
    status = file.stat()
    time.sleep(0.02)  # a clock of the kernel ticks every 10 ms at most
    file.write_bytes(b"xyz")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns) if is_set_back else (0, 0))
    assert cached_digest(file) == XYZ


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"x": 1}', b"\xff"])
def test_a_damaged_cache_is_ignored(file, home, content):
    home.mkdir()
    (home / "digests.json").write_bytes(content)
    assert cached_digest(file) == ABC


def test_a_home_that_cannot_be_written_costs_only_time(file, monkeypatch):
    monkeypatch.setenv("BERTSCORE_ONNX_HOME", str(file / "below-a-file"))
    assert cached_digest(file) == ABC


def test_files_that_are_gone_are_dropped(file, home, tmp_path):
    cached_digest(file)
    other = tmp_path / "other"
    other.write_bytes(b"")
    file.unlink()
    cached_digest(other)
    assert str(file) not in (home / "digests.json").read_text()


def test_another_file_of_the_same_size_and_times_is_read(file, read, monkeypatch):
    cached_digest(file)
    *times, inode = store.file_stamp(file)
    monkeypatch.setattr(store, "file_stamp", lambda path: (*times, inode + 1))
    cached_digest(file)
    assert read == [file, file]


def test_nobody_else_may_read_or_write_the_cache(file, home):
    cached_digest(file)
    assert (home / "digests.json").stat().st_mode & 0o777 == 0o600


def make_a_link(home):
    (home / "digests.json").rename(home / "elsewhere")
    (home / "digests.json").symlink_to(home / "elsewhere")


@users
@pytest.mark.parametrize(
    "change",
    [
        *(
            lambda home, mode=mode: (home / "digests.json").chmod(mode)
            for mode in (0o620, 0o602, 0o666)
        ),
        lambda home: home.chmod(0o777),
        make_a_link,
    ],
    ids=["group", "others", "all", "folder", "link"],
)
def test_a_cache_that_others_can_write_or_a_link_is_ignored(file, home, read, change):
    cached_digest(file)
    change(home)
    cached_digest(file)
    assert read == [file, file]


@users
@pytest.mark.parametrize("name", ["", "digests.json"])
def test_the_cache_of_another_user_is_ignored(file, home, read, monkeypatch, name):
    cached_digest(file)
    if os.geteuid() == 0:
        os.chown(home / name, 12345, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    cached_digest(file)
    assert read == [file, file]


@users
def test_a_pipe_is_no_cache_and_does_not_block(file, home):
    home.mkdir()
    os.mkfifo(home / "digests.json")
    found = []
    thread = threading.Thread(target=lambda: found.append(cached_digest(file)), daemon=True)
    thread.start()
    thread.join(10)
    assert found == [ABC]


def test_a_full_disk_leaves_no_file(file, home, monkeypatch):
    def fail(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("json.dump", fail)
    assert cached_digest(file) == ABC
    assert list(home.iterdir()) == []


def test_without_a_home_folder_files_are_read_each_time(file, read, homeless):
    assert [cached_digest(file), cached_digest(file)] == [ABC, ABC]
    assert read == [file, file]
