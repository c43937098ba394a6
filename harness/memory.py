"""Tells how much memory a process held."""

import contextlib
from pathlib import Path


def peak_memory() -> float:
    """Return the most memory that this process ever held, in MB.

    Not `getrusage`: on Linux its figure survives `exec`, and then tells of the process that started this one.
    """
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024 / 1e6
    import resource  # macOS, which starts counting again and counts in bytes

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
