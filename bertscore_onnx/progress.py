"""A progress bar on standard error, for those who ask for one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(total: int | None, *, shown: bool) -> Iterator[Callable[[float], object]]:
    """Yield a function that moves the bar on by so many candidates; without a bar it does nothing.

    Args:
        total: how many there are; None where that is not known.
        shown: whether there is a bar at all.
    """
    if not shown:
        yield lambda candidates: None
        return
    from tqdm import tqdm  # costs start-up time and is needed only here

    with tqdm(total=total, desc="scoring", unit=" candidates", smoothing=0.05) as bar:
        done = 0.0

        def advance(candidates: float) -> None:
            nonlocal done
            done += candidates
            bar.update(round(done) - bar.n)

        yield advance
