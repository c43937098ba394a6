import re

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bertscore_onnx_evaluation.report.comparison_charts import (
    LEFT,
    SIDE,
    TOP,
    Scale,
    distributions,
    intervals,
    scale_over,
    scatter,
)
from tests.support.comparisons import metric_result


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
@given(
    st.lists(st.floats(-1e3, 1e3, allow_subnormal=False), min_size=1, max_size=5), st.integers(2, 8)
)
def test_all_numbers_have_a_place_and_ticks_are_few(values, most):
    scale = scale_over(values)
    assert all(0 < scale.share(value) < 1 for value in values)
    ticks = scale.ticks(most)
    assert 1 <= len(ticks) <= most
    assert all(scale.low <= value <= scale.high for value, _ in ticks)


def dots(drawing):
    """Return where the dots of a scatter lie, by style."""
    found = {}
    for style, path in re.findall(r'<path class="dots (\w+)" d="([^"]+)"', drawing.body):
        steps = [(int(dx), int(dy)) for dx, dy in re.findall(r"m(-?\d+) ?(-?\d+)h0", path)]
        found[style] = np.cumsum(steps, axis=0).tolist()
    return found


def test_the_interval_of_each_difference_has_its_ends():
    metric = metric_result("bertscore", ["a", "b"], [[0.1, 0.3, 0.5] * 2, [0.2, 0.5, 0.8] * 2])
    chart = intervals(metric)
    one = metric.systems[1]
    assert [row.name for row in chart.rows] == ["b", "a"]
    interval = f"95 % interval {one.delta_low:+.4f} to {one.delta_high:+.4f}"
    assert chart.rows[0].text == f"Difference +0.2000, {interval}"
    ends = re.search(r'"bar" x1="([\d.]+)%" x2="([\d.]+)%"', chart.rows[0].body).groups()
    shares = [(0.04 + end / 0.3) / 1.08 for end in (0.1, 0.3)]  # after the margin
    assert [*map(float, ends)] == pytest.approx([100 * share for share in shares], abs=0.01)
    assert "bar" not in chart.rows[1].body


def test_a_dot_lies_where_its_scores_are():
    drawing = scatter(np.array([0.0, 1.0, 0.5]), np.array([1.0, 0.0, 0.5]), lower_is_better=False)
    low, high = (round(SIDE * share / 1.08) for share in (0.04, 1.04))
    assert sorted(dots(drawing)["few"]) == [
        [LEFT + low, TOP + SIDE - high],
        [LEFT + SIDE // 2, TOP + SIDE // 2],
        [LEFT + high, TOP + SIDE - low],
    ]
    assert (
        re.findall(r">([^<]+)</text>", drawing.body)
        == [f"{share:.1f}" for share in (0, 0.5, 1)] * 2
    )
    assert drawing.text == "3 segments: the system is better on 1, the baseline on 1, neither on 1"


def test_segments_of_about_the_same_scores_share_a_dot():
    baseline = np.repeat([0.1, 0.5, 0.9, 0.3], [1, 2, 4, 5])
    found = dots(scatter(baseline, baseline, lower_is_better=False))
    assert {style: len(places) for style, places in found.items()} == {
        "few": 1,
        "some": 2,
        "many": 1,
    }


def test_a_scatter_of_very_many_segments_stays_small():
    rng = np.random.default_rng(0)
    drawing = scatter(rng.normal(size=200_000), rng.normal(size=200_000), lower_is_better=True)
    assert len(drawing.body) < 250_000
    better = int(re.search(r"the system is better on (\d+)", drawing.text)[1])
    assert 90_000 < better < 110_000


def test_the_shaded_half_is_the_better_one():
    higher, lower = (
        re.search(
            r'"better-half" d="[^"]*L(\d+) (\d+)Z"', scatter(*np.eye(2), lower_is_better=lower).body
        ).groups()
        for lower in (False, True)
    )
    assert higher == (str(LEFT), str(TOP))
    assert lower == (str(LEFT + SIDE), str(TOP + SIDE))


def test_a_histogram_has_the_height_of_its_shares():
    scores = np.repeat([[0.0, 1.0], [0.0, 0.0]], 2, axis=1)
    chart = distributions(metric_result("bertscore", ["a", "b"], scores))
    tops = [
        {
            int(top)
            for top in re.findall(r"V(\d+)H", re.search(r'class="area" d="([^"]+)"', row.body)[1])
        }
        for row in chart.rows
    ]
    assert tops == [{100, 50}, {100, 0}]  # half of the segments, and all of them
    assert chart.rows[1].text == "Median 0.0000, middle half 0.0000 to 0.0000"
