"""Verdicts, numbers and texts as the report writes them."""

from dataclasses import replace

import numpy as np
import pytest

from bertscore_onnx.evaluation.comparison import MetricResult, PairResult, SystemResult
from bertscore_onnx.evaluation.report.wording import (
    MAX_CHARACTERS,
    equals,
    fixed,
    isolated,
    p_value,
    percent,
    shortened,
    signed,
    verdict,
    visible,
)
from bertscore_onnx.evaluation.tables import count
from tests.support.comparisons import metric_result


def metric(delta, p, *, name="bertscore", segments=100, counts=(60, 30, 10)):
    """Return a metric of a baseline `base` and a system `new`."""
    base = SystemResult("base", 0.5, 0.5, 0.1, None, None, None, None, None, None)
    new = SystemResult("new", 0.5 + delta, 0.5 + delta, 0.1, delta, p, 0.9, *counts)
    return MetricResult(name, "signature", name == "ter", (base, new), (), np.zeros((2, segments)))


@pytest.mark.parametrize(
    ("found", "name", "sentence"),
    [
        (metric(0.01, 0.001), "better", "is better than base by 0.0100, p = 0.0010: unlikely to be luck."),
        (metric(-0.01, 0.049), "worse", "is worse than base by 0.0100, p = 0.0490: unlikely to be luck."),
        (metric(0.01, 0.05), "unclear", "scores higher than base by 0.0100, p = 0.0500: this may be luck."),
        (metric(-0.01, 0.4), "unclear", "scores lower than base by 0.0100, p = 0.4000: this may be luck."),
        (metric(-1.5, 0.00001, name="ter"), "better", "is better than base by 1.50, p < 0.0001: unlikely to be luck."),
        (metric(1.5, 0.01, name="ter"), "worse", "is worse than base by 1.50, p = 0.0100: unlikely to be luck."),
        (metric(0.0, 0.001), "same", "has the same score as base."),
        (metric(0.2, 0.001, segments=1), "unclear", "scores higher than base by 0.2000, p = 0.0010: this may be luck."),
    ],
)
def test_a_difference_is_read_by_its_p_and_its_direction(found, name, sentence):
    read = verdict(found, found.systems[1])
    assert (read.name, read.sentence) == (name, sentence)
    assert read.segments == "Better on 60 segments, worse on 30, tied on 10."


def test_the_baseline_has_no_verdict():
    found = metric(0.01, 0.5)
    assert verdict(found, found.systems[0]) is None


def test_holms_p_decides_where_there_is_one():
    found = replace(metric(0.01, 0.02), pairs=(PairResult("base", "new", 0.01, 0.02, 0.06, 0.99),))
    reading = verdict(found, found.systems[1])
    assert reading.name == "unclear"
    assert reading.sentence == (
        "scores higher than base by 0.0100, p = 0.0200 (0.0600 with Holm’s correction): this may be luck."
    )


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ((1, 0, 0), "Better on 1 segment, worse on 0, tied on 0."),
        ((0, 0, 100), "Tied on every segment."),
        ((1200, 0, 3), "Better on 1,200 segments, worse on 0, tied on 3."),
    ],
)
def test_segments_are_counted(counts, words):
    found = metric(0.01, 0.5, counts=counts)
    assert verdict(found, found.systems[1]).segments == words


def test_a_baseline_that_runs_right_to_left_leaves_the_sentence_as_it_is():
    found = metric(0.01, 0.001)
    base = replace(found.systems[0], name="נגד")
    reading = verdict(replace(found, systems=(base, found.systems[1])), found.systems[1])
    assert reading.sentence.startswith("is better than \u2068נגד\u2069 by 0.0100")


BERTSCORE, TER = (metric_result(name, ["a", "b"], [[0.5], [0.6]]) for name in ("bertscore", "ter"))


@pytest.mark.parametrize(
    ("value", "metric", "text"),
    [
        (0.01234, BERTSCORE, "+0.0123"),
        (-0.01234, BERTSCORE, "−0.0123"),
        (0.00004, BERTSCORE, "0.0000"),
        (-0.00004, BERTSCORE, "0.0000"),
        (0, TER, "0.00"),
        (10, TER, "+10.00"),
    ],
)
def test_a_difference_has_a_sign_unless_it_is_rounded_to_zero(value, metric, text):
    assert signed(value, metric) == text


def test_numbers_have_their_decimals():
    assert [fixed(-0.0, 1), fixed(-1.25, 1), fixed(100, 0)] == ["0.0", "−1.2", "100"]
    assert [p_value(0.000999), p_value(1), p_value(0.00001)] == ["0.0010", "1.0000", "< 0.0001"]
    assert [equals(0.02), equals(0.00001)] == ["= 0.0200", "< 0.0001"]
    assert [percent(0.9995), percent(0)] == ["100.0 %", "0.0 %"]
    assert [count(12), count(1234567)] == ["12", "1,234,567"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 東京 👩‍👩‍👧", "plain é 東京 👩‍👩‍👧"),
        ("a\tb\nc", "a\tb\nc"),
        ("\x00\x1b\x7f\r", "␀␛␡␍"),
        ("\x85\ud83d", "\ufffd\ufffd"),
    ],
)
def test_what_a_page_cannot_hold_becomes_visible(text, shown):
    assert visible(text) == shown


def test_a_long_text_ends_and_says_how_much_is_missing():
    assert shortened("x" * MAX_CHARACTERS) == "x" * MAX_CHARACTERS
    assert shortened("x" * (MAX_CHARACTERS + 1234)) == "x" * MAX_CHARACTERS + " … (1,234 more characters)"


def test_only_a_name_that_may_turn_a_sentence_is_isolated():
    assert isolated("base\x00") == "\u2068base␀\u2069"
    assert isolated("base-1") == "base-1"
    assert isolated("بسيط") == "\u2068بسيط\u2069"
