"""The token matches behind the score of a pair.

They are numbers, HTML, text and drawings.
"""

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
