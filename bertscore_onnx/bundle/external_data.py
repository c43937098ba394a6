"""Which files an ONNX graph takes its weights from, read from its bytes without the onnx package.

A graph may keep a tensor's values in a file beside it (`external_data`). ONNX Runtime opens whatever is named there;
what the manifest does not name has no digest. The numbers are those of the fields in `onnx.proto3`, and the encoding is
that of protocol buffers.
"""

import mmap
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bertscore_onnx.errors import GraphError

_NESTED = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
"""For each message the fields that may lead to a tensor, and the message in them."""

_KEY, _VALUE = 1, 2
_OP_TYPE = 4
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


def external_files(path: Path) -> set[str]:
    """Return the files that the tensors of a graph name, as they are written there.

    Raises:
        GraphError: the file is not a graph, or has a node that takes a file by another way.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            return set(_locations(content, 0, len(content), "model"))
    except GraphError:
        raise
    except (IndexError, ValueError, RecursionError) as error:  # an empty file cannot be mapped
        raise GraphError(f"{path} is not an ONNX graph. Export the model again, or copy the bundle again.") from error


@contextmanager
def mapped_links(folder: Path, names: Iterable[str]) -> Iterator[Mapping[str, mmap.mmap]]:
    """Map into memory those files of weights that are links, by their names.

    ONNX Runtime 1.24 and later refuse to follow a link out of the graph's folder, but take the content of the file.
    """
    with ExitStack() as opened:
        mapped = {}
        for name in names:
            path = folder / name
            if path.is_symlink() and path.is_file() and path.stat().st_size:  # an empty file cannot be mapped
                file = opened.enter_context(path.open("rb"))
                mapped[name] = opened.enter_context(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        yield mapped


def _locations(content: mmap.mmap, start: int, end: int, message: str) -> Iterator[str]:
    """Yield the files that are named in the bytes from `start` to `end`, which are one message."""
    if message == "entry":
        entry = {field: content[begin:stop] for field, begin, stop in _fields(content, start, end)}
        if entry.get(_KEY) == b"location":
            yield entry.get(_VALUE, b"").decode()
        return
    nested = _NESTED[message]
    for field, begin, stop in _fields(content, start, end):
        if message == "node" and field == _OP_TYPE and content[begin:stop] == b"EPContext":
            raise GraphError(
                "The graph has a node of the type EPContext, a model compiled for one device, which may come from a "
                "file without a digest. Export the model again."
            )
        if field in nested:
            yield from _locations(content, begin, stop, nested[field])


def _fields(content: mmap.mmap, start: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield the number, the start and the end of each field of a message that is a message or a string itself."""
    while start < end:
        tag, start = _varint(content, start)
        if not 8 <= tag < 1 << 32:  # readers drop what is beyond the 32nd bit, and so would find another field
            raise ValueError(f"{tag} is not the tag of a field.")
        kind = tag & 7
        if kind == _BYTES:
            size, start = _varint(content, start)
            if start + size > end:
                raise ValueError("A field is longer than the message that it is in.")
            yield tag >> 3, start, start + size
            start += size
        elif kind == _VARINT:
            _, start = _varint(content, start)
        elif kind in (_FIXED32, _FIXED64):
            start += 4 if kind == _FIXED32 else 8
        else:
            raise ValueError(f"{kind} is not a kind of field.")


def _varint(content: mmap.mmap, start: int) -> tuple[int, int]:
    """Return the number that starts there, and where it ends."""
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
