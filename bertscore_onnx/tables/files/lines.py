"""Reads the lines of a text file or a pipe, as they are needed."""

import codecs
import io
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO, cast

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.files.sources import Source

MAX_LINE_BYTES = 10_000_000
"""A longer line is refused, so that a pipe without line ends cannot fill the memory."""

_BYTES = "latin-1"
"""Has a character for every byte, so that Python finds the line ends and places remain those of bytes."""


def read_lines(source: Source, expected: str = "texts, one a line", *, keep_ends: bool = False) -> Iterator[str]:
    r"""Yield the lines, decoded; from the first line on each time, where the source is rereadable.

    Lines end at \n, \r\n or \r, as Python's universal newlines do, and nowhere else; the last end makes no extra
    line. A byte order mark at the start is dropped.

    Args:
        source: what to read.
        expected: what it should hold, for a message.
        keep_ends: whether lines come with their ends.

    Raises:
        InputError: there are no lines, or one is not UTF-8 or longer than `MAX_LINE_BYTES`.
    """
    raw_lines = _raw_lines(source)
    first = next(raw_lines, b"")
    if first in (b"", codecs.BOM_UTF8):
        raise InputError(f"{source.title} is empty; expected {expected}.")
    offset = 0
    for number, raw in enumerate(chain([first], raw_lines), 1):
        content = raw.rstrip(b"\r\n")
        if len(content) > MAX_LINE_BYTES:
            raise InputError(
                f"{source.title} has more than {MAX_LINE_BYTES:,} bytes in line {number}; expected {expected}, "
                r"with lines that end in \n, \r\n or \r."
            )
        try:
            line = (raw if keep_ends else content).decode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"{source.title} is not UTF-8: line {number} has the byte 0x{content[error.start]:02X} at offset "
                f"{offset + error.start}. Convert it first, for example `iconv -f WINDOWS-1252 -t UTF-8 FILE > "
                "NEW_FILE`."
            ) from error
        yield line if offset else line.removeprefix("\ufeff")
        offset += len(raw)


def _raw_lines(source: Source) -> Iterator[bytes]:
    """Yield the lines with their ends, or the beginning of one that is too long."""
    reader = io.TextIOWrapper(cast(BinaryIO, source.unpacked()), encoding=_BYTES, newline="")
    try:
        while line := reader.readline(MAX_LINE_BYTES + len("\r\n")):
            yield line.encode(_BYTES)
    finally:
        reader.detach()  # which would close the file otherwise
