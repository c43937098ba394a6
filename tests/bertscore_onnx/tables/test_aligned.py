import random

import pytest

from bertscore_onnx.tables.aligned import aligned, filled, terminal_width, text_width

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
    names = [
        "".join(rng.choices("abcdefgh-_ 中é", k=rng.randint(1, 50))).strip() or "x"
        for _ in range(4)
    ]
    num_columns = rng.randint(2, 30)
    rows = [["name", *(f"c{place}" for place in range(num_columns))]]
    rows += [
        [name, *(f"{rng.random():.{rng.randint(0, 6)}f}" for _ in range(num_columns))]
        for name in names
    ]
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


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize(
    ("text", "width_of_one"),
    [
        (
            "Die Bürger wählten – „überraschend“ – den Außenseiter, was niemand für möglich "
            "hielt. ",
            1,
        ),
        (
            "\u201cIt\u2019s fine,\u201d she said, and didn\u2019t look up from the "
            "caf\u00e9\u2019s menu. ",
            1,
        ),
        ("De\u0301ja\u0300 vu, e\u0301crit avec des accents combinants. ", 1),
        ("今日はとても良い天気ですね。", 2),
        ("👨\u200d👩\u200d👧 👍🏽 ❤\ufe0f ", 2),
    ],
)
def test_texts_of_any_script_fill_the_width(text, width_of_one, width):
    lines = aligned([["1", text.strip() + text * 9]], width)
    longest = max(map(text_width, text.split())) if " " in text else 2 * width_of_one
    assert all(width - longest <= text_width(line) <= width for line in lines[:-1])
    assert all(text_width(line) <= width for line in filled(text * 10, width).split("\n"))
    assert filled(text * 10, width).replace("\n", "").replace(" ", "") == (text * 10).replace(
        " ", ""
    )


def test_widths_are_those_of_a_terminal():
    assert [
        text_width(text)
        for text in ("é", "e\u0301", "中", "👍🏽", "👨\u200d👩\u200d👧", "❤\ufe0f", "🇩🇪", "ｱ")
    ] == [1, 1, 2, 2, 2, 2, 2, 1]


def test_brackets_and_stops_stay_beside_the_character_they_belong_to():
    assert filled("今日は（とても）良い天気です。", 8) == "今日は\n（とて\nも）良い\n天気で\nす。"
