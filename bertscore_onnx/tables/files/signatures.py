"""Recognises files by their first bytes: what is packed with gzip, and what is no text in UTF-8."""

import re

from bertscore_onnx.errors import InputError

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
