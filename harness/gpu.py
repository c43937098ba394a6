"""The limits of CUDA on the provider of the CPU, so that they can be tried without a GPU."""

from dataclasses import replace
from typing import Any

from bertscore_onnx.encoding.providers import CPU, CUDA, Provider

CHOICE = "bertscore_onnx.encoding.session.choose_providers"
"""The function to replace, so that sessions open on another provider."""

LIMITS = (
    "concurrency",
    "splits_little_work",
    "batch_values",
    "batch_tokens",
    "widths",
    "chunk_scale",
    "keeps_vectors",
)


def like_cuda(**changes: Any) -> Provider:
    """Return the provider of the CPU with the limits of CUDA."""
    limits: dict[str, Any] = {name: getattr(CUDA, name) for name in LIMITS}
    return replace(CPU, **{**limits, **changes})
