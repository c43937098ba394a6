"""Whose turn it is: how large the next batch may be, and what of the requests that wait goes into it."""

from collections import Counter
from collections.abc import Hashable, Iterable

from bertscore_onnx.serving.limits import BatcherLimits
from bertscore_onnx.serving.request import Piece, Request

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
