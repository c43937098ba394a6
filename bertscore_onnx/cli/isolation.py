"""A child process with limits of memory and time, for a bundle from someone who is not trusted."""

import os
import signal
import sys
from pathlib import Path

import typer

from bertscore_onnx.errors import BundleError, InputError

CPU_SECONDS = 600
"""Far longer than the golden pairs of the largest model take on one CPU."""

MEMORY_BYTES = 4_000_000_000
"""What a process needs beside a model, with room for many threads."""

MEMORY_FACTOR = 4
"""How many times its files a model may need, while it is loaded."""


def go_on_in_child(folder: Path) -> None:
    """Return in a child process with limits; where it was called, wait for that one and end as it does.

    Args:
        folder: the bundle that the child is about to open, whose size decides how much memory it may use.

    Raises:
        InputError: this system does not limit the memory of a process.
        BundleError: the child crashed, or used up its time.
    """
    if sys.platform != "linux":
        raise InputError(
            "--isolate needs Linux, which limits the memory of a process. Leave it out, or use a container."
        )
    child = os.fork()
    if not child:
        _limit_this_process(sum(512 * file.stat().st_blocks for file in folder.iterdir() if file.is_file()))  # in truth
        return
    try:
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except KeyboardInterrupt:
        os.kill(child, signal.SIGKILL)  # it may be in a loop of the bundle, which hears nothing
        raise
    if status >= 0:
        raise typer.Exit(status)
    ending = signal.Signals(-status).name
    reason = f"it used more than {CPU_SECONDS:,} s of CPU time" if -status == signal.SIGXCPU else "it crashed"
    raise BundleError(f"The process that checked {folder} was ended by {ending}: {reason}. Do not use this bundle.")


def _limit_this_process(bundle_bytes: int) -> None:
    import resource  # which other systems do not have

    memory = MEMORY_BYTES + MEMORY_FACTOR * bundle_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS + 10))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
