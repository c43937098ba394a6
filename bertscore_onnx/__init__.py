"""BERTScore on ONNX Runtime.

It gives the numbers of bert-score, without PyTorch at run time.
"""

from importlib import import_module

# as in `typing`, whose import would take half of the time until Ctrl-C is handled
TYPE_CHECKING = False

__all__ = [
    "BERTScorer",
    "BertScoreOnnxError",
    "DocumentCounts",
    "EncodedTexts",
    "Matching",
    "Score",
    "Scores",
    "Signature",
    "TextInContext",
    "__version__",
    "count_documents",
    "score",
]

__version__ = "0.1.0"

_MODULES = {
    "BERTScorer": "scorer",
    "BertScoreOnnxError": "errors",
    "DocumentCounts": "matching.document_counts",
    "EncodedTexts": "matching.pairs",
    "Matching": "matching.variants",
    "Score": "scores",
    "Scores": "scores",
    "Signature": "scores",
    "TextInContext": "text.texts",
    "count_documents": "scoring.tokenization",
    "score": "functional",
}

_OF_BERT_SCORE = {
    "bert_cos_score_idf",
    "cache_scibert",
    "get_bert_embedding",
    "get_hash",
    "get_idf_dict",
    "get_model",
    "get_tokenizer",
    "lang2model",
    "model2layers",
    "plot_example",
    "sent_encode",
}
"""Names of bert-score that users may expect here."""

if TYPE_CHECKING:
    from bertscore_onnx.errors import BertScoreOnnxError
    from bertscore_onnx.functional import score
    from bertscore_onnx.matching.document_counts import DocumentCounts
    from bertscore_onnx.matching.pairs import EncodedTexts
    from bertscore_onnx.matching.variants import Matching
    from bertscore_onnx.scorer import BERTScorer
    from bertscore_onnx.scores import Score, Scores, Signature
    from bertscore_onnx.scoring.tokenization import count_documents
    from bertscore_onnx.text.texts import TextInContext
else:  # hidden from type checkers, to which every name would be a member

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used.

        So importing the package costs next to nothing.
        """
        if name in _MODULES:
            return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        if name in _OF_BERT_SCORE:
            module = f"{__name__}.compat.bert_score"
            try:
                getattr(import_module(module), name)
            except ImportError as error:  # with advice
                raise AttributeError(str(error)) from error
            raise AttributeError(
                f"bert-score's {name} is in {module}: `from {module} import {name}`."
            )
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        """List the public names and all names that were imported already."""
        return sorted({*globals(), *__all__})
