"""Turns a tokenizer of transformers into `tokenizer.json` and a spec that give the same ids."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, PreTrainedTokenizer, PreTrainedTokenizerBase

from bertscore_onnx.bundle.manifest import TOKENIZER_FILE
from bertscore_onnx.bundle.store import TokenizerMode
from bertscore_onnx.errors import ExportError, VerificationError
from bertscore_onnx.text.normalizers import Lowercase
from bertscore_onnx.text.spec import SpecialToken, TokenizerSpec
from bertscore_onnx.text.tokenizer import TextTokenizer
from bertscore_onnx_export.model.source import Source, first_line
from bertscore_onnx_export.tokenizer.conversions import Converted, convert
from bertscore_onnx_export.tokenizer.conversions.byte_bpe import takes_prefix_space
from bertscore_onnx_export.verify.sample_texts import EDGE_CASE_TEXTS, PLAIN_TEXTS

UNSTATED_LENGTH = 1_000_000
"""A tokenizer that states a longer maximum states none (transformers writes 1e30)."""


@dataclass(frozen=True, slots=True)
class TokenizerFacts:
    """What the manifest says of a tokenizer."""

    spec: TokenizerSpec | None
    """What `tokenizer.json` cannot express; None in the fast mode."""

    max_length: int | None
    pad_id: int
    empty_ids: list[int]
    zero_weight_ids: list[int]
    differences: int
    """How many of `EDGE_CASE_TEXTS` get other ids than from the original."""


def write_tokenizer(original: PreTrainedTokenizerBase, max_positions: int | None, folder: Path) -> TokenizerFacts:
    """Write `tokenizer.json` into a folder and compare it with the original.

    Args:
        original: the tokenizer of transformers to reproduce, slow or fast.
        max_positions: the most tokens the model itself can take; None for no bound.
        folder: where to write.

    Raises:
        ExportError: there is no way to convert it.
        VerificationError: the ids of plain texts differ.
    """
    spec = None
    if original.is_fast:
        tokenizer = original.backend_tokenizer
    else:
        converted = convert(original)
        tokenizer, spec = converted.tokenizer, _recipe(original, converted)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    path = folder / TOKENIZER_FILE
    tokenizer.save(str(path))
    max_length = _max_length(original, max_positions)
    empty_ids = original_ids(original, "", max_length)
    written = TextTokenizer(path, spec=spec, max_length=max_length, empty_ids=empty_ids)
    if different := _differences(original, written, max_length, PLAIN_TEXTS):
        raise VerificationError(
            f"The exported tokenizer gives other ids than the {type(original).__name__} of {original.name_or_path} for "
            f"{different[0]!r}."
        )
    return TokenizerFacts(
        spec=spec,
        max_length=max_length,
        pad_id=original.pad_token_id or 0,
        empty_ids=empty_ids,
        zero_weight_ids=sorted({original.cls_token_id, original.sep_token_id} - {None}),
        differences=len(_differences(original, written, max_length, EDGE_CASE_TEXTS)),
    )


def load_tokenizer(source: Source, mode: TokenizerMode) -> PreTrainedTokenizerBase:
    """Load the tokenizer that a bundle reproduces.

    Raises:
        ExportError: there is none of this mode.
    """
    tokenizer = _load(source, use_fast=mode == "fast")
    if tokenizer.is_fast != (mode == "fast"):
        other = "slow" if mode == "fast" else "fast"
        raise ExportError(
            f"{source.name_or_path} has no {mode} tokenizer (or lacks its vocabulary files). Export it with "
            f"`--tokenizer-mode {other}`."
        )
    return tokenizer


def original_ids(tokenizer: PreTrainedTokenizerBase, text: str, max_length: int | None) -> list[int]:
    """Encode a text as bert-score does (`utils.py:sent_encode`)."""
    text = text.strip()
    if not text:
        return list(tokenizer.build_inputs_with_special_tokens([])) or [tokenizer.pad_token_id]
    options = {"add_prefix_space": True} if takes_prefix_space(tokenizer) else {}
    bound = {"max_length": max_length, "truncation": True} if max_length else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(tokenizer.encode(text, add_special_tokens=True, **bound, **options))


def _load(source: Source, **options: Any) -> PreTrainedTokenizerBase:
    try:
        return AutoTokenizer.from_pretrained(source.name_or_path, revision=source.revision, **options)
    except (OSError, ValueError, ImportError, TypeError) as error:
        raise ExportError(f"Cannot load the tokenizer of {source.name_or_path!r}: {first_line(error)}") from error


_MARK = -1
"""An id that no token has."""


def _recipe(slow: PreTrainedTokenizer, converted: Converted) -> TokenizerSpec:
    """Add to a conversion what slow tokenizers of all kinds have in common."""
    framed = slow.build_inputs_with_special_tokens([_MARK])
    place = framed.index(_MARK)
    prefix_ids, suffix_ids = framed[:place], framed[place + 1 :]
    lowercase = getattr(slow, "do_lower_case", False)
    return TokenizerSpec(
        normalizers=[*converted.normalizers, *([Lowercase()] if lowercase else [])],
        special_tokens=[
            SpecialToken(
                content=token.content,
                id=slow.convert_tokens_to_ids(token.content),
                lstrip=token.lstrip,
                rstrip=token.rstrip,
            )
            for token in slow.added_tokens_decoder.values()
        ],
        pre_tokenizers=converted.pre_tokenizers,
        sentencepiece=converted.sentencepiece,
        unlisted_from=converted.unlisted_from,
        unknown_id=slow.unk_token_id,
        prefix_ids=prefix_ids,
        suffix_ids=suffix_ids,
        suffix_once=bool(suffix_ids) and _ends_once(slow, suffix_ids),
    )


def _ends_once(slow: PreTrainedTokenizer, suffix_ids: list[int]) -> bool:
    """Tell whether a text that ends with the last special tokens gets no second ones."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(slow.build_inputs_with_special_tokens([_MARK, *suffix_ids]))[1:] == suffix_ids


def _max_length(tokenizer: PreTrainedTokenizerBase, max_positions: int | None) -> int | None:
    """Return the tighter of the tokenizer's bound and the model's."""
    stated = tokenizer.model_max_length if tokenizer.model_max_length < UNSTATED_LENGTH else None
    return min((bound for bound in (stated, max_positions) if bound is not None), default=None)


def _differences(
    original: PreTrainedTokenizerBase, written: TextTokenizer, max_length: int | None, texts: Sequence[str]
) -> list[str]:
    return [
        text
        for text, ids in zip(texts, written(texts)[0], strict=True)
        if ids.tolist() != original_ids(original, text, max_length)
    ]
