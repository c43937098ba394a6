"""A job that is started again completes its parts and refuses other settings and inputs."""

import os
import signal
import subprocess
import sys
import time

import pyarrow.parquet as pq
import pytest

from bertscore_onnx.distributed.job import score_files
from bertscore_onnx.errors import InputError


@pytest.fixture
def score(tiny_bundle, tmp_path):
    """Score files into a folder of the test's own on a CPU."""

    def score(inputs, output="scores", **options):
        options = {"part_rows": 10, "device": "cpu", **options}
        return score_files(inputs, tmp_path / output, tiny_bundle, **options)

    return score


@pytest.fixture
def start_job(tiny_bundle, tmp_path):
    """Start a job in a process of its own."""

    def start(inputs, output, *options):
        command = [sys.executable, "-m", "bertscore_onnx", "batch", "-m", tiny_bundle, "--device", "cpu", "-q"]
        arguments = ["--input", inputs, "--output", tmp_path / output, *options]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        return subprocess.Popen([*map(str, command + arguments)], env=environment, stdout=subprocess.DEVNULL)

    return start


def stamps(folder):
    """Return when each part was written, and as which file."""
    return {part.name: (part.stat().st_mtime_ns, part.stat().st_ino) for part in folder.glob("part-*.parquet")}


def kill_in_the_middle(process, folder, num_parts):
    """Kill a job as soon as it has completed a number of parts."""
    while process.poll() is None and len(stamps(folder)) < num_parts:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    assert process.wait(60) == -signal.SIGKILL


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        pytest.param((), id="plain"),
        pytest.param(("--idf", "--errors", "null"), id="idf", marks=pytest.mark.full),
    ],
)
def test_a_job_that_is_killed_again_and_again_ends_as_one_that_is_not(
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
    (folder / ".part-00000-00059.parquet-0123456789ab").write_bytes(b"PAR1")
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
    (folder / "part-00000-00003.parquet").write_bytes(whole["part-00000-00003.parquet"][:-9])
    before = stamps(folder)
    result = score(path)
    assert (result.parts, result.parts_before) == (5, 3)
    assert contents(folder) == whole
    assert len(before.items() & stamps(folder).items()) == 3


def test_the_parts_before_a_bad_row_are_kept_when_it_is_mended(score, write_pairs, tmp_path):
    good, bad = write_pairs("good.parquet", 30), write_pairs("bad.parquet", 30, candidate=["it"] * 15 + [None] * 15)
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
        ({"errors": "null"}, "errors was raise and is null"),
        ({"columns": ["id"]}, "columns was not given and is"),
        ({"idf": True}, "idf was no and is inputs"),
        ({"long_text": "window"}, "the signature was .*long_text:truncate.* and is .*long_text:window"),
        ({"max_length": 5}, "the signature was .* and is .*max_length:5"),
    ],
)
def test_other_settings_are_refused(score, write_pairs, contents, tmp_path, changed, message):
    path = write_pairs("pairs.parquet", 50)
    score(path)
    whole = contents(tmp_path / "scores")
    with pytest.raises(InputError, match=f"scores of another job: .*{message}"):
        score(path, **changed)
    assert contents(tmp_path / "scores") == whole


def test_other_inputs_are_refused(score, write_pairs):
    first, second = write_pairs("a.parquet", 50), write_pairs("b.parquet", 50)
    score(first)
    with pytest.raises(InputError, match=r"an input was .*a.parquet and is .*b.parquet"):
        score(second)
    with pytest.raises(InputError, match="there were 1 inputs and are 2"):
        score([first, second])
    pq.write_table(pq.read_table(first).slice(1), first)
    with pytest.raises(InputError, match=r"a.parquet has changed"):
        score(first)


def test_a_setting_that_changes_no_bit_may_be_another(score, write_pairs):
    path = write_pairs("pairs.parquet", 50)
    score(path, nthreads=1)
    assert score(path, nthreads=2, batch_size=7).parts_before == 5


def test_folders_with_other_things_are_refused(score, write_pairs, write):
    path = write_pairs("pairs.parquet", 50)
    with pytest.raises(InputError, match=r"holds pairs.parquet, which is not of this job"):
        score(path, output=".")
    score(path)
    write("scores/other.parquet", "")
    with pytest.raises(InputError, match=r"holds other.parquet, which is not of this job"):
        score(path)


def test_parts_of_another_job_under_the_same_name_are_refused(score, write_pairs, tmp_path):
    path = write_pairs("pairs.parquet", 50)
    score(path)
    score(path, output="others", errors="null")
    name = "part-00000-00001.parquet"
    (tmp_path / "others" / name).replace(tmp_path / "scores" / name)
    with pytest.raises(InputError, match=f"{name} has other scores"):
        score(path)


def test_other_manifests_and_files_in_place_of_the_folder_are_refused(score, write_pairs, write, tmp_path):
    path = write_pairs("pairs.parquet", 5)
    (tmp_path / "scores").mkdir()
    write("scores/_manifest.json", '{"format": "another"}')
    with pytest.raises(InputError, match=r"_manifest.json is not the manifest of a job"):
        score(path)
    write("file", "")
    with pytest.raises(InputError, match=r"Cannot write .*file"):
        score(path, "file")


@pytest.mark.skipif(sys.platform == "win32", reason="folders are not locked there")
def test_a_folder_that_another_job_writes_to_is_refused(score, write_pairs, tmp_path):
    import fcntl

    path = write_pairs("pairs.parquet", 50)
    (tmp_path / "scores").mkdir()
    descriptor = os.open(tmp_path / "scores", os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        with pytest.raises(InputError, match="Another job writes to"):
            score(path)
    finally:
        os.close(descriptor)
    assert score(path).rows == 50


@pytest.mark.slow  # it starts a process
@pytest.mark.skipif(sys.platform == "win32", reason="needs limits of a process")
def test_a_file_that_cannot_be_written_leaves_the_complete_parts_alone(score, write_pairs, tiny_bundle, tmp_path):
    large = [""] * 20 + [os.urandom(5_000).hex() for _ in range(10)]
    path = write_pairs("pairs.parquet", 30, large=large)
    code = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000));"
    code += "from bertscore_onnx.cli import main; main()"
    options = ["batch", "-m", tiny_bundle, "--input", path, "--output", tmp_path / "scores", "--part-rows", 10]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
    command = [sys.executable, "-c", code, *map(str, options), "--device", "cpu"]
    result = subprocess.run(command, env=environment, stderr=subprocess.PIPE, timeout=60, check=False)
    assert result.returncode == 1
    assert b"part-00000-00002.parquet' (File too large). Parts that are complete stay" in result.stderr
    assert sorted(file.name for file in (tmp_path / "scores").iterdir()) == [
        "_manifest.json",
        "part-00000-00000.parquet",
        "part-00000-00001.parquet",
    ]
    assert score(path).parts_before == 2
