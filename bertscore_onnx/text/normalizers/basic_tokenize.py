"""What BERT calls basic tokenisation."""

import unicodedata

import msgspec

from bertscore_onnx.text.characters import CharacterMap, Transform, is_punctuation
from bertscore_onnx.text.unicode_normalization import normalize


class BasicTokenize(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="basic_tokenize"):
    """Clean a text and set its words and punctuation apart by spaces, as BERT's basic tokenizer does.

    Drops control characters, normalises to NFC, and treats letters, accents and punctuation by Python's Unicode
    tables (transformers, `BasicTokenizer` in `tokenization_bert.py`).
    """

    lowercase: bool
    strip_accents: bool
    split_chinese: bool
    """Whether every ideograph is a word."""

    never_split: list[str]
    """The words that stay as they are, also where they are one only after cleaning."""

    def bind(self) -> Transform:
        """Return the function that does it."""
        clean = CharacterMap(self._clean)
        split = CharacterMap(self._split)
        kept = frozenset(self.never_split)

        def change(text: str) -> str:
            return (text.lower() if self.lowercase else text).translate(split)

        def apply(text: str) -> str:
            text = normalize("NFC", text.translate(clean))
            if kept.isdisjoint(words := text.split()):
                return change(text)
            return " ".join(word if word in kept else change(word) for word in words)

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
