"""A plane of points with their names: each stands beside its point or, where there is no room, on a line to it."""

import math
import unicodedata
from collections.abc import Sequence
from html import escape

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx_evaluation.report.charts import LEFT, Drawing, Plane, scale_over
from bertscore_onnx_evaluation.report.wording import visible

CHARACTER, LINE = 5.6, 11.0
"""The width and the height of a character of a name, in the units of a drawing."""

GAP = 5.0
"""Between a point and the name beside it; other names keep twice as far."""

MAX_NAME = 18
"""Characters of a name that are shown; the whole name is the point's title."""

MAX_TRIED = 150
"""Places of a name that are tried for one with a clear line to its point."""

Floats = NDArray[np.float64]


def named_points(points: Sequence[tuple[str, float, float]], text: str) -> Drawing:
    """Draw points with their names, at least one; the order of the points does not matter.

    Each point is a name, a number from left to right and one from bottom to top. A name for which there is no room is
    left to the point's title.
    """
    ordered = sorted(points, key=lambda point: (-point[2], point[1], point[0]))
    height = 190 + 8 * max(0, len(points) - 15)
    plane = Plane(scale_over(x for _, x, _ in points), scale_over(y for _, _, y in points), 246, height)
    names = [visible(name) for name, _, _ in ordered]
    places = np.array([(plane.x(x), plane.y(y)) for _, x, y in ordered])  # (points, 2)
    distances = np.hypot(*(places[:, None] - places).T)
    waiting = np.argsort(-np.partition(distances, min(1, len(places) - 1))[:, 1:2].sum(axis=1), kind="stable").tolist()
    areas = np.empty((0, 4))
    leaders, labels = [], []
    for may_cross in (False, True):
        for point in [*waiting]:
            name = names[point]
            shown = name if len(name) <= MAX_NAME else f"{name[: MAX_NAME // 2]}…{name[1 - MAX_NAME // 2 :]}"
            wide = sum(unicodedata.east_asian_width(character) in "WF" for character in shown)
            area = _free_area(point, CHARACTER * (len(shown) + wide), plane, places, areas, may_cross=may_cross)
            if area is None:
                continue
            waiting.remove(point)
            areas = np.vstack([areas, area])
            (x, y), (to_x, to_y) = places[point], _nearest(area, places[point])
            if math.hypot(to_x - x, to_y - y) > LINE:
                leaders.append(f'<line class="leader" x1="{x}" y1="{y}" x2="{to_x:.1f}" y2="{to_y:.1f}"/>')
            labels.append(f'<text x="{area[0]:.1f}" y="{area[3] - 3:.1f}">{escape(shown)}</text>')
    dots = [
        f'<circle class="dot" cx="{x}" cy="{y}" r="3"><title>{escape(name)}</title></circle>'
        for name, (x, y) in zip(names, places.tolist(), strict=True)
    ]
    return Drawing("".join([plane.axes(), *leaders, *dots, *labels]), text, plane.box)


def _free_area(
    point: int, width: float, plane: Plane, places: Floats, names: Floats, *, may_cross: bool
) -> Floats | None:
    """Return where a name covers nothing, as near to its point as there is room; None without any.

    An area is its left, right, upper and lower edge; those of the names are (names, 4). Unless they may cross, the
    line to the name covers nothing either.
    """
    x, y = places[point]
    steps = np.arange(plane.width)
    lefts = np.concatenate([x + GAP + 6 * steps, x - GAP - width - 6 * steps, [x - width / 2]])
    middles = y + 4 * np.arange(-plane.height // 4, plane.height // 4)
    lefts = lefts[(lefts >= LEFT) & (lefts + width <= plane.right + 4)]
    middles = middles[(middles >= LINE / 2 + 2) & (middles + LINE / 2 <= plane.bottom)]
    left, middle = (grid.ravel() for grid in np.meshgrid(lefts, middles))
    areas = np.stack([left, left + width, middle - LINE / 2, middle + LINE / 2], axis=1)
    around = np.where(np.arange(len(places)) == point, GAP - 1, 2 * GAP)
    dots = np.stack([places[:, 0] - around, places[:, 0] + around, places[:, 1] - 3, places[:, 1] + 3], axis=1)
    is_free = np.ones(len(areas), bool)
    for left, right, upper, lower in np.vstack([dots, names]):
        is_free &= (areas[:, 0] >= right) | (left >= areas[:, 1]) | (areas[:, 2] >= lower) | (upper >= areas[:, 3])
    areas = areas[is_free]
    beside = np.maximum(0, np.maximum(areas[:, 0] - x, x - areas[:, 1]))
    distances = np.hypot(beside, (areas[:, 2] + areas[:, 3]) / 2 - y)
    nearest = areas[np.argsort(distances, kind="stable")]
    if may_cross:
        return nearest[0] if len(nearest) else None
    others = np.vstack([np.delete(dots, point, axis=0), names])
    return next((area for area in nearest[:MAX_TRIED] if _is_clear(area, places[point], others)), None)


def _nearest(area: Floats, place: Floats) -> Floats:
    """Return the place in an area that is nearest to another one."""
    return np.clip(place, area[[0, 2]], area[[1, 3]])


def _is_clear(area: Floats, place: Floats, others: Floats) -> bool:
    """Return whether the line from a place to an area crosses no other one."""
    line = place + np.linspace(0, 1, 40)[:, None] * (_nearest(area, place) - place)  # (steps, 2)
    across, down = line.T[:, :, None]
    left, right, upper, lower = others.T
    return not ((across > left) & (across < right) & (down > upper) & (down < lower)).any()
