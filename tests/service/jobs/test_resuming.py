"""A job that is started again completes its parts, and refuses other settings, and inputs that have
changed.
"""

import contextlib
import gzip
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from bertscore_onnx.errors import InputError
from tests.service.jobs.conftest import texts
from tests.support.processes import run_python


@pytest.fixture
def start_job(tiny_bundle, tmp_path):
    def start(inputs, output, *options):
        command = [
            sys.executable,
            "-m",
            "bertscore_onnx",
            "batch",
            "-m",
            tiny_bundle,
            "--device",
            "cpu",
            "-q",
        ]
        arguments = ["--input", inputs, "--output", tmp_path / output, *options]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        }
        return subprocess.Popen(
            [*map(str, command + arguments)], env=environment, stdout=subprocess.DEVNULL
        )

    return start


def stamps(folder):
    """Return when each part was written, and as which file."""
    return {
        part.name: (part.stat().st_mtime_ns, part.stat().st_ino)
        for part in folder.glob("part-*.parquet")
    }


def kill_in_the_middle(process, folder, num_parts):
    while process.poll() is None and len(stamps(folder)) < num_parts:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize(
    "options", [(), pytest.param(("--idf", "--errors", "null"), marks=pytest.mark.full)], ids=str
)
def test_a_job_that_is_killed_again_and_again_is_completed(
    start_job, write_pairs, contents, tmp_path, options
):
    inputs = write_pairs("pairs.parquet", 6000)
    options = (*options, "--part-rows", "100")
    folder, before = tmp_path / "scores", {}
    for number in range(5):
        kill_in_the_middle(start_job(inputs, "scores", *options), folder, 1 + 5 * number)
        assert before.items() <= stamps(folder).items()
        before = stamps(folder)
    assert 20 < len(before) < 60
    (folder / ".part-00000-00059.parquet").write_bytes(b"PAR1")
    assert start_job(inputs, "scores", *options).wait(60) == 0
    assert before.items() <= stamps(folder).items()
    assert start_job(inputs, "undisturbed", *options).wait(60) == 0
    assert contents(folder) == contents(tmp_path / "undisturbed")


def test_parts_that_are_complete_are_not_written_again(score, write_pairs, contents, tmp_path):
    path = write_pairs("pairs.parquet", 50)
    first = score(path)
    folder, whole = tmp_path / "scores", contents(tmp_path / "scores")
    again = score(path)
    assert (again.parts_before, again.f1, again.rows) == (5, first.f1, 50)
    assert contents(folder) == whole
    (folder / "part-00000-00002.parquet").unlink()
    before = stamps(folder)
    result = score(path)
    assert (result.parts, result.parts_before) == (5, 4)
    assert contents(folder) == whole
    assert before.items() <= stamps(folder).items()


def flip(position):
    """Return a function that flips a bit at a position of the bytes of a part, or in a piece of
    it.
    """

    def flipped(part, _):
        place = part.index(position) + len(position) if isinstance(position, bytes) else position
        return part[:place] + bytes([part[place] ^ 4]) + part[place + 1 :]

    return flipped


def move(place):
    """Return a function that flips a bit in the footer of a part, at a share of its length."""

    def flipped(part, other):
        footer = int.from_bytes(part[-8:-4], "little")
        return flip(len(part) - 8 - footer + int(place * footer))(part, other)

    return flipped


DAMAGES = {
    "the first byte": flip(0),
    "a page": flip(60),
    "the sums": flip(b'"sums":['),
    "the digest": flip(b'"sha256":"'),
    "the schema": flip(b"ARROW:schema"),
    "the footer": move(0.01),
    "its middle": move(0.5),
    "the length of the footer": flip(-7),
    "the last byte": flip(-1),
    "cut": lambda part, _: part[:-9],
    "empty": lambda part, _: b"",
    "longer": lambda part, _: part + b"PAR1",
    "the file of another part": lambda _, other: other,
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_part_with_any_other_byte_is_scored_again(
    score, write_pairs, contents, tmp_path, caplog, damage
):
    path, folder = write_pairs("pairs.parquet", 20), tmp_path / "scores"
    score(path)
    whole = contents(folder)
    part, other = (f"part-00000-0000{number}.parquet" for number in range(2))
    (folder / part).write_bytes(damage(whole[part], whole[other]))
    assert score(path).parts_before == 1
    assert f"{folder / part} is damaged; it is scored again." in caplog.text
    assert contents(folder) == whole


def test_a_part_of_another_job_is_scored_again(score, write_pairs, contents, tmp_path):
    path = write_pairs("pairs.parquet", 20)
    score(path)
    whole = contents(tmp_path / "scores")
    score(path, "others", idf=True)
    part = "part-00000-00001.parquet"
    (tmp_path / "scores" / part).write_bytes((tmp_path / "others" / part).read_bytes())
    assert score(path).parts_before == 1
    assert contents(tmp_path / "scores") == whole


def test_the_rows_of_a_part_are_decided_once_by_the_time_that_rows_take(
    score, write_pairs, tmp_path, monkeypatch
):
    clock = iter(range(10**6))
    monkeypatch.setattr("bertscore_onnx_service.jobs.batches.monotonic", lambda: next(clock))
    path = write_pairs("pairs.parquet", 2000)
    assert score(path, part_rows=None).parts == 3  # 16 rows are scored in a second, and 720 in 45
    manifest = json.loads((tmp_path / "scores" / "_manifest.json").read_bytes())
    assert manifest["settings"]["part_rows"] == 720
    monkeypatch.undo()
    (tmp_path / "scores" / "part-00000-00001.parquet").unlink()
    result = score(path, part_rows=None)
    assert (result.parts, result.parts_before) == (3, 2)
    assert score(path, part_rows=720).parts_before == 3
    with pytest.raises(InputError, match="part_rows was 720 and is 700"):
        score(path, part_rows=700)


def test_without_a_row_that_can_be_scored_a_part_has_a_fixed_number(score, write_pairs):
    path = write_pairs("pairs.parquet", 3, candidate=pa.array([None] * 3, pa.string()))
    assert score(path, part_rows=None, errors="null").failures == 3


def test_the_parts_before_a_bad_row_are_kept_when_it_is_mended(score, write_pairs, tmp_path):
    good, bad = (
        write_pairs("good.parquet", 30),
        write_pairs("bad.parquet", 30, candidate=["it"] * 15 + [None] * 15),
    )
    before = None
    for _ in range(2):
        with pytest.raises(InputError, match="row 16"):
            score([good, bad])
        assert len(stamps(tmp_path / "scores")) == 4
        before = before or stamps(tmp_path / "scores")
    assert stamps(tmp_path / "scores") == before


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"part_rows": 20}, "part_rows was 10 and is 20"),
        ({"errors": "null"}, "errors was"),
        ({"columns": ["id"]}, "columns was"),
        ({"idf": True}, "signature .*idf:"),
        ({"long_text": "window"}, "signature .*long_text:window"),
        ({"max_length": 5}, "signature .*max_length:5"),
    ],
)
def test_other_settings_are_refused(score, write_pairs, contents, tmp_path, changed, message):
    path = write_pairs("pairs.parquet", 50)
    score(path)
    whole = contents(tmp_path / "scores")
    with pytest.raises(InputError, match=message):
        score(path, **changed)
    assert contents(tmp_path / "scores") == whole


def test_other_inputs_are_refused(score, write_pairs):
    first, second = write_pairs("a.parquet", 50), write_pairs("b.parquet", 50)
    score(first)
    with pytest.raises(InputError, match=r"a.parquet and is .*b.parquet"):
        score(second)
    with pytest.raises(InputError, match="2"):
        score([first, second])
    pq.write_table(pq.read_table(first).slice(1), first)
    with pytest.raises(InputError, match="changed"):
        score(first)


@pytest.mark.skipif(sys.platform == "win32", reason="folders are not locked there")
@pytest.mark.parametrize("changed", [{}, {"idf": True}, {"errors": "null"}])
def test_a_folder_without_scores_is_free_for_another_job(
    score, write_pairs, contents, tmp_path, changed
):
    path = write_pairs("pairs.parquet", 5, candidate=[None] + ["it"] * 4)
    with pytest.raises(InputError, match="row 1"):
        score(path)
    assert [file.name for file in (tmp_path / "scores").iterdir()] == ["_manifest.json"]
    write_pairs("pairs.parquet", 5)
    assert score(path, **changed).failures == 0
    score(path, "others", **changed)
    assert contents(tmp_path / "scores") == contents(tmp_path / "others")


def test_a_setting_that_changes_no_bit_may_be_another(score, write_pairs):
    path = write_pairs("pairs.parquet", 50)
    score(path, nthreads=1)
    assert score(path, nthreads=2, batch_size=7).parts_before == 5


def test_folders_with_other_things_are_refused(score, write_pairs, write):
    path = write_pairs("pairs.parquet", 50)
    with pytest.raises(InputError, match=r"pairs.parquet"):
        score(path, output=".")
    score(path)
    write("scores/other.parquet", "")
    with pytest.raises(InputError, match=r"other.parquet"):
        score(path)


def test_a_foreign_manifest_or_a_file_as_folder_is_refused(score, write_pairs, write, tmp_path):
    path = write_pairs("pairs.parquet", 5)
    (tmp_path / "scores").mkdir()
    write("scores/_manifest.json", '{"format": "another"}')
    with pytest.raises(InputError, match="manifest"):
        score(path)
    write("file", "")
    with pytest.raises(InputError, match="file"):
        score(path, "file")


@pytest.mark.skipif(sys.platform == "win32", reason="folders are not locked there")
def test_a_folder_that_another_job_writes_to_is_refused(score, write_pairs, tmp_path):
    import fcntl

    path = write_pairs("pairs.parquet", 50)
    (tmp_path / "scores").mkdir()
    descriptor = os.open(tmp_path / "scores", os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="Another job"):
            score(path)
    finally:
        os.close(descriptor)
    assert score(path).rows == 50


@pytest.mark.slow  # it starts a process
@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of a process")
def test_a_full_disk_leaves_the_complete_parts_alone(score, write_pairs, tiny_bundle, tmp_path):
    large = [""] * 20 + [os.urandom(5_000).hex() for _ in range(10)]
    path = write_pairs("pairs.parquet", 30, large=large)
    code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000));"
    code += "from bertscore_onnx.cli import main; main()"
    options = ["-i", path, "-o", tmp_path / "scores", "--part-rows", 10, "--device", "cpu"]
    result = run_python(code, "batch", "-m", tiny_bundle, *options)
    assert result.returncode == 2
    assert (
        "part-00000-00002.parquet' (File too large). Parts that are complete stay" in result.stderr
    )
    assert sorted(file.name for file in (tmp_path / "scores").iterdir()) == [
        "_manifest.json",
        "part-00000-00000.parquet",
        "part-00000-00001.parquet",
    ]
    assert score(path).parts_before == 2


def make_socket(path):
    # a path may have 107 bytes
    with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(path.parent):
        server.bind(path.name)


@pytest.mark.skipif(sys.platform == "win32", reason="needs pipes and devices in folders")
@pytest.mark.parametrize("name", ["_manifest.json", "part-00000-00001.parquet"])
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda path: os.mkfifo(path), id="pipe"),
        pytest.param(lambda path: path.symlink_to("/dev/zero"), id="device"),
        pytest.param(lambda path: path.symlink_to("nowhere"), id="nowhere"),
        pytest.param(lambda path: path.mkdir(), id="folder"),
        pytest.param(make_socket, id="socket"),
    ],
)
def test_what_is_no_file_in_the_place_of_one_is_replaced_or_refused(
    score, write_pairs, contents, tmp_path, name, make
):
    path, folder = write_pairs("pairs.parquet", 20), tmp_path / "scores"
    score(path)
    whole = contents(folder)
    (folder / name).unlink()
    make(folder / name)
    if name == "_manifest.json" or (folder / name).is_dir():
        with pytest.raises(InputError, match=r"not the manifest|not of this job|Cannot write"):
            score(path)
    else:
        assert score(path).parts_before == 1
        assert contents(folder) == whole


@pytest.mark.parametrize(
    "name", ["_manifest.json", ".part-00000-00000.parquet", "._manifest.json-PID"]
)
@pytest.mark.parametrize("target", ["a file", "nowhere"])
def test_links_in_the_folder_are_not_followed(score, write_pairs, tmp_path, name, target):
    folder = tmp_path / "scores"
    folder.mkdir()
    (tmp_path / "a file").write_text("kept")
    name = name.replace("PID", str(os.getpid()))
    (folder / name).symlink_to(tmp_path / target)
    is_refused = (name, target) == ("_manifest.json", "a file")  # which is no manifest
    with pytest.raises(InputError) if is_refused else contextlib.nullcontext():
        assert score(write_pairs("pairs.parquet", 20)).rows == 20
        assert not any(file.is_symlink() for file in folder.iterdir())
    assert (tmp_path / "a file").read_text() == "kept"
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("idf", [False, True])
def test_a_complete_job_needs_no_right_to_write(score, write_pairs, tmp_path, idf):
    path, folder = write_pairs("pairs.parquet", 20), tmp_path / "scores"
    result = score(path, idf=idf)
    for file in (*folder.iterdir(), folder):
        file.chmod(0o555)
    before = folder.stat().st_mtime_ns, (folder / "_manifest.json").stat().st_mtime_ns
    try:
        again = score(path, idf=idf)
    finally:
        folder.chmod(0o755)
    assert (again.parts_before, again.f1) == (2, result.f1)
    # holds for root too
    assert (folder.stat().st_mtime_ns, (folder / "_manifest.json").stat().st_mtime_ns) == before


def test_files_are_on_the_disk_before_they_have_their_names(
    score, write_pairs, tmp_path, monkeypatch
):
    synced, named = set(), []
    fsync, replace = os.fsync, os.replace

    def sync(descriptor):
        synced.add(os.fstat(descriptor).st_ino)
        fsync(descriptor)

    def rename(file, name):
        assert os.stat(file).st_ino in synced
        synced.discard((tmp_path / "scores").stat().st_ino)
        named.append(Path(name).name)
        replace(file, name)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "replace", rename)
    score(write_pairs("pairs.parquet", 20))
    assert named == ["_manifest.json", "part-00000-00000.parquet", "part-00000-00001.parquet"]
    assert (tmp_path / "scores").stat().st_ino in synced


# Inputs that change while a job runs: no part has rows of another file than the one in the
# manifest.

NUMBER = 120


def write_table(path, seed):
    """Write texts in a format by the name; of all seeds the files have the same size, but for
    gzip.
    """
    width = max(map(len, texts(NUMBER, 1)))
    candidates = [text.ljust(width, "x") for text in texts(NUMBER, seed)]
    table = {"id": list(range(NUMBER)), "candidate": candidates, "reference": texts(NUMBER, 2)}
    if path.suffix == ".parquet":
        pq.write_table(
            pa.table(table), path, row_group_size=25, compression="none", use_dictionary=False
        )
    elif path.suffix == ".csv":
        pyarrow.csv.write_csv(pa.table(table), path)
    else:
        lines = [
            json.dumps(dict(zip(table, row, strict=True)))
            for row in zip(*table.values(), strict=True)
        ]
        path.write_bytes(gzip.compress("\n".join(lines).encode(), mtime=0))
    return table


def rewrite(path):
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


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "name",
    [
        "pairs.parquet",
        *(pytest.param(name, marks=pytest.mark.full) for name in ("pairs.csv", "pairs.jsonl.gz")),
    ],
)
@pytest.mark.parametrize(
    "moment", ["_manifest.json", "part-00000-00001.parquet", "part-00000-00011.parquet"]
)
def test_a_job_whose_input_changes_fails_until_it_is_restored(
    score, contents, at_name, tmp_path, name, change, moment
):
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
    path.write_bytes(original)
    assert score(path).parts == 12
    score(path, "undisturbed")
    assert contents(tmp_path / "scores") == contents(tmp_path / "undisturbed")


@pytest.mark.skipif(sys.platform == "win32", reason="needs pipes in folders")
def test_an_input_that_is_a_pipe_is_refused(score, tmp_path):
    os.mkfifo(tmp_path / "pairs.csv")
    with pytest.raises(InputError, match="pipe"):
        score(tmp_path / "pairs.csv")
