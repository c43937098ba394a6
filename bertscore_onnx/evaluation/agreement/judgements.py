"""What people and metrics say about systems × segments, checked, and a measure that may have no value."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import InputError, needs_extra

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Measure:
    """A number computed from judgements, or the reason why there is none."""

    value: float | None
    """None where the data gives no value."""
    n: int
    """What it was computed from: judged pairs of scores, or pairs of systems."""
    groups: int = 1
    """How many values it is the mean of; 1 where it is none, 0 where it has no value."""
    left_out: int = 0
    """How many groups had no value, and are not part of the mean."""
    reason: str = ""
    """Why there is no value; empty where there is one."""


def no_value(reason: str, n: int) -> Measure:
    """Return a measure without a value."""
    return Measure(None, n, groups=0, left_out=1, reason=reason)


def average(measures: Sequence[Measure]) -> Measure:
    """Average the measures that have a value, such as those of several language pairs, each with the same weight.

    Args:
        measures: at least one, each of one group.

    Raises:
        InputError: there are none.
    """
    if not measures:
        raise InputError("There are no measures to average. Give at least one.")
    values = [one.value for one in measures if one.value is not None]
    n = sum(one.n for one in measures if one.value is not None)
    left_out = len(measures) - len(values)
    if not values:
        reasons = ", ".join(sorted({one.reason for one in measures}))
        return Measure(None, 0, groups=0, left_out=left_out, reason=f"no group has a value: {reasons}")
    return Measure(float(np.mean(values)), n, groups=len(values), left_out=left_out)


def judged_scores(human: Floats, metric: Floats, *, ndim: int = 2) -> tuple[Floats, Floats]:
    """Check human scores against those of a metric, and return both as float64.

    Args:
        human: scores by people, (systems, segments), or one per system, (systems,); NaN where nobody judged.
        metric: scores of the metric, in the same places; finite wherever people judged.
        ndim: how many dimensions both have.

    Raises:
        InputError: their shapes differ or have another number of dimensions, or a score is missing or infinite.
    """
    human, metric = np.asarray(human, dtype=np.float64), np.asarray(metric, dtype=np.float64)
    axes = ("system", "segment")[:ndim]
    if human.ndim != ndim or human.shape != metric.shape:
        shape = ", ".join(f"{axis}s" for axis in axes)
        raise InputError(
            f"Human scores of shape {human.shape} and metric scores of shape {metric.shape}; "
            f"expected both as ({shape}), in the same order."
        )
    for side, is_wrong in (("People", np.isinf(human)), ("The metric", ~np.isnan(human) & ~np.isfinite(metric))):
        if is_wrong.any():
            place = ", ".join(f"{axis} {at}" for axis, at in zip(axes, np.argwhere(is_wrong)[0], strict=True))
            raise InputError(
                f"{side} gave no finite score at {place} (counted from 0). Give one, or NaN as the human score "
                f"to leave the place out."
            )
    return human, metric


def system_means(scores: Floats) -> Floats:
    """Average each system's scores over the segments that have one.

    Args:
        scores: (systems, segments), NaN where nobody judged.

    Returns:
        One score per system, (systems,).

    Raises:
        InputError: the scores have another shape, or a system has none.
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 2:
        raise InputError(f"The scores have the shape {scores.shape}; expected (systems, segments).")
    counts = (~np.isnan(scores)).sum(axis=1)
    if not counts.all():
        raise InputError(f"System {counts.argmin()} (counted from 0) has no judged segment. Leave it out.")
    means: Floats = np.nansum(scores, axis=1) / counts
    return means


def scipy_stats() -> Any:
    """Return `scipy.stats`.

    Raises:
        MissingExtraError: scipy is not installed.
    """
    with needs_extra("evaluation", "This statistic"):
        from scipy import stats
    return stats
