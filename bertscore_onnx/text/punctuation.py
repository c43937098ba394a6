"""What counts as punctuation in the tokenizers of transformers, by Python's Unicode tables."""

import itertools
import unicodedata
from collections.abc import Iterator


def is_punctuation(character: str) -> bool:
    """All ASCII but letters, digits, spaces and controls, and what Unicode calls punctuation."""
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
