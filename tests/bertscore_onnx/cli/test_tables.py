"""Tables that are printed."""

import pytest

from bertscore_onnx.cli.terminal import print_table

ROWS = [("NAME", "N", "LANGUAGES"), ("one-long-name", "12", "cs de en"), ("b", "3", "-")]


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (None, ["NAME           N   LANGUAGES", "one-long-name  12  cs de en", "b              3   -"]),
        (28, ["NAME           N   LANGUAGES", "one-long-name  12  cs de en", "b              3   -"]),
        (24, ["NAME       N   LANGUAGES", "one-long-  12  cs de en", "name", "b          3   -"]),
    ],
)
def test_cells_take_more_lines_where_there_is_little_room(capsys, width, lines):
    print_table(ROWS, width=width)
    assert capsys.readouterr().out.splitlines() == lines


def test_words_are_never_broken(capsys):
    print_table(ROWS, width=1)
    assert capsys.readouterr().out.splitlines()[1:4] == ["one-   12  cs de en", "long-", "name"]


def test_cells_are_printed_as_they_are_without_a_width(capsys):
    print_table([("a  b", "c"), ("d", "e\tf")])
    assert capsys.readouterr().out == "a  b  c\nd     e\tf\n"
