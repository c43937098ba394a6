"""The character table of a SentencePiece model: which strings it replaces, and by what.

The table is a double array of the Darts kind (Yata's darts-clone) over UTF-8, followed by the replacements, each ended
by a zero byte. SentencePiece takes the longest string that begins at a place. A table holds some 200,000 strings, most
of them Korean syllables letter by letter; so only the single characters are read at once, and the rest when met.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from bertscore_onnx.text.characters import alternatives

_HAS_VALUE = 1 << 8
_IS_VALUE = 1 << 31


class Charsmap:
    """A bound character table; threads may share it."""

    def __init__(self, blob: bytes, *, untouched: Iterable[str] = ()) -> None:
        """Read a table.

        Args:
            blob: the table as SentencePiece compiles it; empty for one that replaces nothing.
            untouched: strings that stay as they are, and go before any that are replaced.

        Raises:
            ValueError, IndexError: it is not a table.
        """
        untouched = set(untouched)
        self._table = _Table(blob)
        alone = self._table.below(_ROOT).items()
        self._alone = {ord(key): entry.value for key, entry in alone if entry.value is not None}
        self._alone |= {ord(key): key for key in untouched if len(key) == 1}
        firsts = {key: entry.block for key, entry in alone if entry.block is not None and key not in untouched}
        seconds = {key for block in set(firsts.values()) for key in self._table.below(block)}
        words = [key for key in untouched if len(key) > 1]
        self._untouched = alternatives(words) if words else None
        beginnings = [re.escape(word) for word in words]
        if seconds:
            beginnings.append(f"[{_as_ranges(firsts)}][{_as_ranges(seconds)}]")
        self._beginning = re.compile("|".join(beginnings)) if beginnings else None

    def __call__(self, text: str) -> str:
        """Replace what the table names."""
        if self._beginning is None:
            return text.translate(self._alone)
        done: list[str] = []
        place = 0
        while found := self._beginning.search(text, place):  # what lies between are characters by themselves
            done.append(text[place : found.start()].translate(self._alone))
            place, replaced = self._longest(text, found.start())
            done.append(replaced)
        return "".join(done) + text[place:].translate(self._alone)

    def _longest(self, text: str, start: int) -> tuple[int, str]:
        """Return where the longest string that begins at a place ends, and what it becomes."""
        if self._untouched and (found := self._untouched.match(text, start)):
            return found.end(), found.group()
        best = start + 1, text[start]
        block: int | None = _ROOT
        for place in range(start, len(text)):
            entry = None if block is None else self._table.below(block).get(text[place])
            if entry is None:
                break
            if entry.value is not None:
                best = place + 1, entry.value
            block = entry.block
        return best


_ROOT = -1


class _Entry(NamedTuple):
    """What the table knows of a string."""

    value: str | None
    """What it becomes, if anything."""

    block: int | None
    """Where the longer strings that begin with it are, if any."""


class _Table:
    """The double array, read a character at a time."""

    def __init__(self, blob: bytes) -> None:
        size = int.from_bytes(blob[:4], "little")
        units = np.frombuffer(blob[4 : 4 + size], dtype="<u4").astype(np.int64)
        self._values = blob[4 + size :]
        self._units: list[int] = units.tolist()
        self._blocks: list[int] = (np.arange(units.size) ^ ((units >> 10) << ((units & (1 << 9)) >> 6))).tolist()
        self._labels: dict[int, list[int]] = defaultdict(list)  # the bytes that may follow, by block
        for place, unit in enumerate(self._units):
            label = unit & 0xFF
            if label and unit < _IS_VALUE:
                self._labels[place ^ label].append(label)
        self._known: dict[int, dict[str, _Entry]] = {}

    def below(self, block: int) -> dict[str, _Entry]:
        """Return what may follow in a block, by its first character."""
        if block not in self._known:
            start = self._blocks[0] if block == _ROOT and self._units else block
            self._known[block] = {key.decode(): self._entry(place) for key, place in self._characters(start, b"")}
        return self._known[block]

    def _characters(self, block: int, begun: bytes) -> list[tuple[bytes, int]]:
        """Return the UTF-8 of all characters below a block, and the units they end at."""
        found: list[tuple[bytes, int]] = []
        for label in self._labels.get(block, ()):
            key, place = begun + bytes([label]), block ^ label
            if len(key) == _utf8_length(key[0]):
                found.append((key, place))
            else:
                found += self._characters(self._blocks[place], key)
        return found

    def _entry(self, place: int) -> _Entry:
        block = self._blocks[place]
        value = None
        if self._units[place] & _HAS_VALUE:
            start = self._units[block] - _IS_VALUE
            value = self._values[start : self._values.index(b"\0", start)].decode()
        return _Entry(value, block if block in self._labels else None)


def _utf8_length(first: int) -> int:
    """Return how many bytes the character that begins with a byte has."""
    return 1 if first < 0x80 else 2 if first < 0xE0 else 3 if first < 0xF0 else 4


def _as_ranges(characters: Iterable[str]) -> str:
    """Return the inside of a regular expression's class; a few ranges match faster than many characters."""
    found = sorted(map(ord, characters))
    gaps = [0, *(place for place, (one, two) in enumerate(pairwise(found), 1) if two > one + 1), len(found)]
    runs = [(found[start], found[end - 1]) for start, end in pairwise(gaps)]
    return "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in runs)
