"""The settings of a scorer.

`ScorerSettings` is the one list of them, by the names of `BERTScorer`'s arguments.
"""

from collections.abc import Hashable, Iterable, Mapping
from os import PathLike, fspath
from typing import Any, TypedDict, get_type_hints

from bertscore_onnx.bundle.bundle import Bundle
from bertscore_onnx.bundle.catalogue import default_model as language_model
from bertscore_onnx.bundle.catalogue import lower_code
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.bundle.resolver import resolve_bundle
from bertscore_onnx.bundle.store import MODEL_VARIABLE, Precision, TokenizerMode, default_model
from bertscore_onnx.encoding.session import OptimizeFor
from bertscore_onnx.errors import BundleNotFoundError, InputError, InputTypeError, UnknownModelError
from bertscore_onnx.files import StrPath
from bertscore_onnx.hub import local_path
from bertscore_onnx.matching.variants import Matching, checked_matching
from bertscore_onnx.matching.weights import Idf
from bertscore_onnx.text.texts import check_many
from bertscore_onnx.text.tokenizer import LongText

Settings = Mapping[str, Any]
"""Settings by their names."""


class TokenizerSettings(TypedDict, total=False):
    """The settings that choose the bundle, and where texts are cut.

    Counting documents needs no others.
    """

    model_type: StrPath | None
    num_layers: int | None
    lang: str | None
    use_fast_tokenizer: bool | None
    precision: Precision | None
    long_text: LongText
    max_length: int | None


class ScorerSettings(TokenizerSettings, total=False):
    """All settings of a scorer, as `BERTScorer` takes them.

    Those left out have its defaults.
    """

    batch_size: int | None
    nthreads: int | None
    all_layers: bool
    idf: Idf
    idf_sents: Iterable[str] | None
    device: str | None
    rescale_with_baseline: bool
    baseline_path: StrPath | None
    verify: bool
    allow_fp32_baseline: bool
    optimize_for: OptimizeFor
    matching: Matching | str


def find_bundle(
    settings: TokenizerSettings | ScorerSettings, *, all_layers: bool | None, verify: bool = False
) -> Bundle:
    """Open the bundle of the model, or of the language.

    Without both it is the bundle that the environment names. One on the hub is pulled unless it is
    here.
    """
    lang = settings.get("lang")
    use_fast = settings.get("use_fast_tokenizer")
    tokenizer_mode: TokenizerMode | None = None
    if use_fast is not None:
        tokenizer_mode = "fast" if use_fast else "slow"
    name = settings.get("model_type")
    default = default_model() if name is None else None
    if lang is None and default is not None:
        name = default
    try:
        bundle = resolve_bundle(
            None if name is None else local_path(name),
            lang=lang,
            num_layers=settings.get("num_layers"),
            all_layers=all_layers,
            tokenizer_mode=tokenizer_mode,
            precision=settings.get("precision"),
            verify=verify,
        )
    except (BundleNotFoundError, UnknownModelError) as error:
        # The user may have forgotten the variable, and wonder where the name comes from.
        if default is None:
            raise
        if name is not None:
            raise type(error)(f"{MODEL_VARIABLE} is {default!r}. {error}") from error
        raise type(error)(
            f"{error} {MODEL_VARIABLE} does not apply where a language is given."
        ) from error
    check_language(lang, bundle.manifest)
    return bundle


def check_language(lang: str | None, manifest: Manifest) -> None:
    """Raise an InputError if `lang` is neither a language code nor None.

    It may also be the name of a baseline of the bundle.
    """
    if lang is not None and lower_code(lang) not in manifest.baselines:
        language_model(lang)


# Settings that travel to other processes, where the bundle is an argument of its own.


def checked_settings(settings: Settings, kind: type = ScorerSettings) -> dict[str, Any]:
    """Return settings in a form that can be pickled.

    InputError is raised if the bundle or an unknown name is among them, or idf weights would come
    from each batch.
    """
    names = [name for name in get_type_hints(kind) if name != "model_type"]
    for name in settings:
        if name not in names:
            raise InputTypeError(
                f"There is no setting {name!r}; expected some of {', '.join(names)}."
            )
    checked = dict(settings)
    if checked.get("idf_sents") is not None:
        checked["idf_sents"] = list(check_many(checked["idf_sents"], "idf_sents"))
    elif checked.get("idf") is True:
        raise InputError(
            "idf=True would take idf weights from the references of each batch, so that scores "
            "would depend on how the data is cut. First count the documents of all the data with "
            "count_documents, and pass the counts as idf."
        )
    if "matching" in checked:
        checked["matching"] = checked_matching(checked["matching"])
    if isinstance(checked.get("baseline_path"), PathLike):
        checked["baseline_path"] = fspath(checked["baseline_path"])
    return checked


def counts_first(settings: Settings) -> bool:
    """Return whether idf weights come from all references.

    These must be counted before any is scored.
    """
    return settings.get("idf") is True and settings.get("idf_sents") is None


def of_tokenizer(settings: Settings) -> dict[str, Any]:
    """Return the settings that decide which tokens texts get."""
    return {name: settings[name] for name in get_type_hints(TokenizerSettings) if name in settings}


def key_of(settings: Settings) -> Hashable:
    """Return a key that is equal for equal settings."""
    return tuple((name, _hashable(value)) for name, value in sorted(settings.items()))


def _hashable(value: Any) -> Hashable:
    if isinstance(value, Mapping):
        factory = getattr(value, "default_factory", None)  # such as of a defaultdict
        default = None if factory is None else factory()
        return default, *sorted(value.items())
    return tuple(value) if isinstance(value, list) else value
