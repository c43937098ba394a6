"""What the manifest says of a slow tokenizer beside `tokenizer.json`; `slow_tokenizer.py` does it."""

from typing import Annotated

import msgspec

from bertscore_onnx.text.normalizers import Normalizer
from bertscore_onnx.text.special_tokens import Id, SpecialToken

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
