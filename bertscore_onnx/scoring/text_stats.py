"""Counts of texts to warn of, and the warnings."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Self

from bertscore_onnx.text.texts import Text, TextInContext
from bertscore_onnx.text.tokenizer import TokenisedText

MAX_UNKNOWN = 1 / 3
"""The share of a text's tokens above which the text counts as unknown: one emoji in a short text
stays below.
"""

MAX_UNKNOWN_TEXTS = 1 / 10
"""The share of unknown texts above which a call warns."""


@dataclass(frozen=True, slots=True)
class TextStats:
    """Counts of texts to warn of.

    They are added up with `+` over a whole call, so that there is one warning of each kind.
    """

    empty: int = 0
    """Pairs with an empty side."""

    zero_weight: int = 0
    """Pairs with a side that has tokens, all of weight 0."""

    truncated: int = 0
    """Texts that were longer than the model's maximum."""

    excluded: int = 0
    """Pairs with a side whose tokens are all excluded by the matching."""

    no_context: int = 0
    """Texts with an empty context."""

    texts: int = 0
    """Texts, equal ones included, as in the other counts of texts."""

    unknown: int = 0
    """Texts in which more than `MAX_UNKNOWN` of the tokens are unknown."""

    tokens: int = 0
    """The tokens of these texts."""

    unknown_tokens: int = 0
    """The unknown ones among these tokens."""

    @classmethod
    def of(cls, texts: Sequence[Text], tokenised: Iterable[TokenisedText]) -> Self:
        """Count truncated texts, unknown ones, and those with an empty context.

        The model lacks more than `MAX_UNKNOWN` of the tokens of an unknown text.
        """
        tokenised = list(tokenised)
        unknown = [
            text for text in tokenised if text.num_unknown / max(text.num_tokens, 1) > MAX_UNKNOWN
        ]
        return cls(
            truncated=sum(map(_is_truncated, tokenised)),
            no_context=sum(isinstance(text, TextInContext) and not text.context for text in texts),
            texts=len(tokenised),
            unknown=len(unknown),
            tokens=sum(map(_num_tokens, unknown)),
            unknown_tokens=sum(map(_num_unknown, unknown)),
        )

    def __add__(self, other: "TextStats") -> "TextStats":
        """Add up the counts."""
        sums = []
        for name in self.__slots__:
            sums.append(getattr(self, name) + getattr(other, name))
        return TextStats(*sums)

    def messages(self, max_length: int, empty_texts: str = "") -> Iterator[str]:
        """Yield a sentence for each count that is not 0.

        `max_length` is the model's maximum, in tokens; `empty_texts` says whose texts are empty.
        """
        if self.empty:
            whose = f": {empty_texts}" if empty_texts else ""
            yield f"{_pairs_score(self.empty)} 0 because a side is empty{whose}."
        if self.zero_weight:
            yield f"{_pairs_score(self.zero_weight)} 0 because every token of a side weighs 0."
        if self.excluded:
            yield (
                f"{_pairs_score(self.excluded)} 0 because the matching excludes every token of a "
                "side."
            )
        if self.no_context:
            if self.no_context == 1:
                yield "1 text has an empty context and is scored without one."
            else:
                yield f"{self.no_context} texts have an empty context and are scored without one."
        if self.truncated:
            texts = "1 text is" if self.truncated == 1 else f"{self.truncated} texts are"
            yield (
                f"{texts} longer than {max_length} tokens and truncated, as bert-score does "
                'silently. The rest does not count; with long_text="window" it does.'
            )
        # A few texts are foreign to most models: only many of them mean the wrong model.
        if self.unknown > self.texts * MAX_UNKNOWN_TEXTS:
            yield (
                f"{100 * self.unknown_tokens / self.tokens:.0f} % of the tokens are unknown to "
                f"this model in {self.unknown} of {self.texts} texts, and all unknown tokens are "
                "alike to it. Use a model of their language."
            )

    def warn(self, max_length: int, stacklevel: int, empty_texts: str = "") -> None:
        """Warn of each count that is not 0.

        A stacklevel of 1 names the caller's line, 2 the line of its caller.
        """
        for message in self.messages(max_length, empty_texts):
            warnings.warn(message, UserWarning, stacklevel=stacklevel + 1)


_is_truncated = attrgetter("is_truncated")
_num_tokens = attrgetter("num_tokens")
_num_unknown = attrgetter("num_unknown")


def _pairs_score(count: int) -> str:
    return "1 pair scores" if count == 1 else f"{count} pairs score"
