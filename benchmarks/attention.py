"""Which kernels of a GPU compute the attention of a bundle: the fused ones are many times as fast
as the others.
"""

import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from bertscore_onnx.errors import EncodingError, one_line

UNFUSED = "MATH"
"""ONNX Runtime's name for attention that is not fused: each step is a kernel, which reads and
writes memory.
"""

SECONDS = 300
"""The time limit: the first run on a GPU may take many seconds."""

_CHILD = """
import sys
import numpy
from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.encoding.encoder import Encoder
encoder = Encoder(open_bundle(sys.argv[1]), device=sys.argv[2])
encoder.run(encoder.plan([numpy.ones(24, dtype=numpy.int64)] * 8))
"""


def attention_kernels(bundle: Path, device: str) -> Mapping[str, int]:
    """Return the number of attention nodes of a bundle by the kernel that runs them on a GPU.

    It is empty for a graph without fused attention nodes, such as every one in fp32. ONNX Runtime
    prints the kernels on standard output if a variable is set before it starts, so a process of its
    own runs the model.
    """
    variables = {**os.environ, "ORT_ENABLE_ATTENTION_KERNEL_DEBUG_INFO": "1"}
    command = [sys.executable, "-c", _CHILD, str(bundle), device]
    try:
        done = subprocess.run(
            command, env=variables, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise EncodingError(f"A run of {bundle} on {device} did not end in {SECONDS} s.") from None
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"])[
            -1
        ]
        raise EncodingError(
            f"{bundle} could not be run on {device} to find its attention kernels: "
            f"{one_line(reason)}"
        )
    return kernels_in(done.stdout)


def kernels_in(output: str) -> Mapping[str, int]:
    """Return the number of nodes by kernel in what ONNX Runtime printed in one run."""
    kernels = {}  # by node, since the graph may run more than once
    for number, line in enumerate(output.splitlines()):
        if found := re.search(r"Operator=\S+(?: Node=(\S+))?.* SdpaKernel=([A-Z_]+)", line):
            kernels[found[1] or number] = found[2]
    return Counter(kernels.values())


def describe_kernels(kernels: Mapping[str, int]) -> str:
    """Return the kernels as text, and what to do if attention is not fused."""
    if not kernels:
        return "no fused attention nodes; only bundles in fp16 have them"
    counts = ", ".join(f"{number} × {kernel}" for kernel, number in kernels.items())
    if UNFUSED not in kernels:
        return counts
    return (
        f"{counts}: attention is not fused, which costs much time; it needs onnxruntime-gpu>=1.29 "
        "and cuDNN 9"
    )
