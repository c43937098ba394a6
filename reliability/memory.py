"""How much memory a process holds, on Linux, and whether it keeps growing."""

import os
from collections.abc import Sequence
from pathlib import Path


def resident_mb(pid: int | None = None) -> float:
    """Return the resident memory of a process in MB, by default of this one; 0 where it has ended."""
    statm = Path("/proc", str(pid or "self"), "statm")
    try:
        pages = int(statm.read_text(encoding="ascii").split()[1])
    except OSError:
        return 0.0
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def late_spread(samples: Sequence[float]) -> float:
    """Return the spread of the second half of a run, when everything that is kept for reuse is there."""
    late = samples[len(samples) // 2 :]
    return max(late) - min(late)
