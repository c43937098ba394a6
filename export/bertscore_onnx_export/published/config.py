"""Reads the config.json beside a published graph, without transformers."""

import json
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, SimpleNamespace
from typing import Any

from bertscore_onnx.bundle.catalogue import UNKNOWN_FAMILY, Architecture
from bertscore_onnx.bundle.manifest import MAX_LAYERS, MAX_SIZE, MAX_VOCAB_SIZE
from bertscore_onnx.errors import ExportError, UnsupportedFamilyError, shortened
from bertscore_onnx_export.model.positions import counts_after, ignores_type_zero, max_positions
from bertscore_onnx_export.model.source import LAYERS, SIZES

_DECODER_LAYERS = ("decoder_layers", "num_decoder_layers")

_POSITIONS = ("max_position_embeddings", "max_encoder_position_embeddings")
_NUMBERS = (*LAYERS, *SIZES, *_DECODER_LAYERS, *_POSITIONS, "vocab_size", "pad_token_id")
_SWITCHES = ("is_encoder_decoder", "position_biased_input")
_TYPES = {**dict.fromkeys(_NUMBERS, int), **dict.fromkeys(_SWITCHES, bool)}
"""The settings that are read, beside `model_type`; any may be null."""


@dataclass(frozen=True, slots=True)
class PublishedConfig:
    """The facts of a configuration that an export of a graph needs."""

    model_type: str
    num_layers: int
    hidden_size: int
    vocab_size: int
    pad_token_id: int | None

    max_tokens: int | None
    """The most tokens that the model has positions for; None for no bound."""

    has_decoder: bool
    """Whether the model has a decoder beside the encoder."""

    _settings: SimpleNamespace

    @property
    def architecture(self) -> Architecture:
        """The type and the sizes of the model."""
        return Architecture(self.model_type, self.num_layers, self.hidden_size, self.vocab_size)

    def padding_before_positions(self) -> int | None:
        """Return the padding id that positions are counted from.

        None if they are counted from 0.
        """
        try:
            return counts_after(self._settings)
        except LookupError as error:
            raise UnsupportedFamilyError(
                f"The graph wants 'position_ids', and how models of the type {self.model_type!r} "
                "count positions is not known. Use a graph without them, or export the model "
                "itself with --model."
            ) from error

    def check_token_types(self) -> None:
        """Raise an UnsupportedFamilyError if token types of 0 change the vectors.

        A model may compute other vectors with them than without.
        """
        if not ignores_type_zero(self._settings):
            raise UnsupportedFamilyError(
                f"The graph wants 'token_type_ids', and models of the type {self.model_type!r} "
                "compute other vectors with them than without. Use a graph without them, or "
                "export the model itself with --model."
            )


def read_config(folder: Path) -> PublishedConfig:
    """Read the configuration in a folder.

    Raise an ExportError if a fact is missing, or beyond any model's size.
    """
    file = folder / "config.json"
    settings = _read_settings(file)
    model_type = settings.get("model_type", UNKNOWN_FAMILY)
    if not isinstance(model_type, str) or not model_type.isprintable() or "|" in model_type:
        raise ExportError(
            f"{file} has {str(model_type)[:100]!a} as model_type; expected a printable name "
            "without '|'. Copy it from the model's repository."
        )
    for name, kind in _TYPES.items():
        value = settings.get(name)
        if type(value) not in (kind, NoneType):
            expected = "a whole number" if kind is int else "true or false"
            raise ExportError(
                f"{file} has {name} = {shortened(json.dumps(value))}; expected {expected}. Copy "
                "it from the model's repository."
            )
    padding = settings.get("pad_token_id")
    if padding is not None and padding < 0:
        padding = None
    has_decoder = settings.get("is_encoder_decoder") is True
    facts = SimpleNamespace(**settings | {"model_type": model_type})
    return PublishedConfig(
        model_type=model_type,
        num_layers=_number(settings, LAYERS, MAX_LAYERS, file),
        hidden_size=_number(settings, SIZES, MAX_SIZE, file),
        vocab_size=_number(settings, ("vocab_size",), MAX_VOCAB_SIZE, file),
        pad_token_id=padding,
        max_tokens=max_positions(facts),
        has_decoder=has_decoder or any(name in settings for name in _DECODER_LAYERS),
        _settings=facts,
    )


def _read_settings(file: Path) -> dict[str, Any]:
    """Return the JSON object in a file."""
    try:
        settings = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ExportError(
            f"Cannot read {file} ({reason}). Copy it from the model's repository."
        ) from error
    if not isinstance(settings, dict):
        raise ExportError(f"{file} is no JSON object. Copy it from the model's repository.")
    return settings


def _number(settings: dict[str, Any], names: tuple[str, ...], largest: int, file: Path) -> int:
    for name in names:
        number: int = settings.get(name) or 0
        if number > largest:
            raise ExportError(
                f"{file} has {name} = {shortened(str(number))}, and at most {largest:,} is "
                "accepted. Copy it from the model's repository."
            )
        if number > 0:
            return number
    raise ExportError(
        f"{file} has no number as {'/'.join(names)}. Copy it from the model's repository."
    )
