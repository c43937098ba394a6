"""Figures for papers by matplotlib.

They show differences of systems, agreement of metrics, and the curve of layers.
"""

import io
import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from bertscore_onnx.errors import InputError, either, needs_extra
from bertscore_onnx.files import write_whole
from bertscore_onnx_evaluation.report.wording import visible
from bertscore_onnx_evaluation.systems.verdicts import in_runs, is_significant, outcome, rank

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bertscore_onnx_evaluation.systems.comparison_record import ComparisonRecord
    from bertscore_onnx_evaluation.systems.verdicts import MetricResult, SystemResult

FORMATS = (".pdf", ".svg", ".png")
_STYLE = {"svg.fonttype": "none", "svg.hashsalt": "bertscore-onnx", "pdf.fonttype": 42}
"""Texts stay texts, and equal figures are equal files."""
_COLOUR = "#1f5fa8"
_GREY = "#777777"
_WIDTH = 5.5
"""Inches of a column of a paper."""
_ROW = 0.28
"""Inches of a row."""
_MARGIN = 0.85
"""Inches of the axis with its label."""
_LABEL = 55
"""Characters of a line below a panel."""
_SMALL = 6
"""Points of the caption."""
_LINE = 0.1
"""Inches of a line of the caption."""
_CHARACTERS = 118
"""Characters of a line of the caption."""

_Row = tuple[str, float, float | None, float | None, bool]
"""A name, its value, the ends of the interval, and whether its marker is filled."""


def comparison_figure(comparison: "ComparisonRecord") -> "Figure":
    """Draw the difference of each system from the baseline.

    Each has its interval; each metric, and each group of its segments, has a panel.
    """
    contents: list[tuple[MetricResult, str, Sequence[SystemResult]]] = []
    for metric in comparison.metrics:
        contents.append((metric, "", metric.systems))
        for group in metric.parts:
            contents.append((metric, f", {group.name}", group.systems))
    figure, panels = _panels([len(comparison.systems) - 1] * len(contents))
    for axes, (metric, group_name, systems) in zip(panels, contents, strict=True):
        rows = []
        for place in metric.ranked:
            if place == 0:  # the baseline
                continue
            system = systems[place]
            is_filled = is_significant(outcome(metric, system))
            ends = (system.delta_low, system.delta_high)
            rows.append((_with_rank(system), system.delta or 0.0, *ends, is_filled))
        _draw_rows(axes, rows)
        axes.axvline(0, color=_GREY, linewidth=0.8, zorder=0)
        lower = ", lower is better" if metric.lower_is_better else ""
        baseline = _with_rank(systems[0])
        _label(axes, f"{metric.title}{lower}{group_name}: difference from {baseline}")
    sentences = [
        f"Lines are 95 % intervals{in_runs(comparison.metrics[0])}.",
        comparison.legend_of("Filled if"),
        *comparison.notes,
        *comparison.warnings,
    ]
    signatures = [metric.signature for metric in comparison.metrics]
    _caption(figure, [" ".join(sentences), *signatures])
    return figure


def _with_rank(system: "SystemResult") -> str:
    if system.rank_low is None:
        return system.name
    return f"{system.name}, rank {rank(system)}"


@dataclass(frozen=True, slots=True)
class Panel:
    """Values in rows with their intervals, and a value to compare them with."""

    title: str
    rows: Sequence[_Row]
    line: float | None = None
    line_title: str = ""


def rows_figure(panels: Sequence[Panel], caption: Sequence[str]) -> "Figure":
    """Draw panels below each other, with a caption.

    What the line is stands above each panel.
    """
    figure, all_axes = _panels([len(panel.rows) for panel in panels])
    for axes, panel in zip(all_axes, panels, strict=True):
        _draw_rows(axes, panel.rows)
        if panel.line is not None:
            axes.axvline(panel.line, color=_GREY, linestyle="--", linewidth=0.8, zorder=0)
            axes.set_title(
                f"dashed: {panel.line_title}",
                fontsize=7,
                color=_GREY,
                loc="right",
                parse_math=False,
            )
        _label(axes, panel.title)
    _caption(figure, caption)
    return figure


def layers_figure(
    layers: Mapping[str, Sequence[float | None]],
    best: str,
    caption: Sequence[str],
) -> "Figure":
    """Draw a value at each layer with the band of its intervals.

    The best layer is marked. A layer has a name, such as `3 by code-bert-score`, its value and the
    ends of the interval. Each scorer has a curve.
    """
    figure, [axes] = _panels([8])
    names = [name.partition(" by ") for name in layers]
    curves = np.array(list(layers.values()), dtype=np.float64)  # (layers, 3), NaN for None
    for scorer, items in groupby(range(len(names)), key=lambda place: names[place][2]):
        places = list(items)
        values, lows, highs = curves[places].T
        [line] = axes.plot(places, values, marker=".", label=scorer or None)
        axes.fill_between(places, lows, highs, color=line.get_color(), alpha=0.2, linewidth=0)
        if scorer:
            axes.legend(fontsize=7, frameon=False)
    place = list(layers).index(best)
    axes.plot([place], curves[place, :1], marker="o", color=_COLOUR, linestyle="none")
    step = max(1, len(names) // 13)
    labels = [name for name, *_ in names]
    axes.set_xticks(range(0, len(labels), step), labels[::step])
    axes.set_ylabel("Pearson's r of F, with 95 % band", fontsize=8)
    _label(axes, f"layer; the best is {best}")
    _caption(figure, caption)
    return figure


def check_figure(file: str | None) -> None:
    """Check that a figure can be written.

    InputError is raised for a file of no known format, and MissingExtraError without matplotlib.
    """
    if file is None:
        return
    if Path(file).suffix.lower() not in FORMATS:
        raise InputError(f"The figure {file} has no known format. Name it {either(FORMATS)}.")
    with needs_extra("plot", "Drawing"):
        import matplotlib as mpl  # noqa: F401


class _Drawn(Protocol):
    def figure(self) -> "Figure": ...


def save_figure(result: _Drawn, file: str | None) -> None:
    """Draw a result into a file; without a file do nothing.

    The file is replaced only when the figure is complete.
    """
    if file is None:
        return
    import matplotlib as mpl

    content = io.BytesIO()
    kind = Path(file).suffix[1:].lower()
    # Without the date equal figures are equal files.
    metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    figure = result.figure()
    with mpl.rc_context(_STYLE):
        figure.savefig(content, format=kind, dpi=300, metadata=metadata)
    write_whole(file, content.getvalue())


def _panels(rows: Sequence[int]) -> "tuple[Figure, list[Axes]]":
    """Return an empty figure of panels below each other.

    The panels have room for so many rows. A notebook shows the figure.
    """
    with needs_extra("plot", "Drawing"):
        from matplotlib.figure import Figure

    class NotebookFigure(Figure):
        """A figure that a notebook shows, also without pyplot."""

        def _repr_png_(self) -> bytes:
            content = io.BytesIO()
            self.savefig(content, format="png", dpi=150)
            return content.getvalue()

    heights = [_ROW * number + _MARGIN for number in rows]
    figure = NotebookFigure(figsize=(_WIDTH, sum(heights)), layout="constrained")
    panels = figure.subplots(len(rows), squeeze=False, height_ratios=heights)
    return figure, [axes for [axes] in panels]


def _caption(figure: "Figure", paragraphs: Sequence[str]) -> None:
    """Write sentences below the panels, for which the figure grows."""
    lines = []
    for paragraph in paragraphs:
        lines += textwrap.wrap(_drawn(paragraph), _CHARACTERS, break_on_hyphens=False)
    figure.set_figheight(figure.get_figheight() + _LINE * (len(lines) + 1))
    figure.supxlabel(
        "\n".join(lines),
        x=0.01,
        ha="left",
        fontsize=_SMALL,
        color=_GREY,
        parse_math=False,
    )


def _draw_rows(axes: "Axes", rows: Sequence[_Row]) -> None:
    """Draw a point with its interval in each row, the first at the top."""
    for place, (_, value, low, high, is_filled) in enumerate(rows):
        if low is None or high is None:
            low = value
            high = value
        axes.hlines(place, [low], [high], color=_COLOUR, linewidth=1.5)
        face = _COLOUR if is_filled else "white"
        axes.plot([value], [place], marker="o", color=_COLOUR, markerfacecolor=face)
    names = [_drawn(name) for name, *_ in rows]
    axes.set_yticks(range(len(rows)), names, fontsize=8, parse_math=False)
    axes.set_ylim(len(rows) - 0.5, -0.5)


def _label(axes: Any, text: str) -> None:
    axes.set_xlabel(textwrap.fill(_drawn(text), _LABEL), fontsize=8, parse_math=False)
    axes.tick_params(labelsize=8)
    axes.spines[["top", "right"]].set_visible(False)


def _drawn(text: str) -> str:
    """Return a text whose control characters are U+FFFD.

    SVG cannot hold them, and fonts lack their pictures.
    """
    return re.sub("[\u2400-\u2421]", "\N{REPLACEMENT CHARACTER}", visible(text))
