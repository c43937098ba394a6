"""SentencePiece's BPE model: the neighbours that make the piece of the highest score are joined, the leftmost first.

(Sennrich et al. 2016, https://arxiv.org/abs/1508.07909, with pieces and scores in place of merges.)
"""

import heapq
from collections.abc import Collection, Mapping

from bertscore_onnx.text.characters import alternatives
from bertscore_onnx.text.unigram import Cut


class Merging:
    """A model: pieces and their scores."""

    def __init__(self, scores: Mapping[str, float], user_defined: Collection[str]) -> None:
        """Prepare a model.

        Args:
            scores: the score of each piece.
            user_defined: the pieces that are cut out first, and join no other.
        """
        self._scores = scores
        self._fixed = frozenset(user_defined)
        self._fixed_at = alternatives(list(user_defined)) if user_defined else None

    def cut(self, word: str, total: float) -> Cut:
        """Join the characters of a word to pieces; what stands before it does not matter."""
        pieces = self._begun(word)
        following = [*range(1, len(pieces)), -1]
        preceding = [*range(-1, len(pieces) - 1)]
        waiting: list[tuple[float, int, str]] = []

        def offer(left: int) -> None:
            """Note two neighbours, if together they are a piece."""
            if left < 0 or (right := following[left]) < 0 or not self._fixed.isdisjoint((pieces[left], pieces[right])):
                return
            joined = pieces[left] + pieces[right]
            if joined in self._scores:
                heapq.heappush(waiting, (-self._scores[joined], left, joined))

        for left in range(len(pieces)):
            offer(left)
        while waiting:
            _, left, joined = heapq.heappop(waiting)
            right = following[left] if pieces[left] else -1
            if right < 0 or pieces[left] + pieces[right] != joined:
                continue  # one of the two was joined otherwise since
            pieces[left], pieces[right] = joined, ""
            following[left] = following[right]
            if following[left] >= 0:
                preceding[following[left]] = left
            offer(preceding[left])
            offer(left)
        return Cut([piece for piece in pieces if piece], [], is_settled=True)

    def holds_after(self, total: float) -> bool:
        """Tell whether a settled cut holds after a text of this score: always."""
        return True

    def _begun(self, word: str) -> list[str]:
        """Return the characters of a word, user-defined pieces whole."""
        if self._fixed_at is None:
            return list(word)
        parts = self._fixed_at.split(word)  # the pieces stand at the odd places
        return [one for place, part in enumerate(parts) for one in ([part] if place % 2 else part)]
