"""Looks up texts word by word, where a model sees no more at a time, and remembers words: few of a text are new."""

from functools import lru_cache, partial

from tokenizers import Tokenizer
from tokenizers.models import Model
from tokenizers.pre_tokenizers import CharDelimiterSplit, WhitespaceSplit

MEMORY = 32_768
"""How many words are remembered, those used last: usual ones take 6 MB, and 19 MB with their SentencePiece scores."""

LONGEST = 32
"""Longer ones are not."""


def has_words(tokenizer: Tokenizer) -> bool:
    """Tell whether a tokenizer splits texts at white space and looks up what is between, and does nothing else."""
    splits = isinstance(tokenizer.pre_tokenizer, WhitespaceSplit | CharDelimiterSplit)
    return splits and tokenizer.normalizer is None and not tokenizer.get_added_tokens_decoder()


class WordEncoder:
    """A tokenizer that `has_words`; threads may share it."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        """Take its model, and how it splits texts."""
        self._separator = getattr(tokenizer.pre_tokenizer, "delimiter", None)
        self._look_up = partial(_look_up, tokenizer.model)
        self._remembered = lru_cache(MEMORY)(self._look_up)

    def __call__(self, text: str) -> list[int]:
        """Return the ids of a text, without special tokens."""
        ids: list[int] = []
        for word in text.split(self._separator):
            ids += self._remembered(word) if len(word) <= LONGEST else self._look_up(word)
        return ids


def _look_up(model: Model, word: str) -> tuple[int, ...]:
    return tuple(token.id for token in model.tokenize(word))
