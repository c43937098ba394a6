"""Rows that repeat others: they are no evidence of their own."""

import warnings
from collections.abc import Collection, Hashable

MIN_BYTES = 40
"""Shorter rows, such as answers and labels, are equal by chance."""

ONE_IN = 20
"""From one repeated row in so many on there is a warning."""


class RepeatCounter:
    """Counts the rows that repeat others, without keeping texts."""

    def __init__(self) -> None:
        """Count from 0."""
        self._seen: set[int] = set()
        self._num_rows = 0
        self._num_repeats = 0

    def add(self, texts: Collection[str], others: Hashable = (), *, source: str = "") -> None:
        """Count a row, which repeats another if all that was read of them is equal.

        Without a source, rows count only if their different texts have 40 bytes of UTF-8 together.
        """
        self._num_rows += 1
        size = sum(len(text.encode(errors="replace")) for text in set(texts))
        if size < MIN_BYTES and not source:
            return
        row = hash((source, *texts, others))
        self._num_repeats += row in self._seen
        self._seen.add(row)

    @property
    def warning(self) -> str:
        """How many rows repeat others; empty if few do."""
        if not self._num_repeats or self._num_repeats * ONE_IN < self._num_rows:
            return ""
        repeats = f"{self._num_repeats:,} of {self._num_rows:,} rows repeat others"
        return f"{repeats}, which is no further evidence: leave them out if they are copies."

    def warn(self) -> None:
        """Issue the warning, if there is one, in the name of the caller's caller."""
        if self.warning:
            warnings.warn(self.warning, UserWarning, stacklevel=3)
