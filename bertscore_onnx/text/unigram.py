"""SentencePiece's Unigram model, to the bit: the cut of a word whose pieces have the highest sum of scores.

SentencePiece rounds each sum to single precision, so that between cuts of nearly equal score (`!!!!!`) what stands
before the word decides. (Kudo 2018, https://arxiv.org/abs/1804.10959; the search is a Viterbi as in sentencepiece
0.2.3; 0.2.1 compared sums before rounding them, and so breaks some ties otherwise.)
"""

from array import array
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

_UNKNOWN_PENALTY = 10.0

_CLOSE = 2.0**-5
"""Scores nearer than this may change places by rounding, if a word and the sum before it keep below these bounds:"""
_WORD_BOUND = 32
_SUM_BOUND = 2.0**13


class Cut(NamedTuple):
    """A word in pieces, an unknown character being a piece."""

    pieces: list[str]
    scores: list[float]

    is_settled: bool
    """Whether it is the same after any other text."""


class Unigram:
    """A model: pieces and their scores."""

    def __init__(self, scores: Mapping[str, float], user_defined: Collection[str]) -> None:
        """Prepare a model.

        Args:
            scores: the score of each piece.
            user_defined: the pieces whose scores do not count for those of unknown characters.
        """
        self._scores = scores
        lowest = min(score for piece, score in scores.items() if piece not in user_defined)
        self._unknown_score = rounded(lowest - _UNKNOWN_PENALTY)
        self._longest: dict[str, int] = {}
        for piece in scores:
            self._longest[piece[0]] = max(self._longest.get(piece[0], 0), len(piece))

    def cut(self, word: str, total: float) -> Cut:
        """Find the cut of the highest score, by the best cut up to each place.

        Args:
            word: what to cut.
            total: the score of all that stands before it.
        """
        size = len(word)
        reached = array("f", [0.0])  # rounds what is put in
        best = array("f", [0.0]) * (size + 1)  # the score of the best cut that ends at a place
        best[0] = total
        starts = [-1] * (size + 1)  # where the last piece of that cut begins
        gains = [0.0] * (size + 1)  # and its own score
        is_settled = size <= _WORD_BOUND and total > -_SUM_BOUND
        for start in range(size):
            for end, score in self._pieces_at(word, start):
                reached[0] = score + best[start]
                ahead = reached[0] - best[end]
                if starts[end] >= 0:
                    is_settled = is_settled and abs(ahead) > _CLOSE
                    if ahead <= 0:
                        continue
                best[end], starts[end], gains[end] = reached[0], start, score
        ends = _traced(starts)
        pieces = [word[starts[end] : end] for end in ends]
        return Cut(pieces, [gains[end] for end in ends], is_settled)

    def holds_after(self, total: float) -> bool:
        """Tell whether a settled cut holds after a text of this score."""
        return total > -_SUM_BOUND

    def _pieces_at(self, word: str, start: int) -> Iterator[tuple[int, float]]:
        """Yield the ends and scores of all pieces that begin at a place, and so an end one character on."""
        scores = self._scores
        if word[start] not in scores:
            yield start + 1, self._unknown_score
        for end in range(start + 1, min(start + self._longest.get(word[start], 0), len(word)) + 1):
            score = scores.get(word[start:end])
            if score is not None:
                yield end, score


def rounded(number: float) -> float:
    """Round to single precision."""
    return array("f", [number])[0]


def _traced(starts: list[int]) -> list[int]:
    """Follow a cut back from its end, and return the ends of its pieces in order."""
    ends = [len(starts) - 1]
    while (start := starts[ends[-1]]) > 0:
        ends.append(start)
    return ends[::-1]
