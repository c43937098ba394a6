"""Special tokens that stand literally in a text, and splitting it at them."""

from collections.abc import Callable, Sequence
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


def bind_split(special_tokens: Sequence[SpecialToken]) -> Callable[[str], list[Part]]:
    """Return the function that splits a text at its special tokens; it leaves no empty segment."""
    if not special_tokens:
        return lambda text: [text] if text else []
    by_content = {token.content: token for token in special_tokens}
    pattern = any_of(list(by_content))

    def split(text: str) -> list[Part]:
        parts = pattern.split(text)  # special tokens stand at the odd places
        if len(parts) == 1:
            return [text] if text else []
        for place in range(1, len(parts), 2):
            token = by_content[parts[place]]
            if token.rstrip:
                parts[place + 1] = parts[place + 1].lstrip()
            if token.lstrip:
                parts[place - 1] = parts[place - 1].rstrip()
        found: list[Part] = [by_content[part].id if place % 2 else part for place, part in enumerate(parts)]
        return [part for part in found if part != ""]

    return split
