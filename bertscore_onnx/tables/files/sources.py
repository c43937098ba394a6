"""Opens files and pipes of bytes, which are unpacked, and refused where they are not what is read."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from io import BufferedIOBase
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import cast

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.files.signatures import HEAD_BYTES, is_gzip, refuse_foreign

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
            from bertscore_onnx.tables.files.unpacking import Unpacked  # costs start-up time and is needed only here

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
