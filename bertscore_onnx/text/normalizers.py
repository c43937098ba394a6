"""Changes to texts that `tokenizer.slow.json` cannot express.

They are made before a text is encoded.

Each normalizer is a record in the bundle's manifest. The slow tokenizers of transformers are
written in Python and so follow Python's Unicode tables; `tokenizers` has older tables, which differ
on recently assigned characters.
"""

import importlib
import itertools
import os.path
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Annotated, Any, Literal

import msgspec
import numpy as np

from bertscore_onnx.errors import needs_extra

Transform = Callable[[str], str]

MAX_CHARACTERS = 16_384
"""The most entries of a `CharacterMap`: more than the texts of any language need, in 5 MB."""


class CharacterMap(dict[int, str]):
    """A table for `str.translate` that computes replacements and keeps them.

    Each character's replacement is computed when it first occurs. The table is cleared after
    `MAX_CHARACTERS` entries: all of Unicode would take hundreds of megabytes.
    """

    def __init__(self, replace: Transform) -> None:
        self._replace = replace

    def __missing__(self, code_point: int) -> str:
        replacement = self._replace(chr(code_point))
        if len(self) >= MAX_CHARACTERS:
            self.clear()
        self[code_point] = replacement
        return replacement


class BasicTokenize(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="basic_tokenize"):
    """Clean a text and put spaces around its words and punctuation marks.

    As BERT's basic tokenizer does, it drops control characters, normalises to NFC, and handles
    case, accents and punctuation by Python's Unicode tables (transformers, `BasicTokenizer` in
    `tokenization_bert.py`).
    """

    lowercase: bool
    strip_accents: bool
    split_chinese: bool
    """Whether every ideograph is a word."""

    never_split: list[str]
    """Words that stay unchanged, including words that the cleaning turns into these."""

    def compile(self) -> Transform:
        """Return the function that changes a text."""
        clean = CharacterMap(self._clean)
        split = CharacterMap(self._split)
        kept = frozenset(self.never_split)

        def change(text: str) -> str:
            if self.lowercase:
                text = text.lower()
            return text.translate(split)

        def apply(text: str) -> str:
            text = normalize("NFC", text.translate(clean))
            separated = text.split()
            if kept.isdisjoint(separated):
                return change(text)
            changed = []
            for word in separated:
                changed.append(word if word in kept else change(word))
            return " ".join(changed)

        return apply

    def _clean(self, character: str) -> str:
        category = unicodedata.category(character)
        if character in "\t\n\r" or category == "Zs":
            return " "
        if category.startswith("C") or character == "\ufffd":
            return ""
        if self.split_chinese and _is_ideograph(character):
            return f" {character} "
        return character

    def _split(self, character: str) -> str:
        characters = character
        if self.strip_accents:
            characters = _without_marks(unicodedata.normalize("NFD", character))
        spaced = ""
        for plain in characters:
            spaced += f" {plain} " if is_punctuation(plain) else plain
        return spaced


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


class CleanQuotes(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="clean_quotes"):
    """Make quotation marks plain, and drop accents and case (ALBERT, XLNet).

    White space is collapsed, and `` and '' are replaced.
    """

    collapse_space: bool
    strip_accents: bool
    lowercase: bool

    def compile(self) -> Transform:
        """Return the function that changes a text."""
        unaccented = CharacterMap(_without_accents)

        def apply(text: str) -> str:
            if self.collapse_space:
                text = " ".join(text.split())
            text = text.replace("``", '"').replace("''", '"')
            if self.strip_accents and not text.isascii():
                text = text.translate(unaccented)
            if self.lowercase:
                text = text.lower()
            return text

        return apply


class Compose(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="compose"):
    """Make quotation marks plain, compose letters, and drop case (FlauBERT).

    `` and '' are replaced, and letters are composed with their accents.
    """

    lowercase: bool

    def compile(self) -> Transform:
        """Return the function that changes a text."""

        def apply(text: str) -> str:
            text = normalize("NFC", text.replace("``", '"').replace("''", '"'))
            if self.lowercase:
                text = text.lower()
            return text

        return apply


class Lowercase(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="lowercase"):
    """Lower each character by itself, except in certain strings.

    Special tokens are looked for afterwards: `<UNK>` turns into one if `<unk>` is one. By itself, a
    final sigma is lowered like any other.
    """

    never_lower: list[str]
    """Strings that stay unchanged. If two match at the same position, the earlier in the list is
    kept.
    """

    def compile(self) -> Transform:
        """Return the function that changes a text."""
        lowered = CharacterMap(str.lower)
        if not self.never_lower:
            return lambda text: text.translate(lowered)
        kept = re.compile("(" + "|".join(map(re.escape, self.never_lower)) + ")")

        def apply(text: str) -> str:
            # The strings to keep are at the odd indices.
            segments = kept.split(text)
            segments[::2] = [segment.translate(lowered) for segment in segments[::2]]
            return "".join(segments)

        return apply


_FULL_STOP = re.compile(r"[。．]\s*")
_PLAIN_MARKS = str.maketrans(
    "，、”“∶：？《》）！（；「」～’━〈〉【】％０１２３４５６７８９",
    ',,""::?"")!(;""~\'-<>[]%0123456789',
) | {ord("…"): "..."}


class Moses(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="moses"):
    """Tokenise into words as Moses does (XLM, FlauBERT).

    The Moses translation system replaces full-width marks by plain ones, drops unprintable
    characters, and puts spaces around words and marks.
    """

    lowercase_and_strip_accents: bool
    language: Literal["en", "fr"] = "en"
    """The language whose abbreviations and apostrophes are followed."""

    def compile(self) -> Transform:
        """Return the function that changes a text.

        Raise a MissingExtraError if sacremoses cannot be imported.
        """
        with needs_extra("xlm", "Tokenizing as XLM models do"):
            sacremoses = importlib.import_module("sacremoses")
        plain_marks = sacremoses.MosesPunctNormalizer(lang=self.language).normalize
        tokenize = _with_fast_look_ups(sacremoses.MosesTokenizer(lang=self.language)).tokenize
        printing = CharacterMap(_printing)

        def apply(text: str) -> str:
            text = plain_marks(_FULL_STOP.sub(". ", text).translate(_PLAIN_MARKS))
            text = tokenize(text.translate(printing), return_str=True, escape=False)
            if self.lowercase_and_strip_accents:
                text = _without_marks(normalize("NFD", text.lower())).lower()
            return text

        return apply


def _with_fast_look_ups(tokenizer: Any) -> Any:
    """Replace the look-ups of a sacremoses tokenizer by sets that are built once."""
    # its own are built for every word such as `a.b.`: over 100,000 letters, in 2 ms each time
    letters = frozenset(tokenizer.IsAlpha)
    lower = frozenset(tokenizer.IsLower)
    tokenizer.isanyalpha = lambda text: not letters.isdisjoint(text)
    tokenizer.islower = lower.issuperset
    tokenizer.NONBREAKING_PREFIXES = frozenset(tokenizer.NONBREAKING_PREFIXES)
    tokenizer.NUMERIC_ONLY_PREFIXES = frozenset(tokenizer.NUMERIC_ONLY_PREFIXES)
    return tokenizer


class PrefixSpace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="prefix_space"):
    """Put a space before the first word (slow RoBERTa and GPT-2).

    The first word is then tokenised like any other.
    """

    def compile(self) -> Transform:
        """Return the function that changes a text."""
        return lambda text: " " + text


_WORD = re.compile(r"\S+\n?")  # a line break belongs to the word before it


class SeparateWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="separate_words"):
    """Separate the words between white space by single spaces (BERTweet)."""

    def compile(self) -> Transform:
        """Return the function that changes a text."""
        return lambda text: " ".join(_WORD.findall(text))


_UNICODE_SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""White space by the Unicode property; Python includes four more control characters."""

_DIALOGUE_WORD = re.compile(rf"[^{_UNICODE_SPACE}]+\n?")
_DIALOGUE_MARK = re.compile(r"([.,!?()])")
_DIALOGUE_SPACES = re.compile(rf"[{_UNICODE_SPACE}]{{2,}}")


class SeparateDialogue(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="separate_dialogue"
):
    """Separate words and marks, and lower words (small BlenderBot).

    Spaces stand before marks and around apostrophes; line breaks get a name.
    """

    def compile(self) -> Transform:
        """Return the function that changes a text."""

        def apply(text: str) -> str:
            separated = []
            for word in _DIALOGUE_WORD.findall(text):
                separated += _separate_dialogue(word)
            return " ".join(separated)

        return apply


def _separate_dialogue(word: str) -> list[str]:
    spaced = _DIALOGUE_MARK.sub(r" \1", word).replace("'", " ' ")
    spaced = _DIALOGUE_SPACES.sub(" ", spaced).replace("\n", " __newln__")
    separated = filter(None, spaced.split(" "))
    return list(map(str.lower, separated))


class UnknownWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="unknown_words"):
    """Replace words that are missing from the vocabulary by the unknown token.

    The words come from BERT's `never_split`.
    """

    words: list[str]
    unknown_token: Annotated[str, msgspec.Meta(max_length=100)]

    def compile(self) -> Transform:
        """Return the function that changes a text."""
        unknown = frozenset(self.words)

        def apply(text: str) -> str:
            separated = text.split()
            if unknown.isdisjoint(separated):
                return text
            known = []
            for word in separated:
                known.append(self.unknown_token if word in unknown else word)
            return " ".join(known)

        return apply


Normalizer = (
    BasicTokenize
    | CleanQuotes
    | Compose
    | Lowercase
    | Moses
    | PrefixSpace
    | SeparateDialogue
    | SeparateWords
    | UnknownWords
)


def compile_normalizers(normalizers: Sequence[Normalizer]) -> Transform:
    """Return one function that applies all normalizers in their order."""
    transforms = [normalizer.compile() for normalizer in normalizers]

    def apply(text: str) -> str:
        for transform in transforms:
            text = transform(text)
        return text

    return apply


# Characters and strings

_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_UNPRINTABLE = [byte for byte in range(256) if byte not in _PRINTABLE]

BYTE_CHARACTERS = {byte: chr(byte) for byte in _PRINTABLE}
BYTE_CHARACTERS |= {byte: chr(0x100 + number) for number, byte in enumerate(_UNPRINTABLE)}
"""The character that byte-level BPE writes for each byte: the byte itself if printable, otherwise
one from U+0100.
"""

SPACE = "▁"
"""The character that SentencePiece writes for a space."""


def any_of(literals: Sequence[str]) -> re.Pattern[str]:
    """Return a pattern of one group that matches any of the strings.

    At each position it matches the longest.
    """
    return re.compile(f"({_prefix_tree(sorted(set(literals)))})")


def _prefix_tree(literals: Sequence[str]) -> str:
    """Return a pattern for sorted strings that matches each of their common beginnings once."""
    prefix = os.path.commonprefix(literals)  # noqa: RUF071 - these are strings, not paths
    rests = [literal[len(prefix) :] for literal in literals]
    branches = []
    for _, group in itertools.groupby(filter(None, rests), key=itemgetter(0)):
        branches.append(_prefix_tree(list(group)))
    if not branches:
        return re.escape(prefix)
    tree = f"{re.escape(prefix)}(?:{'|'.join(branches)})"
    # The prefix itself is one of the strings if nothing follows it there.
    return tree if all(rests) else f"{tree}?"


def is_punctuation(character: str) -> bool:
    """Return whether a character is punctuation.

    Punctuation marks are those of Unicode, and all ASCII characters except letters, digits, the
    space and controls.
    """
    if character.isascii():
        return character.isprintable() and not character.isalnum() and character != " "
    return unicodedata.category(character).startswith("P")


def split_punctuation(text: str) -> Iterator[str]:
    """Yield each punctuation mark of a text, and the strings between marks."""
    for is_mark, characters in itertools.groupby(text, key=is_punctuation):
        if is_mark:
            yield from characters
        else:
            yield "".join(characters)


def _without_marks(decomposed: str) -> str:
    return "".join(char for char in decomposed if unicodedata.category(char) != "Mn")


def _without_accents(character: str) -> str:
    decomposed = unicodedata.normalize("NFKD", character)
    return "".join(char for char in decomposed if not unicodedata.combining(char))


def _printing(character: str) -> str:
    """Return a character, or nothing for a control character and the like."""
    return "" if unicodedata.category(character).startswith("C") else character


# Unicode's canonical normal forms in linear time. `unicodedata.normalize` puts combining marks in
# order by insertion, which is quadratic in their number: minutes for a letter with a million marks.
# Texts with long runs of marks are therefore decomposed and sorted first. This is the canonical
# ordering of The Unicode Standard (3.11), so the result is the same.

LONG_RUN = 64
"""The number of consecutive marks from which they are sorted first; shorter runs are not worth
it.
"""

_SAMPLE_STEP = LONG_RUN // 2
_SAMPLED_RUN = re.compile(rb"[^\0]{2}")

_MARKS_OF_CLASS_0 = {0x0F73: "\u0f71\u0f72", 0x0F75: "\u0f71\u0f74", 0x0F81: "\u0f71\u0f80"}
"""The characters that decompose into marks alone, although they have the combining class of a
letter.
"""


def normalize(form: Literal["NFC", "NFD"], text: str) -> str:
    """Return the same as `unicodedata.normalize`."""
    if unicodedata.is_normalized(form, text):
        return text
    if _may_have_long_runs(text):
        text = _in_canonical_order(text)
    return unicodedata.normalize(form, text)


def _may_have_long_runs(text: str) -> bool:
    """Return whether there may be a long run of marks."""
    # Any such run contains two neighbours of the sample.
    sample = text[::_SAMPLE_STEP].translate(_MARKS_OF_CLASS_0)
    return _SAMPLED_RUN.search(_combining_classes(sample)) is not None


def _in_canonical_order(text: str) -> str:
    """Return a text decomposed, with its marks in order.

    The marks between letters are sorted by class; the sort is stable.
    """
    decompositions = {ord(char): unicodedata.normalize("NFD", char) for char in set(text)}
    decomposed = text.translate(decompositions)
    encoded = decomposed.encode("utf-32-le", "surrogatepass")
    code_points = np.frombuffer(encoded, dtype="<u4")  # (characters,)
    # (characters,), 0 for letters
    classes = np.frombuffer(_combining_classes(decomposed), dtype=np.uint8)
    order = np.lexsort((classes, np.cumsum(classes == 0)))  # (characters,)
    return code_points[order].tobytes().decode("utf-32-le", "surrogatepass")


def _combining_classes(text: str) -> bytes:
    return bytes(map(unicodedata.combining, text))
