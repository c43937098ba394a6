"""Case 14: a job is killed again and again and ends like one that is not; its memory does not grow with its rows."""

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow
from pyarrow import parquet

from harness.processes import environment, memory_mb
from harness.results import Figure
from harness.texts import distinct_pairs
from reliability.report import at_least, at_most, none_of
from reliability.settings import Settings

KILLS = 5
PARTS = 100  # of the job that is killed
GROWTH_PERCENT = 5.0  # of memory, for ten times the rows

_LOOK_SECONDS = 0.005

Stamps = dict[str, tuple[int, int]]  # the inode and the modification time of each complete part


def measure(settings: Settings) -> list[Figure]:
    """Compare the files of a killed and an undisturbed job, and the memory of a small and a large one."""
    with tempfile.TemporaryDirectory() as folder:
        figures = _killed(settings, Path(folder))
        if settings.sizes.job_rows:
            figures.append(_growth(settings, Path(folder)))
    return figures


def _killed(settings: Settings, folder: Path) -> list[Figure]:
    rows = settings.sizes.killed_rows
    inputs = _write_pairs(folder / "pairs.parquet", rows)
    options = ("--part-rows", str(rows // PARTS))
    killed, undisturbed = folder / "killed", folder / "undisturbed"
    before: Stamps = {}
    kills, rewritten = 0, 0
    for number in range(1, KILLS + 1):
        job = _start(settings, inputs, killed, *options)
        kills += _is_killed(job, killed, parts=number * PARTS // (2 * KILLS))
        rewritten += _changed(before, killed)
        before = _stamps(killed)
    failed = [_start(settings, inputs, output, *options).wait() for output in (killed, undisturbed)]
    rewritten += _changed(before, killed)
    contents = [{file.name: file.read_bytes() for file in output.iterdir()} for output in (killed, undisturbed)]
    names = contents[0].keys() | contents[1].keys()
    return [
        at_least("kills in the middle of a job", kills, "", KILLS),
        at_least(f"of {PARTS} parts, complete at the last of them", len(before), "", 1),
        none_of("of these, written again", rewritten),
        none_of("jobs that failed when they were left alone", sum(status != 0 for status in failed)),
        none_of(
            f"of {len(names)} files, other than those of an undisturbed job",
            sum(contents[0].get(name) != contents[1].get(name) for name in names),
        ),
    ]


def _growth(settings: Settings, folder: Path) -> Figure:
    many = settings.sizes.job_rows
    few = many // 10
    peaks = [
        _peak_mb(_start(settings, _write_pairs(folder / f"{rows}.parquet", rows), folder / str(rows)))
        for rows in (few, many)
    ]
    growth = 100 * (peaks[1] / peaks[0] - 1)
    return at_most(f"growth of memory from {few:,} rows to {many:,}", growth, "%", GROWTH_PERCENT)


def _write_pairs(file: Path, rows: int) -> Path:
    candidates, references = map(list, zip(*distinct_pairs(rows), strict=True))
    parquet.write_table(pyarrow.table({"candidate": candidates, "reference": references}), file)
    return file


def _start(settings: Settings, inputs: Path, output: Path, *options: str) -> "subprocess.Popen[bytes]":
    command = ["batch", "--model", settings.tiny, "--device", "cpu", "--input", inputs, "--output", output, "--quiet"]
    return subprocess.Popen(
        [sys.executable, "-m", "bertscore_onnx", *map(str, command), *options],
        stdout=subprocess.DEVNULL,
        env=environment(),
    )


def _is_killed(job: "subprocess.Popen[bytes]", folder: Path, parts: int) -> bool:
    """Kill a job as soon as this many parts are complete; return whether it had not ended before."""
    while job.poll() is None and len(_stamps(folder)) < parts:
        time.sleep(_LOOK_SECONDS)
    job.kill()
    return job.wait() == -signal.SIGKILL


def _stamps(folder: Path) -> Stamps:
    found = {file.name: file.stat() for file in folder.glob("part-*.parquet")}
    return {name: (status.st_ino, status.st_mtime_ns) for name, status in found.items()}


def _changed(before: Stamps, folder: Path) -> int:
    """Count the parts that were complete and are now another file or missing."""
    now = _stamps(folder)
    return sum(now.get(name) != stamp for name, stamp in before.items())


def _peak_mb(job: "subprocess.Popen[bytes]") -> float:
    """Wait until a job ends; return the most memory that its process held at any look, in MB."""
    peak = 0.0
    while job.poll() is None:
        peak = max(peak, memory_mb("VmHWM", job.pid))
        time.sleep(_LOOK_SECONDS)
    return peak
