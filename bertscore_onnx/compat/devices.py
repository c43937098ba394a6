"""Chooses a device by PyTorch's name for it."""

import warnings
from functools import cache

from bertscore_onnx.encoding.providers import choose_providers
from bertscore_onnx.errors import DeviceError


def device_named(device: object) -> object:
    """Return this library's name for a device of PyTorch.

    Args:
        device: such as "cpu", "cuda:0", "mps", a `torch.device`, or None for the best there is.

    Returns:
        "coreml" for "mps" where ONNX Runtime offers CoreML, else "cpu", with one warning a process. All others as they
        are: "cuda" is never replaced.
    """
    return _metal() if str(device).partition(":")[0] == "mps" else device


@cache
def _metal() -> str:
    try:
        choose_providers("coreml")
    except DeviceError:
        warnings.warn(
            'device "mps" is not here: the installed ONNX Runtime does not offer CoreML. The CPU scores instead.',
            RuntimeWarning,
            stacklevel=4,
        )
        return "cpu"
    return "coreml"
