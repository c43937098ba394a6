import re

import pytest

from bertscore_onnx.scores import Score
from bertscore_onnx.similarity import MATCH_STYLE, TokenMatches, match_html
from bertscore_onnx.similarity.render import MAX_CELLS, match_text
from bertscore_onnx.tables.aligned import text_width
from tests.support.html_tree import rows_of, text_of, tree_of
from tests.support.token_similarity import stated_similarity

FOUND = stated_similarity(
    ["[CLS]", "cold", "day"], ["[CLS]", "freezing"], [[1, 0.1], [-0.2, 0.75], [0.6, 0.3]]
)


def tokens_of(html):
    """Return the texts of the spans of a fragment, with their classes and their titles."""
    return [
        ("".join(span.itertext()), span.get("class"), span.get("title"))
        for span in tree_of(html).iter("span")
    ]


def tables_of(html):
    return [rows_of(table) for table in tree_of(html).iter("table")]


def test_each_token_is_shaded_by_its_best_match_and_names_it():
    html = match_html(FOUND)
    assert (
        text_of(tree_of(html))
        == "Candidate, precision 0.500cold dayReference, recall 0.250freezing"
    )
    assert tokens_of(html) == [
        ("cold", "s11", "cold → freezing: 0.750"),
        ("day", "s6 low", "day → [CLS]: 0.600"),
        ("freezing", "s11", "freezing → cold: 0.750"),
    ]


def test_shades_run_from_the_baseline_to_one():
    html = match_html(
        stated_similarity(
            ["a", "b", "c"], ["x", "y"], [[1, 0], [0.5, 0.25], [0.25, 0]], baseline=0.5
        )
    )
    assert [kind for _, kind, _ in tokens_of(html)] == ["s20", "s0 low", "s0 low", "s20", "s0 low"]
    assert {f".s{step} {{ --of: {step / 20}; }}" in MATCH_STYLE for step in range(1, 21)} == {True}


def test_weights_are_shown_where_they_are_not_1():
    plain = match_html(stated_similarity(["a", "b"], ["x"], [[1], [0.5]]))
    assert "weight" not in plain
    weighed = match_html(
        stated_similarity(["a", "b"], ["x"], [[1], [0.5]], ([0, 1.25], [0.7])), with_matrix=True
    )
    assert tokens_of(weighed) == [
        ("a0.00", "zero", "a → x: 1.000, weight 0.00"),
        ("b1.25", "s0 low", "b → x: 0.500, weight 1.25"),
        ("x0.70", "s20", "x → a: 1.000, weight 0.70"),
    ]
    assert tables_of(weighed)[0][0] == ["", "x0.70"]


def test_the_matrix_marks_the_best_of_rows_and_columns():
    matrix, *_ = tree_of(match_html(FOUND, with_matrix=True)).iter("table")
    assert rows_of(matrix) == [
        ["", "[CLS]", "freezing"],
        ["[CLS]", "1.000", "0.100"],
        ["cold", "−0.200", "0.750"],
        ["day", "0.600", "0.300"],
    ]
    marks = [
        [{*cell.get("class").split()} & {"p", "r"} for cell in row.iter("td")]
        for row in [*matrix.iter("tr")][1:]
    ]
    assert marks == [[{"p", "r"}, set()], [set(), {"p", "r"}], [{"p"}, set()]]


def test_a_list_has_every_token_with_its_match():
    _, candidate, reference = tables_of(match_html(FOUND, with_matrix=True))
    assert candidate[0] == ["Candidate token", "Best reference token", "Similarity"]
    assert candidate[1:] == [
        ["[CLS]", "[CLS]", "1.000"],
        ["cold", "freezing", "0.750"],
        ["day", "[CLS]", "0.600"],
    ]
    assert reference[1:] == [["[CLS]", "[CLS]", "1.000"], ["freezing", "cold", "0.750"]]


def test_a_matrix_that_no_browser_shows_is_left_out():
    size = int(MAX_CELLS**0.5) + 1
    html = match_html(
        stated_similarity(["a"] * size, ["b"] * size, [[0.5] * size] * size), with_matrix=True
    )
    assert f"is left out: it has {size} × {size}." in html
    assert [len(table) for table in tables_of(html)] == [size + 1] * 2  # the lists


EVIL = [
    '<script>alert("a")</script>',
    "a & b",
    "'\"><i>",
    "</style>",
    '" onload="',
    "]]>",
    "{{ a }}",
    "&amp;",
    "مرحبا",
]


@pytest.mark.parametrize("text", EVIL)
def test_texts_stay_texts(text):
    found = stated_similarity([text, "b"], [text], [[1], [0]])
    page = TokenMatches(text, (text, text), (found, found), text).to_html()
    body = [*tree_of(page)][1]
    assert tokens_of(page)[0] == (text, "s20", f"{text} → {text}: 1.000")
    # texts, tokens, matrix, lists, signature
    assert "".join(body.itertext()).count(text) == 3 + 2 + 2 + 5 + 1
    names = {name for element in body.iter() for name in (element.tag, *element.attrib)}
    assert not [
        name
        for name in names
        if name in ("script", "style", "link", "src", "href") or name.startswith("on")
    ]


@pytest.mark.parametrize("colour", [False, True])
def test_texts_without_tokens_have_a_heading_alone(colour):
    found = stated_similarity(["[CLS]"], ["[CLS]"], [[1]])
    assert tokens_of(match_html(found)) == []
    assert text_of(tree_of(match_html(found))).count("no tokens") == 2
    assert "candidate" in match_text(found, colour=colour)


def test_a_page_has_the_score_the_texts_and_the_signature():
    page = TokenMatches("cold day", ("freezing",), (FOUND,), "signature|a").to_html()
    assert not re.search(r"https?://|<script|@import|url\(|<link", page)
    assert '<meta name="viewport"' in page
    text = text_of(tree_of(page))
    for part in (
        "Which tokens match: F 0.333",
        "Candidate: cold day",
        "Reference: freezing",
        "signature|a",
    ):
        assert part in text


def test_of_several_references_the_best_is_shown():
    other = stated_similarity(["cold"], ["hot"], [[0.9]])
    object.__setattr__(other, "score", Score(0.9, 0.9, 0.9, 0))
    page = TokenMatches("cold day", ("freezing", "hot"), (FOUND, other), "").to_html()
    references, matrix, *_ = tables_of(page)
    assert references[1:] == [
        ["1", "0.500", "0.250", "0.333", "freezing"],
        ["2", "0.900", "0.900", "0.900", "hot"],
    ]
    assert "reference 2 of 2, which has the best F" in page
    assert matrix == [["", "hot"], ["cold", "0.900"]]


TERMINAL_MATCHES = stated_similarity(
    ["[CLS]", "cold", "day", "[SEP]"],
    ["[CLS]", "freezing", "[SEP]"],
    [[1, 0.1, 0], [0.2, 0.75, 0], [0.6, 0.3, 0], [0, 0, 1]],
    baseline=0.5,
)

STYLE = re.compile(r"\x1b\[[\d;]*m")


def test_tokens_stand_beside_their_best_matches():
    assert match_text(TERMINAL_MATCHES, width=80) == (
        "P 0.500   R 0.250   F 0.333\n"
        "\n"
        "candidate  best match  similarity      reference  best match  similarity\n"
        "cold       freezing     0.750 ██       freezing   cold         0.750 ██\n"
        "day        [CLS]        0.600 █\n"
        "\n"
        "The model adds [CLS]: of no weight, but possibly a best match."
    )


def test_without_room_the_tables_stand_below_each_other():
    assert match_text(TERMINAL_MATCHES, width=60, encoding="ascii") == (
        "P 0.500   R 0.250   F 0.333\n"
        "\n"
        "candidate  best match  similarity\n"
        "cold       freezing     0.750 ##\n"
        "day        [CLS]        0.600 #\n"
        "\n"
        "reference  best match  similarity\n"
        "freezing   cold         0.750 ##\n"
        "\n"
        "The model adds [CLS]: of no weight, but possibly a best match."
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
    assert max(text_width(STYLE.sub("", line)) for line in shown.splitlines()) <= width
    assert len(shown.splitlines()) >= 9


def test_columns_line_up_with_wide_and_combining_characters():
    found = stated_similarity(["東京", "e\u0301", "day"], ["x"], [[0.5]] * 3)
    lines = match_text(found, width=60).splitlines()[3:6]
    assert {text_width(line[: line.index("0.500")]) for line in lines} == {24}


def test_colour_shades_both_texts_by_their_matches():
    lines = match_text(TERMINAL_MATCHES, colour=True).splitlines()
    assert [STYLE.sub("", line) for line in lines[2:7]] == [
        "candidate",
        " cold   day ",
        "",
        "reference",
        " freezing ",
    ]
    assert lines[3] == "\x1b[38;5;16;48;5;75m cold \x1b[0m \x1b[38;5;16;48;5;195m day \x1b[0m"
    assert STYLE.sub("", "\n".join(lines[:2] + lines[8:])) == match_text(TERMINAL_MATCHES)
    plain = match_text(stated_similarity(["a"], ["b"], [[1]], ([0], [1])), colour=True)
    assert "\x1b[2;3m a \x1b[0m" in plain
