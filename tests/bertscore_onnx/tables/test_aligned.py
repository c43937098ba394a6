"""Tables and sentences within the width of a terminal."""

import random

import pytest

from bertscore_onnx.tables.aligned import aligned, filled, terminal_width

HEADER = ["name", "a", "b", "c"]
ROWS = [["one", "1.25", "22", "333"], ["a-very-long-name", "0.5", "2", "3"]]


def table(width, **options):
    return aligned([HEADER, *ROWS], width, right={1, 2, 3}, whole={1, 2, 3}, **options)


def test_numbers_stand_below_each_other_on_the_right():
    assert table(None, has_rule=True) == [
        "name                 a   b    c",
        "----------------  ----  --  ---",
        "one               1.25  22  333",
        "a-very-long-name   0.5   2    3",
    ]


def test_the_least_important_columns_are_left_out_first_and_named():
    assert table(29, optional=[2, 3]) == [
        "name                 a    c",
        "one               1.25  333",
        "a-very-long-name   0.5    3",
        "A wider terminal also shows",
        "b.",
    ]
    assert table(26, optional=[2, 3])[0] == "name                 a"


@pytest.mark.parametrize("seed", range(60))
def test_no_line_is_wider_than_the_width_and_every_cell_is_there(seed):
    rng = random.Random(seed)  # noqa: S311 -- names are no secrets
    names = ["".join(rng.choices("abcdefgh-_ 中é", k=rng.randint(1, 50))).strip() or "x" for _ in range(4)]
    num_columns = rng.randint(2, 30)
    rows = [["name", *(f"c{place}" for place in range(num_columns))]]
    rows += [[name, *(f"{rng.random():.{rng.randint(0, 6)}f}" for _ in range(num_columns))] for name in names]
    columns, width = range(1, num_columns + 1), rng.choice([40, 80, 120])
    lines = aligned(rows, width, right=columns, whole=columns)
    assert max(len(line) + line.count("中") for line in lines) <= width
    printed = "\n".join(lines).split()
    assert all(printed.count(cell) >= 1 for row in rows for cell in row[1:])


def test_the_width_is_that_of_columns_or_80(monkeypatch):
    monkeypatch.setenv("COLUMNS", "63")
    assert terminal_width() == 63
    monkeypatch.setenv("COLUMNS", "none")
    monkeypatch.setattr("sys.__stdout__", None)
    assert terminal_width() == 80


def test_sentences_break_between_words_and_not_within_equations_and_signatures():
    assert filled("short", 20) == "short"
    assert filled("is better, p = 0.0225", 17) == "is better,\np = 0.0225"
    assert (
        filled("see bertscore-onnx|model:all-MiniLM-L6-v2 here", 20)
        == "see\nbertscore-onnx|model:all-MiniLM-L6-v2\nhere"
    )
