"""What happens to a text before it is encoded, where `tokenizer.json` cannot express it.

Each normalizer is a record in the bundle's manifest. The slow tokenizers of transformers are Python, and so follow
Python's own Unicode tables; the `tokenizers` package has older ones, and differs on characters assigned since.
"""

import importlib
import itertools
import os.path
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Literal

import msgspec
import numpy as np

from bertscore_onnx.errors import needs_extra

# Characters and strings: what counts as punctuation, tables of characters, patterns that find any of some strings.


Transform = Callable[[str], str]

MAX_CHARACTERS = 16_384
"""The most entries of a `CharacterMap`: more than the texts of any language need, in 5 MB."""

_PRINTS = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_HIDDEN = [byte for byte in range(256) if byte not in _PRINTS]

BYTE_CHARACTERS = {byte: chr(byte) for byte in _PRINTS} | {byte: chr(0x100 + n) for n, byte in enumerate(_HIDDEN)}
"""The character that byte-level BPE writes for each byte: itself if it prints, else one from U+0100 on."""


class CharacterMap(dict[int, str]):
    """A table for `str.translate` that computes and caches each character's replacement when it first occurs.

    It begins again with an empty cache after `MAX_CHARACTERS`: all of Unicode would take hundreds of megabytes.
    """

    def __init__(self, replace: Transform) -> None:
        self._replace = replace

    def __missing__(self, code_point: int) -> str:
        replacement = self._replace(chr(code_point))
        if len(self) >= MAX_CHARACTERS:
            self.clear()
        self[code_point] = replacement
        return replacement


def any_of(literals: Sequence[str]) -> re.Pattern[str]:
    """Return the pattern, one group, that finds any of some strings, the longest that begins at a place first."""
    return re.compile(f"({_prefix_tree(sorted(set(literals)))})")


def _prefix_tree(literals: Sequence[str]) -> str:
    """Return a pattern that reads what sorted strings begin with once, not once for each of them."""
    prefix = os.path.commonprefix(literals)  # noqa: RUF071 - strings it is, no paths
    rests = [literal[len(prefix) :] for literal in literals]
    branches = [_prefix_tree(list(some)) for _, some in itertools.groupby(filter(None, rests), key=itemgetter(0))]
    if not branches:
        return re.escape(prefix)
    return f"{re.escape(prefix)}(?:{'|'.join(branches)}){'' if all(rests) else '?'}"


def is_punctuation(character: str) -> bool:
    """Tell whether a character is of Unicode's punctuation, or ASCII but no letter, digit, space or control."""
    if character.isascii():
        return character.isprintable() and not character.isalnum() and character != " "
    return unicodedata.category(character).startswith("P")


def split_punctuation(text: str) -> Iterator[str]:
    """Yield a text in parts: each punctuation mark by itself, and what stands between."""
    for is_mark, characters in itertools.groupby(text, key=is_punctuation):
        if is_mark:
            yield from characters
        else:
            yield "".join(characters)


# Unicode's canonical normal forms, in time that grows with the text alone. `unicodedata.normalize` puts combining
# marks in order by insertion, which takes the square of their number: minutes for a letter with a million marks. So
# where many stand in a row, the text is decomposed and its marks sorted before. It is the canonical ordering of The
# Unicode Standard (3.11), and so the normal form is the same.


LONG_RUN = 64
"""From this many marks in a row on they are sorted before; the square of fewer is not worth it."""

_SAMPLE_STEP = LONG_RUN // 2
_SAMPLED_RUN = re.compile(rb"[^\0]{2}")

_MARKS_OF_CLASS_0 = {0x0F73: "\u0f71\u0f72", 0x0F75: "\u0f71\u0f74", 0x0F81: "\u0f71\u0f80"}
"""The characters that decompose into nothing but marks, though their own combining class is that of a letter."""


def normalize(form: Literal["NFC", "NFD"], text: str) -> str:
    """Return what `unicodedata.normalize` returns."""
    if unicodedata.is_normalized(form, text):
        return text
    return unicodedata.normalize(form, _in_canonical_order(text) if _may_have_long_runs(text) else text)


def _may_have_long_runs(text: str) -> bool:
    """Tell whether marks may stand in long runs, each of which has two neighbours of the sample."""
    sample = text[::_SAMPLE_STEP].translate(_MARKS_OF_CLASS_0)
    return _SAMPLED_RUN.search(_combining_classes(sample)) is not None


def _in_canonical_order(text: str) -> str:
    """Return a text decomposed, its marks sorted by class between letters, those of one class as they stand."""
    decomposed = text.translate({ord(one): unicodedata.normalize("NFD", one) for one in set(text)})
    code_points = np.frombuffer(decomposed.encode("utf-32-le", "surrogatepass"), dtype="<u4")  # (characters,)
    classes = np.frombuffer(_combining_classes(decomposed), dtype=np.uint8)  # (characters,), 0 for letters
    order = np.lexsort((classes, np.cumsum(classes == 0)))  # (characters,)
    return code_points[order].tobytes().decode("utf-32-le", "surrogatepass")


def _combining_classes(text: str) -> bytes:
    return bytes(map(unicodedata.combining, text))


# What BERT calls basic tokenisation.


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


# The cleaning of ALBERT and XLNet.


class CleanQuotes(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="clean_quotes"):
    """Collapse white space, make `` and '' plain quotation marks, and drop accents and case where they do not count."""

    collapse_space: bool
    strip_accents: bool
    lowercase: bool

    def bind(self) -> Transform:
        """Return the function that does it."""
        unaccented = CharacterMap(_without_accents)

        def apply(text: str) -> str:
            if self.collapse_space:
                text = " ".join(text.split())
            text = text.replace("``", '"').replace("''", '"')
            if self.strip_accents and not text.isascii():
                text = text.translate(unaccented)
            return text.lower() if self.lowercase else text

        return apply


def _without_accents(character: str) -> str:
    return "".join(one for one in unicodedata.normalize("NFKD", character) if not unicodedata.combining(one))


# Lowercasing before special tokens are looked for.


class Lowercase(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="lowercase"):
    """Lower every character by itself, but leave certain strings.

    One by one, a final sigma is lowered like any other, and `<UNK>` turns into a special token where `<unk>` is one.
    """

    never_lower: list[str]
    """The strings that stay as they are; of two that begin at one place the earlier in the list."""

    def bind(self) -> Transform:
        """Return the function that does it."""
        lowered = CharacterMap(str.lower)
        if not self.never_lower:
            return lambda text: text.translate(lowered)
        kept = re.compile("(" + "|".join(map(re.escape, self.never_lower)) + ")")

        def apply(text: str) -> str:
            parts = kept.split(text)  # what is kept stands at the odd places
            parts[::2] = [part.translate(lowered) for part in parts[::2]]
            return "".join(parts)

        return apply


# Word tokenisation of the Moses translation system (XLM); it needs the package sacremoses.


_FULL_STOP = re.compile(r"[。．]\s*")
_PLAIN_MARKS = str.maketrans(
    "，、”“∶：？《》）！（；」「～’━〈〉【】％０１２３４５６７８９",
    ',,""::?"")!(;""~\'-<>[]%0123456789',
) | {ord("…"): "..."}


class Moses(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="moses"):
    """Make marks plain, drop what does not print, and set words and marks apart by spaces, as for English."""

    lowercase_and_strip_accents: bool

    def bind(self) -> Transform:
        """Return the function that does it."""
        with needs_extra("xlm", "Tokenizing as XLM models do"):
            sacremoses = importlib.import_module("sacremoses")
        plain_marks = sacremoses.MosesPunctNormalizer(lang="en").normalize
        words = _with_fast_look_ups(sacremoses.MosesTokenizer(lang="en")).tokenize
        printing = CharacterMap(lambda one: "" if unicodedata.category(one).startswith("C") else one)

        def apply(text: str) -> str:
            text = plain_marks(_FULL_STOP.sub(". ", text).translate(_PLAIN_MARKS))
            text = words(text.translate(printing), return_str=True, escape=False)
            return self._lowered(text) if self.lowercase_and_strip_accents else text

        return apply

    def _lowered(self, text: str) -> str:
        decomposed = normalize("NFD", text.lower())
        return "".join(one for one in decomposed if unicodedata.category(one) != "Mn").lower()


def _with_fast_look_ups(tokenizer: Any) -> Any:
    """Let a tokenizer of sacremoses look characters and abbreviations up in sets made once.

    It makes a set of all letters, more than 100,000, for every word such as `a.b.`: 2 ms each.
    """
    letters, lower = frozenset(tokenizer.IsAlpha), frozenset(tokenizer.IsLower)
    tokenizer.isanyalpha = lambda text: not letters.isdisjoint(text)
    tokenizer.islower = lower.issuperset
    tokenizer.NONBREAKING_PREFIXES = frozenset(tokenizer.NONBREAKING_PREFIXES)
    tokenizer.NUMERIC_ONLY_PREFIXES = frozenset(tokenizer.NUMERIC_ONLY_PREFIXES)
    return tokenizer


# The space before the first word.


class PrefixSpace(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="prefix_space"):
    """Put a space before the first word, so that it is tokenised like any other (slow RoBERTa and GPT-2)."""

    def bind(self) -> Transform:
        """Return the function that does it."""
        return lambda text: " " + text


# Words set apart by single spaces, as BERTweet and the small BlenderBot do it.


_WORD = re.compile(r"\S+\n?")  # a line break belongs to the word before it

_UNICODE_SPACE = r"\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
"""White space by the Unicode property; Python counts four control characters more."""

_DIALOGUE_WORD = re.compile(rf"[^{_UNICODE_SPACE}]+\n?")
_DIALOGUE_MARK = re.compile(r"([.,!?()])")
_DIALOGUE_SPACES = re.compile(rf"[{_UNICODE_SPACE}]{{2,}}")


class SeparateWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="separate_words"):
    """Take what stands between white space for words (BERTweet)."""

    def bind(self) -> Transform:
        """Return the function that does it."""
        return lambda text: " ".join(_WORD.findall(text))


class SeparateDialogue(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="separate_dialogue"):
    """Put spaces before marks and around apostrophes, name line breaks, and lower words (small BlenderBot)."""

    def bind(self) -> Transform:
        """Return the function that does it."""
        return lambda text: " ".join(part for word in _DIALOGUE_WORD.findall(text) for part in _dialogue_parts(word))


def _dialogue_parts(word: str) -> list[str]:
    spaced = _DIALOGUE_MARK.sub(r" \1", word).replace("'", " ' ")
    spaced = _DIALOGUE_SPACES.sub(" ", spaced).replace("\n", " __newln__")
    return [part.lower() for part in spaced.split(" ") if part]


# Words that a WordPiece vocabulary lacks and that must not be taken apart.


class UnknownWords(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag="unknown_words"):
    """Put the unknown token in the place of certain words (`never_split` of BERT's tokenizer)."""

    words: list[str]
    unknown_token: str

    def bind(self) -> Transform:
        """Return the function that does it."""
        unknown = frozenset(self.words)

        def apply(text: str) -> str:
            words = text.split()
            if unknown.isdisjoint(words):
                return text
            return " ".join(self.unknown_token if word in unknown else word for word in words)

        return apply


Normalizer = (
    BasicTokenize | CleanQuotes | Lowercase | Moses | PrefixSpace | SeparateDialogue | SeparateWords | UnknownWords
)


def bind_normalizers(normalizers: Sequence[Normalizer]) -> Callable[[str], str]:
    """Return one function that applies all normalizers in their order."""
    transforms = [normalizer.bind() for normalizer in normalizers]

    def apply(text: str) -> str:
        for transform in transforms:
            text = transform(text)
        return text

    return apply
