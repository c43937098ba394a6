"""Verdicts, numbers and texts as the report writes them."""

from dataclasses import replace

import numpy as np
import pytest

from bertscore_onnx.evaluation.comparison import MetricResult, PairResult, SystemResult
from bertscore_onnx.evaluation.report.wording import (
    MAX_CHARACTERS,
    equals,
    fixed,
    p_value,
    percent,
    shortened,
    signed,
    verdict,
    visible,
)
from bertscore_onnx.evaluation.tables import count


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
    assert verdict(found, found.systems[0]) is None


def test_holms_p_decides_if_there_is_one():
    found = replace(metric(0.01, 0.02), pairs=(PairResult("base", "new", 0.01, 0.02, 0.06, 0.99),))
    reading = verdict(found, found.systems[1])
    assert reading.name == "unclear"
    assert "p = 0.0200 (0.0600 with Holm’s correction)" in reading.sentence


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


@pytest.mark.parametrize(
    ("name", "shown"),
    [("base-1", "base-1"), ("base\x00", "\u2068base␀\u2069"), ("نגד", "\u2068نגד\u2069"), ("بسيط", "\u2068بسيط\u2069")],
)
def test_a_name_that_may_turn_its_sentence_round_is_isolated(name, shown):
    found = metric(0.01, 0.001)
    base = replace(found.systems[0], name=name)
    reading = verdict(replace(found, systems=(base, found.systems[1])), found.systems[1])
    assert reading.sentence.startswith(f"is better than {shown} by 0.0100")


@pytest.mark.parametrize(
    ("value", "name", "text"),
    [
        (0.01234, "bertscore", "+0.0123"),
        (-0.01234, "bertscore", "−0.0123"),
        (0.00004, "bertscore", "0.0000"),
        (-0.00004, "bertscore", "0.0000"),
        (0, "ter", "0.00"),
        (10, "ter", "+10.00"),
    ],
)
def test_a_difference_has_a_sign_unless_it_is_rounded_to_zero(value, name, text):
    assert signed(value, metric(0, 1, name=name)) == text


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
def test_control_characters_become_visible(text, shown):
    assert visible(text) == shown


def test_a_long_text_ends_with_the_number_of_missing_characters():
    assert shortened("x" * MAX_CHARACTERS) == "x" * MAX_CHARACTERS
    assert shortened("x" * (MAX_CHARACTERS + 1234)) == "x" * MAX_CHARACTERS + " … (1,234 more characters)"
