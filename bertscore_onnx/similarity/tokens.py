"""The tokens of a text as a person would write them, whatever the vocabulary calls them.

Vocabularies mark where words begin, go on or end (`▁the`, `Ġthe`, `##ing`, `low</w>`), and many write bytes instead of
characters (`æĿ`, `<0xE6>`). The text of a token is what it stands for, without marks and without the space before it.
Where a character is spread over several tokens, each of them shows it, and which part of it the token is: `東(1/2)`.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Any

import msgspec
from tokenizers import Tokenizer

from bertscore_onnx.bundle.bundle import Bundle
from bertscore_onnx.text.normalizers import BYTE_CHARACTERS

SPACE = "▁"
"""How SentencePiece writes a space."""

_BYTES = {character: bytes([byte]) for byte, character in BYTE_CHARACTERS.items()}

_BYTE_PIECE = re.compile("<0x([0-9A-F]{2})>")
"""How SentencePiece writes one byte of a character that its vocabulary lacks."""

_MISLEADING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that change the direction of their neighbours."""


class _Model(msgspec.Struct):
    type: str = ""
    continuing_subword_prefix: str | None = None
    end_of_word_suffix: str | None = None


class _File(msgspec.Struct):
    """What `tokenizer.json` says of how its vocabulary is written."""

    model: _Model
    pre_tokenizer: Any = None
    decoder: Any = None


class TokenNames:
    """Shows the token ids of one bundle as text; threads may share it."""

    def __init__(self, bundle: Bundle) -> None:
        """Load the vocabulary."""
        self._tokenizer = Tokenizer.from_file(str(bundle.tokenizer_path))
        file = msgspec.json.decode(bundle.tokenizer_path.read_bytes(), type=_File)
        self._has_bytes = _has_byte_level(file.pre_tokenizer) or _has_byte_level(file.decoder)
        self._prefix = (file.model.continuing_subword_prefix or "") if file.model.type == "WordPiece" else ""
        self._suffix = file.model.end_of_word_suffix or ""
        spec = bundle.manifest.tokenizer_spec
        self._special = {token: self._tokenizer.id_to_token(token) for token in bundle.manifest.special_ids}
        self._special |= {token: added.content for token, added in self._tokenizer.get_added_tokens_decoder().items()}
        self._special |= {token.id: token.content for token in (spec.special_tokens if spec else ())}

    def __call__(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each token.

        Args:
            ids: the ids of one text, or of a part of it, in their order: neighbours may share a character.

        Returns:
            As many texts, none of them empty: a token of nothing but spaces shows as `␣`; other white space, control
            characters, and bytes that make no character are escaped as in Python.
        """
        return [_visible(text) for text in _texts([self._bytes_of(token) for token in ids])]

    def _bytes_of(self, token: int) -> bytes:
        """Return what a token stands for, in UTF-8, or as the part of it that it is."""
        piece: str = self._special.get(token) or self._tokenizer.id_to_token(token) or f"#{token}"
        if token in self._special:
            return piece.encode()
        if self._has_bytes:
            return b"".join(_BYTES.get(character) or character.encode() for character in piece)
        if self._prefix:
            return (piece.removeprefix(self._prefix) or piece).encode()
        if byte := _BYTE_PIECE.fullmatch(piece):
            return bytes.fromhex(byte[1])
        return piece.removesuffix(self._suffix).replace(SPACE, " ").encode()


def _has_byte_level(node: Any) -> bool:
    """Return whether byte-level BPE is anywhere in a part of `tokenizer.json`."""
    if isinstance(node, dict):
        return node.get("type") == "ByteLevel" or any(map(_has_byte_level, node.values()))
    return isinstance(node, list) and any(map(_has_byte_level, node))


def _texts(pieces: Sequence[bytes]) -> list[str]:
    """Return the text of each piece of some UTF-8, of which a character may be spread over several."""
    ends = list(accumulate(map(len, pieces)))
    texts, piece, start = [""] * len(pieces), 0, 0
    for text, size in _characters(b"".join(pieces)):
        while ends[piece] <= start:
            piece += 1
        last = piece
        while ends[last] < start + size:
            last += 1
        owners = [owner for owner in range(piece, last + 1) if pieces[owner]]
        for part, owner in enumerate(owners, 1):
            texts[owner] += text if len(owners) == 1 else f"{_visible(text)}({part}/{len(owners)})"
        start += size
    return texts


def _characters(content: bytes) -> Iterator[tuple[str, int]]:
    """Yield each character of some UTF-8, or each byte that is of none, escaped, and how many bytes it takes."""
    start = 0
    while start < len(content):
        for size in range(1, 5):
            try:
                yield content[start : start + size].decode(), size
            except UnicodeDecodeError:
                continue
            break
        else:
            size = 1
            yield f"\\x{content[start]:02x}", size
        start += size


def _visible(text: str) -> str:
    """Return a text without the space around it, with what cannot be seen or misleads escaped."""
    bare = text.strip(" ")
    if not bare:
        return "␣" * max(len(text), 1)
    is_hidden = all(not character.isprintable() for character in bare)
    return "".join(
        ascii(character)[1:-1]
        if is_hidden or unicodedata.category(character) in ("Cc", "Zl", "Zp") or _MISLEADING.match(character)
        else character
        for character in bare
    )
