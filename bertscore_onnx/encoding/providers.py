"""What can run a model: execution providers of ONNX Runtime, and OpenVINO.

`PROVIDERS` is their table, `choose_providers` chooses, and `open_session` opens a session of ONNX
Runtime.
"""

import ctypes
import importlib.metadata
import importlib.util
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, replace
from functools import cache
from io import StringIO
from typing import Any, Literal

from bertscore_onnx.errors import (
    DeviceError,
    InputError,
    MissingExtraError,
    either,
    install_command,
    is_interrupt,
    one_line,
)

_WHEELS = ("onnxruntime", "onnxruntime-gpu")


@dataclass(frozen=True, slots=True)
class Provider:
    """An execution provider, with all facts that the package needs."""

    name: str
    """Its name; ONNX Runtime's for an execution provider."""

    device: str
    """The name that users write."""

    extra: str
    """The extra of this package that installs it."""

    precisions: frozenset[str] = frozenset({"fp32", "fp16"})
    """The precisions of bundles that it has kernels for; others would run on the CPU unnoticed."""

    engine: Literal["onnxruntime", "openvino"] = "onnxruntime"
    """The Python package that computes."""

    concurrency: int | None = None
    """The number of concurrent runs that keep it busy; None for one per CPU thread."""

    splits_little_work: bool = True
    """Whether a few texts are split into a batch per concurrent run, so that no thread is idle."""

    batch_values: int = 200_000
    """Hidden values (padded tokens times hidden size) in a run. On a CPU the intermediate values of
    a layer, four times as many, should stay in the cache."""

    min_batch_tokens: int = 384
    """The least padded tokens in a run of a large model. With fewer, the fixed costs of a run
    count.
    """

    batch_tokens: int = 1024
    """The most padded tokens in a run of a small model. More gain nothing, and sometimes need more
    memory.
    """

    widths: tuple[int, ...] = ()
    """The tokens to which texts are padded, ascending, where every new shape of a run costs time
    and memory, of few texts on a CPU; empty where none does, so that texts are padded to the
    longest of their run."""

    chunk_scale: int = 1
    """How many times as large as on a CPU chunks are, so that sorting by length can work among many
    runs.
    """

    keeps_vectors: bool = False
    """Whether vectors stay where it computes, in a memory of its own, and are matched there."""

    arena: str | None = None
    """ONNX Runtime's name for the memory that it keeps between runs, without its index, if that can
    be shrunk.
    """

    preloads_libraries: bool = False
    """Whether its libraries come as Python packages, which are loaded first."""

    survives_fork: bool = True
    """Whether a forked child can open graphs after its parent did."""

    options: Callable[["Provider"], Mapping[str, Any]] = lambda provider: {}
    """Its options in ONNX Runtime."""

    is_numbered: bool = False
    """Whether there may be several cards, each with a number."""

    index: int = 0
    """The number of the card."""

    def max_tokens(self, hidden_size: int) -> int:
        """Return the padded tokens in a run of a model of this hidden size."""
        return min(max(self.min_batch_tokens, self.batch_values // hidden_size), self.batch_tokens)


_WIDTHS = (
    *range(12, 32, 4),
    34,
    40,
    52,
    72,
    104,
    144,
    192,
    256,
    384,
    512,
    768,
    1024,
    1536,
    2048,
    3072,
    4096,
    8192,
)
"""Of texts on CUDA, as few as serve: 20,000 pairs of sentences need 12 shapes and 13 % of padding.
On an H200 a shape costs about as much time as 80,000 tokens."""

GPU_MEMORY = "BERTSCORE_ONNX_GPU_MEM_LIMIT"
"""The environment variable with the most bytes of a GPU's memory that each session may take."""


def _cuda_options(provider: Provider) -> Mapping[str, Any]:
    options = {
        "device_id": provider.index,
        # it is on by default and costs three digits; parity with bert-score needs fp32
        "use_tf32": 0,
        # doubling reserves memory that other processes could use
        "arena_extend_strategy": "kSameAsRequested",
    }
    limit = memory_limit()
    if limit is not None:
        options["gpu_mem_limit"] = limit
    return options


def memory_limit() -> int | None:
    """Return the most bytes of a GPU's memory that a session may take.

    The result is None if there is no limit.
    """
    limit = os.environ.get(GPU_MEMORY)
    if not limit:
        return None
    if not limit.isdecimal() or not int(limit):
        raise InputError(
            f"{GPU_MEMORY} is {limit!r}; expected a number of bytes, such as 8000000000 for 8 GB."
        )
    return int(limit)


CPU = Provider(
    "CPUExecutionProvider",
    "cpu",
    "cpu",
    precisions=frozenset({"fp32", "fp16", "int8"}),
    arena="cpu",
)
CUDA = Provider(
    "CUDAExecutionProvider",
    "cuda",
    "gpu",
    concurrency=1,  # its plans for shapes belong to a thread
    splits_little_work=False,
    batch_values=8192 * 1024,
    batch_tokens=8192,
    widths=_WIDTHS,
    chunk_scale=9,  # 281,250 tokens of roberta-large, whose vectors take 1.15 GB without padding
    keeps_vectors=True,
    arena="gpu",
    preloads_libraries=True,
    survives_fork=False,
    is_numbered=True,
    options=_cuda_options,
)
OPENVINO = Provider(
    "OpenVINO",
    "openvino",
    "openvino",
    engine="openvino",
    batch_values=500_000,
    batch_tokens=2048,
    widths=_WIDTHS,
    survives_fork=False,
)
PROVIDERS = (CUDA, OPENVINO, CPU)
"""All providers; adding one is adding a row."""

DEFAULTS = (CUDA, CPU)
"""The providers that are tried if no device is named, the best first."""


@cache
def load_onnxruntime() -> Any:
    """Import onnxruntime once, and warn if two wheels overlap.

    If ORT_DISABLE_TELEMETRY is not set, telemetry is disabled. Raises a MissingExtraError if
    onnxruntime is not installed.
    """
    # from 1.29 on it would record and send statistics of use
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        import onnxruntime
    except ModuleNotFoundError as error:
        if error.name != "onnxruntime":
            raise
        raise MissingExtraError(
            "ONNX Runtime is not installed. Install it for the CPU with "
            f"{install_command('cpu')}, for CUDA with {install_command('gpu')}.",
            name="onnxruntime",
        ) from error
    wheels = installed_wheels()
    if len(wheels) > 1:
        warnings.warn(
            f"{' and '.join(wheels)} are installed together and share one folder; the one "
            "installed last has overwritten the others. Remove all and install the one you want: "
            f"`pip uninstall -y {' '.join(wheels)}`, then {install_command('gpu')} or "
            f"{install_command('cpu')}.",
            RuntimeWarning,
            stacklevel=2,
        )
    return onnxruntime


def installed_wheels() -> dict[str, str]:
    """Return the installed ONNX Runtime distributions and their versions."""
    versions = {}
    for name in _WHEELS:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def is_installed(provider: Provider) -> bool:
    """Return whether a provider's engine is installed and offers it."""
    if provider.engine != "onnxruntime":
        return importlib.util.find_spec(provider.engine) is not None
    return provider.name in load_onnxruntime().get_available_providers()


def engine_version(provider: Provider) -> str:
    """Return the engine and its version, such as `onnxruntime-1.32.0`."""
    if provider.engine != "onnxruntime":
        return f"{provider.engine}-{importlib.metadata.version(provider.engine)}"
    return f"onnxruntime-{load_onnxruntime().__version__}"


def choose_providers(device: object) -> list[Provider]:
    """Return the providers to try, the best first.

    Only one if a device is named, so that no other can replace it.

    A device is None for CUDA if available, else the CPU; "cpu"; "cuda", or "cuda:1" for the second
    card; "openvino" for the CPU through OpenVINO; or anything that prints as one of these.
    """
    if device is None:
        return [provider for provider in DEFAULTS if is_installed(provider) or provider is CPU]
    if re.fullmatch(r"cuda:\d+(\s*,\s*(cuda:)?\d+)+", str(device)):
        raise InputError(
            f"device is {str(device)!r}, and a scorer uses one card. Start a process for each, "
            'with device="cuda:0", '
            '"cuda:1", …, or score on Ray with gpus_per_actor=1.'
        )
    match = re.fullmatch(r"([^:]*)(?::(\d+))?", str(device))
    devices = {provider.device: provider for provider in PROVIDERS}
    provider = devices.get(match[1]) if match else None
    if match is None or provider is None or (match[2] and not provider.is_numbered):
        raise InputError(
            f"device is {str(device)!r}; expected {either(sorted(_names()))}. Leave it out for "
            "CUDA if available, else the CPU."
        )
    if not is_installed(provider) and provider is not CPU:
        if provider.engine != "onnxruntime":
            raise DeviceError(
                f"device {str(device)!r} was asked for, and the package {provider.engine} is not "
                f"installed. Install it: {install_command(provider.extra)}."
            )
        wheels = list(installed_wheels()) or ["onnxruntime"]
        raise DeviceError(
            f"device {str(device)!r} was asked for, and the installed ONNX Runtime offers only "
            f"{', '.join(load_onnxruntime().get_available_providers())}. Install the right wheel "
            f"instead: `pip uninstall -y {' '.join(wheels)}`, then "
            f"{install_command(provider.extra)}."
        )
    return [replace(provider, index=int(match[2] or 0))]


def _names() -> Iterator[str]:
    """Yield the names of devices, in quotes; N is the number of a card."""
    for provider in PROVIDERS:
        yield f'"{provider.device}"'
        if provider.is_numbered:
            yield f'"{provider.device}:N"'


_used: set[str] = set()
_lost: set[str] = set()


def lost_by_fork(provider: Provider) -> str:
    """Return why a forked child cannot use a provider, or nothing."""
    if provider.survives_fork:
        return ""
    if provider.name in _lost:
        return (
            "its threads did not survive the fork of this process. Make no scorer on it before a "
            'fork, or start processes with the method "spawn" or "forkserver"'
        )
    _used.add(provider.name)
    return ""


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=lambda: _lost.update(_used))


_WARNING = 2
"""The default severity of ONNX Runtime's log."""

FATAL = 4
"""The severity that leaves out warnings and errors of ONNX Runtime's log."""


def open_session(graph: str | bytes, options: Any, provider: Provider) -> tuple[Any, str]:
    """Open a session on a provider, and never on another in its place.

    `graph` is an ONNX graph or the path of one. Returns the session and an empty string, or None
    and the reason.
    """
    lost = lost_by_fork(provider)
    if lost:
        return None, lost
    onnxruntime = load_onnxruntime()
    missing = _preload_libraries(onnxruntime) if provider.preloads_libraries else ""
    if missing:
        onnxruntime.set_default_logger_severity(FATAL)  # the reason is in our own message
    providers = [(provider.name, dict(provider.options(provider)))]
    if provider.name != CPU.name:
        # for operators that a provider leaves to the CPU, such as those on shapes
        providers.append((CPU.name, {}))
    try:
        # with its fallback, a failed run would silently move the shared session to the CPU
        session = onnxruntime.InferenceSession(
            graph, options, providers=providers, enable_fallback=0
        )
    # ONNX Runtime raises bare RuntimeErrors and its own untyped exceptions
    except Exception as error:
        if is_interrupt(error):
            raise
        return None, str(error)
    finally:
        if missing:
            onnxruntime.set_default_logger_severity(_WARNING)
    used = session.get_providers()[0]
    if used != provider.name:
        reason = "its libraries may be missing. Install them"
        if missing:
            reason = f"{missing}. Install its libraries"
        command = install_command(provider.extra)
        return None, f"{reason} with {command}; ONNX Runtime fell back to {used}"
    if provider.preloads_libraries:
        _warn_of_cudnn(install_command(provider.extra))
    return session, ""


@cache
def cudnn_error() -> str:
    """Return why cuDNN cannot be loaded, or an empty string.

    Call this after a session on CUDA was opened.
    """
    try:
        ctypes.CDLL("cudnn64_9.dll" if sys.platform == "win32" else "libcudnn.so.9")
    except OSError as error:
        return one_line(error)
    return ""


@cache
def _warn_of_cudnn(command: str) -> None:
    """Warn once if cuDNN is missing.

    ONNX Runtime treats it as optional, and does not report this.
    """
    error = cudnn_error()
    if error:
        warnings.warn(
            f"cuDNN 9 cannot be loaded ({error}), so attention on CUDA is slow. Install it with "
            f"{command}.",
            RuntimeWarning,
            stacklevel=2,
        )


def _preload_libraries(onnxruntime: Any) -> str:
    """Load the libraries that come as Python packages, and return the first line that ONNX Runtime
    prints, if any.
    """
    if not hasattr(onnxruntime, "preload_dlls"):
        return ""
    # ONNX Runtime prints the libraries that it cannot load on standard output, which a program
    # may use for its results
    with redirect_stdout(StringIO()) as printed:
        onnxruntime.preload_dlls()
    return next(iter(printed.getvalue().splitlines()), "")
