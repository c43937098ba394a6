"""A progress bar on standard error, for those who ask for one."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(total: int, *, shown: bool) -> Iterator[Callable[[int], object]]:
    """Yield a function that moves the bar on by so many texts; without a bar it does nothing."""
    if not shown:
        yield lambda texts: None
        return
    from tqdm import tqdm  # costs start-up time and is needed only here

    with tqdm(total=total, desc="encoding", unit="text") as bar:
        yield bar.update
