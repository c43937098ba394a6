"""The folder of a bundle: refused before the work, replaced by another, and after a killed
export.
"""

import os
import signal
import time
from pathlib import Path

import pytest

from bertscore_onnx.errors import ExportError
from bertscore_onnx_export import placement
from bertscore_onnx_export.placement import staging_folder
from tests.support.processes import run_python

KILLED = """
import os, signal, sys
from pathlib import Path
from bertscore_onnx_export.placement import staging_folder

def die(*place):
    os.kill(os.getpid(), signal.SIGKILL)

with staging_folder(Path(sys.argv[1]), force=True) as folder:
    (folder / "bertscore.json").write_text("new")
    if sys.argv[2] == "working":
        die()
    rename = Path.rename
    Path.rename = lambda self, target: die() if self == folder else rename(self, target)
"""


def write_bundle(target, content, *, force=False):
    with staging_folder(target, force=force) as folder:
        (folder / "bertscore.json").write_text(content)


def content(bundle):
    return (bundle / "bertscore.json").read_text()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def kill_export(target, when):
    """Run an export that is killed while it works, or when the old bundle is away and the new one
    not in its place.
    """
    assert run_python(KILLED, target, when).returncode == -signal.SIGKILL


def test_a_bundle_replaces_another_and_nothing_else_stays(tmp_path):
    write_bundle(tmp_path / "bundle", "old")
    write_bundle(tmp_path / "bundle", "new", force=True)
    assert (names(tmp_path), content(tmp_path / "bundle")) == (["bundle"], "new")


def refuse_renames(monkeypatch, is_refused):
    """Let some renames fail, by their source and their target."""
    rename = Path.rename

    def refuse(self, target):
        if is_refused(self, target):
            raise OSError(5, "Input/output error")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refuse)


def test_a_failed_swap_puts_the_old_bundle_back(tmp_path, monkeypatch):
    write_bundle(tmp_path / "bundle", "old")
    refuse_renames(monkeypatch, lambda source, target: source.name == "new")
    with pytest.raises(ExportError, match="Cannot put a bundle"):
        write_bundle(tmp_path / "bundle", "new", force=True)
    assert (names(tmp_path), content(tmp_path / "bundle")) == (["bundle"], "old")


def test_an_old_bundle_that_cannot_be_put_back_is_kept(tmp_path, monkeypatch):
    write_bundle(tmp_path / "bundle", "old")
    refuse_renames(monkeypatch, lambda source, target: target == tmp_path / "bundle")
    with pytest.raises(ExportError, match="back at"):
        write_bundle(tmp_path / "bundle", "new", force=True)
    monkeypatch.undo()
    with pytest.raises(ExportError, match="--force"):
        write_bundle(tmp_path / "bundle", "newer")
    assert (names(tmp_path), content(tmp_path / "bundle")) == (["bundle"], "old")


def test_the_old_bundle_comes_back_after_a_kill_during_the_swap(tmp_path):
    write_bundle(tmp_path / "bundle", "old")
    kill_export(tmp_path / "bundle", "swapping")
    assert not (tmp_path / "bundle").exists()
    with pytest.raises(ExportError, match="--force"):
        write_bundle(tmp_path / "bundle", "newer")
    assert (names(tmp_path), content(tmp_path / "bundle")) == (["bundle"], "old")


def test_what_a_killed_export_left_is_removed(tmp_path):
    kill_export(tmp_path / "bundle", "working")
    assert len(names(tmp_path)) == 1
    write_bundle(tmp_path / "bundle", "new")
    assert (names(tmp_path), content(tmp_path / "bundle")) == (["bundle"], "new")


def test_an_export_to_the_same_place_is_left_to_work(tmp_path):
    with staging_folder(tmp_path / "bundle", force=True) as slower:
        write_bundle(tmp_path / "bundle", "faster")
        (slower / "bertscore.json").write_text("slower")
    assert (names(tmp_path), content(tmp_path / "bundle")) == (["bundle"], "slower")


def test_without_locks_only_day_old_leftovers_are_removed(tmp_path, monkeypatch):
    monkeypatch.setattr(placement, "fcntl", None)
    for leftover, hours in ((".bundle.exporting-old", 25), (".bundle.exporting-young", 23)):
        (tmp_path / leftover).mkdir()
        os.utime(tmp_path / leftover, (0, time.time() - hours * 3600))
    write_bundle(tmp_path / "bundle", "new")
    assert names(tmp_path) == [".bundle.exporting-young", "bundle"]


def test_what_came_to_stand_there_meanwhile_is_not_replaced(tmp_path):
    notes = tmp_path / "notes"
    with pytest.raises(ExportError, match="is not a bundle"), staging_folder(notes, force=True):
        notes.write_text("mine")
    assert notes.read_text() == "mine"


def test_a_failure_leaves_no_new_folder_above_the_place(tmp_path):
    with (
        pytest.raises(ZeroDivisionError),
        staging_folder(tmp_path / "new" / "newer" / "bundle", force=False),
    ):
        raise ZeroDivisionError
    assert names(tmp_path) == []


def test_a_link_is_followed(tmp_path):
    write_bundle(tmp_path / "bundle", "old")
    (tmp_path / "link").symlink_to(tmp_path / "bundle")
    write_bundle(tmp_path / "link", "new", force=True)
    assert (tmp_path / "link").is_symlink()
    assert content(tmp_path / "bundle") == "new"


def refuse(target, message):
    """Expect that a place is refused before the work begins."""
    with pytest.raises(ExportError, match=message), staging_folder(target, force=True):
        pytest.fail("the work began")


def test_a_mount_point_is_refused():
    refuse(Path("/"), "is a mount point")


@pytest.mark.parametrize("place", ["file/bundle", "file/folder/bundle", "x" * 300])
def test_a_place_where_nothing_can_be_written_is_refused(tmp_path, place):
    (tmp_path / "file").write_text("mine")
    refuse(tmp_path / place, "Cannot put a bundle")
    assert names(tmp_path) == ["file"]
