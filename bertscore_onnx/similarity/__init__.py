"""The token matches behind the score of a pair, as numbers, HTML, text and drawings."""

from typing import TYPE_CHECKING

from bertscore_onnx.similarity.matches import (
    TokenMatch,
    TokenNames,
    TokenSimilarity,
    pair_similarities,
)
from bertscore_onnx.similarity.render import MATCH_STYLE, TokenMatches, match_html

__all__ = [
    "MATCH_STYLE",
    "TokenMatch",
    "TokenMatches",
    "TokenNames",
    "TokenSimilarity",
    "match_html",
    "pair_similarities",
]

_REPLACED = {
    "best_match": "`TokenMatches.best_reference`",
    "token_similarities": "`BERTScorer.match(candidate, references).similarities`",
    "token_similarity": "`BERTScorer.match(candidate, reference).best`",
}
"""Former public names, and what has their place."""

if not TYPE_CHECKING:  # to type checkers every name would be a member

    def __getattr__(name: str) -> object:
        """Raise ImportError with the replacement of a former name."""
        if name in _REPLACED:
            # `from … import NAME` would drop the message of an AttributeError
            raise ImportError(f"{name} is gone; use {_REPLACED[name]}.", name=__name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
