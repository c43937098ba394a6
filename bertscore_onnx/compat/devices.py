"""Translates PyTorch's names of devices."""

import warnings
from functools import cache

from bertscore_onnx.encoding.providers import choose_providers
from bertscore_onnx.errors import DeviceError


def device_named(device: object) -> object:
    """Return our name for a device of PyTorch: for "mps" it is "coreml", or without CoreML "cpu", with a warning."""
    return _metal() if str(device).partition(":")[0] == "mps" else device


@cache
def _metal() -> str:
    try:
        choose_providers("coreml")
    except DeviceError:
        warnings.warn(
            'device "mps" is not available: the installed ONNX Runtime has no CoreML. The CPU scores instead.',
            RuntimeWarning,
            stacklevel=4,
        )
        return "cpu"
    return "coreml"
