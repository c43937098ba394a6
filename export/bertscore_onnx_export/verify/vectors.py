"""The unit vectors of a model, and how its graph compares with them."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad
from transformers import PreTrainedModel

from bertscore_onnx.encoding.providers import load_onnxruntime
from bertscore_onnx.errors import VerificationError
from bertscore_onnx_export.model.families import Family
from bertscore_onnx_export.model.positions import after_padding, max_positions
from bertscore_onnx_export.model.source import first_line
from bertscore_onnx_export.verify.bundle import HARMLESS

_ADVICE = "Export a model of another type; `bertscore-onnx models` lists those known to work."


def unit_vectors(model: PreTrainedModel, ids: Tensor, mask: Tensor) -> Tensor:
    """Return the unit vectors of ids.

    Ids are (batch, tokens), and vectors (batch, tokens, hidden), with a first axis for all layers.
    """
    with torch.no_grad():
        vectors = model(ids, attention_mask=mask).last_hidden_state
    norms = vectors.norm(dim=-1, keepdim=True)
    return vectors / norms


def sample_ids(model: PreTrainedModel, tokens: int, *, padding: int = 0) -> tuple[Tensor, Tensor]:
    """Return ids of a number of tokens followed by padding, and their mask.

    Both are (1, tokens + padding).
    """
    # away from special tokens; RoBERTa does not count padding as positions
    middle = model.config.vocab_size // 2
    ids = middle + torch.arange(tokens)[None] % 5
    return pad(ids, (0, padding)), pad(torch.ones_like(ids), (0, padding))


def verify_vectors(model: PreTrainedModel, graph: Path, *, padding: bool) -> None:
    """Raise a VerificationError if a graph differs from its model.

    They are compared on batches of several shapes: a trace may have fixed any of the shapes.
    """
    session = load_onnxruntime().InferenceSession(graph)
    for batch, tokens, padded in ((1, 1, 0), (1, 17, 0), (3, 9, 7 if padding else 0)):
        ids, mask = (row.repeat(batch, 1) for row in sample_ids(model, tokens, padding=padded))
        values = {"input_ids": ids.numpy(), "attention_mask": mask.numpy()}
        feed = {node.name: values[node.name] for node in session.get_inputs()}
        try:
            vectors = torch.from_numpy(session.run(None, feed)[0])  # (batch, tokens, hidden)
            differences = vectors - unit_vectors(model, ids, mask)
            difference = float(differences[..., :tokens, :].abs().max())
        # ONNX Runtime's errors are untyped; different shapes raise RuntimeError
        except Exception as error:
            raise VerificationError(
                f"The graph of a model of the type {model.config.model_type!r} fails on {batch} x "
                f"{tokens} tokens: {first_line(error).rstrip('.')}. {_ADVICE}"
            ) from error
        if not difference <= HARMLESS:
            raise VerificationError(
                f"The graph of a model of the type {model.config.model_type!r} differs from "
                f"PyTorch by {difference:.1e} on {batch} x {tokens} tokens; at most "
                f"{HARMLESS:.0e} is accepted. {_ADVICE}"
            )


def verify_inner_layer(model: PreTrainedModel, cut: PreTrainedModel, layer: int) -> None:
    """Raise a VerificationError if an inner layer is not that of a cut model.

    The layer is one of a model that returns all of them, and the other model is cut there. They
    differ if a norm follows the last layer, and the model's row does not name it.
    """
    ids, mask = sample_ids(model, 17)
    among_all = unit_vectors(model, ids, mask)[layer]
    difference = float((among_all - unit_vectors(cut, ids, mask)).abs().max())
    if not difference <= HARMLESS:
        raise VerificationError(
            f"Layer {layer} among all layers differs from a model of the type "
            f"{model.config.model_type!r} cut there by {difference:.1e}, as if a norm followed "
            f"the last layer; at most {HARMLESS:.0e} is accepted. Export one layer with "
            "--num-layers, or all layers without that norm with --no-inner-norm."
        )


# Facts known for tested families, and found by running other models.


def max_tokens(model: PreTrainedModel, config: Any, family: Family) -> int | None:
    """Return the most tokens that a model accepts; None if it has no bound.

    For an untested family it is the number in the configuration, if the model runs at that length,
    or else the number that RoBERTa's way of counting positions leaves.
    """
    longest = max_positions(config)
    if family.is_tested or longest is None:
        return longest
    try:
        unit_vectors(model, *sample_ids(model, longest))
    except (IndexError, RuntimeError):
        return after_padding(config)
    return longest


def takes_padding(model: PreTrainedModel, family: Family) -> bool:
    """Return whether padding leaves the vectors of the real tokens unchanged."""
    if family.is_tested:
        return family.padding
    alone = unit_vectors(model, *sample_ids(model, 9))
    padded = unit_vectors(model, *sample_ids(model, 9, padding=7))
    return bool((alone - padded[..., :9, :]).abs().max() < HARMLESS)
