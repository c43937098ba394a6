"""The drawings that pages share, and their scale."""

import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bertscore_onnx_evaluation.report.charts import LEFT, TOP, Estimate, Plane, Scale, dots_and_bars, scale_over


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (0, 1, ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]),
        (0.8151, 0.8894, ["0.82", "0.84", "0.86", "0.88"]),
        (-13, 118, ["0", "20", "40", "60", "80", "100"]),
        (-13, 130, ["0", "50", "100"]),
        (-0.0007, 0.0012, ["−0.0005", "0.0000", "0.0005", "0.0010"]),
        (1000, 250000, ["50000", "100000", "150000", "200000", "250000"]),
    ],
)
def test_ticks_are_round_numbers(low, high, texts):
    assert [text for _, text in Scale(low, high).ticks()] == texts


@example([0.05], 3)  # 9 * 0.005 is less than 0.05 - 0.005
@given(st.lists(st.floats(-1e3, 1e3, allow_subnormal=False), min_size=1, max_size=5), st.integers(2, 8))
def test_all_numbers_have_a_place_and_ticks_are_few(values, most):
    scale = scale_over(values)
    assert all(0 < scale.share(value) < 1 for value in values)
    np.testing.assert_allclose(scale.shares(np.array(values)), [scale.share(value) for value in values])
    ticks = scale.ticks(most)
    assert 1 <= len(ticks) <= most
    assert all(scale.low <= value <= scale.high for value, _ in ticks)


def test_rows_have_a_dot_a_bar_and_lines_or_the_reason():
    estimates = [Estimate("a", 0.5, 0.25, 0.75, "first", "baseline"), Estimate("b", None, note="constant")]
    estimates.append(Estimate("c", 0.25))
    chart = dots_and_bars(estimates, "r", "{:.2f}".format, [("zero", 0.5)])
    first, second, third = chart.rows
    assert first.drawing.text == "r 0.50, 95 % interval 0.25 to 0.75"
    assert (first.note, first.style) == ("first", "baseline")
    assert '<line class="zero" x1="50.00%" x2="50.00%"' in first.drawing.body
    assert '<line class="bar" x1="3.70%" x2="96.30%"' in first.drawing.body  # after the margin of 0.04 / 1.08
    assert (second.drawing, second.note) == (None, "constant")
    assert third.drawing.text == "r 0.25"
    assert "bar" not in third.drawing.body
    assert 'cx="3.70%"' in third.drawing.body


def test_a_plane_has_its_corners_and_ticks():
    plane = Plane(Scale(0, 10), Scale(-1, 1), 100, 50)
    assert [(plane.x(x), plane.y(y)) for x, y in ((0, -1), (10, 1), (5, 0))] == [
        (LEFT, TOP + 50),
        (LEFT + 100, TOP),
        (LEFT + 50, TOP + 25),
    ]
    assert re.findall(r">([^<]+)</text>", plane.axes())[:3] == ["0", "5", "10"]
    assert plane.box == f"0 0 {LEFT + 106} {TOP + 70}"
