"""Loads a transformer cut at a layer.

The layers above it, and any decoder, are never loaded.
"""

import contextlib
import copy
import warnings
from collections.abc import Mapping
from typing import Any

import torch
import transformers
from transformers import CONFIG_MAPPING, AutoConfig, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput
from transformers.utils import logging

from bertscore_onnx.errors import ExportError, UnsupportedFamilyError
from bertscore_onnx_export.model.adapter import merge_adapter
from bertscore_onnx_export.model.families import ALL_LAYERS, FAMILIES, Family
from bertscore_onnx_export.model.source import Source, check_layer, loading, refuse_own_code
from bertscore_onnx_export.model.versions import IS_TRANSFORMERS_5, relative_keys_loaded

_LAYER_COUNTS = ("encoder_layers", "num_encoder_layers", "num_hidden_layers")
"""The names of the number of encoder layers in configurations. If one has several, the later ones
may include the decoder's layers."""

_DECODER_LAYER_COUNTS = ("decoder_layers", "num_decoder_layers")

_PER_LAYER = ("attention_window", "layer_types")
"""Settings that may be lists with one item per layer."""

_LARGEST = {"hidden_size": 100_000, "vocab_size": 10_000_000}
"""Ten times the sizes of the largest models.

Larger ones in a configuration are damage, and would fill the memory.
"""

_SAFE_ATTENTION = (None, "eager", "sdpa")
"""The implementations of attention in PyTorch itself; other names may refer to code on the Hub."""

_ADOPTED = ("eurobert", "nomic_bert")
"""Types of models that were published with code of their own.

transformers has adopted it since.
"""

_TEXT_PART = (
    "Load its text model with transformers, `save_pretrained` it with the tokenizer, and export "
    "that folder."
)
"""The advice for models of several parts, where one part reads text, such as CLIP."""

_NOT_ENCODING = ("decoder.", "pooler.")
"""The prefixes of weights that no token vector depends on."""


def load_config(source: Source) -> Any:
    """Load the configuration.

    Raise an ExportError if it is damaged or comes with code of its own.
    """
    with loading("configuration", source):
        settings, _ = PretrainedConfig.get_config_dict(
            source.name_or_path, revision=source.revision
        )
        if not _is_adopted(settings):
            refuse_own_code(source, settings, "config.json")
        _check_version(source, settings)
        config = AutoConfig.from_pretrained(
            source.name_or_path, revision=source.revision, trust_remote_code=False
        )
    for name, largest in _LARGEST.items():
        _check_size(config, name, 1, largest)
    if config._attn_implementation not in _SAFE_ATTENTION:
        config._attn_implementation = None
    return config


def _is_adopted(settings: Mapping[str, Any]) -> bool:
    """Return whether transformers computes what a model's own code does.

    The configuration names that code; transformers computes it from the same settings.
    """
    name = settings.get("model_type")
    is_complete = {"hidden_size", "num_hidden_layers", "num_attention_heads"} <= settings.keys()
    return name in _ADOPTED and name in CONFIG_MAPPING and is_complete


def _check_version(source: Source, settings: Mapping[str, Any]) -> None:
    """Raise an error for a configuration of another version of transformers.

    This version does not know it, or would read it in part.
    """
    name = settings.get("model_type")
    installed = transformers.__version__
    if isinstance(name, str) and name not in CONFIG_MAPPING:
        other = "4.57" if IS_TRANSFORMERS_5 else "5"
        advice = "Export another model."
        if name in FAMILIES:
            advice = f"Export it with transformers {other}."
        raise UnsupportedFamilyError(
            f"The configuration of {source.name_or_path} is of the type {name!r}, which "
            f"transformers {installed} does not have. {advice}"
        )
    if settings.get("rope_parameters") and not IS_TRANSFORMERS_5:
        raise ExportError(
            f"{source.name_or_path} was saved by transformers 5: transformers {installed} ignores "
            "`rope_parameters` in config.json, and would compute other positions. Export it with "
            "transformers 5."
        )


def count_layers(config: Any) -> int:
    """Return how many layers the encoder has."""
    for name in _LAYER_COUNTS:
        if hasattr(config, name):
            return _check_size(config, name, 0, ALL_LAYERS)
    raise UnsupportedFamilyError(
        f"The configuration of a model of the type {config.model_type!r} has no number of layers; "
        f"looked for {', '.join(_LAYER_COUNTS)}."
    )


def load_cut(source: Source, config: Any, family: Family, num_layers: int) -> PreTrainedModel:
    """Load the first layers of an encoder in fp32, ready for inference.

    Building the model with fewer layers has the same effect as dropping the others afterwards
    (bert-score, `utils.py:get_model`), without building or reading them. Modules after the last
    layer stay.
    """
    layers = count_layers(config)
    check_layer(source.name_or_path, num_layers, layers)
    cut = _cut(config, min(max(num_layers, family.least_layers), layers))
    for name, value in family.settings.items():
        setattr(cut, name, value)
    with loading("weights", source), relative_keys_loaded(cut):
        model = _load(source, cut, family)
    if hasattr(model, "encoder") and hasattr(model, "decoder"):
        model = model.encoder
    if source.adapter is not None:
        merge_adapter(model, source, num_layers)
    family.adapt(model, num_layers)
    return model.eval()


def stack_hidden_states(model: PreTrainedModel, family: Family, *, inner_norm: bool = True) -> None:
    """Make a model return all its hidden states instead of the last.

    They are (layers, batch, tokens, hidden).

    Each layer is what a model cut there returns: a final norm, such as T5's, is applied to all.
    Without `inner_norm` they are the hidden states of transformers, as in bert-score with
    `all_layers` (`utils.py:bert_encode`): normed in the last layer alone, or in ModernBERT in none.
    """
    forward = model.forward
    norm = model.get_submodule(family.final_norm)  # the model itself if there is none

    def stacked(input_ids: torch.Tensor, attention_mask: torch.Tensor) -> BaseModelOutput:
        output = forward(input_ids, attention_mask=attention_mask, output_hidden_states=True)
        states = output.hidden_states
        if inner_norm:
            inner = states[:-1]
            if family.final_norm:
                inner = [norm(state) for state in inner]
            states = [*inner, output.last_hidden_state]
        return BaseModelOutput(last_hidden_state=torch.stack(list(states)))

    model.forward = stacked


def _load(source: Source, config: Any, family: Family) -> PreTrainedModel:
    level = logging.get_verbosity()
    logging.set_verbosity_error()  # it would list every weight of the omitted layers
    try:
        model, loading_info = family.loader.from_pretrained(
            source.name_or_path,
            revision=source.revision,
            config=config,
            dtype=torch.float32,
            output_loading_info=True,
            trust_remote_code=False,
            **family.model_arguments,
        )
    finally:
        logging.set_verbosity(level)
    learnt = {name for name, weight in model.named_parameters() if weight.requires_grad}
    drawn = learnt.intersection(loading_info["missing_keys"])
    missing = sorted(name for name in drawn if not name.startswith(_NOT_ENCODING))
    if missing:
        warnings.warn(
            f"{source.name_or_path} lacks {len(missing)} weights, {missing[0]} for one; they were "
            "drawn at random, and so are scores that depend on them.",
            UserWarning,
            stacklevel=3,
        )
    return model


def _check_size(config: Any, name: str, least: int, largest: int) -> int:
    """Return a size from a configuration.

    Raise an ExportError unless it is within bounds.
    """
    if not hasattr(config, name):
        if isinstance(getattr(config, "encoder", None), PretrainedConfig):
            raise UnsupportedFamilyError(
                f"{config.name_or_path} is of the type {config.model_type!r}, whose encoder has a "
                "configuration and a class of its own, which transformers cannot load alone. "
                "Export a model of another type."
            )
        advice = _TEXT_PART if "text_config" in vars(config) else "Export another model."
        raise UnsupportedFamilyError(
            f"{config.name_or_path} is of the type {config.model_type!r}, which has no {name}; "
            f"expected an encoder of text alone. {advice}"
        )
    size = getattr(config, name)
    if type(size) is not int or not least <= size <= largest:
        raise ExportError(
            f"The configuration of {config.name_or_path} has {size!r} as {name}; expected a whole "
            f"number from {least} to {largest}. Download or save the model again."
        )
    return size


def _cut(config: Any, num_layers: int) -> Any:
    cut = copy.deepcopy(config)
    for name in _LAYER_COUNTS:
        if hasattr(cut, name):
            # some are properties computed from others
            with contextlib.suppress(NotImplementedError):
                setattr(cut, name, num_layers)
    for name in _DECODER_LAYER_COUNTS:
        if hasattr(cut, name):
            setattr(cut, name, 0)
    for name in _PER_LAYER:
        if isinstance(getattr(cut, name, None), list):
            # a property that follows the number of layers
            with contextlib.suppress(AttributeError):
                setattr(cut, name, getattr(cut, name)[:num_layers])
    if count_layers(cut) != num_layers:
        raise UnsupportedFamilyError(
            f"Models of the type {config.model_type!r} cannot be cut at a layer."
        )
    return cut
