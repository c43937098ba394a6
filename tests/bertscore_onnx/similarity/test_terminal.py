"""Matches as lines for a terminal."""

import re

import pytest

from bertscore_onnx.similarity.render import columns, match_text
from tests.support.token_similarity import stated_similarity

FOUND = stated_similarity(
    ["[CLS]", "cold", "day", "[SEP]"],
    ["[CLS]", "freezing", "[SEP]"],
    [[1, 0.1, 0], [0.2, 0.75, 0], [0.6, 0.3, 0], [0, 0, 1]],
    baseline=0.5,
)

STYLE = re.compile(r"\x1b\[[\d;]*m")


def test_tokens_stand_beside_their_best_matches():
    assert match_text(FOUND, width=80) == (
        "P 0.500   R 0.250   F 0.333\n"
        "\n"
        "candidate  best match  similarity      reference  best match  similarity\n"
        "cold       freezing     0.750 ██       freezing   cold         0.750 ██\n"
        "day        [CLS]        0.600 █"
    )


def test_the_tables_stand_below_each_other_where_there_is_no_room():
    assert match_text(FOUND, width=60, encoding="ascii") == (
        "P 0.500   R 0.250   F 0.333\n"
        "\n"
        "candidate  best match  similarity\n"
        "cold       freezing     0.750 ##\n"
        "day        [CLS]        0.600 #\n"
        "\n"
        "reference  best match  similarity\n"
        "freezing   cold         0.750 ##"
    )


def test_weights_have_a_column_where_they_differ():
    found = stated_similarity(["a", "b"], ["c"], [[-0.25], [0.5]], ([0, 1.5], [0.5]))
    assert match_text(found, width=60).splitlines()[2:] == [
        "candidate  best match  similarity    weight",
        "a          c           -0.250          0.00",
        "b          c            0.500 ██       1.50",
        "",
        "reference  best match  similarity    weight",
        "c          b            0.500 ██       0.50",
    ]


@pytest.mark.parametrize("width", [40, 44, 57, 80, 120, 300])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252", "iso-8859-6"])
@pytest.mark.parametrize("colour", [False, True])
def test_lines_fit_the_width_and_the_encoding(width, encoding, colour):
    tokens = ["東京", "اليوم", "a" * 70, "e\u0301", "😀(1/2)", "naïve", "the"]
    similarity = [[row / 7 - column / 9 for column in range(7)] for row in range(7)]
    found = stated_similarity(tokens, tokens[::-1], similarity, ([0.5, *[1] * 6], [2] * 7))
    shown = match_text(found, width=width, encoding=encoding, colour=colour)
    shown.encode(encoding)
    assert max(columns(STYLE.sub("", line)) for line in shown.splitlines()) <= width
    assert len(shown.splitlines()) >= 9


def test_columns_line_up_with_wide_and_combining_characters():
    found = stated_similarity(["東京", "e\u0301", "day"], ["x"], [[0.5]] * 3)
    lines = match_text(found, width=60).splitlines()[3:6]
    assert {columns(line[: line.index("0.500")]) for line in lines} == {24}


def test_colour_shades_both_texts_by_their_matches():
    lines = match_text(FOUND, colour=True).splitlines()
    assert [STYLE.sub("", line) for line in lines[2:7]] == ["candidate", " cold   day ", "", "reference", " freezing "]
    assert lines[3] == "\x1b[38;5;16;48;5;75m cold \x1b[0m \x1b[38;5;16;48;5;195m day \x1b[0m"
    assert STYLE.sub("", "\n".join(lines[:2] + lines[8:])) == match_text(FOUND)
    plain = match_text(stated_similarity(["a"], ["b"], [[1]], ([0], [1])), colour=True)
    assert "\x1b[2;3m a \x1b[0m" in plain


def test_without_colour_there_are_no_escape_sequences():
    assert "\x1b" not in match_text(FOUND)


def test_texts_without_tokens_have_a_heading_alone():
    found = stated_similarity(["[CLS]"], ["[CLS]"], [[1]])
    for colour in (False, True):
        assert "candidate" in match_text(found, colour=colour)
