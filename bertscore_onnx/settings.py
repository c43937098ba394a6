"""What a scorer, or the counting of documents, is to be made with in another process."""

from collections.abc import Hashable, Iterable, Mapping
from os import PathLike, fspath
from typing import Any, TypedDict, get_type_hints

from bertscore_onnx.bundle.store import Precision
from bertscore_onnx.encoding.session import OptimizeFor
from bertscore_onnx.errors import InputError, InputTypeError
from bertscore_onnx.matching.weights import Idf
from bertscore_onnx.text.tokenizer import LongText


class TokenizerSettings(TypedDict, total=False):
    """The settings of `BERTScorer` that say which bundle, and where texts are cut."""

    model_type: str | PathLike[str] | None
    num_layers: int | None
    lang: str | None
    use_fast_tokenizer: bool | None
    precision: Precision | None
    long_text: LongText
    max_length: int | None


class ScorerSettings(TokenizerSettings, total=False):
    """All settings of `BERTScorer`; idf weights must be known, since a worker sees a part of the references."""

    batch_size: int | None
    nthreads: int | None
    all_layers: bool
    idf: Idf
    idf_sents: Iterable[str] | None
    device: str | None
    rescale_with_baseline: bool
    baseline_path: str | PathLike[str] | None
    verify: bool
    allow_fp32_baseline: bool
    optimize_for: OptimizeFor


def checked_settings(settings: Mapping[str, Any], kind: type = ScorerSettings) -> dict[str, Any]:
    """Return settings in a form that can be pickled.

    Args:
        settings: by their names.
        kind: which there may be.

    Raises:
        InputTypeError: there is no such setting.
        InputError: idf weights would come from the references of each batch.
    """
    known = [name for name in get_type_hints(kind) if name != "model_type"]
    for name in settings:
        if name not in known:
            raise InputTypeError(f"There is no setting {name!r}; expected some of {', '.join(known)}.")
    checked = dict(settings)
    if checked.get("idf_sents") is not None:
        checked["idf_sents"] = list(checked["idf_sents"])
    elif checked.get("idf") is True:
        raise InputError(
            "idf=True would take idf weights from the references of each batch, so that scores depend on how the data "
            "is cut. Count the documents of the whole first, with count_documents, and give these counts as idf."
        )
    if isinstance(checked.get("baseline_path"), PathLike):
        checked["baseline_path"] = fspath(checked["baseline_path"])
    return checked


def counts_first(settings: Mapping[str, Any]) -> bool:
    """Return whether idf weights are to come from all references, which are counted before any is scored."""
    return settings.get("idf") is True and settings.get("idf_sents") is None


def of_tokenizer(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the settings that decide what tokens texts get."""
    return {name: settings[name] for name in get_type_hints(TokenizerSettings) if name in settings}


def key_of(settings: Mapping[str, Any]) -> Hashable:
    """Return what is equal for equal settings."""
    return tuple((name, _hashable(value)) for name, value in sorted(settings.items()))


def _hashable(value: Any) -> Hashable:
    if isinstance(value, Mapping):
        factory = getattr(value, "default_factory", None)
        return factory and factory(), *sorted(value.items())
    return tuple(value) if isinstance(value, list) else value
