"""Texts to token ids, the ids that the model's own tokenizer gives.

`tokenizer.json` expresses most of a tokenizer of transformers; the rest is the spec in the bundle's manifest. As in
bert-score (`utils.py:sent_encode`) white space at both ends goes first, and what exceeds the maximum length is cut off
at the right, unless long texts are to stay whole.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer
from tokenizers.models import Unigram

from bertscore_onnx.errors import BertScoreOnnxError, InputError, TokenizerError
from bertscore_onnx.text.sentencepiece import VERSION, SentencePieceEncoder
from bertscore_onnx.text.spec import SENTENCEPIECE_FILE, TOKENIZER_FILE, TokenizerSpec, bind_cut, bind_normalizers
from bertscore_onnx.text.word_cache import WordEncoder, has_words

LongText = Literal["truncate", "window"]
"""What becomes of a text that is longer than the model's maximum."""

MEMORY_GUARD = 8192
"""The most tokens of a text for a model without a bound of its own, since attention grows with the square: at this
length one layer's weights take 268 MB for each head, 4.3 GB for 16 heads."""

MAX_TOKENIZER_BYTES = 256_000_000
"""Far more than any has: 17 MB for a vocabulary of 250,000 pieces."""

ALONE = 4
"""Up to so many texts are looked up one after the other: that takes less than to wake the package's threads."""

_SURROGATE = re.compile("[\ud800-\udfff]")


class TextTokenizer:
    """The tokenizer of one bundle; its settings never change, so threads may share it."""

    def __init__(
        self,
        folder: Path,
        *,
        spec: TokenizerSpec | None,
        max_length: int | None,
        empty_ids: Sequence[int],
        long_text: LongText = "truncate",
    ) -> None:
        """Load a tokenizer.

        Args:
            folder: a bundle, of which the tokenizer's files are read.
            spec: what `tokenizer.json` cannot express; None where it says all.
            max_length: the most tokens of a text, special tokens included; None for no bound but `MEMORY_GUARD`.
            empty_ids: the ids of an empty text.
            long_text: whether longer texts are cut, or keep all their ids, to be encoded in windows.

        Raises:
            TokenizerError: the file is not a tokenizer, or larger than any.
            InputError: the maximum leaves no room for a window.
        """
        sentencepiece = spec is not None and spec.sentencepiece is not None
        path = folder / (SENTENCEPIECE_FILE if sentencepiece else TOKENIZER_FILE)
        mode = "fast" if spec is None else "slow"
        self.description = f"{mode}+sentencepiece-{VERSION}" if sentencepiece else mode
        """Whose ids these are, and the version of the library that decides between equally good cuts."""
        self.max_length = MEMORY_GUARD if max_length is None else max_length
        """The most tokens that the model may get at a time."""
        self.long_text = long_text
        bound = self.max_length if long_text == "truncate" else None
        try:
            _check_size(path)
            self._encode = _FastEncoder(path, bound) if spec is None else _SlowEncoder(path, spec, bound)
        except BertScoreOnnxError:
            raise
        except Exception as error:  # the package raises nothing more special
            raise TokenizerError(f"{path} is not a tokenizer: {error}. Export the model again.") from error
        self._empty_ids = list(empty_ids)
        self.frame = self._encode.frame
        """How many special tokens stand in front of every text, and how many behind."""
        if long_text == "window" and self.max_length <= sum(self.frame):
            raise InputError(
                f'long_text is "window", and a window of {self.max_length} tokens, the model\'s maximum, has room for '
                f'nothing but its {sum(self.frame)} special tokens. Use "truncate".'
            )

    def __call__(self, texts: Sequence[str]) -> tuple[list[NDArray[np.int64]], int]:
        """Tokenise texts.

        Args:
            texts: any strings; a lone surrogate, which no encoding can express, counts as U+FFFD.

        Returns:
            For each text its ids, special tokens included, (tokens,), at least one; and how many texts were cut.
        """
        stripped = [_SURROGATE.sub("\ufffd", text.strip()) for text in texts]
        found = iter(self._encode([text for text in stripped if text]))
        ids, num_cut = [], 0
        for text in stripped:
            one, is_cut = next(found) if text else (self._empty_ids, False)
            ids.append(np.array(one, dtype=np.int64))
            num_cut += is_cut
        return ids, num_cut


def check_long_text(long_text: str) -> None:
    """Raise an InputError where this is no way to treat a long text."""
    if long_text not in get_args(LongText):
        raise InputError(f'long_text is {long_text!r}; expected "truncate" or "window".')


class _FastEncoder:
    """A tokenizer that `tokenizer.json` says all of."""

    def __init__(self, path: Path, max_length: int | None) -> None:
        self._tokenizer = _load(path)
        if isinstance(self._tokenizer.model, Unigram):
            self._tokenizer.model = _exact_unigram(path)
        is_special = np.array(self._tokenizer.encode("a").special_tokens_mask)
        num_prefix = int(is_special.argmin())
        self.frame = (num_prefix, int(is_special[num_prefix:].sum()))
        if max_length is not None:
            self._tokenizer.enable_truncation(max_length)

    def __call__(self, texts: Sequence[str]) -> list[tuple[list[int], bool]]:
        found = _look_up(self._tokenizer, texts)
        return [(encoding.ids, bool(encoding.overflowing)) for encoding in found]


class _SlowEncoder:
    """A tokenizer that has a spec."""

    def __init__(self, path: Path, spec: TokenizerSpec, max_length: int | None) -> None:
        self._prepare_text = bind_normalizers(spec.normalizers)
        self._cut = bind_cut(spec.special_tokens)
        self._prepare_segment = bind_normalizers(spec.pre_tokenizers)
        self._look_up = _segment_encoder(path, spec)
        self._unlisted_from, self._unknown_id = spec.unlisted_from, spec.unknown_id
        self._prefix_ids, self._suffix_ids, self._suffix_once = spec.prefix_ids, spec.suffix_ids, spec.suffix_once
        self.frame = (len(spec.prefix_ids), len(spec.suffix_ids))
        self._room = None if max_length is None else max(max_length - sum(self.frame), 0)

    def __call__(self, texts: Sequence[str]) -> list[tuple[list[int], bool]]:
        cut = [self._cut(self._prepare_text(text)) for text in texts]
        segments = [self._prepare_segment(piece) for pieces in cut for piece in pieces if isinstance(piece, str)]
        found = map(self._listed, self._look_up(segments))
        return [
            self._framed([token for piece in pieces for token in ([piece] if isinstance(piece, int) else next(found))])
            for pieces in cut
        ]

    def _listed(self, ids: list[int]) -> list[int]:
        """Take those that the model has not for unknown."""
        if (bound := self._unlisted_from) is None:
            return ids
        return [one if one < bound else self._unknown_id for one in ids]

    def _framed(self, ids: list[int]) -> tuple[list[int], bool]:
        """Cut ids to their length and put the special tokens around them; tell whether they were cut."""
        kept = ids[: self._room]
        is_cut = len(kept) < len(ids)
        if self._suffix_once and kept[len(kept) - len(self._suffix_ids) :] == self._suffix_ids:
            return self._prefix_ids + kept, is_cut
        return self._prefix_ids + kept + self._suffix_ids, is_cut


def _segment_encoder(path: Path, spec: TokenizerSpec) -> Callable[[list[str]], Iterable[list[int]]]:
    """Return what looks up stretches of text, without special tokens."""
    if spec.sentencepiece is not None:
        return SentencePieceEncoder(path, spec.sentencepiece)
    tokenizer = _load(path)
    if has_words(tokenizer):
        return partial(map, WordEncoder(tokenizer))
    return lambda segments: [found.ids for found in _look_up(tokenizer, segments, add_special_tokens=False)]


def _check_size(path: Path) -> None:
    if (size := path.stat().st_size) > MAX_TOKENIZER_BYTES:
        raise ValueError(f"it has {size:,} bytes, and at most {MAX_TOKENIZER_BYTES:,} are read")


def _look_up(tokenizer: Tokenizer, texts: Sequence[str], *, add_special_tokens: bool = True) -> list[Encoding]:
    step = 1 if len(texts) <= ALONE else len(texts)
    return [
        encoding
        for start in range(0, len(texts), step)
        for encoding in tokenizer.encode_batch_fast(texts[start : start + step], add_special_tokens=add_special_tokens)
    ]


def _load(path: Path) -> Tokenizer:
    """Load a `tokenizer.json` that neither pads nor cuts."""
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


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
