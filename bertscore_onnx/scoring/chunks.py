"""Chunks of pairs that are scored together: small enough for memory, large enough to sort and to deduplicate.

The references of a candidate may fill more than one; its scores are then joined.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.encoding.embeddings import EncodedTexts, TokenEmbeddings
from bertscore_onnx.matching.pairs import TokenPairs
from bertscore_onnx.scores import Scores
from bertscore_onnx.scoring.inputs import Pairs, Side
from bertscore_onnx.scoring.text_warnings import TextCounts


class DistinctTexts:
    """Texts in rows, a row for all texts of equal ids."""

    def __init__(self) -> None:
        """Start without texts."""
        self._row_of_text: dict[str, int] = {}
        self._row_of_ids: dict[bytes, int] = {}
        self.sequences: list[NDArray[np.int64]] = []
        """The ids of each row, (tokens,)."""
        self.num_tokens: int = 0
        """Their number together."""

    def new(self, texts: Sequence[str]) -> list[str]:
        """Return those of the texts that were not added yet, each once."""
        return [text for text in dict.fromkeys(texts) if text not in self._row_of_text]

    def add(self, texts: Sequence[str], sequences: Sequence[NDArray[np.int64]]) -> None:
        """Add new texts with their ids."""
        for text, ids in zip(texts, sequences, strict=True):
            row = self._row_of_ids.setdefault(ids.tobytes(), len(self.sequences))
            if row == len(self.sequences):
                self.sequences.append(ids)
                self.num_tokens += len(ids)
            self._row_of_text[text] = row

    def rows(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the row of each text, (texts,)."""
        return np.array([self._row_of_text[text] for text in texts], dtype=np.int64)


class Chunk:
    """Pairs that are scored together."""

    def __init__(self) -> None:
        """Start without pairs."""
        self.texts: DistinctTexts = DistinctTexts()
        """What is to be encoded."""
        self.num_candidates: int = 0
        self.num_truncated: int = 0
        """How many different texts were longer than the model's maximum."""
        self._slices: list[Pairs] = []

    def new_texts(self, pairs: Pairs) -> list[str]:
        """Return the texts of some pairs that the chunk does not have yet."""
        sides = (pairs.candidates, pairs.references)
        return self.texts.new([text for side in sides if not isinstance(side, EncodedTexts) for text in side.texts])

    def add(
        self, pairs: Pairs, new_texts: Sequence[str], sequences: Sequence[NDArray[np.int64]], num_truncated: int
    ) -> None:
        """Add pairs; each side is encoded already or not, like that of the pairs before them.

        Args:
            pairs: the pairs.
            new_texts: what the method of this name returns for them.
            sequences: the ids of each of these, (tokens,).
            num_truncated: how many of these were longer than the model's maximum.
        """
        self.texts.add(new_texts, sequences)
        self.num_truncated += num_truncated
        self.num_candidates += len(pairs.candidates)
        self._slices.append(pairs)

    @property
    def counts(self) -> NDArray[np.int64]:
        """How many references of each candidate are in the chunk, (candidates,)."""
        counts = _concatenated([pairs.references.counts for pairs in self._slices])  # (candidates of slices,)
        starts = accumulate(len(pairs.candidates) for pairs in self._slices[:-1])  # of the slices after the first
        repeated = [start for start, before in zip(starts, self._slices, strict=False) if before.is_continued]
        return np.add.reduceat(counts, np.delete(np.arange(len(counts)), repeated)) if repeated else counts

    @property
    def is_continued(self) -> bool:
        """Whether the next chunk begins with further references of the last candidate."""
        return self._slices[-1].is_continued

    def token_pairs(self, embeddings: TokenEmbeddings) -> TokenPairs:
        """Return all pairs, those of a candidate side by side.

        Args:
            embeddings: those of `texts.sequences`.
        """
        candidate, reference = self.pair_rows()
        return TokenPairs(
            _table(self._slices[0].candidates, embeddings),
            candidate,
            _table(self._slices[0].references, embeddings),
            reference,
        )

    def pair_rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return which rows the candidate and the reference of each pair are, (pairs,) each.

        They are rows of `texts`, or of the embeddings of a side that came encoded.
        """
        candidates, references = [pairs.candidates for pairs in self._slices], [p.references for p in self._slices]
        counts = _concatenated([side.counts for side in references])
        rows = np.repeat(_concatenated([self._rows(side) for side in candidates]), counts)
        return rows, _concatenated([self._rows(side) for side in references])

    @property
    def is_encoded(self) -> bool:
        """Whether a side came encoded."""
        return any(isinstance(side, EncodedTexts) for side in (self._slices[0].candidates, self._slices[0].references))

    def _rows(self, side: Side) -> NDArray[np.int64]:
        return side.rows if isinstance(side, EncodedTexts) else self.texts.rows(side.texts)


def _concatenated(arrays: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _table(side: Side, new: TokenEmbeddings) -> TokenEmbeddings:
    return side.embeddings if isinstance(side, EncodedTexts) else new


@dataclass(frozen=True, slots=True)
class ChunkScores:
    """The scores of a chunk's candidates."""

    scores: Scores
    """Raw scores, (layers, candidates), the best over the references in this chunk."""

    counts: TextCounts

    is_continued: bool
    """Whether the next chunk begins with further references of the last candidate."""

    num_last_references: int
    """How many references of the last candidate are in this chunk."""


def join_continued(chunks: Iterable[ChunkScores]) -> Iterator[tuple[Scores, TextCounts]]:
    """Yield the scores of whole candidates, (layers, candidates), chunk by chunk.

    The last candidate of a chunk is held back while its references go on.
    """
    held: Scores | None = None
    num_held = 0
    for chunk in chunks:
        scores = chunk.scores
        if held is not None:
            scores = _with_earlier_references(scores, held, num_held)
        is_one_candidate = scores.F.shape[1] == 1
        num_held = (num_held if held is not None and is_one_candidate else 0) + chunk.num_last_references
        held = None
        if chunk.is_continued:
            held, scores = _candidates(scores, slice(-1, None)), _candidates(scores, slice(0, -1))
        yield scores, chunk.counts


def _with_earlier_references(scores: Scores, earlier: Scores, num_earlier: int) -> Scores:
    """Take the best of the first candidate's references here and of those in earlier chunks."""
    is_better = scores.F[:, :1] > earlier.F  # (layers, 1)
    best = np.where(is_better, num_earlier + scores.best_reference[:, :1], earlier.best_reference)
    precision, recall, f1 = (
        np.concatenate((np.maximum(here[:, :1], before), here[:, 1:]), axis=1)
        for here, before in zip(scores, earlier, strict=True)
    )
    return Scores(precision, recall, f1, np.concatenate((best, scores.best_reference[:, 1:]), axis=1))


def _candidates(scores: Scores, some: slice) -> Scores:
    precision, recall, f1 = (values[:, some] for values in scores)
    return Scores(precision, recall, f1, scores.best_reference[:, some])
