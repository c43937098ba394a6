"""Special tokens that stand literally in a text, and splitting it at them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import msgspec

from bertscore_onnx.text.characters import any_of

Id = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]
Part = str | int
"""A segment of text, or the id of a special token."""


class SpecialToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A string that is one token wherever it stands in a text."""

    content: str
    id: Id

    lstrip: bool = False
    """Whether it takes the white space on its left."""

    rstrip: bool = False
    """Whether it takes the white space on its right."""

    single_word: bool = False
    """Whether it is one only where a space, or an end of the text, is on either side."""


def bind_split(special_tokens: Sequence[SpecialToken]) -> Callable[[str], list[Part]]:
    """Return the function that splits a text at its special tokens; it leaves no empty segment."""
    if not special_tokens:
        return lambda text: [text] if text else []
    by_content = {token.content: token for token in special_tokens}
    pattern = any_of(list(by_content))

    def split(text: str) -> list[Part]:
        parts = [part for part in pattern.split(text) if part]
        if len(parts) > 1:
            _join_white_space_and_words(parts, by_content)
        return [by_content[part].id if part in by_content else part for part in parts if part]

    return split


def _join_white_space_and_words(parts: list[str], by_content: Mapping[str, SpecialToken]) -> None:
    """Let special tokens take white space of their neighbours, and become part of a neighbour where they are no word.

    One after the other, as `PreTrainedTokenizer.tokenize` of transformers does: what a token has become part of counts
    for the next one, what it has taken does not.
    """
    for place, part in enumerate(parts):
        if (token := by_content.get(part)) is None:
            continue
        left = parts[place - 1] if place > 0 else ""
        right = parts[place + 1] if place + 1 < len(parts) else ""
        if token.rstrip and right:
            parts[place + 1] = right.lstrip()
        if token.lstrip and left:
            parts[place - 1] = left.rstrip()
        if token.single_word and left and not left.endswith(" "):
            parts[place - 1] += part
            parts[place] = ""
        elif token.single_word and right and not right.startswith(" "):
            parts[place + 1] = part + parts[place + 1]
            parts[place] = ""
