"""Texts of users in a page."""

import pytest

from bertscore_onnx.evaluation.report.wording import MAX_CHARACTERS, isolated, shortened, visible


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
