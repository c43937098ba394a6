"""The tokenizer spec of the manifest.

It says how a slow tokenizer works beyond what its own file expresses.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import msgspec

from bertscore_onnx.text.normalizers import Normalizer, any_of

TOKENIZER_FILE = "tokenizer.json"
"""The file of the `tokenizers` package in a bundle in the fast mode, and in the folder of a
model.
"""

SLOW_TOKENIZER_FILE = "tokenizer.slow.json"
"""The same in the slow mode: with a name of its own, since it gives wrong ids without the tokenizer
spec.
"""

SENTENCEPIECE_FILE = "spiece.model"
"""The file of SentencePiece in a bundle whose tokenizer is based on it."""

Id = Annotated[int, msgspec.Meta(ge=0, lt=2**31)]

SpecialIds = Annotated[list[Id], msgspec.Meta(max_length=1_000)]
"""The ids of the special tokens on one side of every text."""

Normalizers = Annotated[list[Normalizer], msgspec.Meta(max_length=8)]
"""More than twice as many as any tokenizer has."""


class SpecialToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A string that is one token wherever it stands in a text."""

    content: str
    id: Id

    lstrip: bool = False
    """Whether it absorbs the white space on its left."""

    rstrip: bool = False
    """Whether it absorbs the white space on its right."""

    single_word: bool = False
    """Whether it counts only between spaces, or at an end of the text."""


class SentencePieceSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The rules for encoding a text with `spiece.model` that the file lacks."""

    id_runs: Annotated[list[tuple[Id, Id]], msgspec.Meta(min_length=1)]
    """The ids of the pieces, in runs of consecutive ids: for each run the index and the id of its
    first piece.
    """

    split_number_comma: bool
    """Whether a piece such as `9,` is encoded again without its comma (ALBERT, XLNet)."""

    split_punctuation: bool
    """Whether each punctuation mark is encoded by itself (an option of DeBERTa)."""


class TokenizerSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The rules of a slow tokenizer that `tokenizer.slow.json` lacks."""

    normalizers: Normalizers
    """The changes to a whole text, in this order."""

    special_tokens: list[SpecialToken]

    pre_tokenizers: Normalizers
    """The changes to each segment between special tokens, in this order."""

    sentencepiece: SentencePieceSpec | None
    """The rules for `spiece.model`; None if `tokenizer.slow.json` encodes the texts."""

    vocab_size: Id | None
    """The number of ids of the model, if `tokenizer.slow.json` has more, which count as unknown;
    otherwise None.
    """

    unknown_id: Id

    prefix_ids: SpecialIds
    """The ids in front of every text."""

    suffix_ids: SpecialIds
    """The ids at the end of every text."""

    suffix_once: bool
    """Whether the suffix is left out if a text already ends with it (T5)."""


def tokenizer_file(spec: TokenizerSpec | None) -> str:
    """Return the name of the file of the `tokenizers` package in a bundle."""
    return TOKENIZER_FILE if spec is None else SLOW_TOKENIZER_FILE


Part = str | int
"""A segment of text, or the id of a special token."""


def compile_split(special_tokens: Sequence[SpecialToken]) -> Callable[[str], list[Part]]:
    """Return a function that splits a text at its special tokens.

    It leaves out empty segments.
    """
    if not special_tokens:
        return lambda text: [text] if text else []
    by_content = {token.content: token for token in special_tokens}
    pattern = any_of(list(by_content))

    def split(text: str) -> list[Part]:
        pieces = list(filter(None, pattern.split(text)))
        if len(pieces) > 1:
            _join_white_space_and_words(pieces, by_content)
        parts: list[Part] = []
        for piece in filter(None, pieces):
            parts.append(by_content[piece].id if piece in by_content else piece)
        return parts

    return split


def _join_white_space_and_words(pieces: list[str], by_content: Mapping[str, SpecialToken]) -> None:
    """Strip the neighbours of special tokens, and merge tokens into them.

    A token that must be a word but is not is merged into a neighbour.

    The tokens are handled one after the other, as in `PreTrainedTokenizer.tokenize` of
    transformers: the next token sees text that was merged, but not white space that was stripped.
    """
    for index, piece in enumerate(pieces):
        token = by_content.get(piece)
        if token is None:
            continue
        left = pieces[index - 1] if index > 0 else ""
        right = pieces[index + 1] if index + 1 < len(pieces) else ""
        if token.rstrip and right:
            pieces[index + 1] = right.lstrip()
        if token.lstrip and left:
            pieces[index - 1] = left.rstrip()
        if token.single_word and left and not left.endswith(" "):
            pieces[index - 1] += piece
            pieces[index] = ""
        elif token.single_word and right and not right.startswith(" "):
            pieces[index + 1] = piece + pieces[index + 1]
            pieces[index] = ""
