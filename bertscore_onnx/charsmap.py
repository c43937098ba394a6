"""The character table of a SentencePiece model: which strings it replaces, and by what.

The table is a double array of the Darts kind (Yata's darts-clone) over UTF-8, followed by the replacements, each ended
by a zero byte. SentencePiece looks for the longest string that begins at a place.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

import numpy as np

_HAS_LEAF = 1 << 8
_IS_VALUE = 1 << 31


class Charsmap:
    """A bound character table."""

    def __init__(self, replacements: Mapping[str, str], *, untouched: Iterable[str] = ()) -> None:
        """Prepare a table.

        Args:
            replacements: what each string becomes.
            untouched: strings that stay as they are, and go before longer ones that are replaced.
        """
        untouched = set(untouched)
        rules = {key: value for key, value in replacements.items() if key not in untouched}
        self._rules = rules | {key: key for key in untouched}
        self._alone = {ord(key): value for key, value in self._rules.items() if len(key) == 1}
        by_first: dict[str, list[str]] = defaultdict(list)
        for key in sorted(self._rules, key=lambda key: (key in untouched, len(key)), reverse=True):
            by_first[key[0]].append(key)
        self._by_first = dict(by_first)
        followers = sorted({one for key in self._rules for one in key[1:]})
        self._follower = re.compile("[" + _as_ranges(map(ord, followers)) + "]") if followers else None

    def __call__(self, text: str) -> str:
        """Replace what the table names."""
        if self._follower is None or not self._follower.search(text):
            return text.translate(self._alone)  # only single characters can match
        return "".join(self._replaced(text))

    def _replaced(self, text: str) -> Iterator[str]:
        place = 0
        while place < len(text):
            for key in self._by_first.get(text[place], ()):
                if text.startswith(key, place):
                    yield self._rules[key]
                    place += len(key)
                    break
            else:
                yield text[place]
                place += 1


def read_charsmap(blob: bytes) -> dict[str, str]:
    """Return all that a compiled table replaces, and by what.

    Raises:
        ValueError: it is not one.
    """
    if not blob:
        return {}
    size = int.from_bytes(blob[:4], "little")
    units = np.frombuffer(blob[4 : 4 + size], dtype="<u4").astype(np.int64)
    values = blob[4 + size :]
    offsets = (units >> 10) << ((units & (1 << 9)) >> 6)
    labels = np.where(units & _IS_VALUE, 0, units & 0xFF)
    children = _children(labels)
    replacements = {}
    waiting = [(0, b"")]
    while waiting:
        unit, key = waiting.pop()
        block = unit ^ int(offsets[unit])
        if units[unit] & _HAS_LEAF:
            start = int(units[block]) & ~_IS_VALUE
            replacements[key] = values[start : values.index(b"\0", start)]
        waiting += [(block ^ label, key + bytes([label])) for label in children.get(block, ())]
    return {key.decode(): value.decode() for key, value in replacements.items()}


def _children(labels: "np.ndarray[tuple[int], np.dtype[np.int64]]") -> dict[int, list[int]]:
    """Return the labels below each block; a unit stands in its block at the place of its label."""
    children: dict[int, list[int]] = defaultdict(list)
    for place, label in enumerate(labels.tolist()):
        if label:
            children[place ^ label].append(label)
    return children


def _as_ranges(code_points: Iterable[int]) -> str:
    """Return the inside of a regular expression's class; a few ranges match faster than many characters."""
    found = list(code_points)
    gaps = [0, *(place for place, (one, two) in enumerate(pairwise(found), 1) if two > one + 1), len(found)]
    runs = [(found[start], found[end - 1]) for start, end in pairwise(gaps)]
    return "".join(f"{re.escape(chr(first))}-{re.escape(chr(last))}" for first, last in runs)
