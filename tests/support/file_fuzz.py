"""Reads damaged files with every reader: `python -m tests.support.file_fuzz FOLDER SEED CASES`.

It prints the faults as JSON lines: whatever is raised but an error of ours, and a peak of memory
above the bound.
"""

import json
import random
import signal
import sys
import traceback
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path

import pyarrow
from pyarrow import parquet

from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.bundle.catalogue import read_baseline_file
from bertscore_onnx.cli.inputs import choose_inputs
from bertscore_onnx.cli.pairs import open_pairs
from bertscore_onnx.errors import BertScoreOnnxError
from bertscore_onnx.hub.source import read_names
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.tables.sources import lines_of
from bertscore_onnx.tables.whole_table import read_table

MAX_MEMORY = 1_000_000_000
SECONDS_PER_CASE = 60

ROWS = [
    {"lang_pair": "he-en", "system": f"s{n % 3}", "candidate": f'the "cat" {n}', "reference": "x"}
    for n in range(9)
]
INSERTS = [
    *(
        b"\x00",
        b"\xff",
        b'"',
        b"'",
        b"\n",
        b"\r",
        b"\t",
        b",",
        b"{",
        b"[",
        b"\xef\xbb\xbf",
        b"\x1f\x8b",
        b"../../x",
    ),
    *(
        b"1e308",
        b"-1e309",
        b"NaN",
        b"null",
        b"9" * 5000,
        b"[" * 9000,
        b"\\ud800",
        b"None ",
        b"-1",
        b"\x00" * 70_000,
    ),
]


def damaged(content: bytes, draw: random.Random) -> bytes:
    """Return the content after one to four changes."""
    for _ in range(draw.randint(1, 4)):
        start = draw.randrange(len(content) + 1)
        stop = min(len(content), start + draw.choice([0, 1, 1, 4, 50]))
        between = draw.choice(
            [b"", draw.choice(INSERTS), draw.randbytes(draw.randint(1, 4)), content[start:stop] * 2]
        )
        content = content[:start] + between + content[stop:]
    return content[: draw.randrange(len(content) + 1)] if draw.random() < 0.1 else content


def samples(folder: Path) -> dict[str, tuple[Path, Callable[[Path], object]]]:
    """Write a sound file for each reader; return it with a function that reads it."""
    delimited = {
        mark: "".join(mark.join(row) + "\n" for row in [ROWS[0], *(row.values() for row in ROWS)])
        for mark in "\t,"
    }
    lines = "".join(json.dumps({**row, "reference": ["a", "b"]}) + "\n" for row in ROWS)
    counts = {"format": "bertscore-onnx document counts 1", "tokenization": "a", "num_documents": 9}
    contents = {
        "table.tsv": delimited["\t"],
        "table.csv": delimited[","].replace('"', '""'),
        "table.jsonl": lines,
        "texts.txt": "a cat\nein Hündchen\n\n",
        "counts.json": json.dumps({**counts, "tokens": [1, 5], "documents": [9, 2]}),
        "baseline.csv": "LAYER,P,R,F\n0,0.1,0.2,0.3\n1,0.1,0.2,0.3\n",
        "bertscore.json": json.dumps(
            {"format_version": 3, "model_id": "x", "layer": 3, "files": {"model.onnx": "0"}}
        ),
        "source.json": json.dumps(["hf://a/b", "hf://a/b@main"]),
    }
    for name, content in contents.items():
        (folder / name).write_text(content)
    parquet.write_table(
        pyarrow.table({**columns(), "reference": [["a", "b"]] * 9}), folder / "table.parquet"
    )

    def texts(path: Path) -> object:
        with open_pairs(choose_inputs([str(path)], [])) as pairs:
            return list(pairs)

    readers = {
        **{
            f"judgements {kind}": (f"table.{kind}", lambda path: read_table(str(path)))
            for kind in TABLES
        },
        **{f"texts {kind}": (f"table.{kind}", texts) for kind in TABLES},
        "lines": ("texts.txt", lambda path: lines_of(str(path), "texts")),
        "counts": ("counts.json", DocumentCounts.load),
        "baseline": ("baseline.csv", lambda path: read_baseline_file(path, 1)),
        "manifest": ("bertscore.json", lambda path: read_manifest(path.parent)),
        "names": ("source.json", lambda path: read_names(path.parent)),
    }
    return {name: (folder / file, read) for name, (file, read) in readers.items()}


TABLES = ("tsv", "csv", "jsonl", "parquet")


def columns() -> Mapping[str, list[str]]:
    return {name: [row[name] for row in ROWS] for name in ROWS[0] if name != "reference"}


def peak() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def main(folder: str, seed: int, cases: int) -> None:
    readers = samples(Path(folder))
    sound = {name: path.read_bytes() for name, (path, _) in readers.items()}
    for name, (path, read) in readers.items():
        if name != "manifest":
            read(path)
    signal.signal(
        signal.SIGALRM,
        lambda *_: sys.exit(f"The case {number} took more than {SECONDS_PER_CASE} s."),
    )
    for number in range(cases):
        draw = random.Random(f"{seed} {number}")  # noqa: S311 -- nothing is secret
        name = draw.choice([*readers])
        signal.alarm(SECONDS_PER_CASE)
        try:
            path, read = readers[name]
            content = damaged(sound[name], draw)
            is_text = path.suffix in (".tsv", ".csv", ".jsonl")
            path.write_bytes(zipped(content) if is_text and draw.random() < 0.1 else content)
            read(path)
        except BertScoreOnnxError as error:
            if len(str(error)) > 5000:
                print(json.dumps([number, name, "a long message", str(error)[:300]]))  # noqa: T201
        except Exception:
            print(json.dumps([number, name, traceback.format_exc()]))  # noqa: T201
        finally:
            signal.alarm(0)
            path.write_bytes(sound[name])
        if peak() > MAX_MEMORY:
            sys.exit(f"The case {number}, {name}, took {peak():,} bytes of memory.")


def zipped(content: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=31)
    return compressor.compress(content) + compressor.flush()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
