"""Open files and pipes, and read their lines.

Gzip is decompressed; lines are text in UTF-8.
"""

import codecs
import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from io import BufferedIOBase
from itertools import chain
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, TypeVar, cast

from bertscore_onnx.errors import InputError

Item = TypeVar("Item")

STANDARD_INPUT = "-"

MAX_SPOOLED_BYTES = 10_000_000_000
"""The longest pipe that is copied to a temporary file, so that an endless pipe cannot fill the
disk.
"""

_COPIED_AT_ONCE = 1_000_000


class Source:
    """An open file or pipe."""

    def __init__(self, name: str, file: BufferedIOBase) -> None:
        """Wrap a file that was opened under a name; `-` is standard input."""
        self.title = "Standard input" if name == STANDARD_INPUT else name
        """The name in messages."""
        self.is_seekable = file.seekable() and not file.isatty()
        """Whether it can be read more than once; pipes and terminals cannot."""
        self._file = file
        self._start = file.tell() if self.is_seekable else 0

    def raw(self) -> BufferedIOBase:
        """Return the file as it is; at its start each time if it is seekable."""
        if self.is_seekable:
            self._file.seek(self._start)
        return self._file

    def decompressed(self) -> BufferedIOBase:
        """Return the bytes of the file, decompressed if they are gzip.

        Raise InputError for UTF-16.
        """
        head, file = _look_ahead(self.raw())
        if head.startswith(b"\x1f\x8b"):
            head, file = _look_ahead(_Decompressed(file, self.title))
        _refuse_other_formats(head, self.title)
        return file


@contextmanager
def open_source(
    name: str, *, title: str | None = None, to_read_again: bool = False
) -> Iterator[Source]:
    """Open a file, or standard input, which stays open.

    Spool a pipe to a temporary file if it is `to_read_again`.
    """
    opened: AbstractContextManager[BufferedIOBase]
    if name == STANDARD_INPUT:
        opened = nullcontext(cast(BufferedIOBase, sys.stdin.buffer))
    else:
        opened = _open(name)
    with opened as file:
        source = Source(title or name, file)
        if source.is_seekable or not to_read_again:
            yield source
            return
        with TemporaryFile() as spool:
            _copy_pipe(source, spool)
            yield Source(title or name, spool)


def _copy_pipe(pipe: Source, spool: BinaryIO) -> None:
    """Copy a pipe to a temporary file; raise InputError at more than `MAX_SPOOLED_BYTES`."""
    while data := pipe.raw().read1(_COPIED_AT_ONCE):
        if spool.tell() + len(data) > MAX_SPOOLED_BYTES:
            raise InputError(
                f"{pipe.title} is a pipe of more than the {MAX_SPOOLED_BYTES:,} bytes that are "
                "copied to be read again. Write it to a file, and give its name."
            )
        spool.write(data)
    spool.seek(0)


def _open(name: str) -> BufferedIOBase:
    path = Path(name)
    if path.is_dir():
        refuse_datasets(path)
        raise InputError(f"{name!r} is a folder; expected a file. Name a file in it.")
    try:
        return path.open("rb")
    except OSError as error:
        if " " in name and not os.path.exists(name):
            raise InputError(
                f"There is no file {name!r}; expected the name of a file of texts, one per line. "
                "To score a single text, pipe it in: `echo 'A text.' | bertscore-onnx score -c - "
                "-r FILE ...`."
            ) from error
        raise InputError(
            f"Cannot read {name!r} ({error.strerror}); expected a readable file, or - for "
            "standard input. Check the name and its permissions."
        ) from error


def refuse_datasets(folder: Path) -> None:
    """Raise InputError for a folder that the library datasets wrote."""
    load = f'datasets.load_from_disk("{folder}")'
    if (folder / "dataset_dict.json").is_file():
        load += '["test"]'
    elif not (folder / "state.json").is_file():
        return
    raise InputError(
        f"{folder} is a folder of the library datasets; expected a table. "
        f'`{load}.to_parquet("FILE.parquet")` writes it.'
    )


# The first bytes of a file: gzip, or text in UTF-16, or no text at all.

HEAD_BYTES = 4096


def _look_ahead(file: BufferedIOBase) -> tuple[bytes, BufferedIOBase]:
    """Return the first bytes, up to the first line end, and the whole file."""
    # `BufferedReader.peek` returns the first byte alone if a pipe delivers that first.
    head = b""
    while len(head) < HEAD_BYTES and b"\n" not in head:  # a line must not wait for the next one
        data = file.read1(HEAD_BYTES - len(head))
        if not data:
            break
        head += data
    return head, io.BufferedReader(_Rejoined(head, file))


class _Rejoined(io.RawIOBase):
    """A file whose first bytes were read already, and come once more."""

    def __init__(self, head: bytes, rest: BufferedIOBase) -> None:
        self._head = head
        self._rest = rest

    def readable(self) -> bool:
        return True

    # BufferedReader passes no other buffer.
    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        data = self._head[: len(buffer)] or self._rest.read1(len(buffer))
        self._head = self._head[len(data) :]
        buffer[: len(data)] = data
        return len(data)


class _Decompressed(gzip.GzipFile):
    """The content of a gzip file, which stays open."""

    def __init__(self, file: BufferedIOBase, title: str) -> None:
        super().__init__(fileobj=file, mode="rb")
        self._title = title

    def read1(self, size: int = -1) -> bytes:
        try:
            return super().read1(size)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise InputError(
                f"{self._title} is compressed with gzip and damaged. `gzip -t FILE` checks it; "
                "copy or compress it again."
            ) from error


def _refuse_other_formats(head: bytes, title: str) -> None:
    """Raise InputError, with the way to convert it, for a file that is no text, or in UTF-16."""
    for start, (kind, remedy) in _NO_TEXTS.items():
        if head.startswith(start):
            raise InputError(
                f"{title} is {kind}; expected text in UTF-8, or that compressed with gzip. {remedy}"
            )
    for pattern, encoding in _UTF_16.items():
        if re.match(pattern, head, re.DOTALL):
            raise InputError(
                f"{title} is in UTF-16; expected text in UTF-8. Convert it first, for example "
                f"`iconv -f {encoding} -t UTF-8 FILE > NEW_FILE`."
            )
    if b"\x00" in head:
        raise InputError(
            f"{title} is a binary file; expected text in UTF-8, or a table. Read it with the "
            "program that wrote it, and write its table as Parquet, in pandas with "
            '`frame.to_parquet("NEW_FILE.parquet")`.'
        )


_UNPACK = "Decompress it first, with `{} -d`."
_NO_TEXTS = {
    b"BZh": ("compressed with bzip2", _UNPACK.format("bzip2")),
    b"\xfd7zX": ("compressed with xz", _UNPACK.format("xz")),
    b"(\xb5/\xfd": ("compressed with zstd", _UNPACK.format("zstd")),
    b"\x04\x22M\x18": ("compressed with lz4", _UNPACK.format("lz4")),
    b"7z\xbc\xaf": ("an archive of 7-Zip", "Unpack it first."),
    b"PK\x03\x04": (
        "an Excel file (.xlsx), or another zip archive",
        "Save it as CSV in UTF-8, or unpack it first.",
    ),
    b"\xd0\xcf\x11\xe0": ("an Excel file (.xls)", "Save it as CSV in UTF-8."),
    b"%PDF": ("a PDF", "Write its text, one per line, to a file."),
    b"PAR1": ("in Parquet", "Name it .parquet, or add --input-format parquet."),
}
"""Kinds of files, and what to do about them, by their first bytes."""

_UTF_16 = {
    rb"\xff\xfe|\xfe\xff": "UTF-16",
    rb"[^\x00]\x00[^\x00]\x00": "UTF-16LE",
    rb"\x00[^\x00]\x00[^\x00]": "UTF-16BE",
}
"""The encodings by patterns of first bytes: with a byte order mark, and without."""


# Lines.

MAX_LINE_BYTES = 10_000_000
"""Longer lines are refused, so that a pipe without line ends cannot fill the memory."""

MAX_HELD_BYTES = 1_000_000_000
"""About the most memory that a file takes whose rows are needed all at once."""

VALUE_BYTES = 100
"""About the memory of a value in a row beside its characters."""


def read_whole_rows(
    rows: Iterable[Item], title: str, texts_of: Callable[[Item], Sequence[str]]
) -> list[Item]:
    """Return all rows.

    Raise InputError if their texts would take more memory than `MAX_HELD_BYTES`.
    """
    kept = []
    size = 0
    for row in rows:
        kept.append(row)
        texts = texts_of(row)
        size += sum(map(len, texts)) + VALUE_BYTES * len(texts)
        if size > MAX_HELD_BYTES:
            raise too_long(title)
    return kept


def lines_of(name: str, expected: str) -> list[str]:
    """Return the lines of a file that is held whole; messages name the `expected` content."""
    with open_source(name) as source:
        return read_whole_rows(read_lines(source, expected), source.title, lambda line: [line])


def too_long(title: str) -> InputError:
    """Return the error for a file that is too large to be read at once."""
    return InputError(
        f"{title} has rows for more than the {MAX_HELD_BYTES:,} bytes of memory that may be used."
    )


BYTE_ORDER_MARK = "\ufeff"
"""Dropped at the start of a line: editors write one at the start of a file, and files are put
together.
"""

_BYTES = "latin-1"
"""An encoding with a character for every byte: Python finds the line ends, and offsets count
bytes.
"""


def read_lines(
    source: Source,
    expected: str = "texts, one per line",
    *,
    as_they_stand: bool = False,
    may_be_empty: bool = False,
    keep_faults: bool = False,
) -> Iterator[str]:
    r"""Yield the decoded lines.

    From the first line on each time, if the source is seekable.

    Lines end at \n, \r\n or \r, as Python's universal newlines do, and nowhere else; the last end
    makes no extra line. Ends, and byte order marks at the start of a line, are dropped, unless
    lines are wanted `as_they_stand`. InputError, with the `expected` content, is raised for a line
    that is not UTF-8 or longer than `MAX_LINE_BYTES`, and for a file without lines unless it
    `may_be_empty`. With `keep_faults` lines may have bytes that are not UTF-8, which `utf8_fault`
    finds.
    """
    raw_lines = _raw_lines(source)
    first = next(raw_lines, b"")
    if not first.replace(codecs.BOM_UTF8, b""):
        if may_be_empty:
            return
        raise InputError(f"{source.title} is empty; expected {expected}.")
    handling = "surrogateescape" if keep_faults else "strict"
    offset = 0
    for number, raw in enumerate(chain([first], raw_lines), 1):
        content = raw.rstrip(b"\r\n")
        if len(content) > MAX_LINE_BYTES:
            raise InputError(
                f"{source.title} has more than {MAX_LINE_BYTES:,} bytes in line {number}; "
                rf"expected {expected}, with lines that end in \n, \r\n or \r."
            )
        data = raw if as_they_stand else content
        try:
            line = data.decode(errors=handling)
        except UnicodeDecodeError as error:
            raise InputError(
                f"{source.title} is not UTF-8: line {number} has the byte "
                f"0x{content[error.start]:02X} at offset {offset + error.start}. Convert it "
                "first, for example `iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW_FILE`."
            ) from error
        if not as_they_stand:
            line = line.lstrip(BYTE_ORDER_MARK)
        yield line
        offset += len(raw)


def utf8_fault(text: str) -> str:
    """Return what is wrong with a text of `read_lines` that keeps faults.

    Empty if it is UTF-8.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        byte = ord(text[error.start]) - 0xDC00
        return f"it is not UTF-8: it has the byte 0x{byte:02X}. Convert the file, or remove it."
    return ""


def _raw_lines(source: Source) -> Iterator[bytes]:
    """Yield the lines with their ends; of a line that is too long, the beginning."""
    reader = io.TextIOWrapper(cast(BinaryIO, source.decompressed()), encoding=_BYTES, newline="")
    try:
        while line := reader.readline(MAX_LINE_BYTES + len("\r\n")):
            yield line.encode(_BYTES)
    finally:
        reader.detach()  # otherwise it would close the file
