"""Regular files are read within a bound, and files are written whole, or not at all."""

import os
import stat

import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx.files import read_regular, write_whole


def test_a_file_is_read_up_to_its_bound(tmp_path):
    (tmp_path / "a").write_bytes(b"1234")
    (tmp_path / "link").symlink_to("a")
    assert read_regular(tmp_path / "a", 4) == read_regular(tmp_path / "link", 9) == b"1234"
    with pytest.raises(OSError, match="more than the 3 bytes"):
        read_regular(tmp_path / "a", 3)
    with pytest.raises(FileNotFoundError):
        read_regular(tmp_path / "b", 3)


def test_a_file_is_written_also_through_a_link(tmp_path):
    file, link = tmp_path / "a.html", tmp_path / "link"
    link.symlink_to(file)
    for name, content in ((link, b"new"), (file, b"newer"), (link, b"newest")):
        write_whole(name, content)
        assert file.read_bytes() == content
        assert link.is_symlink()
        assert {*tmp_path.iterdir()} == {file, link}


@pytest.mark.skipif(not os.path.isdir("/dev/fd"), reason="needs names of descriptors")
def test_a_pipe_that_has_only_a_descriptor_is_written_to():
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as pipe:
        write_whole(f"/dev/fd/{writing}", "page")
        os.close(writing)
        assert pipe.read() == b"page"
    with pytest.raises(InputError, match="Bad file descriptor"):
        write_whole(f"/dev/fd/{writing}", "page")


def test_a_new_file_has_the_permissions_of_the_umask(tmp_path):
    before = os.umask(0o022)
    try:
        write_whole(tmp_path / "a", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o644


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "a").chmod(0o600)
    write_whole(tmp_path / "a", b"new")
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["missing/a", "file/a", f"{'n' * 300}"])
def test_a_file_that_cannot_be_written_is_named(tmp_path, name):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match=f"Cannot write .*{name}"):
        write_whole(tmp_path / name, b"a")
    assert {entry.name for entry in tmp_path.iterdir()} == {"file"}


def test_text_is_written_in_utf_8_with_lone_surrogates_escaped(tmp_path):
    write_whole(tmp_path / "a", "é\udc80\n")
    assert (tmp_path / "a").read_bytes() == b"\xc3\xa9\\udc80\n"


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="needs /dev/null")
def test_a_device_is_not_replaced():
    write_whole("/dev/null", b"a")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
