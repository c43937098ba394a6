"""BERTScore on ONNX Runtime: the numbers of bert-score, without PyTorch at run time."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bertscore_onnx.encoding.encoded_texts import EncodedTexts
    from bertscore_onnx.errors import BertScoreOnnxError
    from bertscore_onnx.functional import score
    from bertscore_onnx.scorer import BERTScorer
    from bertscore_onnx.scores import Score, Scores
    from bertscore_onnx.signature import Signature

__all__ = ["BERTScorer", "BertScoreOnnxError", "EncodedTexts", "Score", "Scores", "Signature", "__version__", "score"]

__version__ = "0.1.0"

_MODULES = {
    "BERTScorer": "scorer",
    "BertScoreOnnxError": "errors",
    "EncodedTexts": "encoding.encoded_texts",
    "Score": "scores",
    "Scores": "scores",
    "Signature": "signature",
    "score": "functional",
}


def __getattr__(name: str) -> object:
    """Import a public name when it is first used, so that importing the package costs next to nothing."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
