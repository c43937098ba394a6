"""Texts to token ids: the same ids as the model's own tokenizer.

`tokenizer.json` expresses a fast tokenizer of transformers; `tokenizer.slow.json` expresses most of
a slow one, and the spec in the bundle's manifest adds the rest. As in bert-score
(`utils.py:sent_encode`), texts are stripped of surrounding white space first, and truncated at the
maximum length, unless long texts are to be encoded in windows.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import lru_cache, partial
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from tokenizers import Tokenizer
from tokenizers.models import Model
from tokenizers.pre_tokenizers import CharDelimiterSplit, WhitespaceSplit

from bertscore_onnx.arrays import Int64Array, lengths_of, starts_of
from bertscore_onnx.concurrency.native_code import native_code
from bertscore_onnx.errors import BertScoreOnnxError, TokenizerError, is_interrupt, one_line
from bertscore_onnx.text.normalizers import compile_normalizers
from bertscore_onnx.text.spec import (
    SENTENCEPIECE_FILE,
    TokenizerSpec,
    compile_split,
    tokenizer_file,
)
from bertscore_onnx.text.texts import Text, TextInContext
from bertscore_onnx.text.tokenizer_json import TokenizerJson

LongText = Literal["truncate", "window"]
"""The treatment of a text that is longer than the model's maximum."""

DEFAULT_MAX_LENGTH = 8192
"""The most tokens of a text for a model without a bound of its own.

Attention grows with the square: at this length one layer's weights take 268 MB for each head,
4.3 GB for 16 heads.
"""

CACHE_SIZE = 32_768
"""The number of recently used words that are cached; usual ones take 6 MB."""

MAX_WORD_LENGTH = 32
"""Longer words are not cached, and are encoded without the GIL.

A word may be as long as a text.
"""

_encodable = partial(re.compile("[\ud800-\udfff]").sub, "\ufffd")
"""Replaces lone surrogates."""


class TokenisedText(NamedTuple):
    """The token ids of a text."""

    ids: Int64Array
    """Special tokens included, (tokens,)."""

    is_truncated: bool = False
    """Whether the end of the text is missing, since it is longer than the model's maximum."""

    num_context: int = 0
    """The number of context tokens, which follow the special tokens in front."""

    num_tokens: int = 0
    """The tokens without the special ones around them."""

    num_unknown: int = 0
    """How many of them stand for a word, or a character, that the vocabulary lacks."""


TruncatedIds = tuple[list[int], bool]
"""The ids of a text, and whether it was truncated."""

TokenisedTexts = dict[Text, TokenisedText]
"""Texts with their token ids."""


class TextTokenizer:
    """The tokenizer of one bundle; it never changes, so threads may share it."""

    def __init__(
        self,
        folder: Path,
        *,
        spec: TokenizerSpec | None,  # None in the fast mode, where a file expresses everything
        max_length: int | None,  # in tokens, with special ones; None for DEFAULT_MAX_LENGTH
        empty_ids: Sequence[int],  # of an empty text
        long_text: LongText = "truncate",
        in_parallel: bool = True,  # in the threads of the tokenizers package, one per CPU
    ) -> None:
        """Load the tokenizer of a bundle's folder.

        Raises a TokenizerError if its file cannot be used.
        """
        path = folder / tokenizer_file(spec)
        self.description: str = "fast" if spec is None else "slow"
        """The mode, and the version of SentencePiece."""
        if spec is not None and spec.sentencepiece is not None:
            path = folder / SENTENCEPIECE_FILE
            # The library decides between equally good segmentations.
            self.description += f"+sentencepiece-{version('sentencepiece')}"
        self.max_length: int = DEFAULT_MAX_LENGTH if max_length is None else max_length
        """The most tokens that the model may receive at a time."""
        self.long_text: LongText = long_text
        self._path = path
        with tokenizer_errors(path, "is not a tokenizer"):
            self._encode: FastTokenizer | SlowTokenizer
            if spec is None:
                self._encode = FastTokenizer(path, in_parallel=in_parallel)
            else:
                self._encode = SlowTokenizer(path, spec, in_parallel=in_parallel)
        self._empty_ids = list(empty_ids)
        self.num_special_tokens: tuple[int, int] = self._encode.num_special_tokens
        """The number of special tokens in front of every text, and behind it."""
        self.added_ids: list[int] = self._encode.added_ids
        """The ids of the special tokens around every text."""
        self.unknown_id: int | None = self._encode.unknown_id
        """The id of what the vocabulary lacks; None if it lacks nothing."""

    def __call__(self, texts: Sequence[str]) -> tuple[list[Int64Array], list[bool]]:
        """Return each text's ids, (tokens,), and whether it was truncated.

        There is one id at least; special tokens are included. A lone surrogate, which has no
        encoding, counts as U+FFFD, unless the tokenizer drops it (BERT, XLM).
        """
        max_length = self.max_length if self.long_text == "truncate" else None
        return self._ids_of(texts, max_length)

    def whole(self, texts: Sequence[str]) -> list[Int64Array]:
        """Return each text's ids, (tokens,), however many they are."""
        return self._ids_of(texts, None)[0]

    def _ids_of(
        self,
        texts: Sequence[str],
        max_length: int | None,
    ) -> tuple[list[Int64Array], list[bool]]:
        stripped = [text.strip() for text in texts]
        with native_code(), tokenizer_errors(self._path, "fails on a text"):
            encoded = iter(self._encode(list(filter(None, stripped)), max_length))
        ids = []
        is_truncated = []
        for text in stripped:
            if text:
                ids_of_text, is_text_truncated = next(encoded)
            else:
                ids_of_text = self._empty_ids
                is_text_truncated = False
            # A tokenizer may drop all characters of a text.
            ids.append(np.array(ids_of_text or self._empty_ids, dtype=np.int64))
            is_truncated.append(is_text_truncated)
        return ids, is_truncated


def tokenise(
    tokenizer: TextTokenizer,
    texts: Sequence[Text],
    separator: str,
) -> list[TokenisedText]:
    """Tokenise texts, and count their unknown tokens.

    The separator follows each sentence of a context.
    """
    bare = []
    with_context = []
    has_context = []
    for text in texts:
        if isinstance(text, str):
            bare.append(text)
        elif text.context:
            with_context.append(text)
        else:
            bare.append(text.text)
        has_context.append(not isinstance(text, str) and bool(text.context))
    tokenised = map(TokenisedText, *tokenizer(bare))
    if not with_context:
        return _with_counts(tokenizer, list(tokenised))
    in_context = _tokenise_in_context(tokenizer, with_context, separator)
    joined = []
    for is_in_context in has_context:
        joined.append(next(in_context if is_in_context else tokenised))
    return _with_counts(tokenizer, joined)


def _with_counts(
    tokenizer: TextTokenizer,
    tokenised: Sequence[TokenisedText],
) -> list[TokenisedText]:
    """Count the tokens of texts and the unknown ones, all in one pass."""
    if not tokenised:
        return []
    sequences = [text.ids for text in tokenised]
    lengths = lengths_of(sequences)  # (texts,)
    ids = np.concatenate(sequences)  # (tokens,)
    is_unknown = ids == tokenizer.unknown_id  # (tokens,)
    num_unknown = np.add.reduceat(is_unknown, starts_of(lengths), dtype=np.int64)  # (texts,)
    num_tokens = lengths - sum(tokenizer.num_special_tokens)
    counts = zip(tokenised, num_tokens.tolist(), num_unknown.tolist(), strict=True)
    return [TokenisedText(*text[:3], tokens, unknown) for text, tokens, unknown in counts]


def _tokenise_in_context(
    tokenizer: TextTokenizer,
    texts: Sequence[TextInContext],
    separator: str,
) -> Iterator[TokenisedText]:
    """Tokenise texts with their contexts.

    If both are too long, the beginning of the context is cut off.
    """
    contexts = []
    joined = []
    for item in texts:
        context = "".join(sentence + separator for sentence in item.context)
        text = item.text.strip()
        contexts.append(context)
        joined.append(context + text if text else "")

    # The ids of a context are those shared with two texts that begin differently after it.
    endings = {}
    for context in contexts:
        endings[context] = (context + "a", context + "b")
    sequences = tokenizer.whole([*joined, *chain.from_iterable(endings.values())])
    probed = iter(sequences[len(joined) :])
    probes = {context: (next(probed), next(probed)) for context in endings}
    for context, text, ids in zip(contexts, joined, sequences, strict=False):
        num_context = 0
        if text:
            num_common = min(_common_length(ids, probe) for probe in probes[context])
            num_context = max(num_common - tokenizer.num_special_tokens[0], 0)
        yield _cut(tokenizer, ids, num_context)


def _cut(tokenizer: TextTokenizer, ids: Int64Array, num_context: int) -> TokenisedText:
    """Cut the context first, and then the text unless it goes into windows."""
    before, after = tokenizer.num_special_tokens
    max_length = tokenizer.max_length
    cut = min(max(len(ids) - max_length, 0), num_context)
    ids = np.concatenate((ids[:before], ids[before + cut :]))
    is_truncated = len(ids) > max_length and tokenizer.long_text == "truncate"
    if is_truncated:
        ids = np.concatenate((ids[: max_length - after], ids[len(ids) - after :]))
    return TokenisedText(ids, is_truncated, num_context - cut)


def _common_length(first: Int64Array, second: Int64Array) -> int:
    """Return how many ids two texts have in common at their beginning."""
    length = min(len(first), len(second))
    different = np.flatnonzero(first[:length] != second[:length])
    return int(different[0]) if len(different) else length


@contextmanager
def tokenizer_errors(path: Path, what: str) -> Iterator[None]:
    """Turn the errors of the tokenizer libraries into TokenizerErrors."""
    try:
        yield
    except (BertScoreOnnxError, MemoryError):
        raise
    except BaseException as error:
        # The libraries raise nothing more specific than Exception, and Rust's panic is none.
        is_of_library = isinstance(error, Exception) or type(error).__name__ == "PanicException"
        if not is_of_library or is_interrupt(error):
            raise
        raise TokenizerError(
            f"{path} {what}: {one_line(error)}. Export the model again.",
        ) from error


class FastTokenizer:
    """A tokenizer that `tokenizer.json` expresses completely."""

    def __init__(self, path: Path, *, in_parallel: bool = True) -> None:
        self._file = TokenizerJson(path)
        self._in_parallel = in_parallel
        self.unknown_id: int | None = self._file.unknown_id
        probe = self._file.tokenizer.encode("a")
        is_special = np.array(probe.special_tokens_mask)
        self.added_ids: list[int] = np.array(probe.ids)[is_special == 1].tolist()
        num_prefix = int(is_special.argmin())
        num_suffix = int(is_special[num_prefix:].sum())
        self.num_special_tokens: tuple[int, int] = (num_prefix, num_suffix)

    def __call__(
        self,
        texts: Sequence[str],
        max_length: int | None,
    ) -> list[TruncatedIds]:
        """Return the ids of each text, and whether the text was truncated.

        The ids and `max_length` include special tokens; None sets no bound. The package would
        truncate only by a setting, which no thread may change while another encodes.
        """
        encodable = list(map(_encodable, texts))
        encoded = self._file.encode(encodable, in_parallel=self._in_parallel)
        return [self._truncated(ids, max_length) for ids in encoded]

    def _truncated(self, ids: list[int], max_length: int | None) -> TruncatedIds:
        if max_length is None or len(ids) <= max_length:
            return ids, False
        prefix, suffix = self.num_special_tokens
        return ids[: max(max_length - suffix, prefix)] + ids[len(ids) - suffix :], True


class SlowTokenizer:
    """A tokenizer with a spec.

    It does the steps of a slow tokenizer of transformers in their order. The normalizers change the
    whole text; then literal special tokens are cut out of it; each segment between them passes
    through the pre-tokenizers and becomes ids; the special tokens around the text come last.
    """

    def __init__(self, path: Path, spec: TokenizerSpec, *, in_parallel: bool = True) -> None:
        self._normalize = compile_normalizers(spec.normalizers)
        self._split = compile_split(spec.special_tokens)
        self._pre_tokenize = compile_normalizers(spec.pre_tokenizers)
        self._encode_segments = _segment_encoder(path, spec, in_parallel)
        self._spec = spec
        self.num_special_tokens: tuple[int, int] = (len(spec.prefix_ids), len(spec.suffix_ids))
        self.added_ids: list[int] = [*spec.prefix_ids, *spec.suffix_ids]
        self.unknown_id: int | None = spec.unknown_id

    def __call__(
        self,
        texts: Sequence[str],
        max_length: int | None,
    ) -> list[TruncatedIds]:
        """Return the same as `FastTokenizer` does."""
        max_ids = None
        if max_length is not None:
            max_ids = max(max_length - sum(self.num_special_tokens), 0)
        normalized = list(map(self._normalize, texts))
        split = list(map(self._split, normalized))
        segments = []
        for segment in chain.from_iterable(split):
            if isinstance(segment, str):
                segments.append(_encodable(self._pre_tokenize(segment)))
        encoded = map(self._mark_unknown, self._encode_segments(segments))
        return [self._add_special_tokens(_joined(parts, encoded), max_ids) for parts in split]

    def _mark_unknown(self, ids: list[int]) -> list[int]:
        """Replace the ids that the model lacks by the unknown id."""
        size = self._spec.vocab_size
        if size is None:
            return ids
        unknown_id = self._spec.unknown_id
        known = []
        for token in ids:
            known.append(token if token < size else unknown_id)
        return known

    def _add_special_tokens(self, ids: list[int], max_ids: int | None) -> TruncatedIds:
        """Truncate ids and put the special tokens around them.

        Also return whether they were truncated.
        """
        prefix = self._spec.prefix_ids
        suffix = self._spec.suffix_ids
        is_truncated = max_ids is not None and len(ids) > max_ids
        kept = ids[:max_ids] if is_truncated else ids
        if self._spec.suffix_once and kept[len(kept) - len(suffix) :] == suffix:
            return prefix + kept, is_truncated
        return prefix + kept + suffix, is_truncated


def _joined(parts: Sequence[str | int], encoded: Iterator[list[int]]) -> list[int]:
    """Return the ids of a text: of special tokens, and of its segments."""
    if len(parts) == 1 and isinstance(parts[0], str):  # as nearly every text
        return next(encoded)
    ids = []
    for segment in parts:
        if isinstance(segment, int):
            ids.append(segment)
        else:
            ids += next(encoded)
    return ids


def _segment_encoder(
    path: Path,
    spec: TokenizerSpec,
    in_parallel: bool,
) -> Callable[[list[str]], Iterable[list[int]]]:
    """Return the function that encodes the segments between special tokens."""
    if spec.sentencepiece is not None:
        # The library costs memory and is needed only here.
        from bertscore_onnx.text.sentencepiece import SentencePieceEncoder

        return SentencePieceEncoder(path, spec.sentencepiece)
    file = TokenizerJson(path)
    if is_word_based(file.tokenizer):
        return partial(map, WordEncoder(file.tokenizer))
    return partial(file.encode, in_parallel=in_parallel, add_special_tokens=False)


def is_word_based(tokenizer: Tokenizer) -> bool:
    """Return whether a tokenizer encodes each word of a text by itself.

    It only splits texts at white space, and neither normalizes nor finds added tokens.
    """
    if not isinstance(tokenizer.pre_tokenizer, WhitespaceSplit | CharDelimiterSplit):
        return False
    return tokenizer.normalizer is None and not tokenizer.get_added_tokens_decoder()


class WordEncoder:
    """Encodes texts word by word; threads may share it.

    The ids are cached, since few words of a text are new.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._separator = getattr(tokenizer.pre_tokenizer, "delimiter", None)
        self._tokenizer = tokenizer
        self._cached = lru_cache(CACHE_SIZE)(partial(_encode_word, tokenizer.model))

    def __call__(self, text: str) -> list[int]:
        """Return the ids of a text, without special tokens."""
        ids: list[int] = []
        for word in text.split(self._separator):
            if len(word) <= MAX_WORD_LENGTH:
                ids += self._cached(word)
            else:
                [encoding] = self._tokenizer.encode_batch_fast([word], add_special_tokens=False)
                ids += encoding.ids
        return ids


def _encode_word(model: Model, word: str) -> tuple[int, ...]:
    return tuple(token.id for token in model.tokenize(word))
