"""How the texts of one model become ids where `tokenizer.json` alone cannot tell: the order of a slow tokenizer.

The steps on the whole text come first; then literal special tokens are cut out of it; what stands between them goes
through the steps on segments and is looked up; last come the special tokens around every text.
"""

from collections.abc import Callable, Sequence
from typing import Annotated

import msgspec

from bertscore_onnx.text.characters import alternatives
from bertscore_onnx.text.normalizers import Normalizer

TOKENIZER_FILE = "tokenizer.json"
"""The file of the `tokenizers` package in a bundle."""

SENTENCEPIECE_FILE = "spiece.model"
"""The file of SentencePiece in a bundle that needs it."""

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


class SentencePieceSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What `spiece.model` does not say of how a text is encoded with it."""

    id_runs: Annotated[list[tuple[Id, Id]], msgspec.Meta(min_length=1)]
    """The ids of the pieces, as runs of consecutive ones: for each run the number of its first piece, and its id."""

    split_number_comma: bool
    """Whether a piece such as `9,` is encoded again without its comma (ALBERT, XLNet)."""

    split_punctuation: bool
    """Whether each punctuation mark is encoded by itself (DeBERTa, on request)."""


class TokenizerSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a bundle in the slow mode says of its tokenizer beside `tokenizer.json`."""

    normalizers: list[Normalizer]
    """What happens to a whole text, in this order."""

    special_tokens: list[SpecialToken]

    pre_tokenizers: list[Normalizer]
    """What happens to each stretch between special tokens, in this order."""

    sentencepiece: SentencePieceSpec | None
    """How texts are encoded with `spiece.model`; None where `tokenizer.json` does it."""

    unlisted_from: Id | None
    """The first id of `tokenizer.json` that the model has not; it and those after it count as unknown."""

    unknown_id: Id

    prefix_ids: list[Id]
    """The ids in front of every text."""

    suffix_ids: list[Id]
    """The ids at the end of every text."""

    suffix_once: bool
    """Whether a text that ends with them by itself gets them no second time (T5)."""


def bind_normalizers(normalizers: Sequence[Normalizer]) -> Callable[[str], str]:
    """Return one function that applies all normalizers in their order."""
    transforms = [normalizer.bind() for normalizer in normalizers]

    def apply(text: str) -> str:
        for transform in transforms:
            text = transform(text)
        return text

    return apply


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
