"""How much memory this process holds, on Linux, and whether it keeps growing."""

import os
from collections.abc import Sequence
from pathlib import Path


def resident_mb() -> float:
    """Return the resident memory of this process in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def late_spread(samples: Sequence[float]) -> float:
    """Return the spread of the second half of a run, when everything that is kept for reuse is there."""
    late = samples[len(samples) // 2 :]
    return max(late) - min(late)
