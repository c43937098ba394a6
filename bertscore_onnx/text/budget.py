"""The budget of what a `tokenizer.json` may do with a text.

The `tokenizers` package runs its normalizers and pre-tokenizers in native code, without bounds, and
nothing can interrupt it. So what they would do with a text is bounded before: by their types and
patterns or, if the text is too long for that, by a trial in steps.
"""

import json
import math
import re
import string
from base64 import b64decode
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from tokenizers import Regex, Tokenizer
from tokenizers.models import WordLevel
from tokenizers.normalizers import Normalizer, Replace

from bertscore_onnx.errors import shortened
from bertscore_onnx.text.normalizers import SPACE
from bertscore_onnx.text.patterns import Pattern

Stage = dict[str, Any]
"""A normalizer, pre-tokenizer, post-processor or decoder, as the file has it."""

MAX_STAGES = 20
"""The most normalizers, pre-tokenizers or post-processors, one after the other."""

LONGEST_STRING = 1_000
"""The most characters of a pattern, a replacement, or another string in them."""

MAX_ADDED = 1_000_000
"""The most bytes that the normalizers may add to a text."""

MAX_STEPS = 500_000_000
"""The most steps of searching one text for patterns, which take about three seconds."""

_SHORT = 1_000
"""The characters of a text that must be within the budget, whatever it is."""

_GROWTH = {
    "BertNormalizer": 36,
    "ByteLevel": 4,
    "Lowercase": 3,
    "NFC": 3,
    "NFD": 4,
    "NFKC": 18,
    "NFKD": 18,
    "Nmt": 1,
    "Prepend": 2,
    "Strip": 1,
    "StripAccents": 1,
}
"""The most characters that a normalizer makes of one, by its type."""

_LENGTHENING = ("ByteLevel", "Metaspace")
"""The types of pre-tokenizers that may put a character before each word."""


@dataclass(frozen=True, slots=True)
class _Normalizer:
    native: Normalizer

    growth: float
    """The most characters that it makes of one."""

    pattern: Pattern | None
    """The regular expression that it searches for."""

    def __call__(self, text: str, max_bytes: int) -> str:
        """Normalise a text.

        Raise a ValueError if it has more than `max_bytes` bytes then.
        """
        return normalized_in_pieces(self.native.normalize_str, text, self.growth, max_bytes)


class Budget:
    """The budget of one tokenizer; threads may share it."""

    def __init__(self, normalizer: Any, pre_tokenizer: Any) -> None:
        """Read two parts of a `tokenizer.json`.

        Raise a ValueError if a short text may exceed the budget.
        """
        self._normalizers = list(map(_read_normalizer, stages_of(normalizer, "normalizers")))
        self._patterns: list[Pattern] = []
        """Those that search the normalised text."""

        self._word_patterns: list[Pattern] = []
        """Those that search words to which a pre-tokenizer may have added characters."""

        num_lengthening = 0
        for stage in stages_of(pre_tokenizer, "pretokenizers"):
            num_lengthening += stage["type"] in _LENGTHENING
            pattern = pattern_of(stage)
            if pattern is None:
                continue
            # From the first lengthening stage on, words may have added characters.
            patterns = self._word_patterns if num_lengthening else self._patterns
            patterns.append(pattern)
        if num_lengthening > 1:
            raise ValueError(
                f"{num_lengthening} of its pre-tokenizers may lengthen words, and at most one is "
                "accepted"
            )
        self.growth: float = math.prod(stage.growth for stage in self._normalizers)
        """The most characters that the normalizers make of one."""

        self._untried = self._length_without_trial()
        self.check(string.printable)

    def _length_without_trial(self) -> float:
        """Return how long a text may be that is within the budget for certain."""
        patterns = []
        for normalizer in self._normalizers:
            if normalizer.pattern is not None:
                patterns.append(normalizer.pattern)
        patterns += self._patterns
        patterns += self._word_patterns

        def steps(length: int) -> float:
            return sum(pattern.steps(length, lambda _: length) for pattern in patterns)

        if steps(_SHORT) > MAX_STEPS:
            raise ValueError(
                f"its patterns may take {steps(_SHORT):.0e} steps for a text of {_SHORT:,} "
                f"characters, and at most {MAX_STEPS:.0e} are accepted"
            )
        length = _SHORT
        while patterns and steps(2 * length) <= MAX_STEPS:
            length *= 2
        searched = length / self.growth if patterns else math.inf
        normalized = MAX_ADDED / 4 / self.growth if self._normalizers else math.inf
        return min(searched, normalized)

    def normalized(self, text: str) -> str:
        """Normalise a text, which may grow by `MAX_ADDED` bytes."""
        max_bytes = len(text.encode()) + MAX_ADDED
        for normalizer in self._normalizers:
            text = normalizer(text, max_bytes)
        return text

    def check(self, text: str) -> None:
        """Raise a ValueError if a text exceeds the budget."""
        if len(text) <= self._untried:
            return
        steps = 0.0
        max_bytes = len(text.encode()) + MAX_ADDED
        for normalizer in self._normalizers:
            if normalizer.pattern is not None:
                steps += _count_steps([normalizer.pattern], text)
                _check_steps(steps)
            text = normalizer(text, max_bytes)
        steps += _count_steps(self._patterns, text)
        length = 2 * len(text.encode())
        steps += sum(pattern.steps(length, lambda _: length) for pattern in self._word_patterns)
        _check_steps(steps)


def longest_piece(growth: float) -> int:
    """Return how many characters of a text may be normalised at a time."""
    return max(int(MAX_ADDED / 4 / growth), 1)


def normalized_in_pieces(
    normalize: Callable[[str], str], text: str, growth: float, max_bytes: int
) -> str:
    """Normalise a text piece by piece.

    Raise a ValueError if it has more than `max_bytes` bytes then.

    The mark of a space counts as the space.
    """
    length = longest_piece(growth)
    pieces = []
    size = 0
    for start in range(0, len(text), length):
        piece = normalize(text[start : start + length])
        size += len(piece.replace(SPACE, " ").encode())
        if size > max_bytes:
            raise ValueError(f"its normalizers add more than {MAX_ADDED:,} bytes to a text")
        pieces.append(piece)
    return "".join(pieces)


def _check_steps(steps: float) -> None:
    if steps > MAX_STEPS:
        raise ValueError(
            f"its patterns may take {steps:.0e} steps to search a text, and at most "
            f"{MAX_STEPS:.0e} are accepted"
        )


def _count_steps(patterns: list[Pattern], text: str) -> float:
    """Return the most steps of searching a text."""
    stretch = cache(lambda source: _mean_stretch(source, text))
    return sum(pattern.steps(len(text), stretch) for pattern in patterns)


def _mean_stretch(source: str, text: str) -> float:
    """Return how many matches of a part of a pattern follow a place of the text, on average."""
    marked = Replace(Regex(source), "\0").normalize_str(text)
    lengths = map(len, re.findall("\0+", marked))
    return 1 + sum(length**2 for length in lengths) / 2 / max(len(text), 1)


def stages_of(node: Any, inner: str) -> list[Stage]:
    """Return the stages of a part of a `tokenizer.json`.

    Raise a ValueError if they are too many or too long.

    `inner` is the name of the field in which a sequence has its stages.
    """
    stages = list(_stages(node, inner))
    check_number("it has", len(stages), inner, MAX_STAGES)
    for stage in stages:
        for text in _strings({**stage, "precompiled_charsmap": None}):
            has_string = f"its {stage['type']} has a string of"
            check_number(has_string, len(text), "characters", LONGEST_STRING)
    return stages


def check_number(what: str, number: int, unit: str, most: int) -> None:
    """Raise a ValueError for a number above the most that is accepted."""
    if number > most:
        raise ValueError(f"{what} {number:,} {unit}, and at most {most:,} are accepted")


def _stages(node: Any, inner: str) -> Iterator[Stage]:
    if node is None:
        return
    kind = node.get("type") if isinstance(node, dict) else None
    if not isinstance(kind, str):
        raise ValueError(f"one of its {inner} has no type")
    if kind != "Sequence":
        yield node
        return
    for stage in node.get(inner) or ():
        yield from _stages(stage, inner)


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings in a value of JSON, names of fields included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)
    elif isinstance(value, dict):
        yield from value
        yield from _strings(list(value.values()))


def pattern_of(stage: Stage) -> Pattern | None:
    """Return the regular expression of a stage."""
    pattern = stage.get("pattern")
    if not isinstance(pattern, dict):
        return None
    if pattern.get("String") == "":
        raise ValueError(f"the pattern of its {stage['type']} is empty")
    source = pattern.get("Regex")
    return Pattern(source) if isinstance(source, str) else None


def _read_normalizer(stage: Stage) -> _Normalizer:
    kind = stage["type"]
    pattern = pattern_of(stage)
    if kind == "Replace":
        growth = _growth_by_replacement(stage, pattern)
    elif kind == "Precompiled":
        growth = growth_by_table(b64decode(stage["precompiled_charsmap"]))
    elif kind == "Prepend" and len(stage["prepend"]) > 1:
        raise ValueError(
            f"its normalizer prepends {len(stage['prepend'])} characters, and at most one is "
            "accepted"
        )
    elif kind in _GROWTH:
        growth = _GROWTH[kind]
    else:
        raise ValueError(f"it has a normalizer of the type {shortened(kind)!a}, which is not known")
    file = json.loads(Tokenizer(WordLevel()).to_str()) | {"normalizer": stage}
    return _Normalizer(Tokenizer.from_str(json.dumps(file)).normalizer, growth, pattern)


def _growth_by_replacement(stage: Stage, pattern: Pattern | None) -> float:
    """Return the most characters that a replacement makes of one."""
    replaced = len(stage["pattern"]["String"]) if pattern is None else pattern.width
    added = len(stage["content"])
    return max(added / replaced, 1) if replaced else 1 + added


def growth_by_table(table: bytes) -> int:
    """Return the bytes of the longest replacement.

    Raise a ValueError for a table that is shorter than it states.

    The table begins with the number of bytes of its first part; the package would read as many,
    and run out of memory. The replacements follow, each ended by a byte of 0.
    """
    size = int.from_bytes(table[:4], "little")
    if size > len(table):
        raise ValueError(
            f"a precompiled_charsmap of {len(table):,} bytes claims to have {size:,} bytes"
        )
    longest = max(1, *map(len, table[4 + size :].split(b"\0")))
    if longest > LONGEST_STRING:
        raise ValueError(
            f"its Precompiled has a replacement of {longest:,} bytes; expected {LONGEST_STRING:,} "
            "at most"
        )
    return longest
