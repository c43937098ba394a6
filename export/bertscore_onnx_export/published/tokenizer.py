"""Reads a fast tokenizer from its files, without transformers."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from bertscore_onnx.errors import ExportError
from bertscore_onnx.text.spec import TOKENIZER_FILE

_SETTINGS = ("tokenizer_config.json", "special_tokens_map.json")

_UNSTATED_LENGTH = 1_000_000
"""Longer maximums count as none (transformers writes 1e30)."""


@dataclass(frozen=True, slots=True)
class PublishedTokenizer:
    """A tokenizer, with the facts of it that a manifest holds."""

    tokenizer: Tokenizer
    max_length: int | None
    pad_id: int
    zero_weight_ids: list[int]
    empty_ids: list[int]

    def ids(self, text: str) -> list[int]:
        """Return the ids of a text, stripped and truncated."""
        encoded = self.tokenizer.encode(text.strip()).ids if text.strip() else self.empty_ids
        return list(encoded)


def read_tokenizer(folder: Path, config: Mapping[str, Any], max_tokens: int | None) -> PublishedTokenizer:
    """Read a tokenizer; raise an ExportError if its file or the roles of its special tokens are missing."""
    if not (folder / TOKENIZER_FILE).is_file():
        raise ExportError(
            f"{folder} has no {TOKENIZER_FILE}, which a graph needs. Copy it there from the model's repository."
        )
    try:
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
        settings: dict[str, Any] = {}
        for name in _SETTINGS:
            if (folder / name).is_file():
                settings = json.loads((folder / name).read_text(encoding="utf-8")) | settings
    except Exception as error:  # the `tokenizers` package raises nothing narrower
        raise ExportError(f"Cannot read the tokenizer of {folder}: {error}. Download it again.") from error
    roles = {role: _id_of(tokenizer, settings.get(f"{role}_token")) for role in ("cls", "sep", "pad", "eos", "unk")}
    if all(index is None for index in roles.values()):
        raise ExportError(
            f"{folder} does not say which tokens are special. Copy tokenizer_config.json or special_tokens_map.json "
            "there from the model's repository."
        )
    stated = settings.get("model_max_length")
    lengths = [
        length for length in (stated, max_tokens) if isinstance(length, int | float) and 0 < length < _UNSTATED_LENGTH
    ]
    max_length = int(min(lengths)) if lengths else None
    tokenizer.no_padding()
    tokenizer.no_truncation()
    pad = roles["pad"] if roles["pad"] is not None else int(config.get("pad_token_id") or 0)
    empty = list(tokenizer.encode("").ids) or [pad]
    zero = sorted({index for role in ("cls", "sep") if (index := roles[role]) is not None})
    if max_length is not None:
        tokenizer.enable_truncation(max_length)
    return PublishedTokenizer(tokenizer, max_length, pad, zero, empty)


def _id_of(tokenizer: Tokenizer, token: Any) -> int | None:
    name = token.get("content") if isinstance(token, dict) else token
    index: int | None = tokenizer.token_to_id(name) if isinstance(name, str) else None
    return index
