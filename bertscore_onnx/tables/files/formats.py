"""The formats of files that are read, and which of them a file is in by its name."""

from pathlib import PurePath
from typing import Literal

InputFormat = Literal["text", "tsv", "csv", "jsonl", "parquet"]

_OF_SUFFIX: dict[str, InputFormat] = {
    ".tsv": "tsv",
    ".tab": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
    ".parquet": "parquet",
}


def format_of(name: str) -> InputFormat:
    """Return the format that the end of a file's name says, before `.gz` where that is there; else text."""
    return _OF_SUFFIX.get(PurePath(name.lower().removesuffix(".gz")).suffix, "text")
