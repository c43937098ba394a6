"""Reads a fast tokenizer from its files, without transformers."""

import json
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer
from tokenizers.processors import TemplateProcessing

from bertscore_onnx.errors import ExportError, one_line
from bertscore_onnx.text.spec import TOKENIZER_FILE
from bertscore_onnx.text.tokenizer_json import TokenizerJson
from bertscore_onnx_export.published.config import PublishedConfig
from bertscore_onnx_export.verify.sample_texts import EDGE_CASE_TEXTS, GOLDEN_PAIRS, PLAIN_TEXTS

_SETTINGS = ("tokenizer_config.json", "special_tokens_map.json")

_UNSTATED_LENGTH = 1_000_000
"""Longer maximums count as none (transformers writes 1e30)."""

_FRAMED = ("RemBertTokenizer", "RemBertTokenizerFast")
"""Classes that put [CLS] and [SEP] around a text.

They do even if tokenizer.json does not, as transformers 5 writes it.
"""


@dataclass(frozen=True, slots=True)
class PublishedTokenizer:
    """A tokenizer, with the facts of it that a manifest holds."""

    file: TokenizerJson
    content: str
    """The tokenizer as JSON, without truncation."""

    max_length: int | None
    pad_id: int
    zero_weight_ids: list[int]
    empty_ids: list[int]

    def ids(self, text: str) -> list[int]:
        """Return the ids of a text, stripped and truncated."""
        text = text.strip()
        if not text:
            return list(self.empty_ids)
        self.file.check(text)
        return list(self.file.tokenizer.encode(text).ids)


def read_tokenizer(folder: Path, config: PublishedConfig) -> PublishedTokenizer:
    """Read a tokenizer.

    Raise an ExportError if its file or the roles of its special tokens are missing.
    """
    if not (folder / TOKENIZER_FILE).is_file():
        raise ExportError(
            f"{folder} has no {TOKENIZER_FILE}, which a graph needs. Copy it there from the "
            "model's repository."
        )
    try:
        file = TokenizerJson(folder / TOKENIZER_FILE)
        settings: dict[str, Any] = {}
        for name in _SETTINGS:
            if (folder / name).is_file():
                settings = json.loads((folder / name).read_text(encoding="utf-8")) | settings
    except Exception as error:  # the `tokenizers` package raises nothing narrower
        raise ExportError(
            f"Cannot use the tokenizer of {folder}: {one_line(error).rstrip('.')}. Correct it, or "
            "download it again."
        ) from error
    tokenizer = file.tokenizer
    roles = {}
    for role in ("cls", "sep", "pad", "eos", "unk"):
        roles[role] = _id_of(tokenizer, settings.get(f"{role}_token"))
    if all(index is None for index in roles.values()):
        raise ExportError(
            f"{folder} does not say which tokens are special. Copy tokenizer_config.json or "
            "special_tokens_map.json there from the model's repository."
        )
    if settings.get("tokenizer_class") in _FRAMED and not tokenizer.encode("").ids:
        _frame(tokenizer, settings, roles)
    lengths = []
    for length in (settings.get("model_max_length"), config.max_tokens):
        if isinstance(length, int | float) and 1 <= length < _UNSTATED_LENGTH:
            lengths.append(length)
    max_length = int(min(lengths)) if lengths else None
    pad = roles["pad"]
    if pad is None:
        pad = config.pad_token_id or 0
    empty = list(tokenizer.encode("").ids) or [pad]
    framing = {roles["cls"], roles["sep"]}
    zero = sorted(index for index in framing if index is not None)
    content = tokenizer.to_str(pretty=True)
    if max_length is not None:
        tokenizer.enable_truncation(max_length)
    read = PublishedTokenizer(file, content, max_length, pad, zero, empty)
    _check_ids(read, config.vocab_size, folder)
    for text in (*PLAIN_TEXTS, *EDGE_CASE_TEXTS):  # an endless loop ends here
        read.ids(text)
    return read


def _check_ids(tokenizer: PublishedTokenizer, vocab_size: int, folder: Path) -> None:
    """Raise an ExportError if the model lacks ids of special tokens or of ordinary texts."""
    ids = [tokenizer.pad_id, *tokenizer.zero_weight_ids, *tokenizer.empty_ids]
    for text in chain(*GOLDEN_PAIRS):
        ids += tokenizer.ids(text)
    largest = max(ids)
    if largest >= vocab_size:
        raise ExportError(
            f"The tokenizer of {folder} gives the id {largest}, and by config.json the model has "
            f"ids from 0 to {vocab_size - 1}. Copy both from the model's repository."
        )


def _frame(tokenizer: Tokenizer, settings: dict[str, Any], roles: dict[str, int | None]) -> None:
    """Let a tokenizer put [CLS] and [SEP] around a text."""
    names = {role: _name_of(settings.get(f"{role}_token")) for role in ("cls", "sep")}
    tokenizer.post_processor = TemplateProcessing(
        single=[f"{names['cls']}:0", "$A:0", f"{names['sep']}:0"],
        special_tokens=[(name, roles[role]) for role, name in names.items()],
    )


def _id_of(tokenizer: Tokenizer, token: Any) -> int | None:
    name = _name_of(token)
    return None if name is None else tokenizer.token_to_id(name)


def _name_of(token: Any) -> str | None:
    """Return the text of a special token in the settings.

    There it may have further fields.
    """
    name = token.get("content") if isinstance(token, dict) else token
    return name if isinstance(name, str) else None
