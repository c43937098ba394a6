"""Names of bert-score's `utils.py`.

They are those that programs use: its tables, its hash, and idf weights.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable
from math import log

from bertscore_onnx import __version__ as own_version
from bertscore_onnx.bundle import catalogue
from bertscore_onnx.bundle.resolver import resolve_bundle
from bertscore_onnx.bundle.store import TokenizerMode, default_model
from bertscore_onnx.compat.bert_score.tokenizer import BundleTokenizer
from bertscore_onnx.compat.bert_score.version import __version__
from bertscore_onnx.errors import BertScoreOnnxError, InputError, InputTypeError
from bertscore_onnx.files import StrPath
from bertscore_onnx.hub import local_path

__all__ = ["get_hash", "get_idf_dict", "get_tokenizer", "lang2model", "model2layers"]


class _Layers(dict[str, int]):
    """Layers by the names of models, and by the paths of bundles."""

    def __missing__(self, model: str) -> int:
        """Read the layer from the manifest of the bundle."""
        try:
            return resolve_bundle(local_path(model), all_layers=None).manifest.num_layers
        except BertScoreOnnxError as error:
            raise KeyError(model) from error


lang2model = defaultdict(lambda: catalogue.default_model("und"), catalogue.models_of_languages())
"""Language code to model; other languages get the multilingual one."""

model2layers = _Layers(
    {
        name: entry.num_layers
        for name, entry in catalogue.entries().items()
        if entry.source == catalogue.BERT_SCORE
    }
)
"""Model to the layer that bert-score tuned; the path of a bundle to its own."""


def look_up(
    model_type: StrPath | None, num_layers: int | None, lang: str | None
) -> tuple[str | None, int | None, str | None]:
    """Return the model and the layer of these tables, and the language.

    A program may have changed the tables. The model is None if none is named, and the layer if it
    is the bundle's own. A language that only the changed table has is "und".
    """
    if model_type is None and lang is not None:
        code = catalogue.lower_code(lang)
        try:
            catalogue.default_model(code)
        except InputError:
            if code not in lang2model:
                raise
            lang = "und"
        model_type = lang2model[code]
    model = default_model() if model_type is None else str(model_type)
    if num_layers is None:
        num_layers = model2layers.get(str(model))
    return model, num_layers, lang


def get_hash(
    model: str,
    num_layers: int,
    idf: object,
    rescale_with_baseline: bool,
    use_custom_baseline: bool,
    use_fast_tokenizer: bool,
) -> str:
    """Return bert-score's line about the settings, with this library in place of transformers.

    Idf weights of different sentences have the same line, unlike in
    `bertscore_onnx.BERTScorer.signature`.
    """
    weights = "idf" if idf else "no-idf"
    line = f"{model}_L{num_layers}_{weights}_version={__version__}"
    line += f"(bertscore-onnx={own_version})"
    if rescale_with_baseline:
        line += "-custom-rescaled" if use_custom_baseline else "-rescaled"
    if use_fast_tokenizer:
        line += "_fast-tokenizer"
    return line


def get_tokenizer(model_type: str, use_fast: bool = False) -> BundleTokenizer:
    """Load the tokenizer of a model's bundle.

    Raises:
        BertScoreOnnxError: there is no such bundle, or it cannot be used.
    """
    mode: TokenizerMode | None = "fast" if use_fast else None
    layer = model2layers.get(model_type)
    path = local_path(model_type)
    bundle = resolve_bundle(path, num_layers=layer, all_layers=None, tokenizer_mode=mode)
    return BundleTokenizer(bundle)


def get_idf_dict(
    arr: Iterable[str], tokenizer: BundleTokenizer, nthreads: int = 4
) -> defaultdict[int, float]:
    """Compute idf weights, log((N + 1) / (df + 1)), for the argument `idf`.

    Args:
        arr: the N reference sentences.
        tokenizer: the result of `get_tokenizer` for the model.
        nthreads: has no effect.

    Raises:
        InputTypeError: it is another tokenizer, whose ids may differ from the scored ids.
    """
    if not isinstance(tokenizer, BundleTokenizer):
        raise InputTypeError(
            f"The tokenizer is a {type(tokenizer).__name__}; expected what "
            "bert_score.utils.get_tokenizer(model_type) returns, whose ids are those that are "
            "scored."
        )
    documents = tokenizer.encode_batch(list(arr))
    frequency: Counter[int] = Counter()
    for ids in documents:
        frequency.update(set(ids))
    total = len(documents) + 1
    weights = {token: log(total / (count + 1)) for token, count in frequency.items()}
    return defaultdict(lambda: log(total), weights)


_OF_PYTORCH = (
    "bert_cos_score_idf",
    "bert_encode",
    "cache_scibert",
    "collate_idf",
    "get_bert_embedding",
    "get_model",
    "greedy_cos_idf",
    "padding",
    "process",
    "sent_encode",
)
"""The names of bert-score that need a PyTorch model or its tensors."""


def __getattr__(name: str) -> object:
    """Raise an ImportError for bert-score's other names.

    Its message is shown after `from … import` as well.
    """
    if name not in _OF_PYTORCH:
        raise AttributeError(f"module 'bert_score' has no attribute {name!r}")
    raise ImportError(
        f"bert-score's {name} is not part of this drop-in replacement, which has no PyTorch "
        "model. Use bertscore_onnx.BERTScorer.encode for embeddings, and .pairwise for the "
        "scores of all pairs."
    )
