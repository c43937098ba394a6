"""Finds ONNX Runtime and the execution provider that a device name asks for."""

import importlib.metadata
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from bertscore_onnx.concurrency.cpus import cpu_features
from bertscore_onnx.errors import DeviceError, InputError, MissingExtraError

CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"
OPENVINO = "OpenVINOExecutionProvider"

_WHEELS = ("onnxruntime", "onnxruntime-gpu", "onnxruntime-openvino")


@dataclass(frozen=True, slots=True)
class Device:
    """An execution provider of ONNX Runtime, and what suits it."""

    provider: str

    options: Mapping[str, Any] = field(default_factory=dict)
    """The provider's own options."""

    batch_values: int = 200_000
    """Hidden values (padded tokens times hidden size) in one run. On a CPU the intermediate values of a layer, four
    times as many, should stay in the cache; `benchmarks/studies/batch_tokens.py` measures what a machine likes best."""

    batch_tokens: int = 1024
    """Padded tokens in one run however small the model is. More of them gain nothing, and need more memory at times."""

    length_multiple: int = 1
    """Runs are padded to a multiple of so many tokens, so that matrix units are filled and shapes recur."""

    precision: str | None = None
    """The arithmetic, where it is not that of the graph."""

    def with_options(self, **options: Any) -> "Device":
        """Return the same device with further options of its provider."""
        return replace(self, options={**self.options, **options})


@cache
def load_onnxruntime() -> Any:
    """Import onnxruntime, once.

    Raises:
        MissingExtraError: it is not installed.

    Warns:
        RuntimeWarning: two of its wheels are installed, so that one has overwritten the other.
    """
    try:
        import onnxruntime
    except ModuleNotFoundError as error:
        if error.name != "onnxruntime":
            raise
        raise MissingExtraError(
            "ONNX Runtime is not installed. Install it for the CPU with `pip install 'bertscore-onnx[cpu]'`, for CUDA "
            "with `pip install 'bertscore-onnx[gpu]'`.",
            name="onnxruntime",
        ) from error
    wheels = installed_wheels()
    if len(wheels) > 1:
        warnings.warn(
            f"{' and '.join(wheels)} are installed together and share one folder; the one installed last has "
            "overwritten the others. Remove all and install the one you want: `pip uninstall -y "
            f"{' '.join(wheels)}`, then `pip install 'bertscore-onnx[gpu]'` (or `[cpu]`, `[openvino]`).",
            RuntimeWarning,
            stacklevel=2,
        )
    return onnxruntime


def installed_wheels() -> dict[str, str]:
    """Return the installed ONNX Runtime distributions and their versions."""
    found = {}
    for name in _WHEELS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def choose_devices(name: object) -> list[Device]:
    """Return the devices to try, the best first.

    Args:
        name: None for CUDA where there is one and else the CPU; "cpu"; "cuda", or "cuda:1" for the second card;
            "openvino" for the CPU by way of OpenVINO. Anything that prints as one of these will do, such as a
            `torch.device`.

    Returns:
        One device where one was named, so that nothing else can run in its place; else one or two.

    Raises:
        InputError: no such device name.
        DeviceError: the installed ONNX Runtime cannot use the device.
    """
    available = load_onnxruntime().get_available_providers()
    if name is None:
        return [*([_cuda(0)] if CUDA in available else []), _cpu()]
    name = str(name)
    match = re.fullmatch(r"(cpu|openvino|cuda)(?::(\d+))?", name)
    if match is None or (match[2] and match[1] != "cuda"):
        raise InputError(
            f'device is {name!r}; expected "cpu", "cuda", "cuda:N" or "openvino", or None to choose between CUDA and '
            "the CPU."
        )
    if match[1] == "cpu":
        return [_cpu()]
    device, extra = (_cuda(int(match[2] or 0)), "gpu") if match[1] == "cuda" else (_openvino(), "openvino")
    if device.provider not in available:
        raise DeviceError(
            f"device {name!r} was asked for, and the installed ONNX Runtime offers only {', '.join(available)}. "
            f"Install the right wheel instead: `pip uninstall -y {' '.join(installed_wheels()) or 'onnxruntime'}`, "
            f"then `pip install 'bertscore-onnx[{extra}]'`."
        )
    return [device]


def _cpu() -> Device:
    return Device(CPU, batch_values=200_000)


def _cuda(index: int) -> Device:
    options = {
        "device_id": index,
        "use_tf32": 0,  # it is on by default and costs three digits; parity with bert-score needs fp32
        "arena_extend_strategy": "kSameAsRequested",  # doubling reserves memory that other processes could use
    }
    return Device(CUDA, options, batch_values=16_384 * 1024, batch_tokens=65_536, length_multiple=8)


def _openvino() -> Device:
    features = cpu_features() or []
    precision = "bf16" if {"amx_bf16", "avx512_bf16"} & {*features} else None
    return Device(OPENVINO, {"device_type": "CPU"}, batch_values=500_000, batch_tokens=2048, precision=precision)


def open_session(graph: str | bytes, options: Any, device: Device) -> tuple[Any, str]:
    """Create a session that runs on a device, and never on another in its place.

    Args:
        graph: an ONNX graph, or the path of one.
        options: ONNX Runtime's session options.
        device: the device.

    Returns:
        The session and an empty string, or None and why there is none.
    """
    onnxruntime = load_onnxruntime()
    if device.provider == CUDA and hasattr(onnxruntime, "preload_dlls"):
        onnxruntime.preload_dlls()
    providers = [(device.provider, dict(device.options))]
    if device.provider != CPU:
        providers.append((CPU, {}))  # for what a device leaves to the CPU, such as the work on shapes
    try:
        session = onnxruntime.InferenceSession(graph, options, providers=providers)
    except Exception as error:  # ONNX Runtime raises bare RuntimeErrors and its own untyped exceptions
        return None, str(error)
    session.disable_fallback()  # a failed run would silently move the shared session to the CPU
    used = session.get_providers()[0]
    if used != device.provider:
        return None, f"ONNX Runtime fell back to {used}; the device's libraries may be missing"
    return session, ""
