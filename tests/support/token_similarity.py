import numpy as np

from bertscore_onnx.matching.pairs import EncodedTexts
from bertscore_onnx.scores import Score
from bertscore_onnx.similarity import TokenSimilarity


def stated_similarity(candidate, reference, similarity, weights=None, **fields):
    """Return a TokenSimilarity; `[CLS]` and `[SEP]` are special, and tokens weigh 1 unless
    `weights` has two lists.
    """
    of_candidate, of_reference = weights or ([1] * len(candidate), [1] * len(reference))
    special = [
        np.array([text in ("[CLS]", "[SEP]") for text in side]) for side in (candidate, reference)
    ]
    return TokenSimilarity(
        candidate,
        reference,
        np.array(similarity, dtype=np.float32),
        np.array(of_candidate, dtype=np.float32),
        np.array(of_reference, dtype=np.float32),
        *special,
        Score(0.5, 0.25, 1 / 3, 0),
        **fields,
    )


def encoded_texts(table, rows):
    """Return some of the texts of a table as `EncodedTexts`, one an item."""
    rows, none = np.array(rows), np.zeros(len(table.lengths))
    return EncodedTexts(table, rows, np.ones(len(rows), dtype=np.int64), "random", none > 0, none)
