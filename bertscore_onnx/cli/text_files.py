"""Reads a file or a pipe of texts, one a line, as they are needed."""

import codecs
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import IO

from bertscore_onnx.errors import InputError

STANDARD_INPUT = "-"

MAX_LINE_BYTES = 10_000_000
"""A longer line is refused, so that a pipe without line ends cannot fill the memory."""

_BYTES = "latin-1"
"""Has a character for every byte, so that Python finds the line ends and places remain those of bytes."""


class TextFile:
    """An open file of texts."""

    def __init__(self, name: str, file: IO[str]) -> None:
        """Take a file that was opened with a character for every byte and line ends as they are."""
        self.title = "Standard input" if name == STANDARD_INPUT else name
        """What to call it in a message."""
        self.is_rereadable = _is_rereadable(file)
        """Whether it can be read more than once; pipes and terminals cannot."""
        self._file = file
        self._start = file.tell() if self.is_rereadable else 0

    def lines(self) -> Iterator[str]:
        r"""Yield the lines, decoded; from the first line on each time, where it `is_rereadable`.

        Lines end at \n, \r\n or \r, as Python's universal newlines do, and nowhere else; the last end makes no extra
        line. A byte order mark at the start is dropped.

        Raises:
            InputError: there are no lines, or one is not UTF-8 or longer than `MAX_LINE_BYTES`.
        """
        if self.is_rereadable:
            self._file.seek(self._start)
        raw_lines = self._raw_lines()
        first = next(raw_lines, b"")
        if first in (b"", codecs.BOM_UTF8):
            raise InputError(f"{self.title} is empty; expected texts, one a line.")
        offset = 0
        for number, raw in enumerate(chain([first], raw_lines), 1):
            line = self._decoded(raw, number, offset)
            yield line if offset else line.removeprefix("\ufeff")
            offset += len(raw)

    def count_lines(self) -> int:
        """Read all lines and return their number; errors are those of `lines`."""
        return sum(1 for _ in self.lines())

    def _raw_lines(self) -> Iterator[bytes]:
        """Yield the lines with their ends, or the beginning of one that is too long."""
        while line := self._file.readline(MAX_LINE_BYTES + len("\r\n")):
            yield line.encode(_BYTES)

    def _decoded(self, raw: bytes, number: int, offset: int) -> str:
        content = raw.rstrip(b"\r\n")
        if len(content) > MAX_LINE_BYTES:
            raise InputError(
                f"{self.title} has more than {MAX_LINE_BYTES:,} bytes in line {number}; expected texts, one a line, "
                r"with lines that end in \n, \r\n or \r."
            )
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise InputError(
                f"{self.title} is not UTF-8: line {number} has the byte 0x{content[error.start]:02X} at offset "
                f"{offset + error.start}. Convert it first, for example `iconv -f WINDOWS-1252 -t UTF-8 FILE > "
                "NEW_FILE`."
            ) from error


@contextmanager
def open_text_file(name: str, *, to_read_again: bool = False) -> Iterator[TextFile]:
    """Open a file of texts for as long as the block lasts.

    Args:
        name: a file, or `-` for standard input, which stays open.
        to_read_again: whether it must be rereadable; then a pipe is read to its end, into a temporary file.

    Raises:
        InputError: it cannot be opened.
    """
    with _standard_input() if name == STANDARD_INPUT else _open(name) as file:
        if to_read_again and not _is_rereadable(file):
            with TemporaryFile("w+", encoding=_BYTES, newline="") as spool:
                copyfileobj(file, spool)
                spool.seek(0)
                yield TextFile(name, spool)
        else:
            yield TextFile(name, file)


def _is_rereadable(file: IO[str]) -> bool:
    return file.seekable() and not file.isatty()


@contextmanager
def _standard_input() -> Iterator[IO[str]]:
    file = io.TextIOWrapper(sys.stdin.buffer, encoding=_BYTES, newline="")
    try:
        yield file
    finally:
        file.detach()


def _open(name: str) -> IO[str]:
    try:
        return Path(name).open(encoding=_BYTES, newline="")
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
