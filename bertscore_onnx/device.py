"""Finds ONNX Runtime and the execution provider that a device name asks for."""

import importlib.metadata
import os
import re
import warnings
from functools import cache
from pathlib import Path
from typing import Any

from bertscore_onnx.errors import DeviceError, InputError, MissingExtraError

CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"

Provider = tuple[str, dict[str, Any]]

_WHEELS = {"onnxruntime": "cpu", "onnxruntime-gpu": "gpu"}


@cache
def load_onnxruntime() -> Any:
    """Import onnxruntime, once.

    Raises:
        MissingExtraError: it is not installed.

    Warns:
        RuntimeWarning: the CPU and the GPU wheel are both installed, so that one has overwritten the other.
    """
    try:
        import onnxruntime
    except ModuleNotFoundError as error:
        if error.name != "onnxruntime":
            raise
        raise MissingExtraError(
            "ONNX Runtime is not installed. Install it for the CPU with `pip install 'bertscore-onnx[cpu]'` or for "
            "CUDA with `pip install 'bertscore-onnx[gpu]'`.",
            name="onnxruntime",
        ) from error
    wheels = installed_wheels()
    if len(wheels) > 1:
        warnings.warn(
            f"{' and '.join(wheels)} are both installed and share one folder; the one installed last has overwritten "
            "the other. Remove both and install the one you want: `pip uninstall -y "
            f"{' '.join(wheels)}`, then `pip install 'bertscore-onnx[gpu]'` (or `[cpu]`).",
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


def choose_providers(device: object) -> list[Provider]:
    """Return the execution providers to try, the best first.

    Args:
        device: None for CUDA where there is one and else the CPU; "cpu"; "cuda", or "cuda:1" for the second card.
            Anything that prints as one of these will do, such as a `torch.device`.

    Returns:
        One provider where a device was named, so that nothing else can run in its place; else one or two.

    Raises:
        InputError: no such device name.
        DeviceError: CUDA was asked for and the installed ONNX Runtime cannot use it.
    """
    available = load_onnxruntime().get_available_providers()
    if device is None:
        return [*([_cuda(0)] if CUDA in available else []), (CPU, {})]
    name = str(device)
    if name == "cpu":
        return [(CPU, {})]
    match = re.fullmatch(r"cuda(?::(\d+))?", name)
    if match is None:
        raise InputError(f'device is {name!r}; expected "cpu", "cuda" or "cuda:N", or None to choose.')
    if CUDA not in available:
        raise DeviceError(
            f"device {name!r} was asked for, and the installed ONNX Runtime offers only {', '.join(available)}. "
            "Install the GPU wheel instead of the CPU one: `pip uninstall -y onnxruntime`, then "
            "`pip install 'bertscore-onnx[gpu]'`."
        )
    return [_cuda(int(match[1] or 0))]


def _cuda(index: int) -> Provider:
    # TF32 is on by default and costs three digits; parity with bert-score needs fp32.
    return CUDA, {"device_id": index, "use_tf32": 0}


def open_session(graph: str | bytes, options: Any, provider: Provider) -> tuple[Any, str]:
    """Create a session that runs on a provider, and never on another in its place.

    Args:
        graph: an ONNX graph, or the path of one.
        options: ONNX Runtime's session options.
        provider: the provider.

    Returns:
        The session and an empty string, or None and why there is none.
    """
    onnxruntime = load_onnxruntime()
    if provider[0] == CUDA and hasattr(onnxruntime, "preload_dlls"):
        onnxruntime.preload_dlls()
    providers = [provider] if provider[0] == CPU else [provider, (CPU, {})]  # CUDA leaves shape work to the CPU
    try:
        session = onnxruntime.InferenceSession(graph, options, providers=providers)
    except Exception as error:  # ONNX Runtime raises bare RuntimeErrors and its own untyped exceptions
        return None, str(error)
    session.disable_fallback()  # a failed run would silently move the shared session to the CPU
    used = session.get_providers()[0]
    if used != provider[0]:
        return None, f"ONNX Runtime fell back to {used}; its CUDA libraries may be missing"
    return session, ""


def usable_cpus() -> int:
    """Return how many CPUs this process may keep busy: its affinity, and its container's quota, rounded up."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _cgroup_quota()
    return cpus if quota is None else max(1, min(cpus, quota))


def _cgroup_quota(root: Path = Path("/sys/fs/cgroup")) -> int | None:
    """Return the CPU quota of a Linux control group (version 2, then 1) in CPUs rounded up, or None."""
    try:
        quota, period = (root / "cpu.max").read_text().split()
    except (OSError, ValueError):
        try:
            quota = (root / "cpu/cpu.cfs_quota_us").read_text().strip()
            period = (root / "cpu/cpu.cfs_period_us").read_text().strip()
        except OSError:
            return None
    if quota in ("max", "-1"):
        return None
    return -(-int(quota) // int(period))
