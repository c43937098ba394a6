"""Unpacks what gzip packed, and says so where it is damaged."""

import gzip
import zlib
from io import BufferedIOBase

from bertscore_onnx.errors import InputError


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
