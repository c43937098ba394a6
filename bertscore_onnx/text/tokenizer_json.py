"""Encodes texts with a `tokenizer.json`, within a budget.

The `tokenizers` package follows such a file, or a `tokenizer.slow.json`, without bounds, in native
code that nothing can interrupt. So everything in it that multiplies work or memory is checked
before it is loaded.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import Unigram, WordLevel

from bertscore_onnx.errors import TokenizerError
from bertscore_onnx.text.budget import (
    LONGEST_STRING,
    MAX_ADDED,
    Budget,
    check_number,
    pattern_of,
    stages_of,
)

MAX_FILE_BYTES = 64_000_000
"""Twice as many as any published tokenizer has."""

MAX_TOKENS = 1_000_000
"""The most tokens, the most merges, and the largest id: four times as many as mT5 has."""

MAX_TRIE_BYTES = 3_000_000
"""The most bytes of the tokens of a Unigram model, common beginnings counted once.

Each takes 330 bytes of memory.
"""

LONGEST_WORD = 100
"""The most characters of a word that WordPiece cuts, whose time grows with the square.

All published models have this number. It is also the most of a Unigram model's token, and of names
and marks that are written for every token.
"""

MAX_SPECIAL = 1_000
"""The most tokens around a text."""

SEQUENTIAL_TEXTS = 4
"""Up to this many texts are encoded one after the other.

This is faster than waking the package's threads.
"""


class _Model(msgspec.Struct):
    vocab: dict[str, int] | list[tuple[str, float]] = []
    merges: list[msgspec.Raw] = []
    unk_token: str | None = None
    unk_id: int | None = None
    byte_fallback: bool = False
    continuing_subword_prefix: str | None = None
    end_of_word_suffix: str | None = None
    max_input_chars_per_word: int | None = None
    dropout: float | None = None


class _Content(msgspec.Struct):
    """The parts of a `tokenizer.json` that are checked, or read more exactly than there."""

    model: _Model = msgspec.field(default_factory=_Model)
    normalizer: Any = None
    pre_tokenizer: Any = None
    post_processor: Any = None
    decoder: Any = None
    added_tokens: list[dict[str, Any]] = []


class TokenizerJson:
    """A loaded `tokenizer.json`, without padding and truncation.

    Threads may share it.
    """

    def __init__(self, path: Path) -> None:
        """Load a file; raise a ValueError if it exceeds the budget."""
        content, self._budget = check_tokenizer_json(path)
        model = content.model
        self._path = path
        self.tokenizer: Tokenizer = Tokenizer.from_file(str(path))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        if isinstance(self.tokenizer.model, Unigram) and isinstance(model.vocab, list):
            # The package reads about one score in four wrong in the last bit, which decides between
            # segmentations of equal score; some of its scores correspond to no decimal at all. So
            # the model is built from the stated scores, after the package's has left the memory.
            self.tokenizer.model = WordLevel()
            self.tokenizer.model = Unigram(model.vocab, model.unk_id, model.byte_fallback)
        self.unknown_id: int | None = model.unk_id
        """The id of what the vocabulary lacks; None if it lacks nothing."""
        if model.unk_token is not None:
            self.unknown_id = self.tokenizer.token_to_id(model.unk_token)

    def check(self, text: str) -> None:
        """Raise a TokenizerError if encoding a text would exceed the budget."""
        try:
            self._budget.check(text)
        except ValueError as error:
            raise over_budget(self._path, text, error) from error

    def encode(
        self,
        texts: Sequence[str],
        *,
        in_parallel: bool = True,
        add_special_tokens: bool = True,
    ) -> Iterator[list[int]]:
        """Yield the ids of each text.

        Texts are encoded in the package's threads, one per CPU, unless there are only a few. A
        TokenizerError is raised if a text exceeds the budget.
        """
        for text in texts:
            self.check(text)
        together = in_parallel and len(texts) > SEQUENTIAL_TEXTS
        encode_group = partial(
            self.tokenizer.encode_batch_fast,
            add_special_tokens=add_special_tokens,
        )
        for group in self._groups(texts, together=together):
            for encoding in encode_group(group):
                yield encoding.ids

    def _groups(self, texts: Sequence[str], *, together: bool) -> Iterator[list[str]]:
        """Yield texts in groups of a few million characters, however they grow."""
        group: list[str] = []
        size = 0.0
        for text in texts:
            grown = min(len(text) * self._budget.growth, len(text) + MAX_ADDED)
            if group and (not together or size + grown > 4 * MAX_ADDED):
                yield group
                group = []
                size = 0.0
            group.append(text)
            size += grown
        if group:
            yield group


def check_tokenizer_json(path: Path) -> tuple[_Content, Budget]:
    """Read a `tokenizer.json` without loading it.

    Raises a ValueError if it exceeds the budget.
    """
    check_size(path)
    content = msgspec.json.decode(path.read_bytes(), type=_Content)
    _check_model(content.model)
    _check_post_processor(content.post_processor)
    for stage in stages_of(content.decoder, "decoders"):
        pattern_of(stage)
    budget = Budget(content.normalizer, content.pre_tokenizer)
    _check_added(content.added_tokens, budget)
    return content, budget


def over_budget(path: Path, text: str, reason: ValueError) -> TokenizerError:
    """Return the error for a text that a tokenizer's file must not encode."""
    return TokenizerError(
        f"{path} cannot encode a text of {len(text):,} characters: {reason}. Shorten the text.",
    )


def check_size(path: Path) -> None:
    """Raise a ValueError if a file is larger than that of any tokenizer."""
    size = path.stat().st_size
    if size > MAX_FILE_BYTES:
        raise ValueError(f"it has {size:,} bytes, and at most {MAX_FILE_BYTES:,} are read")


def _check_model(model: _Model) -> None:
    if model.dropout:
        raise ValueError(
            f'its "dropout" is {model.dropout}, so that the tokens of a text would be drawn at '
            "random in every call; set it to null in the model's tokenizer.json"
        )
    check_number("it has", len(model.vocab), "tokens", MAX_TOKENS)
    check_number("it has", len(model.merges), "merges", MAX_TOKENS)
    lengths = {
        "word": model.max_input_chars_per_word or 0,
        "unknown token": len(model.unk_token or ""),
        "prefix": len(model.continuing_subword_prefix or ""),
        "suffix": len(model.end_of_word_suffix or ""),
    }
    if isinstance(model.vocab, dict):
        _check_ids(model.vocab.values())
        if len(set(model.vocab.values())) < len(model.vocab):
            raise ValueError("two of its tokens have the same id")
        _check_lengths(lengths)
        return

    # Only a Unigram model has a list: its tokens become a trie.
    tokens = [token for token, _ in model.vocab]
    lengths["token"] = max(map(len, tokens), default=0)
    _check_lengths(lengths)
    check_number("its tokens have", _trie_bytes(tokens), "bytes", MAX_TRIE_BYTES)


def _check_lengths(lengths: Mapping[str, int]) -> None:
    for what, length in lengths.items():
        check_number(f"its longest {what} has", length, "characters", LONGEST_WORD)


def _check_ids(ids: Iterable[int]) -> None:
    largest = max(ids, default=0)
    if largest > MAX_TOKENS:
        raise ValueError(f"it has the id {largest}, and at most {MAX_TOKENS:,} is accepted")


def _trie_bytes(tokens: Sequence[str]) -> int:
    """Return the bytes of tokens; of many, common beginnings are counted once."""
    encoded = sorted(token.encode() for token in tokens)
    size = sum(map(len, encoded))
    if size <= MAX_TRIE_BYTES:
        return size
    for start in range(0, len(encoded), 10_000):
        rows = np.array(encoded[start : start + 10_001])  # (tokens,), filled up with zeros
        matrix = rows.view(np.uint8).reshape(len(rows), -1)  # (tokens, bytes)
        is_beginning = np.logical_and.accumulate(matrix[1:] == matrix[:-1], axis=1)
        is_common = is_beginning & (matrix[1:] != 0)
        size -= int(is_common.sum())
    return size


def _check_post_processor(processor: Any) -> None:
    """Raise a ValueError unless a post-processor writes a text once, with some tokens around it."""
    number = 0
    for stage in stages_of(processor, "processors"):
        special = stage.get("special_tokens")
        if stage["type"] != "TemplateProcessing":
            continue
        num_texts = 0
        for piece in stage.get("single") or ():
            num_texts += "Sequence" in piece
            if "SpecialToken" not in piece:
                continue
            name = piece["SpecialToken"]["id"]
            if isinstance(special, dict) and name in special:
                number += len(special[name]["ids"])
        if num_texts > 1:
            raise ValueError("it writes a text several times")
    check_number("it puts", number, "tokens around a text", MAX_SPECIAL)


def _check_added(tokens: Sequence[dict[str, Any]], budget: Budget) -> None:
    """Raise a ValueError if added tokens are long, before or after the package normalises them."""
    _check_ids(token["id"] for token in tokens)
    _check_longest((token["content"] for token in tokens), "")
    total = sum(len(token["content"]) for token in tokens)
    check_number("it adds tokens of", total, "characters", MAX_ADDED)
    normalized = [token["content"] for token in tokens if token.get("normalized")]
    budget.check("".join(normalized))
    _check_longest(map(budget.normalized, normalized), " once normalised")


def _check_longest(added: Iterable[str], state: str) -> None:
    longest = max(map(len, added), default=0)
    check_number("it adds a token of", longest, f"characters{state}", LONGEST_STRING)
