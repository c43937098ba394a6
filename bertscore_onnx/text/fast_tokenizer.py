"""The tokenizers that `tokenizer.json` says all of, and what runs such a file."""

from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from tokenizers import Encoding, Tokenizer
from tokenizers.models import Unigram

SEQUENTIAL_TEXTS = 4
"""Up to this many texts are encoded one after the other: that takes less than waking the package's threads."""

MAX_ADDED_TOKEN = 1000
"""Characters of a token that is added to a vocabulary. Such a one takes 0.02 s to load; one of 16,000 took 4.5 s."""


class FastTokenizer:
    """A tokenizer that `tokenizer.json` says all of."""

    def __init__(self, path: Path, max_length: int | None, *, in_parallel: bool = True) -> None:
        """Load a tokenizer.

        Args:
            path: a `tokenizer.json`.
            max_length: the most tokens of a text, special tokens included; None for no bound.
            in_parallel: whether the tokenizers package may use its threads.
        """
        self._tokenizer = load_tokenizer_json(path)
        self._in_parallel = in_parallel
        is_special = np.array(self._tokenizer.encode("a").special_tokens_mask)
        num_prefix = int(is_special.argmin())
        self.num_special_tokens: tuple[int, int] = (num_prefix, int(is_special[num_prefix:].sum()))
        if max_length is not None:
            self._tokenizer.enable_truncation(max_length)

    def __call__(self, texts: Sequence[str]) -> list[tuple[list[int], bool]]:
        """Return the ids of each text, special tokens included, and whether the text was cut."""
        found = encode_batch(self._tokenizer, texts, in_parallel=self._in_parallel)
        return [(encoding.ids, bool(encoding.overflowing)) for encoding in found]


def encode_batch(
    tokenizer: Tokenizer, texts: Sequence[str], *, in_parallel: bool = True, add_special_tokens: bool = True
) -> list[Encoding]:
    """Encode texts: in the package's threads, which are as many as the CPUs; or one after the other, as a few are."""
    step = len(texts) if in_parallel and len(texts) > SEQUENTIAL_TEXTS else 1
    return [
        encoding
        for start in range(0, len(texts), step)
        for encoding in tokenizer.encode_batch_fast(texts[start : start + step], add_special_tokens=add_special_tokens)
    ]


def load_tokenizer_json(path: Path) -> Tokenizer:
    """Load a `tokenizer.json` that neither pads nor cuts."""
    checked = msgspec.json.decode(path.read_bytes(), type=_CheckedFile)
    _check_charsmaps(checked.normalizer)
    _check_added_tokens(checked.added_tokens)
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    if isinstance(tokenizer.model, Unigram):
        tokenizer.model = _exact_unigram(path)
    return tokenizer


class _AddedToken(msgspec.Struct):
    content: str


class _CheckedFile(msgspec.Struct):
    normalizer: Any = None
    added_tokens: list[_AddedToken] = []


def _check_added_tokens(tokens: list[_AddedToken]) -> None:
    """Check that no token is longer than any has reason to be: the package takes time with the square of it."""
    longest = max((len(token.content) for token in tokens), default=0)
    if longest > MAX_ADDED_TOKEN:
        raise ValueError(f"it adds a token of {longest:,} characters, and at most {MAX_ADDED_TOKEN:,} are read")


def _check_charsmaps(node: Any) -> None:
    """Check that the tables of normalizers are as long as they say; the package would abort for want of memory.

    A table, in base64, begins with the number of bytes of its first part.
    """
    if isinstance(node, dict) and isinstance(table := node.get("precompiled_charsmap"), str):
        size = int.from_bytes(b64decode(table[:8])[:4], "little")
        if size > len(table):
            raise ValueError(f"a precompiled_charsmap of {len(table):,} characters says that it has {size:,} bytes")
    if isinstance(node, dict | list):
        for below in node.values() if isinstance(node, dict) else node:
            _check_charsmaps(below)


class _UnigramModel(msgspec.Struct):
    vocab: list[tuple[str, float]]
    unk_id: int | None = None
    byte_fallback: bool = False


class _UnigramFile(msgspec.Struct):
    model: _UnigramModel


def _exact_unigram(path: Path) -> Unigram:
    """Load the model of a `tokenizer.json` with the very scores that it states.

    The package itself reads about one score in four a unit in the last place off, which decides between cuts of equal
    score; some scores it reads from no decimal at all.
    """
    model = msgspec.json.decode(path.read_bytes(), type=_UnigramFile).model
    return Unigram(model.vocab, model.unk_id, model.byte_fallback)
