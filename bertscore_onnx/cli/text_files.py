"""Reads files of texts, one a line, that belong together line by line."""

import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from bertscore_onnx.errors import InputError

STANDARD_INPUT = "-"

_LINE_END = re.compile("\r\n|\r|\n")


def read_parallel(candidates: str, references: Sequence[str]) -> tuple[list[str], list[tuple[str, ...]]]:
    """Read a file of candidates and files of references with as many lines.

    Args:
        candidates: a file, or `-` for standard input.
        references: one file or more, one of which may be `-` where `candidates` is not.

    Returns:
        The candidates, and for each of them its references, in the order of the files.

    Raises:
        InputError: a file cannot be read, or the numbers of lines differ.
    """
    texts = read_texts(candidates)
    columns = [read_texts(name) for name in references]
    for name, column in zip(references, columns, strict=True):
        if len(column) != len(texts):
            raise InputError(
                f"{_title(candidates)} has {len(texts)} lines and {_title(name)} has {len(column)}; expected as many "
                "references as candidates, in the same order. Blank lines count: they are empty sentences."
            )
    return texts, list(zip(*columns, strict=True))


def read_texts(name: str) -> list[str]:
    r"""Read the lines of a UTF-8 file; a byte order mark at its start is dropped.

    Lines end at \n, \r\n or \r, as Python's universal newlines do, and nowhere else; the last end makes no extra line.

    Args:
        name: a file, or `-` for standard input.

    Raises:
        InputError: it cannot be read, is not UTF-8, or has no lines.
    """
    content = _read_bytes(name)
    try:
        text = content.decode()
    except UnicodeDecodeError as error:
        line = len(re.findall(rb"\r\n|\r|\n", content[: error.start])) + 1
        raise InputError(
            f"{_title(name)} is not UTF-8: line {line} has the byte 0x{content[error.start]:02X} at offset "
            f"{error.start}. Convert it first, for example `iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW_FILE`."
        ) from error
    lines = _LINE_END.split(text.removeprefix("\ufeff"))
    if lines[-1] == "":
        lines.pop()
    if not lines:
        raise InputError(f"{_title(name)} is empty; expected texts, one a line.")
    return lines


def _read_bytes(name: str) -> bytes:
    if name == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        if " " in name and not os.path.exists(name):
            raise InputError(
                f"There is no file {name!r}; expected the name of a file with texts, one a line, not a text. To score "
                "a single text, pipe it in: `echo 'A text.' | bertscore-onnx score -c - -r FILE …`."
            ) from error
        raise InputError(
            f"Cannot read {name!r} ({error.strerror}); expected a readable file with texts, one a line, or - for "
            "standard input. Check the name and its permissions."
        ) from error


def _title(name: str) -> str:
    return "Standard input" if name == STANDARD_INPUT else name
