"""What happens to a text before `tokenizer.json` sees it: the parts of a tokenizer that the file cannot express.

Each step is a record in the bundle's manifest. The slow tokenizers of transformers are Python, and so follow Python's
own Unicode tables; the `tokenizers` package has older ones, and differs on characters assigned since.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence

import msgspec

Transform = Callable[[str], str]


class PrefixSpace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="prefix_space"):
    """Put a space before the first word, so that it is tokenised like any other (slow RoBERTa and GPT-2)."""

    def bind(self, special_tokens: Sequence[str]) -> Transform:
        """Return the function that does it."""
        return lambda text: " " + text


class BasicTokenize(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="basic_tokenize"):
    """Clean a text and set its words and punctuation apart by spaces, as BERT's basic tokenizer does.

    Drops control characters, normalises to NFC, and treats letters, accents and punctuation by Python's Unicode
    tables (transformers, `BasicTokenizer` in `tokenization_bert.py`). Literal special tokens stay as they are.
    """

    lowercase: bool
    strip_accents: bool
    split_chinese: bool
    """Whether every ideograph is a word."""

    def bind(self, special_tokens: Sequence[str]) -> Transform:
        """Return the function that does it, with a memory of the characters it has met."""
        clean = _CharacterMap(self._clean)
        split = _CharacterMap(self._split)

        def apply(text: str) -> str:
            return unicodedata.normalize("NFC", text.translate(clean)).translate(split)

        return _outside(special_tokens, apply)

    def _clean(self, character: str) -> str:
        lowered = character.lower() if self.lowercase else character
        return "".join(self._clean_one(one) for one in lowered)

    def _clean_one(self, character: str) -> str:
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
        return "".join(f" {one} " if _is_punctuation(one) else one for one in characters)


TextStep = PrefixSpace | BasicTokenize


class _CharacterMap(dict[int, str]):
    """A table for `str.translate` that works out each character when it first occurs."""

    def __init__(self, replace: Transform) -> None:
        self._replace = replace

    def __missing__(self, code_point: int) -> str:
        return self.setdefault(code_point, self._replace(chr(code_point)))


def _outside(special_tokens: Sequence[str], transform: Transform) -> Transform:
    """Apply a function to what stands between literal special tokens only."""
    if not special_tokens:
        return transform
    longest_first = sorted(special_tokens, key=len, reverse=True)
    pattern = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")")

    def apply(text: str) -> str:
        pieces = pattern.split(text)  # special tokens stand at the odd places
        pieces[::2] = map(transform, pieces[::2])
        return "".join(pieces)

    return apply


def _is_punctuation(character: str) -> bool:
    """All ASCII but letters, digits, spaces and controls, and what Unicode calls punctuation."""
    if character.isascii():
        return character.isprintable() and not character.isalnum() and character != " "
    return unicodedata.category(character).startswith("P")


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
