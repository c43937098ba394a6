"""Tells on what a benchmark ran."""

import contextlib
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from bertscore_onnx import __version__
from bertscore_onnx.concurrency.cpus import usable_cpus

FEATURES = ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "avx_vnni", "amx_tile", "amx_bf16", "amx_int8")
"""What the matrix products of fp32, bf16 and int8 make use of."""

PACKAGES = (
    "onnxruntime",
    "onnxruntime-gpu",
    "sentencepiece",
    "tokenizers",
    "numpy",
    "bert-score",
    "torch",
    "transformers",
)


def machine_facts() -> dict[str, str]:
    """Return the processor, its features, the memory, the load and the versions of what is measured."""
    processor = _processor_facts()
    flags = processor.get("flags", "").split()
    facts = {
        "processor": processor.get("model name") or platform.processor() or platform.machine(),
        "family, model, stepping": " ".join(processor.get(name, "?") for name in ("cpu family", "model", "stepping")),
        "cores usable": str(usable_cpus()),
        "features": " ".join(name for name in FEATURES if name in flags) or "unknown",
        "load at the start": f"{os.getloadavg()[0]:.2f}",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "bertscore-onnx": __version__,
    }
    with contextlib.suppress(ValueError, OSError):
        facts["memory"] = f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB"
    for package in PACKAGES:
        with contextlib.suppress(PackageNotFoundError):
            facts[package] = version(package)
    return facts


def _processor_facts() -> dict[str, str]:
    """Return what Linux says of the first processor; nothing elsewhere."""
    try:
        first = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in first.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}
