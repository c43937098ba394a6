"""Texts to token ids, the ids that the model's own tokenizer gives.

`tokenizer.json` expresses most of a tokenizer of transformers; the rest is the spec in the bundle's manifest. As in
bert-score (`utils.py:sent_encode`) white space at both ends goes first, and what exceeds the maximum length is cut off
at the right, unless long texts are to stay whole.
"""

import re
from base64 import b64decode
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
import numpy as np
from numpy.typing import NDArray
from tokenizers import Encoding, Tokenizer
from tokenizers.models import Model, Unigram
from tokenizers.pre_tokenizers import CharDelimiterSplit, WhitespaceSplit

from bertscore_onnx.concurrency.exit_gate import exit_gate
from bertscore_onnx.errors import BertScoreOnnxError, InputError, TokenizerError, one_line
from bertscore_onnx.text.normalizers import bind_normalizers
from bertscore_onnx.text.spec import SENTENCEPIECE_FILE, TOKENIZER_FILE, TokenizerSpec, bind_split

# The tokenizers that `tokenizer.json` says all of, and what runs such a file.


SEQUENTIAL_TEXTS = 4
"""Up to this many texts are encoded one after the other: that takes less than waking the package's threads."""

MAX_ADDED_TOKEN = 1000
"""Characters of a token that is added to a vocabulary. Such a one takes 0.02 s to load; one of 16,000 took 4.5 s."""


class FastTokenizer:
    """A tokenizer that `tokenizer.json` says all of."""

    def __init__(self, path: Path, max_length: int | None, *, in_parallel: bool = True) -> None:
        """Load a tokenizer."""
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


# Caches the ids of words, for tokenizers that look at one word at a time: few words of a text are new.


CACHE_SIZE = 32_768
"""How many words are cached, those used last; usual ones take 6 MB."""

MAX_WORD_LENGTH = 32
"""Longer words are not cached, and are encoded without the GIL: one may be as long as a text."""


def has_words(tokenizer: Tokenizer) -> bool:
    """Tell whether a tokenizer splits texts at white space and encodes what is between, and does nothing else."""
    splits = isinstance(tokenizer.pre_tokenizer, WhitespaceSplit | CharDelimiterSplit)
    return splits and tokenizer.normalizer is None and not tokenizer.get_added_tokens_decoder()


class WordEncoder:
    """A tokenizer that `has_words`; threads may share it."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Take its model, and how it splits texts."""
        self._separator = getattr(tokenizer.pre_tokenizer, "delimiter", None)
        self._tokenizer = tokenizer
        self._cached = lru_cache(CACHE_SIZE)(partial(_encode, tokenizer.model))

    def __call__(self, text: str) -> list[int]:
        """Return the ids of a text, without special tokens."""
        ids: list[int] = []
        for word in text.split(self._separator):
            ids += self._cached(word) if len(word) <= MAX_WORD_LENGTH else self._encode_long(word)
        return ids

    def _encode_long(self, word: str) -> list[int]:
        [found] = encode_batch(self._tokenizer, [word], add_special_tokens=False)
        ids: list[int] = found.ids
        return ids


def _encode(model: Model, word: str) -> tuple[int, ...]:
    return tuple(token.id for token in model.tokenize(word))


# The order of a slow tokenizer of transformers. The normalizers change the whole text; then literal special tokens
# are cut out of it; each segment between them goes through the pre-tokenizers and becomes ids; last come the special
# tokens around every text.


class SlowTokenizer:
    """A tokenizer that has a spec."""

    def __init__(self, path: Path, spec: TokenizerSpec, max_length: int | None, *, in_parallel: bool = True) -> None:
        """Load a tokenizer."""
        self._normalize = bind_normalizers(spec.normalizers)
        self._split = bind_split(spec.special_tokens)
        self._pre_tokenize = bind_normalizers(spec.pre_tokenizers)
        self._encode_segments = _segment_encoder(path, spec, in_parallel)
        self._spec = spec
        self.num_special_tokens: tuple[int, int] = (len(spec.prefix_ids), len(spec.suffix_ids))
        self._room = None if max_length is None else max(max_length - sum(self.num_special_tokens), 0)

    def __call__(self, texts: Sequence[str]) -> list[tuple[list[int], bool]]:
        """Return the ids of each text, special tokens included, and whether the text was cut."""
        split = [self._split(self._normalize(text)) for text in texts]
        segments = [self._pre_tokenize(part) for parts in split for part in parts if isinstance(part, str)]
        encoded = map(self._mark_unknown, self._encode_segments(segments))
        ids = [
            [token for part in parts for token in ([part] if isinstance(part, int) else next(encoded))]
            for parts in split
        ]
        return [self._add_special_tokens(ids_of_text) for ids_of_text in ids]

    def _mark_unknown(self, ids: list[int]) -> list[int]:
        """Replace the ids that only `tokenizer.json` has."""
        if (size := self._spec.vocab_size) is None:
            return ids
        return [token if token < size else self._spec.unknown_id for token in ids]

    def _add_special_tokens(self, ids: list[int]) -> tuple[list[int], bool]:
        """Cut ids to their length and put the special tokens around them; tell whether they were cut."""
        prefix, suffix = self._spec.prefix_ids, self._spec.suffix_ids
        kept = ids[: self._room]
        is_cut = len(kept) < len(ids)
        if self._spec.suffix_once and kept[len(kept) - len(suffix) :] == suffix:
            return prefix + kept, is_cut
        return prefix + kept + suffix, is_cut


def _segment_encoder(path: Path, spec: TokenizerSpec, in_parallel: bool) -> Callable[[list[str]], Iterable[list[int]]]:
    """Return what encodes the segments between special tokens."""
    if spec.sentencepiece is not None:
        from bertscore_onnx.text.sentencepiece import SentencePieceEncoder  # costs memory and is needed only here

        return SentencePieceEncoder(path, spec.sentencepiece)
    tokenizer = load_tokenizer_json(path)
    if has_words(tokenizer):
        return partial(map, WordEncoder(tokenizer))
    encode = partial(encode_batch, tokenizer, in_parallel=in_parallel, add_special_tokens=False)
    return lambda segments: [found.ids for found in encode(segments)]


LongText = Literal["truncate", "window"]
"""What becomes of a text that is longer than the model's maximum."""

DEFAULT_MAX_LENGTH = 8192
"""The most tokens of a text for a model without a bound of its own, since attention grows with the square: at this
length one layer's weights take 268 MB for each head, 4.3 GB for 16 heads."""

MAX_TOKENIZER_BYTES = 256_000_000
"""Far more than any has: 17 MB for a vocabulary of 250,000 pieces."""

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
        in_parallel: bool = True,
    ) -> None:
        """Load a tokenizer."""
        sentencepiece = spec is not None and spec.sentencepiece is not None
        path = folder / (SENTENCEPIECE_FILE if sentencepiece else TOKENIZER_FILE)
        mode = "fast" if spec is None else "slow"
        self.description: str = f"{mode}+sentencepiece-{version('sentencepiece')}" if sentencepiece else mode
        """Whose ids these are, and the version of the library that decides between equally good cuts."""
        self.max_length: int = DEFAULT_MAX_LENGTH if max_length is None else max_length
        """The most tokens that the model may get at a time."""
        self.long_text: LongText = long_text
        bound = self.max_length if long_text == "truncate" else None
        self._path = path
        with _tokenizer_errors(path, "is not a tokenizer"):
            _check_size(path)
            self._encode = (
                FastTokenizer(path, bound, in_parallel=in_parallel)
                if spec is None
                else SlowTokenizer(path, spec, bound, in_parallel=in_parallel)
            )
        self._empty_ids = list(empty_ids)
        self.num_special_tokens: tuple[int, int] = self._encode.num_special_tokens
        """How many special tokens stand in front of every text, and how many behind."""

    def __call__(self, texts: Sequence[str]) -> tuple[list[NDArray[np.int64]], int]:
        """Tokenise texts."""
        stripped = [_SURROGATE.sub("\ufffd", text.strip()) for text in texts]
        with exit_gate, _tokenizer_errors(self._path, "fails on a text"):
            found = iter(self._encode([text for text in stripped if text]))
        ids, num_cut = [], 0
        for text in stripped:
            one, is_cut = next(found) if text else (self._empty_ids, False)
            ids.append(np.array(one or self._empty_ids, dtype=np.int64))
            num_cut += is_cut
        return ids, num_cut


def check_long_text(long_text: str) -> None:
    """Raise an InputError where this is no way to treat a long text."""
    if long_text not in get_args(LongText):
        raise InputError(f'long_text is {long_text!r}; expected "truncate" or "window".')


@contextmanager
def _tokenizer_errors(path: Path, what: str) -> Iterator[None]:
    """Turn what the libraries of tokenizers raise into errors of ours."""
    try:
        yield
    except (BertScoreOnnxError, MemoryError):
        raise
    except BaseException as error:
        # the libraries raise nothing more special than Exception; a panic of Rust is not even that
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise TokenizerError(f"{path} {what}: {one_line(error)}. Export the model again.") from error


def _check_size(path: Path) -> None:
    if (size := path.stat().st_size) > MAX_TOKENIZER_BYTES:
        raise ValueError(f"it has {size:,} bytes, and at most {MAX_TOKENIZER_BYTES:,} are read")
