"""Loads a transformer cut at a layer; the layers above it are never loaded."""

from typing import Any

import torch
from transformers import AutoConfig, AutoModel, PreTrainedModel

from bertscore_onnx.errors import ExportError, UnknownLayerError
from bertscore_onnx_export.families import Family
from bertscore_onnx_export.source import Source, first_line


def load_config(source: Source) -> Any:
    """Load the configuration alone.

    Raises:
        ExportError: there is none to be had.
    """
    try:
        return AutoConfig.from_pretrained(source.name_or_path, revision=source.revision)
    except (OSError, ValueError) as error:
        raise ExportError(
            f"Cannot load the configuration of {source.name_or_path!r}: {first_line(error)} Expected a Hub id or a "
            "folder written by `save_pretrained`."
        ) from error


def load_cut(source: Source, config: Any, family: Family, num_layers: int) -> PreTrainedModel:
    """Load the first layers of a model in fp32, ready for inference.

    Building the model with fewer layers is the same as dropping the others afterwards (bert-score,
    `utils.py:get_model`), but neither builds nor reads them.

    Args:
        source: the model.
        config: its configuration.
        family: its row.
        num_layers: how many layers to keep; 0 keeps the embeddings.

    Raises:
        UnknownLayerError: the model has fewer layers.
        ExportError: the weights cannot be loaded.
    """
    if not 0 <= num_layers <= config.num_hidden_layers:
        raise UnknownLayerError(
            f"{source.name_or_path} has {config.num_hidden_layers} layers; num_layers must be from 0 to that, "
            f"not {num_layers}."
        )
    cut = type(config).from_dict({**config.to_dict()})
    cut.num_hidden_layers = num_layers
    try:
        model: PreTrainedModel = AutoModel.from_pretrained(
            source.name_or_path, revision=source.revision, config=cut, dtype=torch.float32, **family.model_arguments
        )
    except (OSError, ValueError, RuntimeError) as error:
        raise ExportError(f"Cannot load the weights of {source.name_or_path!r}: {first_line(error)}") from error
    return model.eval()
