"""Converts a tokenizer of transformers into a file, and a spec for a slow one, that give the same
ids.
"""

import json
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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
    spec = None
    if original.is_fast:
        tokenizer = original.backend_tokenizer
    else:
        converted = convert(original)
        tokenizer, spec = converted.tokenizer, _spec_of(original, converted)
        if converted.sentencepiece is not None:
            (folder / SENTENCEPIECE_FILE).write_bytes(converted.sentencepiece_model)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    content = _as_in_memory(tokenizer) if original.is_fast else tokenizer.to_str(pretty=True)
    (folder / tokenizer_file(spec)).write_text(content, encoding="utf-8")
    max_length = _max_length(original, max_positions)
    empty_ids = original_ids(original, "", max_length)
    written = TextTokenizer(folder, spec=spec, max_length=max_length, empty_ids=empty_ids)
    if different := different_texts(original, written, max_length, PLAIN_TEXTS):
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
    """Return a tokenizer as JSON that cuts added tokens out of a text as the one in memory does.

    If they were added before the normaliser was set (BigBird), that one cuts them out first,
    whatever it writes.
    """
    content = tokenizer.to_str(pretty=True)
    read, parts = Tokenizer.from_str(content), json.loads(content)
    probes = {token["content"]: f"a   {token['content']} a" for token in parts["added_tokens"]}
    wrong = {
        token
        for token, probe in probes.items()
        if read.encode(probe).ids != tokenizer.encode(probe).ids
    }
    for token in parts["added_tokens"]:
        token["normalized"] ^= token["content"] in wrong
    return json.dumps(parts, ensure_ascii=False, indent=2) if wrong else content


def original_ids(
    tokenizer: PreTrainedTokenizerBase, text: str, max_length: int | None
) -> list[int]:
    """Encode a text as bert-score does (`utils.py:sent_encode`)."""
    text = text.strip()
    if not text:
        return list(tokenizer.build_inputs_with_special_tokens([])) or [tokenizer.pad_token_id]
    options = {"add_prefix_space": True} if takes_prefix_space(tokenizer) else {}
    bound = {"max_length": max_length, "truncation": True} if max_length else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(tokenizer.encode(text, add_special_tokens=True, **bound, **options))


def different_texts(
    original: PreTrainedTokenizerBase,
    written: TextTokenizer,
    max_length: int | None,
    texts: Sequence[str],
) -> list[str]:
    """Return the texts that get other ids from a bundle's tokenizer than from one of
    transformers.
    """
    return [
        text
        for text, ids in zip(texts, written(texts)[0], strict=True)
        if ids.tolist() != original_ids(original, text, max_length)
    ]


_MARK = -1
"""An id that no token has."""


def _spec_of(slow: PreTrainedTokenizer, converted: Converted) -> TokenizerSpec:
    """Return the spec of a conversion, with the parts that all kinds of slow tokenizers have in
    common.
    """
    framed = slow.build_inputs_with_special_tokens([_MARK])
    index = framed.index(_MARK)
    prefix_ids, suffix_ids = framed[:index], framed[index + 1 :]
    return TokenizerSpec(
        normalizers=[*converted.normalizers, *_lowercase(slow)],
        special_tokens=[
            SpecialToken(
                content=token.content,
                id=slow.convert_tokens_to_ids(token.content),
                lstrip=token.lstrip,
                rstrip=token.rstrip,
                single_word=token.single_word,
            )
            for token in slow.added_tokens_decoder.values()
        ],
        pre_tokenizers=converted.pre_tokenizers,
        sentencepiece=converted.sentencepiece,
        vocab_size=converted.vocab_size,
        unknown_id=slow.unk_token_id,
        prefix_ids=prefix_ids,
        suffix_ids=suffix_ids,
        suffix_once=bool(suffix_ids) and _ends_once(slow, suffix_ids),
    )


def _lowercase(slow: PreTrainedTokenizer) -> list[Lowercase]:
    """Return the lowercasing of `PreTrainedTokenizer.tokenize`, if this tokenizer uses it."""
    if not getattr(slow, "do_lower_case", False):
        return []
    ordinary = [
        token.content
        for token in slow.added_tokens_decoder.values()
        if not token.special and token.normalized
    ]
    return [Lowercase(never_lower=[*slow.all_special_tokens, *ordinary])]


def _ends_once(slow: PreTrainedTokenizer, suffix_ids: list[int]) -> bool:
    """Return whether the suffix is left out if a text already ends with it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(slow.build_inputs_with_special_tokens([_MARK, *suffix_ids]))[1:] == suffix_ids


def _max_length(tokenizer: PreTrainedTokenizerBase, max_positions: int | None) -> int | None:
    """Return the smaller of the tokenizer's bound and the model's.

    None without both.
    """
    stated = tokenizer.model_max_length if tokenizer.model_max_length < UNSTATED_LENGTH else None
    return min((bound for bound in (stated, max_positions) if bound is not None), default=None)
