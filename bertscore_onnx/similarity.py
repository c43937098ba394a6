"""Which token matches which: the similarities behind the score of one pair, to look at."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from bertscore_onnx.bundle.opening import Bundle
from bertscore_onnx.concurrency.blas import blas_gate
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.scoring.inputs import collect_single


@dataclass(frozen=True, slots=True, eq=False)
class TokenSimilarity:
    """The tokens of a candidate and a reference, special tokens included, and how similar they are."""

    candidate: list[str]
    reference: list[str]

    similarity: NDArray[np.float32]
    """Cosine similarities, (cand_tokens, ref_tokens)."""

    candidate_weights: NDArray[np.float32]
    """1 for a token that counts without idf, 0 for one that does not, (cand_tokens,)."""

    reference_weights: NDArray[np.float32]
    """Likewise, (ref_tokens,)."""


class TokenNames:
    """Shows the token ids of one bundle as text."""

    def __init__(self, bundle: Bundle) -> None:
        """Load the vocabulary."""
        self._tokenizer = Tokenizer.from_file(str(bundle.tokenizer_path))

    def __call__(self, token: int) -> str:
        """Return the text of a token; its name in the vocabulary where it stands for no whole character."""
        text: str = self._tokenizer.decode([token], skip_special_tokens=False).strip()
        return text if text and "\ufffd" not in text else self._tokenizer.id_to_token(token) or f"#{token}"


def token_similarity(scorer: BERTScorer, names: TokenNames, candidate: str, reference: str) -> TokenSimilarity:
    """Compare every token of a candidate with every token of a reference.

    Args:
        scorer: a scorer of one layer.
        names: those of the same bundle.
        candidate, reference: any texts; what the model cuts off does not come back.

    Raises:
        EncodingError: the model gave something other than finite vectors.
        ClosedError: the scorer was closed.
    """
    encoded, _ = scorer.encode_items(collect_single([candidate, reference], "texts"))
    table, (one, other) = encoded.embeddings, encoded.rows
    vectors = [table.vectors[0, table.starts[text] :][: table.lengths[text]] for text in (one, other)]
    with blas_gate:
        similarity = np.clip(vectors[0] @ vectors[1].T, -1, 1)  # (cand_tokens, ref_tokens)
    ids = [table.ids_of(text) for text in (one, other)]
    weights = [np.isin(side, scorer.manifest.zero_weight_ids, invert=True).astype(np.float32) for side in ids]
    tokens = [[names(token) for token in side.tolist()] for side in ids]
    return TokenSimilarity(tokens[0], tokens[1], similarity, weights[0], weights[1])
