"""Chunks of pairs, whose distinct texts are encoded together; and the warnings about their texts."""

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.encoding.runs import HostRuns
from bertscore_onnx.errors import is_interrupt
from bertscore_onnx.matching.tokens import EncodedTexts, TokensToMatch
from bertscore_onnx.scoring.inputs import MAX_CHARACTERS, Pairs
from bertscore_onnx.text.texts import Text, TextInContext
from bertscore_onnx.text.tokenised import TokenisedText

CHUNK_CANDIDATES = 1024
"""The most candidates of a chunk, for small models and for texts that repeat. Sorted in chunks of this size, 3,004
pairs of sentences needed 1.2 % of padding on a CPU; in chunks of 512 it was 2.1 %, of 2,048 0.8 %."""


MAX_UNKNOWN = 1 / 3
"""The share of a text's tokens above which the text counts as unknown: one emoji in a short text stays below."""

MAX_UNKNOWN_TEXTS = 1 / 10
"""The share of unknown texts above which a call warns."""


@dataclass(frozen=True, slots=True)
class TextStats:
    """Counts of texts to warn of, added up with `+` over a whole call, so that there is one warning of each kind."""

    empty: int = 0
    """Pairs with an empty side."""

    zero_weight: int = 0
    """Pairs with a side that has tokens, all of weight 0."""

    truncated: int = 0
    """Texts that were longer than the model's maximum."""

    excluded: int = 0
    """Pairs with a side whose tokens are all excluded by the matching."""

    no_context: int = 0
    """Texts with an empty context."""

    texts: int = 0
    """Texts, equal ones included, as in the other counts of texts."""

    unknown: int = 0
    """Texts in which more than `MAX_UNKNOWN` of the tokens are unknown."""

    tokens: int = 0
    """The tokens of these texts."""

    unknown_tokens: int = 0
    """The unknown ones among these tokens."""

    @classmethod
    def of(cls, texts: Sequence[Text], tokenised: Iterable[TokenisedText]) -> Self:
        """Count the texts that are truncated, are unknown to the model, or have an empty context."""
        tokenised = list(tokenised)
        unknown = [text for text in tokenised if text.unknown > MAX_UNKNOWN]
        return cls(
            truncated=sum(text.is_truncated for text in tokenised),
            no_context=sum(isinstance(text, TextInContext) and not text.context for text in texts),
            texts=len(tokenised),
            unknown=len(unknown),
            tokens=sum(text.num_tokens for text in unknown),
            unknown_tokens=sum(text.num_unknown for text in unknown),
        )

    def __add__(self, other: "TextStats") -> "TextStats":
        """Add up the counts."""
        return TextStats(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    def messages(self, max_length: int) -> Iterator[str]:
        """Yield a sentence for each count that is not 0; `max_length` is the model's maximum, in tokens."""
        if self.empty:
            yield f"{_pairs_score(self.empty)} 0 because a side is empty."
        if self.zero_weight:
            yield f"{_pairs_score(self.zero_weight)} 0 because every token of a side weighs 0."
        if self.excluded:
            yield f"{_pairs_score(self.excluded)} 0 because the matching excludes every token of a side."
        if self.no_context:
            is_one = self.no_context == 1
            texts, are = ("1 text has", "is") if is_one else (f"{self.no_context} texts have", "are")
            yield f"{texts} an empty context and {are} scored without one."
        if self.truncated:
            texts = "1 text is" if self.truncated == 1 else f"{self.truncated} texts are"
            yield (
                f"{texts} longer than {max_length} tokens and truncated, as bert-score does silently. The rest does "
                'not count; with long_text="window" it does.'
            )
        if self.unknown > self.texts * MAX_UNKNOWN_TEXTS:
            yield (
                f"{100 * self.unknown_tokens / self.tokens:.0f} % of the tokens are unknown to this model in "
                f"{self.unknown} of {self.texts} texts, and all unknown tokens are alike to it. Use a model of their "
                "language."
            )

    def warn(self, max_length: int, stacklevel: int) -> None:
        """Warn of each count that is not 0; a stacklevel of 1 names the caller's line, 2 the line of its caller."""
        for message in self.messages(max_length):
            warnings.warn(message, UserWarning, stacklevel=stacklevel + 1)


def _pairs_score(count: int) -> str:
    return "1 pair scores" if count == 1 else f"{count} pairs score"


Tokenise = Callable[[Sequence[Text]], Sequence[TokenisedText]]


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """Pairs that are scored together: few enough for memory, enough to sort by length and encode equal texts once."""

    num_candidates: int

    runs: HostRuns
    """The runs of the rows to encode: one row for all texts with equal ids, equally truncated."""

    num_tokens: int
    num_context: NDArray[np.int64]
    """The tokens of a context in each row, (rows,)."""

    is_truncated: NDArray[np.bool_]
    """Whether the texts of each row were truncated, (rows,)."""

    unknown: NDArray[np.float64]
    """The share of unknown tokens in each row, (rows,)."""

    pairs: Pairs
    """The pairs."""

    row_of_text: Mapping[Text, int]
    """The row of each text that is encoded here."""

    stats: TextStats
    """Statistics of the texts that were tokenised here."""

    def encoded(self, embeddings: TokensToMatch, model: str) -> tuple[EncodedTexts, EncodedTexts]:
        """Return the candidates and the references, given the rows that the model encoded."""
        none = np.zeros(0, dtype=np.int64)
        rows = EncodedTexts(embeddings, none, none, model, self.is_truncated, self.unknown)
        candidates, references = (side.encoded(rows, self.row_of_text) for side in self.pairs.sides)
        return candidates, references


class ChunkTexts:
    """The distinct texts of the pairs that a chunk has so far, tokenised."""

    def __init__(self, tokenise: Tokenise, runs: HostRuns) -> None:
        self.num_tokens: int = 0  # of all rows
        self.num_candidates: int = 0
        self.num_characters: int = 0  # of all texts, equal ones included
        self._tokenise, self._runs = tokenise, runs
        self._rows: list[TokenisedText] = []
        self._row_of_text: dict[Text, int] = {}
        self._row_of_ids: dict[tuple[bytes, bool, int], int] = {}
        self._pairs: list[Pairs] = []

    def add(self, pairs: Pairs) -> None:
        """Add pairs; tokenise their texts, unless that was done. A side was encoded before in all pairs or in none."""
        texts = pairs.texts
        new = [text for text in dict.fromkeys(texts) if text not in self._row_of_text]
        tokenised = self._tokenise(new) if pairs.tokenised is None else [pairs.tokenised[text] for text in new]
        for text, tokens in zip(new, tokenised, strict=True):
            key = tokens.ids.tobytes(), tokens.is_truncated, tokens.num_context
            row = self._row_of_text[text] = self._row_of_ids.setdefault(key, len(self._rows))
            if row == len(self._rows):
                self._rows.append(tokens)
                self.num_tokens += len(tokens.ids)
        rows = self._rows[len(self._runs.sequences) :]
        self._runs.add([row.ids for row in rows], in_context=any(row.num_context for row in rows))
        self.num_candidates += len(pairs.candidates.counts)
        self.num_characters += sum(map(len, texts))
        self._pairs.append(pairs)

    def close(self) -> Chunk:
        """Return the chunk, whose runs are planned."""
        self._runs.plan()
        (candidates, *more_candidates), (references, *more_references) = zip(
            *(pairs.sides for pairs in self._pairs), strict=True
        )
        texts = [text for pairs in self._pairs if pairs.tokenised is None for text in pairs.texts]
        return Chunk(
            self.num_candidates,
            self._runs,
            self.num_tokens,
            num_context=np.array([row.num_context for row in self._rows], dtype=np.int64),
            is_truncated=np.array([row.is_truncated for row in self._rows], dtype=np.bool_),
            unknown=np.array([row.unknown for row in self._rows], dtype=np.float64),
            pairs=Pairs(candidates.joined(more_candidates), references.joined(more_references)),
            row_of_text=self._row_of_text,
            stats=TextStats.of(texts, (self._rows[self._row_of_text[text]] for text in texts)),
        )


FIRST_TOKENS = 1024
"""The tokens of the first chunks where the time of a chunk is limited and the model's speed is not known yet."""


class ChunkLimit:
    """The most tokens of the next chunk, so that it takes about `max_seconds` at the speed of the chunks before."""

    def __init__(self, max_seconds: float | None = None) -> None:
        self._max_seconds = max_seconds
        self.tokens: int = sys.maxsize if max_seconds is None else FIRST_TOKENS

    def learn(self, tokens: int, began: float) -> None:
        """Adapt to a chunk of this many tokens, whose encoding began then on the monotonic clock."""
        if self._max_seconds is not None and tokens:
            self.tokens = int(tokens * self._max_seconds / max(time.monotonic() - began, 1e-6)) + 1


class Chunks:
    """The chunks of pairs, tokenised and gathered as they are read; an error of `slices` comes after earlier pairs."""

    def __init__(
        self,
        slices: Iterable[Pairs],
        tokenise: Tokenise,
        begin: Callable[[], HostRuns],
        max_tokens: int,
        scale: int = 1,
        limit: ChunkLimit | None = None,
    ) -> None:
        """Prepare chunks of about `scale` times `max_tokens`; `begin` prepares the runs of a chunk."""
        self._slices, self._tokenise, self._begin = slices, tokenise, begin
        self._max_tokens, self._scale, self._limit = max_tokens, scale, limit or ChunkLimit()

    def __iter__(self) -> Iterator[Chunk]:
        """Yield the chunks."""
        chunk = ChunkTexts(self._tokenise, self._begin())
        # slices are split by characters: the number of tokens is not known yet, but is hardly larger
        parts = (part for pairs in self._slices for part in pairs.split(min(self._max_tokens, self._limit.tokens)))
        try:
            for pairs in parts:
                chunk.add(pairs)
                if (
                    chunk.num_tokens >= min(self._max_tokens * self._scale, self._limit.tokens)
                    or chunk.num_candidates >= CHUNK_CANDIDATES * self._scale
                    or chunk.num_characters >= MAX_CHARACTERS
                ):
                    yield chunk.close()
                    chunk = ChunkTexts(self._tokenise, self._begin())
        except Exception as error:
            if chunk.num_candidates and not is_interrupt(error):
                yield chunk.close()
            raise
        if chunk.num_candidates:
            yield chunk.close()
