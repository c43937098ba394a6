"""What a caller should know of the texts that were scored, counted over a call so that one warning tells it."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TextCounts:
    """How often something happened to the texts of a call; counts of parts add up with `+`."""

    empty: int = 0
    """Pairs of which a side is empty."""

    weightless: int = 0
    """Pairs of which a side has tokens, but none that weighs anything."""

    truncated: int = 0
    """Texts that were longer than the model's maximum."""

    def __add__(self, other: "TextCounts") -> "TextCounts":
        """Add the counts of another part."""
        return TextCounts(
            self.empty + other.empty, self.weightless + other.weightless, self.truncated + other.truncated
        )

    def messages(self, max_length: int) -> Iterator[str]:
        """Yield a sentence for each kind that happened.

        Args:
            max_length: the model's maximum, in tokens.
        """
        if self.empty:
            yield f"{_pairs_score(self.empty)} 0 because a side is empty."
        if self.weightless:
            yield f"{_pairs_score(self.weightless)} 0 because every token of a side weighs 0."
        if self.truncated:
            texts = "1 text is" if self.truncated == 1 else f"{self.truncated} texts are"
            yield (
                f"{texts} longer than {max_length} tokens and truncated, as bert-score does silently. What is beyond "
                'does not count; with long_text="window" it does.'
            )

    def warn(self, max_length: int, stacklevel: int) -> None:
        """Warn of each kind that happened.

        Args:
            max_length: the model's maximum, in tokens.
            stacklevel: whose line a warning names: 1 is the caller's, 2 that of its caller, and so on.
        """
        for message in self.messages(max_length):
            warnings.warn(message, UserWarning, stacklevel=stacklevel + 1)


def _pairs_score(count: int) -> str:
    return "1 pair scores" if count == 1 else f"{count} pairs score"
