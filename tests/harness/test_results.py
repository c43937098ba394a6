import pytest

from harness.results import (
    Case,
    Curve,
    Figure,
    Goal,
    Report,
    Skipped,
    Timing,
    figure,
    percentile,
    ratio,
    read_report,
    write_report,
)

REPORT = Report(
    "2030-01-02 03:04",
    {"processor": "one"},
    {"rounds": "2"},
    [
        Case(
            "a",
            "title",
            timings=[Timing("ours", [1.0, 2.0], 10.0, 100.0, 1e-6)],
            figures=[Figure("faster", "×", 2.0, 1.5, 2.5, Goal(1.8))],
            skipped=[Skipped("other", "missing")],
            stages={"encode": 0.9, "other": 0.1},
            encode_rate=5e9,
            curves=[Curve("pairs", [(1.0, 10.0), (10.0, 100.0)])],
        )
    ],
    [1e10, 2e10],
)


def test_a_ratio_is_taken_within_each_round():
    result = ratio("faster", [1.0, 2.0, 4.0], [2.0, 6.0, 20.0], Goal(3.0))
    assert (result.median, result.low, result.high) == (3.0, 2.0, 5.0)
    assert result.met


def test_a_ratio_needs_the_same_rounds_of_both():
    with pytest.raises(ValueError, match="shorter"):
        ratio("faster", [1.0, 2.0], [1.0])


@pytest.mark.parametrize(
    ("value", "goal", "met"),
    [
        (1.8, Goal(1.8), True),
        (1.79, Goal(1.8), False),
        (5.0, Goal(5, at_most=True), True),
        (5.1, Goal(5, at_most=True), False),
        (1.0, None, None),
    ],
)
def test_a_goal_is_a_least_or_a_most(value, goal, met):
    assert figure("any", "", [value], goal).met is met


@pytest.mark.parametrize(("percent", "expected"), [(50, 5), (99, 10), (90, 9), (91, 10), (0, 1)])
def test_a_percentile_is_one_of_the_values(percent, expected):
    assert percentile([10, 1, 9, 2, 8, 3, 7, 4, 6, 5], percent) == expected


def test_a_report_comes_back_as_it_was_written(tmp_path):
    write_report(REPORT, tmp_path / "report.json")
    assert read_report(tmp_path / "report.json") == REPORT
