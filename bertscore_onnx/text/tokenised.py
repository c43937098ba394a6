"""The token ids of texts, with or without a context."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.text.texts import Text, TextInContext
from bertscore_onnx.text.tokenizer import TextTokenizer


class TokenisedText(NamedTuple):
    """The token ids of a text."""

    ids: NDArray[np.int64]
    """Special tokens included, (tokens,)."""

    is_truncated: bool = False
    """Whether the end of the text is missing, since it is longer than the model's maximum."""

    num_context: int = 0
    """The number of context tokens, which follow the special tokens in front."""

    num_tokens: int = 0
    """The tokens without the special ones around them."""

    num_unknown: int = 0
    """How many of them stand for a word, or a character, that the vocabulary lacks."""

    @property
    def unknown(self) -> float:
        """The share of unknown tokens."""
        return self.num_unknown / max(self.num_tokens, 1)


def tokenise(tokenizer: TextTokenizer, texts: Sequence[Text], separator: str) -> list[TokenisedText]:
    """Tokenise texts, and count their unknown tokens; the separator follows each sentence of a context."""
    with_context = [text for text in texts if isinstance(text, TextInContext) and text.context]
    bare = [text if isinstance(text, str) else text.text for text in texts if isinstance(text, str) or not text.context]
    tokenised = map(TokenisedText, *tokenizer(bare))
    if not with_context:
        return _with_counts(tokenizer, list(tokenised))
    in_context = _tokenise_in_context(tokenizer, with_context, separator)
    joined = [next(tokenised if isinstance(text, str) or not text.context else in_context) for text in texts]
    return _with_counts(tokenizer, joined)


def _with_counts(tokenizer: TextTokenizer, tokenised: Sequence[TokenisedText]) -> list[TokenisedText]:
    """Count the tokens of texts, and the unknown ones, in one pass over all ids."""
    if not tokenised:
        return []
    lengths = np.array([len(text.ids) for text in tokenised])  # (texts,)
    is_unknown = np.concatenate([text.ids for text in tokenised]) == tokenizer.unknown_id  # (tokens,)
    num_unknown = np.add.reduceat(is_unknown, np.cumsum(lengths) - lengths, dtype=np.int64)  # (texts,)
    num_tokens = lengths - sum(tokenizer.num_special_tokens)
    counts = zip(tokenised, num_tokens.tolist(), num_unknown.tolist(), strict=True)
    return [TokenisedText(*text[:3], tokens, unknown) for text, tokens, unknown in counts]


def _tokenise_in_context(
    tokenizer: TextTokenizer, texts: Sequence[TextInContext], separator: str
) -> Iterator[TokenisedText]:
    """Tokenise texts with their contexts; if both are too long, the beginning of the context is cut off."""
    before = ["".join(sentence + separator for sentence in item.context) for item in texts]
    stripped = [item.text.strip() for item in texts]
    joined = [context + text if text else "" for context, text in zip(before, stripped, strict=True)]
    contexts = list(dict.fromkeys(before))
    # The ids of the context are those shared with two texts that begin differently after the same context.
    sequences = tokenizer.whole([*joined, *(context + word for context in contexts for word in ("a", "b"))])
    rest = iter(sequences[len(joined) :])
    probes = {context: (next(rest), next(rest)) for context in contexts}
    for context, text, ids in zip(before, joined, sequences, strict=False):
        common = min(_common_length(ids, probe) for probe in probes[context])
        number = max(common - tokenizer.num_special_tokens[0], 0)
        yield _cut(tokenizer, ids, number if text else 0)


def _cut(tokenizer: TextTokenizer, ids: NDArray[np.int64], num_context: int) -> TokenisedText:
    """Cut the context first, and then the text unless it goes into windows."""
    before, after = tokenizer.num_special_tokens
    most = tokenizer.max_length
    cut = min(max(len(ids) - most, 0), num_context)
    ids = np.concatenate((ids[:before], ids[before + cut :]))
    is_truncated = len(ids) > most and tokenizer.long_text == "truncate"
    if is_truncated:
        ids = np.concatenate((ids[: most - after], ids[len(ids) - after :]))
    return TokenisedText(ids, is_truncated, num_context - cut)


def _common_length(first: NDArray[np.int64], second: NDArray[np.int64]) -> int:
    """Return how many ids two texts have in common at their beginning."""
    length = min(len(first), len(second))
    different = np.flatnonzero(first[:length] != second[:length])
    return int(different[0]) if len(different) else length
