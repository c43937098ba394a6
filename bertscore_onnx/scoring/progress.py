"""A progress bar on standard error, for those who ask for one."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 2
"""Seconds that pass without a bar where nobody asked for one."""


@contextmanager
def progress_bar(
    total: int | None, *, shown: bool | None, stage: str = "scoring", unit: str = "candidates"
) -> Iterator[Callable[[float], object]]:
    """Yield a function that moves the bar on by a number of candidates; without a bar it does nothing.

    Args:
        total: how many there are; None where that is not known.
        shown: whether there is a bar at all; None for one on a terminal, and there only where the work takes long.
        stage: what is done.
        unit: what it is done with.
    """
    if not (sys.stderr.isatty() if shown is None else shown):
        yield lambda candidates: None
        return
    from tqdm import tqdm  # costs start-up time and is needed only here

    with tqdm(total=total, desc=stage, unit=f" {unit}", smoothing=0.05, delay=0 if shown else PATIENCE) as bar:
        done = 0.0

        def advance(candidates: float) -> None:
            nonlocal done
            done += candidates
            bar.update(round(done) - bar.n)

        yield advance
