"""The module that `import bert_score` imports.

It has the names of bert-score 0.3.13, on ONNX Runtime.
"""

from bertscore_onnx.compat.bert_score import utils
from bertscore_onnx.compat.bert_score.score import plot_example, score
from bertscore_onnx.compat.bert_score.scorer import BERTScorer
from bertscore_onnx.compat.bert_score.utils import (
    get_hash,
    get_idf_dict,
    get_tokenizer,
    lang2model,
    model2layers,
)
from bertscore_onnx.compat.bert_score.version import __version__

__all__ = [
    "BERTScorer",
    "__version__",
    "get_hash",
    "get_idf_dict",
    "get_tokenizer",
    "lang2model",
    "model2layers",
    "plot_example",
    "score",
    "utils",
]

__getattr__ = utils.__getattr__
