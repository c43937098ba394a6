"""Points with their names."""

import numpy as np
import pytest

from bertscore_onnx_evaluation.report.charts import LEFT, TOP
from bertscore_onnx_evaluation.report.named_points import named_points
from tests.support.html_tree import tree_of


def parts(drawing):
    """Return the titles and places of the dots, and the texts and places of the names."""
    root = tree_of(f"<svg>{drawing.body}</svg>")
    dots = {one.find("title").text: (float(one.get("cx")), float(one.get("cy"))) for one in root.iter("circle")}
    names = {
        one.text: (float(one.get("x")), float(one.get("y"))) for one in root.iter("text") if not one.get("text-anchor")
    }
    return dots, names


def test_a_dot_lies_where_its_numbers_are_and_its_name_beside_it():
    dots, names = parts(named_points([("low", 0, 10), ("high", 4, 30), ("middle", 2, 20)], "three"))
    low, high = (0.04 / 1.08, 1.04 / 1.08)
    assert dots == {
        "low": (pytest.approx(LEFT + 246 * low, abs=0.1), pytest.approx(TOP + 190 * high, abs=0.1)),
        "high": (pytest.approx(LEFT + 246 * high, abs=0.1), pytest.approx(TOP + 190 * low, abs=0.1)),
        "middle": (LEFT + 123, TOP + 95),
    }
    assert {*names} == {*dots}
    assert names["low"] == (pytest.approx(dots["low"][0] + 5), pytest.approx(dots["low"][1] + 2.5))
    assert names["high"][0] < dots["high"][0] - 20  # there is no room on the right


def test_the_order_of_points_does_not_matter():
    rng = np.random.default_rng(0)
    points = [(f"system {row}", *rng.normal(size=2).tolist()) for row in range(12)]
    points += [("system 3", *points[3][1:]), ("same", *points[4][1:])]
    drawing = named_points(points, "")
    for _ in range(3):
        assert named_points([points[at] for at in rng.permutation(len(points))], "") == drawing


def test_long_names_are_cut_in_the_middle_and_whole_in_the_title():
    name = "a system with a very long name 27"
    dots, names = parts(named_points([(name, 1, 1)], ""))
    assert [*dots] == [name]
    assert [*names] == ["a system … name 27"]


def test_names_are_escaped():
    body = named_points([("<script>&\x00", 1, 1), ("b", 2, 2)], "").body
    assert "<script>" not in body
    assert body.count("&lt;script&gt;&amp;␀") == 2


@pytest.mark.parametrize("number", [1, 2, 40])
def test_points_in_one_place_are_drawn_and_named(number):
    dots, names = parts(named_points([(f"system {row}", 1, 2) for row in range(number)], ""))
    assert (len(dots), len(names)) == (number, number)
