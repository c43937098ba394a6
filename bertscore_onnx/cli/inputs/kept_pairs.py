"""Keeps the texts of pairs from when they are read until their scores are known."""

from collections import deque
from collections.abc import Iterable, Iterator

from bertscore_onnx.cli.inputs.pairs import TextPair, TextPairs


class KeptPairs:
    """The texts of pairs that are read some thousand ahead of their scores."""

    def __init__(self, *, read_before: bool) -> None:
        """With `read_before` the pairs are read once to their end, for idf weights, before they are read to be kept."""
        self._is_read_before = read_before
        self._waiting: deque[TextPair] = deque()

    def keep(self, pairs: Iterable[TextPair]) -> Iterable[TextPair]:
        """Return the pairs, which are kept as they are read; they have a number where they had one."""
        return _Watched(pairs, self) if isinstance(pairs, TextPairs) else self.watch(pairs)

    def watch(self, pairs: Iterable[TextPair]) -> Iterator[TextPair]:
        """Yield the pairs of one reading."""
        is_kept, self._is_read_before = not self._is_read_before, False
        for pair in pairs:
            if is_kept:
                self._waiting.append(pair)
            yield pair

    def take(self) -> TextPair:
        """Return the next pair, and keep it no longer."""
        return self._waiting.popleft()


class _Watched:
    """Pairs that can be read again, and whose number is known."""

    def __init__(self, pairs: TextPairs, kept: KeptPairs) -> None:
        self._pairs = pairs
        self._kept = kept

    def __len__(self) -> int:
        return len(self._pairs)

    def __iter__(self) -> Iterator[TextPair]:
        return self._kept.watch(self._pairs)
