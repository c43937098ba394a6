"""A progress bar on standard error."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 2
"""Seconds before a bar appears that was not requested."""


@contextmanager
def progress_bar(
    total: int | None, *, shown: bool | None, stage: str = "scoring", unit: str = "candidates"
) -> Iterator[Callable[[float], object]]:
    """Yield a function that advances the bar by a number of candidates.

    Without a bar it does nothing.

    `total` is None if it is unknown. If `shown` is None, there is a bar on a terminal, once the
    work has taken long.
    """
    is_wanted = sys.stderr.isatty() if shown is None else shown
    if not is_wanted:
        yield lambda candidates: None
        return
    from tqdm.auto import tqdm  # costs start-up time and is needed only here

    delay = 0 if shown else PATIENCE
    with tqdm(total=total, desc=stage, unit=f" {unit}", smoothing=0.05, delay=delay) as bar:
        done = 0.0

        def advance(candidates: float) -> None:
            nonlocal done
            done += candidates
            bar.update(round(done) - bar.n)

        yield advance
