"""What a conversion makes of a slow tokenizer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizer

from bertscore_onnx.text.normalizers import Normalizer
from bertscore_onnx.text.spec import SentencePieceSpec


@dataclass(frozen=True, slots=True)
class Converted:
    """A tokenizer without its special tokens, which the tokenizer spec handles for all kinds alike."""

    tokenizer: Tokenizer
    """What becomes `tokenizer.json`: it maps a prepared segment of text to ids, or only names them (SentencePiece)."""

    pre_tokenizers: list[Normalizer] = field(default_factory=list)
    """What happens first to a segment between special tokens."""

    normalizers: list[Normalizer] = field(default_factory=list)
    """What happens to a whole text first."""

    sentencepiece: SentencePieceSpec | None = None
    """How texts are encoded with `spiece.model`, where not by `tokenizer.json`."""

    sentencepiece_model: bytes = b""
    """What becomes `spiece.model`."""

    vocab_size: int | None = None
    """How many ids the model has, where `tokenizer.json` has further ones, which are unknown to it."""


SlowConversion = Callable[[PreTrainedTokenizer], Converted]
"""Reads a slow tokenizer's own tables."""


def without_holes(vocab: Mapping[str, int]) -> dict[str, int]:
    """Name the ids that a vocabulary skips, or the `tokenizers` package complains; no word begins with a space."""
    taken = set(vocab.values())
    return {f" {index}": index for index in range(max(taken, default=0)) if index not in taken} | dict(vocab)
