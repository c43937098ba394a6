"""What one caller hands in, the pieces of it that batches take, and how its scores come together again."""

import threading
import time
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import DeadlineError, InputError, InputTypeError
from bertscore_onnx.scores import Scores, best_of_references
from bertscore_onnx.scoring.inputs import Pairs, Texts, singles


class Request:
    """Candidates and references that are answered together, though several batches may score them.

    Batches take pairs of a candidate and one reference, so that one candidate with many references does not make a
    batch too large; the best over the references is found at the end.
    """

    def __init__(self, pairs: Pairs, seconds: float, client: Hashable = None) -> None:
        """Take what a caller waits for.

        Args:
            pairs: tokenised texts.
            seconds: how long the caller waits.
            client: whose request it is; None for a client of its own.

        Raises:
            InputTypeError: the texts are not strings but encoded already.
        """
        candidates, references = pairs.candidates, pairs.references
        if not (isinstance(candidates, Texts) and isinstance(references, Texts) and pairs.token_ids is not None):
            raise InputTypeError(
                "A batcher scores the texts of many callers together; hand in strings, not encoded texts."
            )
        self.seconds = seconds
        self.client: Hashable = self if client is None else client
        self.submitted: float = time.monotonic()
        self.future: Future[Scores] = Future()
        self.has_begun: bool = False
        """Whether a batch has taken anything of it."""
        self.token_ids: Mapping[str, NDArray[np.int64]] = pairs.token_ids
        """The ids of every text, (tokens,)."""
        self.candidates: list[str] = np.repeat(np.array(candidates.texts, dtype=object), references.counts).tolist()
        """The candidate of each pair."""
        self.references: list[str] = references.texts
        """The reference of each pair; those of a candidate side by side."""
        self._counts = references.counts  # (candidates,)
        self._ends = np.cumsum([0, *map(self._num_tokens, self.candidates, self.references)])  # (pairs + 1,)
        self._num_taken = 0
        self._parts: list[tuple[int, Scores]] = []

    @property
    def deadline(self) -> float:
        """When the caller stops waiting, by `time.monotonic()`."""
        return self.submitted + self.seconds

    @property
    def has_more(self) -> bool:
        """Whether there is something that no batch has taken."""
        return not self.has_begun or self._num_taken < len(self.references)

    @property
    def tokens_left(self) -> int:
        """The tokens of the pairs that no batch has taken."""
        return self.tokens_between(self._num_taken, len(self.references))

    def tokens_between(self, start: int, stop: int) -> int:
        """Return the tokens of some pairs; those of a candidate count for each of its references."""
        return int(self._ends[stop] - self._ends[start])

    def take(self, max_tokens: int, batch_texts: set[str], *, at_least_one: bool) -> "Piece | None":
        """Take as many of the pairs that are left as cost at most `max_tokens` together.

        A pair costs the tokens of its texts that are not in the batch yet, which are encoded, and the eighth part of
        all its tokens, rounded up, for what is matched.

        Args:
            max_tokens: the most tokens.
            batch_texts: the texts in the batch, to which those of the piece are added.
            at_least_one: take one pair even where it costs more.

        Returns:
            What was taken; None where the next pair costs more.
        """
        start = stop = self._num_taken
        cost = 0
        while stop < len(self.references):
            texts = {self.candidates[stop], self.references[stop]} - batch_texts
            of_pair = sum(len(self.token_ids[text]) for text in texts) + -(-self.tokens_between(stop, stop + 1) // 8)
            if cost + of_pair > max_tokens and not (at_least_one and stop == start):
                break
            batch_texts |= texts
            cost += of_pair
            stop += 1
        if stop == start and self.references:
            return None
        self.has_begun, self._num_taken = True, stop
        return Piece(self, start, stop, cost)

    def join(self, piece: "Piece", scores: Scores) -> Scores | None:
        """Add the scores of a piece, and return those of all candidates once they are complete."""
        self._parts.append((piece.start, scores))
        if sum(part.F.shape[-1] for _, part in self._parts) < len(self.references):
            return None
        parts = [part for _, part in sorted(self._parts, key=lambda part: part[0])]
        precision, recall, f1 = (np.concatenate(arrays, axis=-1) for arrays in zip(*parts, strict=True))
        if f1.ndim == 2:  # (layers, pairs)
            return best_of_references(precision, recall, f1, self._counts)
        return best_of_references(precision[None], recall[None], f1[None], self._counts).of_layer(0)

    def deadline_error(self) -> DeadlineError:
        """Return the error of a request that came to its deadline."""
        return DeadlineError(
            f"There was no score within {self.seconds:g} s. Allow more time, or hand in less at once: the request has "
            f"{len(self._counts)} candidates."
        )

    def _num_tokens(self, candidate: str, reference: str) -> int:
        return len(self.token_ids[candidate]) + len(self.token_ids[reference])


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """Some pairs of one request, from `start` to before `stop`."""

    request: Request
    start: int
    stop: int

    cost: int
    """In tokens, as `Request.take` says."""

    @property
    def tokens(self) -> int:
        """The tokens of its pairs."""
        return self.request.tokens_between(self.start, self.stop)

    @property
    def texts(self) -> tuple[list[str], list[str]]:
        """The candidates and the references of its pairs."""
        part = slice(self.start, self.stop)
        return self.request.candidates[part], self.request.references[part]


def join_pieces(pieces: Sequence[Piece]) -> Pairs:
    """Put pieces one after the other, each pair with a candidate of its own."""
    candidates: list[str] = []
    references: list[str] = []
    token_ids: dict[str, NDArray[np.int64]] = {}
    for piece in pieces:
        texts = piece.texts
        candidates += texts[0]
        references += texts[1]
        token_ids.update((text, piece.request.token_ids[text]) for side in texts for text in side)
    return Pairs(singles(candidates), singles(references), token_ids=token_ids)


def split_scores(scores: Scores, pieces: Sequence[Piece]) -> list[Scores]:
    """Return each piece its part of a batch's scores."""
    parts, end = [], 0
    for piece in pieces:
        start, end = end, end + piece.stop - piece.start
        precision, recall, f1 = (part[..., start:end].copy() for part in scores)  # a view would keep the whole batch
        parts.append(Scores(precision, recall, f1, scores.best_reference[..., start:end].copy()))
    return parts


def is_finite(scores: Scores) -> bool:
    """Say whether every P, R and F is a number."""
    return all(np.isfinite(part).all() for part in scores)


# The limits of a batcher, checked.


BATCH_SHARE = 1 / 120
"""The share of a deadline that a batch may take: it is how long a small request waits for others."""


@dataclass(frozen=True, slots=True)
class BatcherLimits:
    """How much, and how long; the fields are the arguments of `MicroBatcher`."""

    max_batch_tokens: int
    max_delay: float
    max_queue: int
    deadline: float
    max_stall: float

    @property
    def batch_seconds(self) -> float:
        """How long a batch is to take at most, as far as the pace of those before it tells."""
        return self.deadline * BATCH_SHARE

    def __post_init__(self) -> None:
        check_count("max_batch_tokens", self.max_batch_tokens)
        check_count("max_queue", self.max_queue)
        check_seconds("max_delay", self.max_delay, zero=True)
        check_seconds("deadline", self.deadline)
        check_seconds("max_stall", self.max_stall)


def check_count(name: str, number: int) -> None:
    """Raise an InputError unless `number` is 1 or more."""
    if not number >= 1:
        raise InputError(f"{name} is {number}; expected 1 or more.")


def check_seconds(name: str, seconds: float, *, zero: bool = False) -> None:
    """Raise an InputError unless a thread can wait that long; endless waits are refused."""
    if not (seconds > 0 or (zero and seconds == 0)) or not seconds <= threading.TIMEOUT_MAX:
        least = "0 or more" if zero else "more than 0"
        raise InputError(f"{name} is {seconds}; expected {least} seconds, and at most {threading.TIMEOUT_MAX:.0f}.")


# Whose turn it is: how large the next batch may be, and what of the requests that wait goes into it.


MIN_BATCH_TOKENS = 512
"""What a batch may have on the slowest of models; smaller ones are not worth their overhead."""


class BatchSize:
    """How many tokens a batch may have, so that it takes no longer than it should; learns from those before."""

    def __init__(self, limits: BatcherLimits, tokens: int, seconds: float) -> None:
        """Begin with what a first small batch tells, by its tokens and the seconds it took."""
        self._limits = limits
        self.tokens: int = self._fitting(tokens, seconds)

    def learn(self, tokens: int, seconds: float) -> None:
        """Look at what a batch took.

        Args:
            tokens: those of its different texts, which are what is encoded.
            seconds: what it took. Little work that took long tells nothing.
        """
        if seconds > self._limits.batch_seconds and tokens >= MIN_BATCH_TOKENS // 2:
            self.tokens = min(self.tokens, self._fitting(tokens, seconds))
        elif seconds < self._limits.batch_seconds / 2 and tokens > self.tokens / 2:
            self.tokens = min(2 * self.tokens, self._limits.max_batch_tokens)

    def _fitting(self, tokens: int, seconds: float) -> int:
        in_time = int(tokens * self._limits.batch_seconds / max(seconds, 1e-6))
        return min(max(in_time, MIN_BATCH_TOKENS), self._limits.max_batch_tokens)


def next_pieces(requests: Iterable[Request], max_tokens: int, *, oldest_first: bool) -> list[Piece]:
    """Take pieces of requests for a batch.

    The client with the fewest tokens waiting comes first, and of its requests the smallest, so that nobody who asks
    for little waits for those who ask for much. Lest these wait for ever, every other batch is to begin with the oldest
    request, which then gets up to half of it.

    Args:
        requests: all that have not been answered.
        max_tokens: what a batch may cost; a single pair may cost more.
        oldest_first: whether to begin with the oldest.

    Returns:
        The pieces; none where there is nothing to take.
    """
    waiting = [request for request in requests if request.has_more]
    backlog: Counter[Hashable] = Counter()
    for request in waiting:
        backlog[request.client] += request.tokens_left
    ordered = sorted(waiting, key=lambda one: (backlog[one.client], one.tokens_left, one.submitted))
    pieces: list[Piece] = []
    texts: set[str] = set()
    room = max_tokens
    if oldest_first and waiting:
        oldest = min(waiting, key=lambda request: request.submitted)
        if piece := oldest.take(max_tokens // 2, texts, at_least_one=True):
            pieces.append(piece)
            room -= piece.cost
    for request in ordered:
        if not request.has_more:
            continue
        piece = request.take(room, texts, at_least_one=not pieces)
        if piece is None:
            break
        pieces.append(piece)
        room -= piece.cost
    return pieces
