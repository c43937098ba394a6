"""Counts what a user should hear of, so that one warning tells it for a whole call."""

import warnings
from dataclasses import dataclass


@dataclass(slots=True)
class Notices:
    """How often something happened during one call."""

    empty: int = 0
    """Pairs of which a side is empty."""

    weightless: int = 0
    """Pairs of which a side has words, but none that weighs anything."""

    cut: int = 0
    """Texts that were longer than the model's maximum."""

    max_length: int = 0
    """That maximum, in tokens."""

    def warn(self, stacklevel: int) -> None:
        """Warn of each kind that happened, as the caller so many levels up."""
        if self.empty:
            _warn(f"{_pairs_score(self.empty)} 0 because a side is empty.", stacklevel)
        if self.weightless:
            _warn(f"{_pairs_score(self.weightless)} 0 because every token of a side weighs 0.", stacklevel)
        if self.cut:
            texts = "1 text is" if self.cut == 1 else f"{self.cut} texts are"
            _warn(
                f"{texts} longer than {self.max_length} tokens and cut there, as bert-score does without a word. "
                'What is beyond does not count; with long_text="window" it does.',
                stacklevel,
            )


def _pairs_score(count: int) -> str:
    return "1 pair scores" if count == 1 else f"{count} pairs score"


def _warn(message: str, stacklevel: int) -> None:
    warnings.warn(message, UserWarning, stacklevel=stacklevel + 2)
