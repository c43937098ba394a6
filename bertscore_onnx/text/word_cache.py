"""Caches the ids of words, for tokenizers that look at one word at a time: few words of a text are new."""

from functools import lru_cache, partial

from tokenizers import Tokenizer
from tokenizers.models import Model
from tokenizers.pre_tokenizers import CharDelimiterSplit, WhitespaceSplit

from bertscore_onnx.text.fast_tokenizer import encode_batch

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
