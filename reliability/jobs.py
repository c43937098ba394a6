"""Cases 14 and 15: jobs that are killed, and whose inputs are rewritten.

Each ends like a job that nothing disturbed, or fails. The memory of a job does not grow with its
rows.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pyarrow
from pyarrow import parquet

from bertscore_onnx.errors import InputError
from bertscore_onnx_service.jobs.job import JobResult, score_files
from harness.processes import environment, memory_mb
from harness.results import Figure
from harness.texts import distinct_pairs
from reliability.report import at_least, at_most, none_of
from reliability.settings import Settings

KILLS = 5
PARTS = 100  # of the job that is killed
GROWTH_PERCENT = 5.0  # of memory, for ten times the rows
REWRITTEN_ROWS, REWRITTEN_PARTS = 3_000, 20  # of a job whose input is rewritten
NOTE = "x" * 300  # a column that makes an input long enough to be read all through the job

_LOOK_SECONDS = 0.005

Stamps = dict[str, tuple[int, int]]  # the inode and the modification time of each complete part
Run = Callable[[], JobResult]


def measure(settings: Settings) -> list[Figure]:
    """Compare the files of a killed and an undisturbed job, and the memory of a small and a large
    one.
    """
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
    contents = [
        {file.name: file.read_bytes() for file in output.iterdir()}
        for output in (killed, undisturbed)
    ]
    names = contents[0].keys() | contents[1].keys()
    return [
        at_least("kills in the middle of a job", kills, "", KILLS),
        at_least(f"of {PARTS} parts, complete at the last of them", len(before), "", 1),
        none_of("of these, written again", rewritten),
        none_of(
            "jobs that failed when they were left alone", sum(status != 0 for status in failed)
        ),
        none_of(
            f"of {len(names)} files, other than those of an undisturbed job",
            sum(contents[0].get(name) != contents[1].get(name) for name in names),
        ),
    ]


def _growth(settings: Settings, folder: Path) -> Figure:
    many = settings.sizes.job_rows
    few = many // 10
    peaks = [
        _peak_mb(
            _start(settings, _write_pairs(folder / f"{rows}.parquet", rows), folder / str(rows))
        )
        for rows in (few, many)
    ]
    growth = 100 * (peaks[1] / peaks[0] - 1)
    return at_most(f"growth of memory from {few:,} rows to {many:,}", growth, "%", GROWTH_PERCENT)


def _write_pairs(file: Path, rows: int) -> Path:
    candidates, references = map(list, zip(*distinct_pairs(rows), strict=True))
    parquet.write_table(pyarrow.table({"candidate": candidates, "reference": references}), file)
    return file


def _start(
    settings: Settings, inputs: Path, output: Path, *options: str
) -> "subprocess.Popen[bytes]":
    command = [
        "batch",
        "--model",
        settings.tiny,
        "--device",
        "cpu",
        "--input",
        inputs,
        "--output",
        output,
        "--quiet",
    ]
    return subprocess.Popen(
        [sys.executable, "-m", "bertscore_onnx", *map(str, command), *options],
        stdout=subprocess.DEVNULL,
        env=environment(),
    )


def _is_killed(job: "subprocess.Popen[bytes]", folder: Path, parts: int) -> bool:
    """Kill a job as soon as this many parts are complete; return whether it had not ended
    before.
    """
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


# --- inputs that are rewritten while a job runs ---


def measure_rewritten(settings: Settings) -> list[Figure]:
    """Rewrite the input of a job when a random number of its parts is complete, then restore it and
    resume the job.
    """
    draw, ways = random.Random(0), list(_WAYS)
    rounds = settings.sizes.rewritten_inputs
    refused = wrong = unfinished = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        inputs = {end: _versions(folder / f"pairs.{end}") for end in ("parquet", "jsonl")}
        whole = {end: _undisturbed(settings, folder / f"pairs.{end}") for end in inputs}
        for number in range(rounds):
            end, way = [*inputs][number % 2], ways[number % len(ways)]
            file, output = folder / f"pairs.{end}", folder / f"{number}"
            run = _job(settings, file, output, part_rows=REWRITTEN_ROWS // REWRITTEN_PARTS)
            is_complete = _is_complete_though(
                run, output, draw.randrange(REWRITTEN_PARTS // 2), partial(way, file, *inputs[end])
            )
            found = _contents(output)
            refused += not is_complete
            wrong += not _holds(found, whole[end], is_complete=is_complete)
            file.write_bytes(inputs[end][0])
            unfinished += not _is_resumed(run, output, whole[end])
    return [
        at_least(f"of {rounds} jobs whose input was rewritten, refused", refused, "", rounds // 2),
        none_of(
            "jobs with scores of other texts, or complete with other files than an undisturbed one",
            wrong,
        ),
        none_of(
            "jobs that were not resumed with the original to the files of an undisturbed one",
            unfinished,
        ),
    ]


def _versions(file: Path) -> tuple[bytes, bytes, bytes]:
    """Write an input; return its content, that of other texts of the same size, and one of more
    rows.
    """
    pairs = [*distinct_pairs(REWRITTEN_ROWS)]
    others = [(candidate.translate(_OTHER_LETTERS), reference) for candidate, reference in pairs]
    contents = []
    for rows in (others + others, others, pairs):
        table = [
            {"candidate": candidate, "reference": reference, "note": NOTE}
            for candidate, reference in rows
        ]
        if file.suffix == ".jsonl":
            file.write_text("".join(f"{json.dumps(row)}\n" for row in table), encoding="utf-8")
        else:
            plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
            parquet.write_table(pyarrow.Table.from_pylist(table), file, row_group_size=500, **plain)
        contents.append(file.read_bytes())
    longer, other, original = contents
    assert len(other) == len(original) != len(longer)
    return original, other, longer


def _write_same_size(file: Path, original: bytes, other: bytes, longer: bytes) -> None:
    """Write other texts of the same size, and restore the modification time."""
    status = file.stat()
    file.write_bytes(other)
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))


def _replace(file: Path, original: bytes, other: bytes, longer: bytes) -> None:
    renamed = file.with_suffix(".new")
    renamed.write_bytes(other)
    renamed.replace(file)


def _restore(file: Path, original: bytes, other: bytes, longer: bytes) -> None:
    file.write_bytes(other)
    time.sleep(_LOOK_SECONDS)
    file.write_bytes(original)


_OTHER_LETTERS = str.maketrans("aeiou", "eioua")
_WAYS: list[Callable[[Path, bytes, bytes, bytes], object]] = [
    _write_same_size,
    lambda file, original, other, longer: file.write_bytes(longer),
    _replace,
    lambda file, original, other, longer: os.truncate(file, len(original) // 2),
    _restore,
]


def _is_complete_though(run: Run, output: Path, parts: int, rewrite: Callable[[], object]) -> bool:
    """Rewrite the input once a job has described itself and this many parts; return whether the job
    succeeds.
    """
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(run)
        while not job.done() and not (
            (output / "_manifest.json").exists() and len(_stamps(output)) >= parts
        ):
            time.sleep(_LOOK_SECONDS)
        rewrite()
        try:
            job.result()
        except InputError:
            return False
    return True


def _holds(found: dict[str, bytes], whole: dict[str, bytes], *, is_complete: bool) -> bool:
    """Return whether the files of a job are those of an undisturbed one, as far as there need to be
    any.
    """
    parts = {name: content for name, content in found.items() if name.startswith("part-")}
    return found == whole if is_complete else parts.items() <= whole.items()


def _is_resumed(run: Run, output: Path, whole: dict[str, bytes]) -> bool:
    """Run a job again; return whether its files are now those of an undisturbed one."""
    try:
        run()
    except InputError as error:
        print(error, file=sys.stderr)
        return False
    return _contents(output) == whole


def _undisturbed(settings: Settings, file: Path) -> dict[str, bytes]:
    output = file.with_suffix(f"{file.suffix}-scores")
    _job(settings, file, output, part_rows=REWRITTEN_ROWS // REWRITTEN_PARTS)()
    return _contents(output)


def _job(settings: Settings, inputs: Path, output: Path, *, part_rows: int) -> Run:
    """Return a job in this process."""
    return lambda: score_files(
        inputs, output, settings.tiny, part_rows=part_rows, device="cpu", nthreads=1
    )


def _contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}
