"""Compares every token of a candidate with every token of its references."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.concurrency.blas import blas_gate
from bertscore_onnx.encoding.embeddings import EncodedTexts
from bertscore_onnx.errors import InputError, UnknownLayerError
from bertscore_onnx.scorer import TextScorer
from bertscore_onnx.scoring.inputs import Pairs, collect_single
from bertscore_onnx.similarity.matches import TokenSimilarity
from bertscore_onnx.similarity.tokens import TokenNames


def token_similarity(
    scorer: TextScorer, names: TokenNames, candidate: str, reference: str, *, layer: int | None = None
) -> TokenSimilarity:
    """Compare every token of a candidate with every token of a reference.

    Args:
        scorer: what scores the pair; its weights and its rescaling are those of the result.
        names: those of the same bundle.
        candidate, reference: any texts. Of one that is longer than the model's maximum the rest is missing, unless the
            scorer encodes long texts in windows: then all its tokens are there, as they count in the score.
        layer: which layer to show, where the scorer scores all of them; else None.

    Raises:
        InputError: the scorer scores all layers and `layer` is None; or a text is no string.
        UnknownLayerError: the scorer has no such layer.
        IdfError: idf weights were to come from the references, and there is only this one.
        EncodingError: the model gave something other than finite vectors.
        ClosedError: the scorer was closed.
    """
    [found] = token_similarities(scorer, names, candidate, [reference], layer=layer)
    return found


def token_similarities(
    scorer: TextScorer, names: TokenNames, candidate: str, references: Sequence[str], *, layer: int | None = None
) -> list[TokenSimilarity]:
    """Compare a candidate with each of its references; `token_similarity` describes the arguments.

    Each is scored by itself. The score of the candidate is the maximum of P, of R and of F over them. Idf weights from
    the references are those of all of them, as in `scorer.score([candidate], [references])`.

    Raises:
        InputError, UnknownLayerError, IdfError, EncodingError, ClosedError: as `token_similarity` says.
    """
    position = _position(scorer, layer)
    encoded, counts = scorer.encode_items(collect_single([candidate, *references], "texts"))
    number = len(references)
    one_each = np.ones(number, dtype=np.int64)
    pairs = Pairs(
        encoded.part(np.zeros(number, dtype=np.int64), one_each), encoded.part(np.arange(1, number + 1), one_each)
    )
    weights = scorer.weights_for(pairs.references)
    scores, _ = scorer.score_pairs(pairs)
    if scorer.manifest.all_layers:
        scores = scores.of_layer(position)
    baselines = scorer.rescaling.baselines
    ids = [encoded.embeddings.sequences[row] for row in encoded.rows]
    texts = [names(of_text.tolist()) for of_text in ids]
    of_ids = [weights.of(of_text) for of_text in ids]
    is_special = [np.isin(of_text, scorer.manifest.special_ids) for of_text in ids]
    return [
        TokenSimilarity(
            texts[0],
            texts[text],
            _similarity(encoded, position, text),
            of_ids[0],
            of_ids[text],
            is_special[0],
            is_special[text],
            score,
            baselines[position].f1 if baselines else None,
            counts.truncated,
        )
        for text, score in enumerate(scores.each(), 1)
    ]


def best_match(matches: Sequence[TokenSimilarity]) -> int:
    """Return which of the references has the best F, the first of equal ones, as `Score.best_reference` does."""
    return max(range(len(matches)), key=lambda reference: matches[reference].score.F)


def _position(scorer: TextScorer, layer: int | None) -> int:
    """Return which of the scorer's layers to show."""
    layers = scorer.manifest.layers
    if layer is None:
        if len(layers) > 1:
            raise InputError(
                f"Matches are those of one layer, and this scorer has the layers {layers[0]} to {layers[-1]}. Name "
                "one, or make a scorer of one layer with `num_layers`."
            )
        return 0
    if layer not in layers:
        known = f"layer {layers[0]}" if len(layers) == 1 else f"the layers {layers[0]} to {layers[-1]}"
        raise UnknownLayerError(
            f"There is no layer {layer} in this scorer of {scorer.manifest.model_id}; it has {known}."
        )
    return layers.index(layer)


def _similarity(encoded: EncodedTexts, layer: int, text: int) -> NDArray[np.float32]:
    """Return how similar the tokens of the first text and another are, (cand_tokens, ref_tokens)."""
    table = encoded.embeddings
    candidate, reference = (table.vectors_of(layer, encoded.rows[row]) for row in (0, text))
    with blas_gate:
        similarity: NDArray[np.float32] = np.clip(candidate @ reference.T, -1, 1)
    return similarity
