"""The vocabulary of a bundle.

It has the text of each token id, and knows which tokens continue a word.

Vocabularies mark where words begin, continue or end (`▁the`, `Ġthe`, `##ing`, `low</w>`), and many
have bytes instead of characters (`æĿ`, `<0xE6>`).
"""

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import WordPiece

from bertscore_onnx.arrays import BoolArray
from bertscore_onnx.text.budget import stages_of
from bertscore_onnx.text.normalizers import BYTE_CHARACTERS, SPACE
from bertscore_onnx.text.spec import TokenizerSpec
from bertscore_onnx.text.tokenizer import tokenizer_errors
from bertscore_onnx.text.tokenizer_json import check_tokenizer_json

_BYTES = {character: bytes([byte]) for byte, character in BYTE_CHARACTERS.items()}

_BYTE_PIECE = re.compile("<0x([0-9A-F]{2})>")
"""How SentencePiece writes one byte of a character that is not in its vocabulary."""


class Vocabulary:
    """The tokens of one bundle; threads may share it."""

    def __init__(
        self, tokenizer_path: Path, spec: TokenizerSpec | None, special_ids: Sequence[int]
    ) -> None:
        """Load the tokenizer's file of a bundle.

        Raise a TokenizerError if it cannot be used.
        """
        with tokenizer_errors(tokenizer_path, "is not a tokenizer"):
            content, _ = check_tokenizer_json(tokenizer_path)
            self._tokenizer = Tokenizer.from_file(str(tokenizer_path))
        stages = stages_of(content.pre_tokenizer, "pretokenizers")
        stages += stages_of(content.decoder, "decoders")
        self._has_bytes = any(stage["type"] == "ByteLevel" for stage in stages)
        self._prefix = ""
        if isinstance(self._tokenizer.model, WordPiece):
            self._prefix = content.model.continuing_subword_prefix or ""
        self._suffix = content.model.end_of_word_suffix or ""
        self.special: dict[int, str] = {}
        """The tokens that no word is made of, such as `</s>`: id to name."""
        for token in special_ids:
            self.special[token] = self._tokenizer.id_to_token(token)
        for token, added in self._tokenizer.get_added_tokens_decoder().items():
            self.special[token] = added.content
        if spec is not None:
            self.special |= {token.id: token.content for token in spec.special_tokens}

    def bytes_of(self, token: int) -> bytes:
        """Return the text of a token in UTF-8.

        The bytes may begin or end inside a character.
        """
        piece = self._piece(token)
        if token in self.special:
            return piece.encode()
        if self._has_bytes:
            return b"".join(_BYTES.get(character) or character.encode() for character in piece)
        if self._prefix:
            return (piece.removeprefix(self._prefix) or piece).encode()
        byte = _BYTE_PIECE.fullmatch(piece)
        if byte:
            return bytes.fromhex(byte[1])
        return piece.removesuffix(self._suffix).replace(SPACE, " ").encode()

    def continuations(self, size: int) -> tuple[BoolArray, BoolArray]:
        """Return which ids may continue a word, and which may be continued.

        Both are (size,). A token continues a word if it may and the one before it may be continued.
        Where a vocabulary marks the beginning of words, or nothing, such tokens are letters, digits
        and marks without a space between them.
        """
        continues = np.zeros(size, dtype=np.bool_)
        is_continued = np.zeros(size, dtype=np.bool_)
        for token in range(size):
            if token in self.special:
                continue
            if self._prefix:
                continues[token] = self._piece(token).startswith(self._prefix)
                is_continued[token] = True
            elif self._suffix:
                continues[token] = True
                is_continued[token] = not self._piece(token).endswith(self._suffix)
            else:
                text = self.bytes_of(token).decode(errors="replace")
                if text:
                    continues[token] = _is_of_word(text[0])
                    is_continued[token] = _is_of_word(text[-1])
        return continues, is_continued

    def _piece(self, token: int) -> str:
        return self.special.get(token) or self._tokenizer.id_to_token(token) or f"#{token}"


def _is_of_word(character: str) -> bool:
    """Return whether a character is a letter, a digit, a mark such as a vowel sign, or U+FFFD."""
    # U+FFFD stands for a part of a character
    return unicodedata.category(character)[0] in "LNM" or character == "\ufffd"
