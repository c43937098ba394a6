"""The catalogue of known models, with their baselines.

The only reader of `bertscore_onnx_models`.
"""

import csv
import io
import locale
import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from difflib import SequenceMatcher
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from types import MappingProxyType
from typing import Any, Literal

from bertscore_onnx.errors import BaselineError, InputError, InputTypeError, one_line, shortened
from bertscore_onnx.files import StrPath, path_text, read_named
from bertscore_onnx.tables.columns import number_text
from bertscore_onnx.tables.sources import BYTE_ORDER_MARK

_COLUMNS = ("LAYER", "P", "R", "F")

_MAX_BASELINE_BYTES = 10_000_000

UNKNOWN_FAMILY = "unknown"
"""The family of a published graph whose configuration does not state its type."""

BERT_SCORE = "bert-score"
"""The source of most layers."""

_NEAR = 0.6
"""The least similarity to an unknown name for a known one to be suggested: most of its letters, in
order.
"""

_LANGUAGE_CODE = re.compile("([a-z]{2,3})([-_][a-z0-9]{2,8})*")
"""Two or three letters (ISO 639), optionally followed by script and country."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The mean scores of random sentence pairs by one model and layer in one language, below 1.

    bert-score's `journal/rescale_baseline.md` explains how scores are rescaled with them.
    """

    precision: float
    recall: float
    f1: float


def read_baseline_file(path: StrPath, num_layers: int) -> Baseline:
    """Return the baseline of one layer from a file.

    The file is comma-separated, with the columns LAYER, P, R and F. Raises a BaselineError without
    a row for the layer, and an InputError for a file that cannot be read.
    """
    try:
        text = read_named(path_text(path, "baseline_path"), _MAX_BASELINE_BYTES).decode()
        rows = list(csv.DictReader(io.StringIO(text.lstrip(BYTE_ORDER_MARK), newline="")))
    except OSError as error:
        raise InputError(
            f"Cannot read the baseline file {path} ({error.strerror or one_line(error)}). Check "
            "the name and its permissions."
        ) from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"The baseline file {path} is no CSV in UTF-8. `bertscore-onnx baseline` writes one."
        ) from error
    layers_of_rows = []
    table = {}
    try:
        for row in rows:
            layer, *means = [number_text(row[column]) for column in _COLUMNS]
            layers_of_rows.append(int(layer))
            table[int(layer)] = Baseline(*map(float, means))
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"The baseline file {path} begins with {shortened(text.partition(chr(10))[0])!r}; "
            f"expected a header {','.join(_COLUMNS)}, then one row of numbers per layer. "
            "`bertscore-onnx baseline` writes one."
        ) from error
    # of rows for the same layer the table holds the last alone
    if len(table) < len(rows):
        twice = next(layer for layer in layers_of_rows if layers_of_rows.count(layer) > 1)
        raise InputError(
            f"The baseline file {path} has {layers_of_rows.count(twice)} rows for layer {twice}; "
            "expected one. Remove the others."
        )
    if num_layers not in table:
        layers = ", ".join(map(str, sorted(table)))
        rows_of = f"only for {layers}" if table else "nor for any other"
        raise BaselineError(
            f"The baseline file {path} has no row for layer {num_layers}, {rows_of}."
        )
    baseline = table[num_layers]
    if not all(mean < 1 and math.isfinite(mean) for mean in astuple(baseline)):
        raise InputError(
            f"The baseline file {path} holds {baseline} for layer {num_layers}; each must be "
            "below 1."
        )
    return baseline


@dataclass(frozen=True, slots=True)
class Architecture:
    """The type and the sizes of a model; None for each that is not known."""

    family: str | None
    """Its name in the catalogue, or the `model_type` of a configuration."""

    model_layers: int | None
    hidden_size: int | None
    vocab_size: int | None

    def may_be(self, other: "Architecture") -> bool:
        """Return whether all facts that are known of both are equal."""
        pairs = zip(self._facts().values(), other._facts().values(), strict=True)
        return all(None in pair or pair[0] == pair[1] for pair in pairs)

    def __str__(self) -> str:
        """Return the known facts for a message.

        For example `type bert, layers 12, hidden size 768, vocabulary 30522`.
        """
        facts = [f"{name} {fact}" for name, fact in self._facts().items() if fact is not None]
        return ", ".join(facts)

    def _facts(self) -> dict[str, str | int | None]:
        family = None
        if self.family not in (None, UNKNOWN_FAMILY):
            family = common_family(self.family)
        return {
            "type": family,
            "layers": self.model_layers,
            "hidden size": self.hidden_size,
            "vocabulary": self.vocab_size,
        }


def common_family(name: str) -> str:
    """Return one name for all families of the same architecture.

    All values of `model_type` have it, too.
    """
    family: str = _document()["architectures"].get(name, name)
    return family


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """The facts about one model before it is exported."""

    name: str
    """The model's id on the Hugging Face hub, as bert-score spells it."""

    family: str
    """The architecture, which decides how it is exported: `bert`, `roberta`, `deberta-v2` and so
    on.
    """

    num_layers: int
    """The layer that `source` chose for the token vectors; 0 is the embeddings."""

    architecture: Architecture
    """The type and the sizes of the whole model."""

    max_length: int | None
    """The most tokens that the model accepts, special tokens included; None if its positions have
    no bound.

    A bundle has a lower maximum if the model's tokenizer states one.
    """

    size_mb: int
    """MB (10^6 bytes) of the weights in fp32 when the model is cut at its layer."""

    tokenizer: Literal["slow", "fast"]
    """The tokenizer that a bundle has by default: `slow`, or `fast` for a model without a slow
    one.
    """

    source: str
    """The package that published the layer."""


@cache
def entries() -> Mapping[str, CatalogueEntry]:
    """Return every known model by name, read-only.

    bert-score's `model2layers` come in its order, then others.
    """
    known = {}
    for name, fact in _document()["models"].items():
        known[name] = CatalogueEntry(
            name,
            fact["family"],
            fact["layer"],
            Architecture(
                fact["family"], fact.get("layers"), fact.get("hidden"), fact.get("vocabulary")
            ),
            fact.get("max_length"),
            fact["size"],
            fact.get("tokenizer", "slow"),
            fact.get("source", BERT_SCORE),
        )
    return MappingProxyType(known)


def find(name: str) -> CatalogueEntry | None:
    """Return the entry of exactly this name, or None."""
    return entries().get(name)


def misnamed(name: str, model: Architecture) -> str | None:
    """Return how a model of the catalogue differs from another that has its name, else None.

    Models of the same type and sizes, such as fine-tuned ones, cannot be told apart.
    """
    entry = find(name)
    if entry is None or model.may_be(entry.architecture):
        return None
    return f"{name} is a model of the catalogue with {entry.architecture}; this one has {model}"


def lower_code(language: str) -> str:
    """Return the code of a language in lower case.

    Raise an InputTypeError if it is no string.
    """
    if not isinstance(language, str):
        raise InputTypeError(f'lang is {language!r}; expected a language code, such as "en".')
    return language.lower()


def default_model(language: str) -> str:
    """Return the default model of a language, as bert-score's `lang2model` (`utils.py`) has it.

    Takes a code such as `en`, in any case. The catalogue's other codes get the multilingual model;
    for anything else an InputError is raised.
    """
    languages = _document()["languages"]
    code = lower_code(language)
    named = languages["named"]
    parts = _LANGUAGE_CODE.fullmatch(code)
    codes = f"{languages['two_letters']} {languages['three_letters']}".split()
    is_code = parts is not None and parts[1] in codes
    if code not in named and not is_code:
        expected = "a language code"
        alias, _, country = locale.normalize(code).partition("_")
        if country:  # it knows the name of a language, such as german
            expected += f", {alias!r} for this one"
        raise InputError(
            f"lang is {language!r}; expected {expected}. {', '.join(sorted(named))} have a "
            f"model of their own, all others get {languages['default']}; 'und' is a language "
            "without a code of two letters."
        )
    return named.get(code, languages["default"])


def models_of_languages() -> Mapping[str, str]:
    """Return the models of the languages that have one of their own."""
    return MappingProxyType(_document()["languages"]["named"])


def nearest_names(name: str, candidates: Iterable[str]) -> list[str]:
    """Return up to three names similar to an unknown one, for a message.

    The best is first, and case is ignored. Names that contain the unknown one always qualify.
    """
    # SequenceMatcher indexes seq2 once and keeps it; autojunk would skip letters of a long name.
    matcher = SequenceMatcher(b=name.lower(), autojunk=False)

    def similarity(candidate: str) -> float:
        matcher.set_seq1(candidate.lower())
        return 1.0 if name.lower() in candidate.lower() else matcher.ratio()

    similarities = {candidate: similarity(candidate) for candidate in candidates}
    near = [candidate for candidate, value in similarities.items() if value >= _NEAR]
    return sorted(near, key=similarities.__getitem__, reverse=True)[:3]


def baseline_languages(name: str) -> list[str]:
    """Return the languages that have a baseline for this model, sorted; none if it is unknown."""
    return sorted(_baseline_files(name))


def baselines(name: str, num_layers: int) -> dict[str, Baseline]:
    """Return language to baseline for one layer, from bert-score's `rescale_baseline` folder.

    Languages without a row for the layer are absent: all of them for an unknown model or layer.
    """
    of_layer = {}
    for language, file in sorted(_baseline_files(name).items()):
        with file.open(encoding="utf-8") as lines:
            for row in csv.DictReader(lines):
                if int(row["layer"]) == num_layers:
                    of_layer[language] = Baseline(
                        float(row["precision"]), float(row["recall"]), float(row["f1"])
                    )
    return of_layer


@cache
def largest_differences() -> Mapping[str, float]:
    """Return by family the largest difference from the original's scores, on tiny random models."""
    with _folder().joinpath("parity.csv").open(encoding="utf-8") as lines:
        largest = {row["family"]: float(row["largest_difference"]) for row in csv.DictReader(lines)}
    return MappingProxyType(largest)


@cache
def _document() -> dict[str, Any]:
    return tomllib.loads(_folder().joinpath("catalogue.toml").read_text(encoding="utf-8"))


def _folder() -> Traversable:
    return files("bertscore_onnx_models")


def _baseline_files(name: str) -> dict[str, Traversable]:
    """Return language to baseline file, for names of the catalogue only: others may be any path."""
    if name not in entries():
        return {}
    of_languages = {}
    for folder in _folder().joinpath("baselines").iterdir():
        file = folder.joinpath(f"{name}.csv")
        if file.is_file():
            of_languages[folder.name] = file
    return of_languages
