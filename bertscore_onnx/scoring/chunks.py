"""Pairs of texts: cut into slices, and gathered into chunks whose distinct texts are encoded together."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.matching.tokens import EncodedTexts, TextsOfPairs, TokensToMatch
from bertscore_onnx.text.texts import Text
from bertscore_onnx.text.tokenised import TokenisedText

PAIRS_AT_ONCE = 64
"""The candidates of a slice: pairs that are read, and handed on, together."""

MAX_CHARACTERS = 16_000_000
"""About the most characters of a slice, or of a chunk: far more than any has whose texts fit into a model."""


Item = TypeVar("Item")


def few_at_a_time(items: Iterable[Item], num_characters: Callable[[Item], int]) -> Iterator[list[Item]]:
    """Yield items, up to `PAIRS_AT_ONCE` at a time; if reading one raises an error, those before it come first."""
    waiting: list[Item] = []
    size = 0
    try:
        for item in items:
            waiting.append(item)
            size += num_characters(item)
            if len(waiting) == PAIRS_AT_ONCE or size >= MAX_CHARACTERS:
                yield waiting
                waiting, size = [], 0
    except Exception:
        if waiting:
            yield waiting
        raise
    if waiting:
        yield waiting


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """Items of one text each, or of several."""

    texts: Sequence[Text]
    """The texts of all items, those of an item side by side."""

    counts: NDArray[np.int64]
    """The number of texts of each item, (items,)."""

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.counts)

    def part(self, texts: slice, counts: NDArray[np.int64]) -> "Texts":
        """Return some of the texts, with their number in each item."""
        return Texts(self.texts[texts], counts)


def singles(texts: Sequence[Text]) -> Texts:
    """Return items of one text each."""
    return Texts(list(texts), np.ones(len(texts), dtype=np.int64))


Side = Texts | EncodedTexts
"""All candidates, or all references."""


def slices_of(side: Side, size: int | None = None) -> Iterator[Side]:
    """Yield the items a few at a time, by default `PAIRS_AT_ONCE`."""
    start, size = 0, size or PAIRS_AT_ONCE
    for item in range(0, len(side), size):
        counts = side.counts[item : item + size]
        stop = start + int(counts.sum())
        yield side.part(slice(start, stop), counts)
        start = stop


@dataclass(frozen=True, slots=True)
class Pairs:
    """Candidates, and as many items of one or more references."""

    candidates: Side
    references: Side

    is_continued: bool = False
    """Whether the next pairs begin with further references of the last candidate."""

    tokenised: Mapping[Text, TokenisedText] | None = None
    """The token ids of every text; None before they are tokenised."""

    @property
    def sides(self) -> tuple[Side, Side]:
        """Candidates and references."""
        return self.candidates, self.references

    @property
    def texts(self) -> list[Text]:
        """The texts to encode."""
        return [text for side in self.sides if isinstance(side, Texts) for text in side.texts]

    @property
    def num_characters(self) -> int:
        """The length of all texts to encode."""
        return sum(map(len, self.texts))

    @property
    def num_tokens(self) -> NDArray[np.int64]:
        """The tokens of each candidate and its references, (candidates,); 0 before they are tokenised."""
        if self.tokenised is None or not len(self.candidates):
            return np.zeros(len(self.candidates), dtype=np.int64)
        lengths = [
            np.array([len(self.tokenised[text].ids) for text in side.texts])
            for side in self.sides
            if isinstance(side, Texts)
        ]
        counts = self.references.counts
        return lengths[0] + np.add.reduceat(lengths[1], np.cumsum(counts) - counts)

    def slices(self, size: int | None = None) -> Iterator["Pairs"]:
        """Yield the pairs a few at a time, by default `PAIRS_AT_ONCE`."""
        if len(self.candidates) <= (size or PAIRS_AT_ONCE):
            yield self
        else:
            for candidates, references in zip(*(slices_of(side, size) for side in self.sides), strict=True):
                yield replace(self, candidates=candidates, references=references)

    def split(self, max_characters: int) -> Iterator["Pairs"]:
        """Yield the pairs in slices of at most this many characters, or of one candidate and one reference."""
        number = int(self.references.counts.sum())
        if self.num_characters <= max_characters or number == 1:
            yield self
        elif len(self.candidates) > 1:
            for half in self.slices(-(-len(self.candidates) // 2)):
                yield from half.split(max_characters)
        else:
            middle = number // 2
            for texts in (slice(middle), slice(middle, number)):
                references = self.references.part(texts, np.array([len(range(number)[texts])]))
                is_continued = self.is_continued or texts.stop < number
                yield from replace(self, references=references, is_continued=is_continued).split(max_characters)


def join_pairs(several: Sequence[Pairs]) -> Pairs:
    """Return pairs that follow each other as one; the references of a candidate that was split are together again."""
    if len(several) == 1:
        return several[0]
    counts = np.concatenate([pairs.references.counts for pairs in several])
    stops = np.cumsum([len(pairs.candidates) for pairs in several])
    repeated = [stop for stop, pairs in zip(stops[:-1].tolist(), several, strict=False) if pairs.is_continued]
    kept = np.delete(np.arange(len(counts)), repeated)  # (candidates,)
    candidates = _joined([pairs.candidates for pairs in several], np.ones(len(kept), dtype=np.int64), kept.tolist())
    references = _joined([pairs.references for pairs in several], np.add.reduceat(counts, kept))
    return replace(several[-1], candidates=candidates, references=references)


def _joined(sides: Sequence[Side], counts: NDArray[np.int64], kept: list[int] | None = None) -> Side:
    """Return the texts of all sides, or those that are kept, in items of so many."""
    chosen = slice(None) if kept is None else kept
    encoded = [side for side in sides if isinstance(side, EncodedTexts)]
    if encoded:
        return replace(encoded[0], rows=np.concatenate([side.rows for side in encoded])[chosen], counts=counts)
    texts = [text for side in sides if isinstance(side, Texts) for text in side.texts]
    return Texts(texts if kept is None else [texts[position] for position in kept], counts)


class Chunk:
    """Pairs that are scored together: few enough for memory, enough to sort by length and to encode equal texts once.

    The references of the last candidate may continue in the next chunk; its scores are then joined.
    """

    def __init__(self) -> None:
        """Start without pairs."""
        self.sequences: list[NDArray[np.int64]] = []
        """The ids of each row to encode, (tokens,): a row for all texts of equal ids that are truncated, or are not."""
        self.tokenised: dict[Text, TokenisedText] = {}
        """The token ids of every text."""
        self.num_tokens: int = 0
        """The tokens of all rows."""
        self.num_candidates: int = 0
        self.num_characters: int = 0
        """The characters of all texts, equal ones included."""
        self._row_of_text: dict[Text, int] = {}
        self._row_of_ids: dict[tuple[bytes, int, bool], int] = {}
        self._pairs: list[Pairs] = []

    def add(self, pairs: Pairs, tokenise: Callable[[Sequence[Text]], Mapping[Text, TokenisedText]]) -> None:
        """Add pairs, whose texts are tokenised unless they were; a side is encoded before in all pairs, or in none."""
        new = [text for text in dict.fromkeys(pairs.texts) if text not in self.tokenised]
        tokenised = tokenise(new) if pairs.tokenised is None else {text: pairs.tokenised[text] for text in new}
        for text, tokens in tokenised.items():
            key = tokens.ids.tobytes(), tokens.num_context, tokens.is_truncated
            row = self._row_of_text[text] = self._row_of_ids.setdefault(key, len(self.sequences))
            if row == len(self.sequences):
                self.sequences.append(tokens.ids)
                self.num_tokens += len(tokens.ids)
        self.tokenised |= tokenised
        self.num_candidates += len(pairs.candidates)
        self.num_characters += pairs.num_characters
        self._pairs.append(pairs)

    @cached_property
    def pairs(self) -> Pairs:
        """All pairs that were added."""
        return join_pairs(self._pairs)

    @property
    def num_context(self) -> NDArray[np.int64]:
        """The tokens of a context in each row, (rows,)."""
        return np.array([number for _, number, _ in self._row_of_ids], dtype=np.int64)

    @property
    def is_truncated(self) -> NDArray[np.bool_]:
        """Whether the texts of each row were truncated, (rows,)."""
        return np.array([is_truncated for _, _, is_truncated in self._row_of_ids], dtype=np.bool_)

    @property
    def is_encoded(self) -> bool:
        """Whether a side was encoded before."""
        return any(isinstance(side, EncodedTexts) for side in self.pairs.sides)

    def rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the rows of the candidate and of the reference of each pair, (pairs,) each.

        The pairs of a candidate are side by side. A side that was encoded before has rows of its own embeddings.
        """
        candidates, references = map(self.rows_of, self.pairs.sides)
        return np.repeat(candidates, self.pairs.references.counts), references

    def rows_of(self, side: Side) -> NDArray[np.int64]:
        """Return the row of each text of a side, (texts,)."""
        if isinstance(side, EncodedTexts):
            return side.rows
        return np.array([self._row_of_text[text] for text in side.texts], dtype=np.int64)

    def truncated(self) -> NDArray[np.bool_]:
        """Return whether a text of each pair was truncated, (pairs,)."""
        tables = [
            side.is_truncated if isinstance(side, EncodedTexts) else self.is_truncated for side in self.pairs.sides
        ]
        candidates, references = (table[rows] for table, rows in zip(tables, self.rows(), strict=True))
        return candidates | references

    def to_match(self, embeddings: TokensToMatch) -> tuple[TextsOfPairs, TextsOfPairs]:
        """Return the candidate and the reference of each pair, given the tokens of the rows."""
        tables = [side.embeddings if isinstance(side, EncodedTexts) else embeddings for side in self.pairs.sides]
        candidates, references = zip(tables, self.rows(), strict=True)
        return candidates, references
