"""Case 16: commands read pipes, devices, folders, sockets, dangling links and mutated files.

Each succeeds, or ends with one line on standard error, within a time and a memory limit.
"""

import json
import os
import random
import re
import resource
import shutil
import socket
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow
from pyarrow import parquet

from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.scoring.tokenization import count_documents
from bertscore_onnx_service.jobs.job import score_files
from harness.processes import ChildError, calls_in_children, memory_mb
from harness.results import Figure
from reliability.mutated import mutated_fields, mutated_text
from reliability.report import at_least, none_of
from reliability.settings import Settings

SECONDS = 60.0  # per command
MEMORY = 1_000_000_000  # bytes that a command may take on top of what the process had before
LINE = 2_000  # characters of an error at most

ENDED, FAILED, BROKE, HUNG, FULL = "ended", "failed", "broke", "hung", "full"
SPECIAL = ("pipe", "device", "folder", "socket", "dangling link")

Draw = random.Random


@dataclass(frozen=True, slots=True)
class Input:
    """A file that a command reads, and the command; both relative to the folder of all files."""

    file: str
    command: str
    # for the writer of a pipe, as users expect who name one; otherwise a pipe is refused
    waits: bool = True

    def arguments(self, folder: Path, tiny: Path) -> list[str]:
        """Return the command line; `@` stands for the file, `=NAME` for another one."""
        named = {"@": str(folder / self.file), "MODEL": str(tiny)}
        return [
            named.get(word, str(folder / word[1:]) if word.startswith("=") else word)
            for word in self.command.split()
        ]


_SCORING = "-m MODEL --device cpu --nthreads 1 -q"
_TABLES = ("tsv", "csv", "jsonl", "parquet")
INPUTS = [
    Input("lines.txt", f"score {_SCORING} -c @ -r =same.txt"),
    Input("lines.txt", "compare -q -c =same.txt @ -r =same.txt --metric chrf --resamples 10"),
    Input("lines.txt", "count-documents -m MODEL -q -r @ -o =out/counts.json"),
    Input("counts.json", f"score {_SCORING} -c =same.txt -r =same.txt --idf-counts @"),
    *[
        one
        for kind in _TABLES
        for one in (
            Input(f"table.{kind}", f"score {_SCORING} -c @"),
            Input(f"table.{kind}", "count-documents -m MODEL -q -r @ -o =out/counts.json"),
            Input(f"table.{kind}", "meta @ --score quality --resamples 10 -q"),
            Input(f"table.{kind}", f"tune-layers @ {_SCORING} --resamples 10"),
            Input(f"table.{kind}", f"batch {_SCORING} --input @ --output =out/scores", waits=False),
        )
    ],
    *[
        Input(
            f"scores/{name}",
            f"batch {_SCORING} --idf --input =pairs.jsonl --output =scores",
            waits=False,
        )
        for name in ("part-00000-00000.parquet", "_manifest.json")
    ],
]


def measure(settings: Settings) -> list[Figure]:
    """Run each command with every special file, and commands with mutated ones."""
    draw = Draw(0)
    cases = [(each, kind) for each in INPUTS for kind in SPECIAL]
    cases += [(draw.choice(INPUTS), str(number)) for number in range(settings.sizes.mutated_files)]
    outcomes: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name, "sound")
        write_all(folder, settings.tiny)
        attempts = [(each, kind, folder, settings.tiny) for each, kind in cases]
        for (each, kind), result in zip(
            cases, calls_in_children(attempt, attempts, SECONDS), strict=True
        ):
            if isinstance(result, ChildError):
                outcome, detail = HUNG if "hangs" in str(result) else BROKE, result.reason
            else:
                outcome, detail = result
            if outcome in (BROKE, HUNG, FULL):
                print(
                    f"{each.command.split()[0]} {each.file}, {kind}: {outcome}: {detail}",
                    file=sys.stderr,
                )
            outcomes[outcome] += 1
    return [
        none_of(
            f"of {len(cases):,} commands with hostile files, without one clear line and status 1 "
            "or 2",
            outcomes[BROKE],
        ),
        none_of(f"that take longer than {SECONDS:g} s", outcomes[HUNG]),
        none_of(f"that take more than {MEMORY / 1e6:,.0f} MB", outcomes[FULL]),
        at_least("that end with such a line", outcomes[FAILED], "", len(INPUTS) * len(SPECIAL)),
    ]


def attempt(each: Input, kind: str, sound: Path, tiny: Path) -> tuple[str, str]:
    """Run a command on a copy of all files, in which its own is of this kind, or mutated by this
    number as the seed.
    """
    from typer.testing import CliRunner

    from bertscore_onnx.cli import app

    folder = sound.with_name(f"copy-{os.getpid()}")
    shutil.copytree(sound, folder)
    used = int(memory_mb("VmData") * 1e6)
    resource.setrlimit(resource.RLIMIT_DATA, (used + MEMORY, resource.RLIM_INFINITY))
    try:
        with hostile(folder / each.file, kind, has_writer=each.waits):
            result = CliRunner().invoke(app, each.arguments(folder, tiny))
    finally:
        shutil.rmtree(folder)
    return outcome_of(result.exit_code, result.stderr, result.exception, must_fail=kind in SPECIAL)


def outcome_of(
    status: int, errors: str, raised: BaseException | None, *, must_fail: bool
) -> tuple[str, str]:
    """Return whether a command `ENDED` well, `FAILED` as it should, or how it went wrong, with
    details.
    """
    if isinstance(raised, MemoryError) or "not enough memory" in errors:
        return FULL, errors[:300]
    lines = [line for line in errors.splitlines() if not re.match("Warning: |Usage: |Try |$", line)]
    is_clear = len(lines) == 1 and len(lines[0]) <= LINE and "Traceback" not in errors
    if status == 0 and not must_fail:
        return ENDED, ""
    if status in (1, 2) and is_clear and isinstance(raised, SystemExit):
        return FAILED, lines[0]
    return BROKE, f"status {status}, {raised!r:.300}, {len(lines)} lines: {errors[-300:]!r}"


@contextmanager
def hostile(file: Path, kind: str, *, has_writer: bool) -> Iterator[None]:
    """Put something of this kind in the place of a file; a number is the seed of a mutation."""
    if kind.isdecimal():
        draw = Draw(int(kind))
        change = mutated_fields if file.suffix == ".json" and draw.random() < 0.5 else mutated_text
        file.write_bytes(change(file.read_bytes(), draw))
    else:
        file.unlink()
        _PUT[kind](file)
    if kind != "pipe" or not has_writer:
        yield
        return
    # waits until the pipe is read
    with subprocess.Popen(["/bin/sh", "-c", ': > "$0"', file]) as writer:
        yield
        writer.kill()


def _bind(file: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(file))


_PUT: dict[str, Callable[[Path], object]] = {
    "pipe": os.mkfifo,
    "device": lambda file: file.symlink_to("/dev/zero"),
    "folder": Path.mkdir,
    "socket": _bind,
    "dangling link": lambda file: file.symlink_to("nowhere"),
}


_WORDS = ["the", "a", "on", "and", "or", "not", "is", "was", "it", "house"]  # which tokenizers have


def write_all(folder: Path, tiny: Path) -> None:
    """Write a sound file for every input."""
    folder.mkdir()
    (folder / "out").mkdir()
    draw = Draw(0)
    rows = [
        {
            "lang_pair": "he-en",
            "system": f"s{number % 3}",
            "segment": number // 3,
            "human": float(number * 7 % 5),
            "quality": float(number % 4),
            "candidate": " ".join(draw.choices(_WORDS, k=4)),
            "reference": " ".join(draw.choices(_WORDS, k=4)),
        }
        for number in range(30)
    ]
    lines = "".join(f"{row['candidate']}\n" for row in rows)
    for name in ("lines.txt", "same.txt"):
        (folder / name).write_text(lines, encoding="utf-8")
    for kind, mark in (("tsv", "\t"), ("csv", ",")):
        table = [mark.join(rows[0]), *(mark.join(map(str, row.values())) for row in rows)]
        (folder / f"table.{kind}").write_text("\n".join(table) + "\n", encoding="utf-8")
    for name in ("table.jsonl", "pairs.jsonl"):
        (folder / name).write_text(
            "".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8"
        )
    parquet.write_table(pyarrow.Table.from_pylist(rows), folder / "table.parquet")
    counts: DocumentCounts = count_documents([str(row["candidate"]) for row in rows], tiny)
    counts.save(folder / "counts.json")
    score_files(folder / "pairs.jsonl", folder / "scores", tiny, idf=True, device="cpu", nthreads=1)
