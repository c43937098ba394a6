"""Merges a LoRA adapter into the weights of a model.

The adapter (Hu et al., 2022) is in the files that PEFT writes.
"""

import json
import math
import re
from collections import defaultdict
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import PreTrainedModel

from bertscore_onnx.errors import ExportError
from bertscore_onnx_export.model.source import Source, loading

_CONFIG = "adapter_config.json"
_WEIGHTS = "adapter_model.safetensors"
_KEY = re.compile(
    r"base_model\.model\.(?P<module>.+?)"
    r"\.lora_(?P<kind>embedding_)?(?P<side>[AB])(\.default)?(\.weight)?"
)
_PLAIN: dict[str, tuple[Any, ...]] = {
    "bias": ("none",),
    "rank_pattern": ({}, None),
    "alpha_pattern": ({}, None),
    "use_dora": (False, None),
}
"""Settings with the values of an adapter that is products alone."""


def merge_adapter(model: PreTrainedModel, source: Source, num_layers: int) -> None:
    """Add the products of an adapter, scaled, to the weights that it names.

    Layers that were cut off have none.
    """
    settings, tensors = _load(source)
    rank = settings["r"]
    divisor = math.sqrt(rank) if settings.get("use_rslora") else rank
    scale = settings["lora_alpha"] / divisor
    pairs: dict[str, dict[str, Tensor]] = defaultdict(dict)
    for key, tensor in tensors.items():
        found = _KEY.fullmatch(key)
        if found is None:
            raise _unusable(source, f"has the weight {key!r}; expected those of LoRA")
        pairs[found["module"]][found["side"]] = tensor.float()
    modules = dict(model.named_modules())
    for name, sides in pairs.items():
        if name in modules:
            _add(modules[name].weight, sides, scale, source, name)
        elif not any(int(layer) >= num_layers for layer in re.findall(r"\.(\d+)\.", name)):
            raise _unusable(source, f"is for {name!r}, which the model does not have")


def _load(source: Source) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the settings and the tensors of an adapter.

    Raise an ExportError if there is none, or another kind.
    """
    with loading("adapter", source):
        settings = json.loads(_file(source, _CONFIG).read_text(encoding="utf-8"))
        tensors = load_file(_file(source, _WEIGHTS))
    is_plain = settings.get("peft_type") == "LORA"
    for key, plain_values in _PLAIN.items():
        is_plain &= settings.get(key) in (*plain_values, None)
    if not is_plain:
        raise _unusable(source, "is of a kind that cannot be merged; expected plain LoRA")
    return settings, tensors


def _file(source: Source, name: str) -> Path:
    folder = Path(source.name_or_path)
    if not folder.is_dir():
        from huggingface_hub import hf_hub_download  # for the hub alone

        hub_name = f"{source.adapter}/{name}"
        return Path(hf_hub_download(source.name_or_path, hub_name, revision=source.revision))
    file = folder / str(source.adapter) / name
    if not file.is_file():
        available = sorted(config.parent.name for config in folder.glob(f"*/{_CONFIG}"))
        raise ExportError(
            f"{source.name_or_path} has no adapter {source.adapter!r}: expected a folder of "
            f"that name in it with {_CONFIG} and {_WEIGHTS}. It has: "
            f"{', '.join(available) or 'none'}."
        )
    return file


def _add(weight: Tensor, sides: dict[str, Tensor], scale: float, source: Source, name: str) -> None:
    if set(sides) != {"A", "B"} or sides["B"].shape[1] != sides["A"].shape[0]:
        raise _unusable(source, f"has no matching matrices for {name!r}")
    product = sides["B"] @ sides["A"]
    if product.shape != weight.shape:  # an embedding has a row for each token
        product = product.T
    if product.shape != weight.shape:
        raise _unusable(
            source, f"changes {name!r} by {list(product.shape)}; expected {list(weight.shape)}"
        )
    with torch.no_grad():
        weight += scale * product


def _unusable(source: Source, problem: str) -> ExportError:
    return ExportError(
        f"The adapter {source.adapter!r} of {source.name_or_path} {problem}. Merge it yourself, "
        "with PEFT."
    )
