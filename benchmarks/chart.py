"""Draws a report: a panel of bars for each case, a line for each curve."""

import statistics
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")  # no screen is needed

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import NullLocator

from harness.results import Case, Curve, Report

WIDTH, HEIGHT = 10.0, 2.2
"""Of one panel, in inches."""


def draw(report: Report, path: Path) -> None:
    """Write the chart of a report as a picture."""
    panels: list[tuple[Case, Curve | None]] = [(case, None) for case in report.cases if case.timings]
    panels += [(case, curve) for case in report.cases for curve in case.curves]
    if not panels:
        return
    picture, axes = plt.subplots(
        len(panels), squeeze=False, figsize=(WIDTH, HEIGHT * len(panels)), layout="constrained"
    )
    for (case, curve), axis in zip(panels, axes[:, 0], strict=True):
        if curve is None:
            _bars(case, axis)
        else:
            _line(case, curve, axis)
    picture.suptitle(f"{report.machine.get('processor', '')}, {report.made}")
    picture.savefig(path, dpi=120)
    plt.close(picture)


def _bars(case: Case, axis: Axes) -> None:
    medians = [statistics.median(one.seconds) for one in case.timings]
    spread = [
        [median - min(one.seconds) for median, one in zip(medians, case.timings, strict=True)],
        [max(one.seconds) - median for median, one in zip(medians, case.timings, strict=True)],
    ]
    colours = ["tab:orange" if one.label.startswith("bert-score") else "tab:blue" for one in case.timings]
    axis.barh([one.label for one in case.timings], medians, xerr=spread, color=colours, capsize=3)
    axis.invert_yaxis()
    axis.set_title(f"({case.letter}) {case.title}", fontsize="medium")
    axis.set_xlabel("seconds, median and spread of the rounds")


def _line(case: Case, curve: Curve, axis: Axes) -> None:
    along, rates = zip(*curve.points, strict=True)
    axis.plot(along, rates, marker="o")
    axis.set_xscale("log")
    axis.set_xticks(along, labels=[f"{one:g}" for one in along])
    axis.xaxis.set_minor_locator(NullLocator())
    axis.set_ylim(bottom=0)
    axis.set_title(case.title, fontsize="medium")
    axis.set_xlabel(curve.along)
    axis.set_ylabel("pairs/s")
