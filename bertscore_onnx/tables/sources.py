"""Opens files and pipes of bytes, which are unpacked, and refused where they are not what is read."""

import codecs
import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from io import BufferedIOBase
from itertools import chain
from pathlib import Path, PurePath
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import BinaryIO, Literal, cast

from bertscore_onnx.errors import InputError

# Recognises files by their first bytes: what is packed with gzip, and what is no text in UTF-8.


HEAD_BYTES = 8
"""How many of the first bytes it takes."""


def is_gzip(head: bytes) -> bool:
    """Return whether the first bytes are those of gzip."""
    return head.startswith(b"\x1f\x8b")


def refuse_foreign(head: bytes, title: str) -> None:
    """Raise where a file is not text in UTF-8.

    Args:
        head: its first `HEAD_BYTES`, or fewer where it, or its first line, is shorter.
        title: what to call it in a message.

    Raises:
        InputError: it is packed, or a format of its own, or text in another encoding; says how to convert it.
    """
    for pattern, kind, advice in _FOREIGN:
        if pattern.match(head):
            raise InputError(f"{title} is {kind}; expected text in UTF-8. {advice}")


def _to_utf_8(encoding: str) -> str:
    return f"Convert it first, for example `iconv -f {encoding} -t UTF-8 FILE > NEW_FILE`."


def _to_pipe(command: str) -> str:
    return f"Unpack it, for example `{command} FILE | bertscore-onnx score -c - ...`."


_SPREADSHEET = "Save its table as CSV, and score that."

_FOREIGN = tuple(
    (re.compile(pattern, re.DOTALL), kind, advice)
    for pattern, kind, advice in (
        (rb"\xff\xfe\x00\x00|\x00\x00\xfe\xff", "in UTF-32", _to_utf_8("UTF-32")),
        (rb"\xff\xfe|\xfe\xff", "in UTF-16", _to_utf_8("UTF-16")),
        (rb"[^\x00]\x00[^\x00]\x00", "in UTF-16, without its mark", _to_utf_8("UTF-16LE")),
        (rb"\x00[^\x00]\x00[^\x00]", "in UTF-16, without its mark", _to_utf_8("UTF-16BE")),
        (rb"\x1f\x8b", "packed with gzip twice", "Unpack it once."),
        (rb"\x28\xb5\x2f\xfd", "packed with zstd", _to_pipe("zstd -dc")),
        (rb"BZh[1-9]1AY&", "packed with bzip2", _to_pipe("bzcat")),
        (rb"\xfd7zXZ\x00", "packed with xz", _to_pipe("xzcat")),
        (rb"PK\x03\x04", "a zip archive, or an Excel file", f"{_to_pipe('unzip -p')} {_SPREADSHEET}"),
        (rb"\xd0\xcf\x11\xe0", "an Excel file", _SPREADSHEET),
        (rb"PAR1[\x00-\x1f]", "Parquet", "Give it a name that ends in .parquet, or add --input-format parquet."),
        (rb"ARROW1\x00", "in the format of Arrow or Feather", "Save it as Parquet, CSV or JSON lines."),
    )
)
"""The first bytes, what begins with them, and what to do about it; the first that matches."""


STANDARD_INPUT = "-"


class Source:
    """An open file or pipe."""

    def __init__(self, name: str, file: BufferedIOBase) -> None:
        """Take what was opened under a name; `-` is standard input."""
        self.title = "Standard input" if name == STANDARD_INPUT else name
        """What to call it in a message."""
        self.is_rereadable = _is_rereadable(file)
        """Whether it can be read more than once; pipes and terminals cannot."""
        self._file = file
        self._start = file.tell() if self.is_rereadable else 0

    def raw(self) -> BufferedIOBase:
        """Return the file as it is; at its start each time, where it `is_rereadable`."""
        if self.is_rereadable:
            self._file.seek(self._start)
        return self._file

    def unpacked(self) -> BufferedIOBase:
        """Return the bytes of the file, or of what gzip packed into it; from the start as `raw` does.

        Raises:
            InputError: its first bytes are those of another format than text.
        """
        head, file = _look_ahead(self.raw())
        if is_gzip(head):
            head, file = _look_ahead(Unpacked(file, self.title))
        refuse_foreign(head, self.title)
        return file


@contextmanager
def open_source(name: str, *, title: str | None = None, to_read_again: bool = False) -> Iterator[Source]:
    """Open a file for as long as the block lasts.

    Args:
        name: a file, or `-` for standard input, which stays open.
        title: what to call it in a message; None for its name.
        to_read_again: whether it must be rereadable; then a pipe is read to its end, into a temporary file.

    Raises:
        InputError: it cannot be opened.
    """
    with nullcontext(cast(BufferedIOBase, sys.stdin.buffer)) if name == STANDARD_INPUT else _open(name) as file:
        if to_read_again and not _is_rereadable(file):
            with TemporaryFile() as spool:
                copyfileobj(file, spool)
                spool.seek(0)
                yield Source(title or name, spool)
        else:
            yield Source(title or name, file)


class _Rejoined(BufferedIOBase):
    """A file, with the first bytes that were read of it back in their place."""

    def __init__(self, head: bytes, rest: BufferedIOBase) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    def read1(self, size: int = -1) -> bytes:
        if not self._head:
            return self._rest.read1(size)
        return self._take_head(size)

    def read(self, size: int | None = -1) -> bytes:
        size = -1 if size is None else size
        head = self._take_head(size)
        return head + self._rest.read(size if size < 0 else size - len(head))

    def _take_head(self, size: int) -> bytes:
        size = len(self._head) if size < 0 else size
        taken, self._head = self._head[:size], self._head[size:]
        return taken


def _look_ahead(file: BufferedIOBase) -> tuple[bytes, BufferedIOBase]:
    """Return the first bytes, up to the first line end, and the whole file."""
    head = b""
    while len(head) < HEAD_BYTES and b"\n" not in head:  # a line must not wait for the next one
        part = file.read1(HEAD_BYTES - len(head))
        if not part:
            break
        head += part
    return head, _Rejoined(head, file)


def _is_rereadable(file: BufferedIOBase) -> bool:
    return file.seekable() and not file.isatty()


def _open(name: str) -> BufferedIOBase:
    try:
        return Path(name).open("rb")
    except OSError as error:
        if " " in name and not os.path.exists(name):
            raise InputError(
                f"There is no file {name!r}; expected the name of a file with texts, one a line, not a text. To score "
                "a single text, pipe it in: `echo 'A text.' | bertscore-onnx score -c - -r FILE ...`."
            ) from error
        raise InputError(
            f"Cannot read {name!r} ({error.strerror}); expected a readable file, or - for standard input. Check the "
            "name and its permissions."
        ) from error


# Reads the lines of a text file or a pipe, as they are needed.


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


# Unpacks what gzip packed, and says so where it is damaged.


class Unpacked(gzip.GzipFile):
    """The content of a file that gzip packed, which is unpacked as it is read."""

    def __init__(self, file: BufferedIOBase, title: str) -> None:
        """Take a file at its start, which stays open, and what to call it in a message."""
        super().__init__(fileobj=file, mode="rb")
        self._title = title

    def read1(self, size: int = -1) -> bytes:
        """Read some bytes.

        Raises:
            InputError: the file was cut off, or changed.
        """
        try:
            return super().read1(size)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(
                f"{self._title} is packed with gzip and damaged: {error}. `gzip -t FILE` checks it; copy or pack it "
                "again."
            ) from error


# The formats of files that are read, and which of them a file is in by its name.


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
