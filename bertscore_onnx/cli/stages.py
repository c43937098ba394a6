"""Tells how a long command gets on, one line a stage, with the seconds it took."""

import sys
import time
from typing import Self


class Stages:
    """Prints `[3/5] Writing the graph ...  12.1 s` on standard error, the seconds when the stage is over."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._number = 0
        self._begun = 0.0

    def begin(self, name: str) -> None:
        """End the stage before and begin one."""
        if self._number:
            self._end()
        self._number += 1
        self._begun = time.perf_counter()
        print(f"[{self._number}/{self._total}] {name} ...", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        """Return itself; no stage has begun."""
        return self

    def __exit__(self, *failure: object) -> None:
        """End the last stage."""
        if self._number:
            self._end()

    def _end(self) -> None:
        print(f"  {time.perf_counter() - self._begun:.1f} s", file=sys.stderr)
