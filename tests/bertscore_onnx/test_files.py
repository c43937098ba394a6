"""Files are written whole, or not at all."""

import os
import stat

import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx.files import write_whole


def test_a_file_is_replaced_and_nothing_else_is_left(tmp_path):
    file, link = tmp_path / "a.html", tmp_path / "link"
    file.write_bytes(b"old")
    write_whole(file, b"new")
    assert file.read_bytes() == b"new"
    assert [*tmp_path.iterdir()] == [file]
    link.symlink_to(file)
    write_whole(link, "é\udc80\n")  # text is UTF-8, and a lone surrogate an escape
    assert link.is_symlink()
    assert file.read_bytes() == b"\xc3\xa9\\udc80\n"


def test_a_new_file_may_be_read_by_those_the_umask_lets(tmp_path):
    before = os.umask(0o022)
    try:
        write_whole(tmp_path / "a", b"")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o644


@pytest.mark.parametrize("name", ["missing/a", "file/a", f"{'n' * 300}"])
def test_what_cannot_be_written_is_named(tmp_path, name):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(InputError, match=rf"Cannot write '.*{name}' \(.+\)\. Check the name"):
        write_whole(tmp_path / name, b"a")
    assert {entry.name for entry in tmp_path.iterdir()} == {"file"}


@pytest.mark.skipif(not os.path.exists("/dev/null"), reason="needs /dev/null")
def test_a_device_is_written_to_as_it_is():
    write_whole("/dev/null", b"a")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
