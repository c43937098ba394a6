"""Strings of characters of all kinds."""

import random

_RANGES = [(0x20, 0x7F), (0, 0x20), (0x80, 0x250), (0x300, 0x370), (0x600, 0x700), (0x2000, 0x2100), (0x4E00, 0x9FFF)]
_MORE = [(0xD800, 0xE000), (0xE000, 0xF8FF), (0xFE00, 0xFE10), (0x1F300, 0x1FAFF), (0xE0000, 0xE0080), (0, 0x110000)]


_POOL = 40
"""Characters of each range, of which a string is made."""


def odd_string(draw: random.Random) -> str:
    """Return a string of characters from a few ranges, halves of surrogate pairs among them."""
    length = draw.choice([0, 1, 3, 20, 20, 100, 1000])
    ranges = draw.choices([*_RANGES, *_MORE], k=draw.randint(1, 3))
    pool = [number for start, end in ranges for number in draw.choices(range(start, end), k=_POOL)]
    return "".join(map(chr, draw.choices(pool, k=length)))
