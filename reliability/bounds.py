"""Figures with the bound that each is held to."""

import sys

from benchmarks.results import Figure, Goal, figure


def at_most(name: str, value: float, unit: str, bound: float) -> Figure:
    """Make a figure that may reach its bound, and no more."""
    return figure(
        name, unit, [min(float(value), sys.float_info.max)], Goal(bound, at_most=True)
    )  # JSON has no infinity


def none_of(name: str, count: int) -> Figure:
    """Make a figure of something that must not happen."""
    return at_most(name, count, "", 0)


def at_least(name: str, value: float, unit: str, bound: float) -> Figure:
    """Make a figure that has to reach its bound."""
    return figure(name, unit, [value], Goal(bound))
