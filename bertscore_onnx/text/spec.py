"""What the manifest says of a slow tokenizer beside `tokenizer.json`; `slow_tokenizer.py` does it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import msgspec

from bertscore_onnx.text.normalizers import Normalizer, any_of

# Special tokens that stand literally in a text, and splitting it at them.


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


TOKENIZER_FILE = "tokenizer.json"
"""The file of the `tokenizers` package in a bundle."""

SENTENCEPIECE_FILE = "spiece.model"
"""The file of SentencePiece in a bundle that needs it."""


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
    """What happens to each segment between special tokens, in this order."""

    sentencepiece: SentencePieceSpec | None
    """How texts are encoded with `spiece.model`; None where `tokenizer.json` does it."""

    vocab_size: Id | None
    """How many ids the model has, where `tokenizer.json` has further ones, which count as unknown; else None."""

    unknown_id: Id

    prefix_ids: list[Id]
    """The ids in front of every text."""

    suffix_ids: list[Id]
    """The ids at the end of every text."""

    suffix_once: bool
    """Whether a text that ends with them by itself gets them no second time (T5)."""
