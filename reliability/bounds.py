"""Figures with the bound that each is held to."""

import sys

from harness.results import Figure, Goal, figure

NEVER = sys.float_info.max
"""What infinity is written as; JSON has none."""


def at_most(name: str, value: float, unit: str, bound: float, *, of_speed: bool = False) -> Figure:
    """Make a figure that may reach its bound, and no more; `of_speed` as `Goal` says."""
    return figure(name, unit, [min(float(value), NEVER)], Goal(bound, at_most=True, of_speed=of_speed))


def none_of(name: str, count: int) -> Figure:
    """Make a figure of something that must not happen."""
    return at_most(name, count, "", 0)


def at_least(name: str, value: float, unit: str, bound: float, *, of_speed: bool = False) -> Figure:
    """Make a figure that has to reach its bound; `of_speed` as `Goal` says."""
    return figure(name, unit, [value], Goal(bound, of_speed=of_speed))
