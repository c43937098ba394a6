"""Special tokens that stand literally in a text: they are cut out before anything else sees it."""

from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec

from bertscore_onnx.text.characters import alternatives

Id = Annotated[int, msgspec.Meta(ge=0)]
Piece = str | int
"""A stretch of text, or the id of a special token."""


class SpecialToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A string that is one token wherever it stands in a text."""

    content: str
    id: Id

    lstrip: bool = False
    """Whether it takes the white space on its left."""

    rstrip: bool = False
    """Whether it takes the white space on its right."""


def bind_cut(special_tokens: Sequence[SpecialToken]) -> Callable[[str], list[Piece]]:
    """Return the function that cuts the special tokens out of a text; it leaves no empty stretch."""
    if not special_tokens:
        return lambda text: [text] if text else []
    by_content = {token.content: token for token in special_tokens}
    pattern = alternatives(list(by_content))

    def cut(text: str) -> list[Piece]:
        pieces = pattern.split(text)
        if len(pieces) == 1:
            return [text] if text else []
        for place in range(1, len(pieces), 2):
            token = by_content[pieces[place]]
            if token.rstrip:
                pieces[place + 1] = pieces[place + 1].lstrip()
            if token.lstrip:
                pieces[place - 1] = pieces[place - 1].rstrip()
        found: list[Piece] = [by_content[piece].id if place % 2 else piece for place, piece in enumerate(pieces)]
        return [piece for piece in found if piece != ""]

    return cut
