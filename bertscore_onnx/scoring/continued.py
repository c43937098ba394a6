"""Joins the scores of a candidate whose references fill more than one chunk."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from bertscore_onnx.scores import Scores
from bertscore_onnx.scoring.text_warnings import TextCounts


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
