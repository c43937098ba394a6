"""The texts to score: read from files or made up, and texts of given lengths made from them. All
deterministic.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from pathlib import Path

_COMMON = """
the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which one
you were all her she there would their we him been has when who will no more if out so up said what its about than
into them can only other time new some could these two may first then do any like my now over such our man me even
most made after also well must years way back day people work life world house water school river city market letter
music doctor garden winter morning children government language history company problem question small large long
early young old open strong quiet bright heavy simple different important national political found called began turned
asked looked wrote learned moved carried offered reached remained walked answered
"""
WORDS = _COMMON.split()  # roughly the most common first

_SYLLABLES = "ba ko ri ta mel son der vin gar lo pe shu nak tor el ami zon qui fra wy"
SYLLABLES = _SYLLABLES.split()
# words per text: a median of 16, a long tail
MEAN_LOG_LENGTH, SPREAD_LOG_LENGTH, LONGEST = 2.75, 0.55, 80


def read_pairs(candidates: Path, references: Path) -> tuple[list[str], list[str]]:
    """Read two files with one text per line; line i of one belongs to line i of the other."""
    sides = [
        path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        for path in (candidates, references)
    ]
    if len(sides[0]) != len(sides[1]):
        raise SystemExit(
            f"{candidates} has {len(sides[0])} lines, {references} has {len(sides[1])}; expected "
            "as many."
        )
    return sides[0], sides[1]


def synthetic_pairs(count: int) -> tuple[list[str], list[str]]:
    """Make up references, and candidates that omit or replace some of their words."""
    draw = random.Random(0)
    references = [_synthetic_text(draw) for _ in range(count)]
    return [altered(text, draw) for text in references], references


def altered(text: str, draw: random.Random) -> str:
    """Omit a tenth of the words of a text and replace a fifth."""
    kept = [
        _synthetic_word(draw) if draw.random() < 0.2 else word
        for word in text.split()
        if draw.random() >= 0.1
    ]
    return " ".join(kept) or text


def distinct_pairs(count: int) -> Iterator[tuple[str, str]]:
    """Yield pairs of made-up texts of 3 to 12 words, all of them different."""
    draw = random.Random(0)
    for number in range(count):
        yield _numbered_text(2 * number, draw), _numbered_text(2 * number + 1, draw)


def of_lengths(
    texts: Sequence[str], lengths: Sequence[int], count_tokens: Callable[[list[str]], list[int]]
) -> list[str]:
    """Make texts with these numbers of tokens, or one less, from the words of other texts.

    `count_tokens` counts the tokens of texts; it and `lengths` include two special tokens.
    """
    words = [word for text in texts for word in text.split()]
    distinct = list(dict.fromkeys(words))
    sizes = {word: count - 2 for word, count in zip(distinct, count_tokens(distinct), strict=True)}
    short = [word for word in words if 1 <= sizes[word] <= 2]  # so that every length can be reached
    if not short:
        raise SystemExit(
            "The texts have no words of one or two tokens, which texts of given lengths are made "
            "from."
        )
    supply = cycle(short)
    made = []
    for length in lengths:
        left, chosen = length - 2, []
        while left >= 2:
            word = next(supply)
            chosen.append(word)
            left -= sizes[word]
        made.append(" ".join(chosen))
    return made


def _synthetic_text(draw: random.Random) -> str:
    count = min(max(round(draw.lognormvariate(MEAN_LOG_LENGTH, SPREAD_LOG_LENGTH)), 1), LONGEST)
    return " ".join(_synthetic_word(draw) for _ in range(count)).capitalize() + "."


def _synthetic_word(draw: random.Random) -> str:
    if draw.random() < 0.1:
        return "".join(draw.choices(SYLLABLES, k=draw.randint(2, 3)))
    return WORDS[int(len(WORDS) * draw.random() ** 2)]  # common words come most often


def _numbered_text(number: int, draw: random.Random) -> str:
    """Write a number with words as digits, the least significant first, and append other words."""
    digits: list[str] = []
    while number or len(digits) < 3:
        number, digit = divmod(number, len(WORDS))
        digits.append(WORDS[digit])
    filling = " ".join(draw.choices(SYLLABLES, k=draw.randint(0, 9)))
    return " ".join(digits) + (" " + filling if filling else "")
