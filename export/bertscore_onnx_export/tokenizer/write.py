"""Converts a tokenizer of transformers into files with the same ids.

A slow one is converted into a file and a spec.
"""

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizer, PreTrainedTokenizerBase

from bertscore_onnx.errors import VerificationError
from bertscore_onnx.text.normalizers import Lowercase
from bertscore_onnx.text.spec import SENTENCEPIECE_FILE, SpecialToken, TokenizerSpec, tokenizer_file
from bertscore_onnx.text.tokenizer import TextTokenizer
from bertscore_onnx_export.tokenizer.conversions import Converted, convert, takes_prefix_space
from bertscore_onnx_export.verify.sample_texts import EDGE_CASE_TEXTS, PLAIN_TEXTS

UNSTATED_LENGTH = 1_000_000
"""Longer maximums count as none (transformers writes 1e30)."""


@dataclass(frozen=True, slots=True)
class TokenizerFacts:
    """The facts about a tokenizer in the manifest."""

    spec: TokenizerSpec | None
    """The rules that `tokenizer.slow.json` cannot express; None in the fast mode."""

    max_length: int | None
    pad_id: int
    empty_ids: list[int]
    zero_weight_ids: list[int]
    differences: int
    """The number of `EDGE_CASE_TEXTS` that get other ids than from the original."""


def write_tokenizer(
    original: PreTrainedTokenizerBase, max_positions: int | None, folder: Path
) -> TokenizerFacts:
    """Write the tokenizer's files into a folder.

    Raise a VerificationError if plain texts get other ids from them.
    """
    if original.is_fast:
        spec = None
        tokenizer = original.backend_tokenizer
    else:
        converted = convert(original)
        spec = _spec_of(original, converted)
        tokenizer = converted.tokenizer
        if converted.sentencepiece is not None:
            (folder / SENTENCEPIECE_FILE).write_bytes(converted.sentencepiece_model)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    content = _as_in_memory(tokenizer) if original.is_fast else tokenizer.to_str(pretty=True)
    (folder / tokenizer_file(spec)).write_text(content, encoding="utf-8")
    max_length = _max_length(original, max_positions)
    empty_ids = original_ids(original, "", max_length)

    # What is compared is what a bundle's user gets: the file, read again.
    written = TextTokenizer(folder, spec=spec, max_length=max_length, empty_ids=empty_ids)
    different = different_texts(original, written, max_length, PLAIN_TEXTS)
    if different:
        raise VerificationError(
            f"The exported tokenizer gives other ids than the {type(original).__name__} of "
            f"{original.name_or_path} for {different[0]!r}."
        )
    return TokenizerFacts(
        spec=spec,
        max_length=max_length,
        pad_id=original.pad_token_id or 0,
        empty_ids=empty_ids,
        zero_weight_ids=sorted({original.cls_token_id, original.sep_token_id} - {None}),
        differences=len(different_texts(original, written, max_length, EDGE_CASE_TEXTS)),
    )


def _as_in_memory(tokenizer: Tokenizer) -> str:
    """Return a tokenizer as JSON that cuts out added tokens as in memory.

    If they were added before the normaliser was set (BigBird), the tokenizer in memory cuts them
    out of a text first, whatever it writes.
    """
    content = tokenizer.to_str(pretty=True)
    read = Tokenizer.from_str(content)
    fields = json.loads(content)
    is_changed = False
    for token in fields["added_tokens"]:
        probe = f"a   {token['content']} a"
        if read.encode(probe).ids != tokenizer.encode(probe).ids:
            token["normalized"] = not token["normalized"]
            is_changed = True
    return json.dumps(fields, ensure_ascii=False, indent=2) if is_changed else content


def original_ids(
    tokenizer: PreTrainedTokenizerBase, text: str, max_length: int | None
) -> list[int]:
    """Encode a text as bert-score does (`utils.py:sent_encode`)."""
    text = text.strip()
    if not text:
        return list(tokenizer.build_inputs_with_special_tokens([])) or [tokenizer.pad_token_id]
    options: dict[str, Any] = {}
    if max_length:
        options |= {"max_length": max_length, "truncation": True}
    if takes_prefix_space(tokenizer):
        options["add_prefix_space"] = True
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(tokenizer.encode(text, add_special_tokens=True, **options))


def different_texts(
    original: PreTrainedTokenizerBase,
    written: TextTokenizer,
    max_length: int | None,
    texts: Sequence[str],
) -> list[str]:
    """Return the texts that get other ids from a bundle's tokenizer.

    The original ids are those of a tokenizer of transformers.
    """
    different = []
    for text, ids in zip(texts, written(texts)[0], strict=True):
        if ids.tolist() != original_ids(original, text, max_length):
            different.append(text)
    return different


_MARK = -1
"""An id that no token has."""


def _spec_of(slow: PreTrainedTokenizer, converted: Converted) -> TokenizerSpec:
    """Return the spec of a conversion, with the parts that all kinds of slow tokenizers share."""
    framed = slow.build_inputs_with_special_tokens([_MARK])
    index = framed.index(_MARK)
    prefix_ids = framed[:index]
    suffix_ids = framed[index + 1 :]
    special_tokens = []
    for token in slow.added_tokens_decoder.values():
        special_token = SpecialToken(
            content=token.content,
            id=slow.convert_tokens_to_ids(token.content),
            lstrip=token.lstrip,
            rstrip=token.rstrip,
            single_word=token.single_word,
        )
        special_tokens.append(special_token)
    return TokenizerSpec(
        normalizers=[*converted.normalizers, *_lowercase(slow)],
        special_tokens=special_tokens,
        pre_tokenizers=converted.pre_tokenizers,
        sentencepiece=converted.sentencepiece,
        vocab_size=converted.vocab_size,
        unknown_id=slow.unk_token_id,
        prefix_ids=prefix_ids,
        suffix_ids=suffix_ids,
        suffix_once=bool(suffix_ids) and _ends_once(slow, suffix_ids),
    )


def _lowercase(slow: PreTrainedTokenizer) -> list[Lowercase]:
    """Return the lowercasing of `PreTrainedTokenizer.tokenize`, if it is used."""
    if not getattr(slow, "do_lower_case", False):
        return []
    kept = list(slow.all_special_tokens)
    for token in slow.added_tokens_decoder.values():
        if not token.special and token.normalized:
            kept.append(token.content)
    return [Lowercase(never_lower=kept)]


def _ends_once(slow: PreTrainedTokenizer, suffix_ids: list[int]) -> bool:
    """Return whether the suffix is left out if a text already ends with it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        framed = slow.build_inputs_with_special_tokens([_MARK, *suffix_ids])
    return list(framed)[1:] == suffix_ids


def _max_length(tokenizer: PreTrainedTokenizerBase, max_positions: int | None) -> int | None:
    """Return the smaller of the tokenizer's and the model's length limit; None without either."""
    bounds = []
    if tokenizer.model_max_length < UNSTATED_LENGTH:
        bounds.append(tokenizer.model_max_length)
    if max_positions is not None:
        bounds.append(max_positions)
    return min(bounds, default=None)
