"""Reads protocol buffers without their package.

ONNX graphs and SentencePiece models are written in this encoding.
"""

import mmap
from collections.abc import Iterator

_VARINT = 0
_FIXED64 = 1
_BYTES = 2
_FIXED32 = 5


def message_fields(
    content: bytes | mmap.mmap, start: int, end: int
) -> Iterator[tuple[int, int, int]]:
    """Yield the number, start and end of fields of a message.

    These are themselves a message or a string.
    """
    while start < end:
        tag, start = _varint(content, start)
        # readers drop the bits from the 33rd on, and so would see another number
        if not 8 <= tag < 1 << 32:
            raise ValueError(f"{tag} is not the tag of a number.")
        kind = tag & 7
        if kind == _BYTES:
            size, start = _varint(content, start)
            if start + size > end:
                raise ValueError("A field is longer than its message.")
            yield tag >> 3, start, start + size
            start += size
        elif kind == _VARINT:
            _, start = _varint(content, start)
        elif kind in (_FIXED32, _FIXED64):
            start += 4 if kind == _FIXED32 else 8
        else:
            raise ValueError(f"{kind} is not a kind of field.")


def _varint(content: bytes | mmap.mmap, start: int) -> tuple[int, int]:
    """Return the number that starts at a byte, and the byte after it."""
    number = shift = 0
    while True:
        byte = content[start]
        start += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, start
        shift += 7
        if shift > 63:
            raise ValueError("A number is too long.")
