"""Texts as the report writes them."""

import pytest

from bertscore_onnx.evaluation.report.wording import isolated, visible


@pytest.mark.parametrize(
    ("name", "shown"),
    [("base-1", "base-1"), ("base\x00", "\u2068base␀\u2069"), ("נגד", "\u2068נגד\u2069"), ("بسيط", "\u2068بسيط\u2069")],
)
def test_a_name_that_may_turn_its_sentence_round_is_isolated(name, shown):
    assert isolated(name) == shown


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
