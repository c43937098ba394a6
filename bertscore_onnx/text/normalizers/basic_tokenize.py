"""The step that BERT calls basic tokenisation."""

import unicodedata
from collections.abc import Sequence

import msgspec

from bertscore_onnx.text.characters import CharacterMap, Transform, is_punctuation


class BasicTokenize(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="basic_tokenize"):
    """Clean a text and set its words and punctuation apart by spaces, as BERT's basic tokenizer does.

    Drops control characters, normalises to NFC, and treats letters, accents and punctuation by Python's Unicode
    tables (transformers, `BasicTokenizer` in `tokenization_bert.py`). A word that cleaning makes a special token stays
    whole.
    """

    lowercase: bool
    strip_accents: bool
    split_chinese: bool
    """Whether every ideograph is a word."""

    def bind(self, literals: Sequence[str]) -> Transform:
        """Return the function that does it, with a memory of the characters it has met."""
        clean = CharacterMap(self._clean)
        split = CharacterMap(self._split)
        as_they_are = frozenset(literals)

        def apply(text: str) -> str:
            text = unicodedata.normalize("NFC", text.translate(clean))
            if self.lowercase:
                text = text.lower()
            if as_they_are.isdisjoint(words := text.split()):
                return text.translate(split)
            return " ".join(word if word in as_they_are else word.translate(split) for word in words)

        return apply

    def _clean(self, character: str) -> str:
        category = unicodedata.category(character)
        if character in "\t\n\r" or category == "Zs":
            return " "
        if category.startswith("C") or character == "\ufffd":
            return ""
        return f" {character} " if self.split_chinese and _is_ideograph(character) else character

    def _split(self, character: str) -> str:
        characters = character
        if self.strip_accents:
            characters = unicodedata.normalize("NFD", character)
            characters = "".join(one for one in characters if unicodedata.category(one) != "Mn")
        return "".join(f" {one} " if is_punctuation(one) else one for one in characters)


_IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)


def _is_ideograph(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in _IDEOGRAPHS)
