"""Two texts as HTML, as a page and in a terminal."""

import re

import pytest

from bertscore_onnx.scores import Score
from bertscore_onnx.similarity import MATCH_STYLE, match_html
from bertscore_onnx.similarity.render import MAX_CELLS, columns, match_page, match_text
from tests.support.html_tree import tree_of
from tests.support.token_similarity import stated_similarity


def tokens_of(html):
    """Return the texts of the spans of a fragment, and their attributes."""
    return [("".join(span.itertext()), span.attrib) for span in tree_of(html).iter("span")]


def test_each_token_names_its_best_match():
    html = match_html(PAGE_MATCHES)
    assert [text for text, _ in tokens_of(html)] == ["cold", "day", "freezing"]
    titles = [attributes["title"] for _, attributes in tokens_of(html)]
    assert titles == ["cold → freezing: 0.750", "day → [CLS]: 0.600", "freezing → cold: 0.750"]
    assert "precision 0.500" in html
    assert "recall 0.250" in html


def test_shades_run_from_the_baseline_to_one():
    html = match_html(stated_similarity(["a", "b", "c"], ["x", "y"], [[1, 0], [0.5, 0.25], [0.25, 0]], baseline=0.5))
    shades = [attributes["style"] for _, attributes in tokens_of(html)]
    assert shades == ["--of:1.00", "--of:0.00", "--of:0.00", "--of:1.00", "--of:0.00"]
    assert [attributes.get("class") for _, attributes in tokens_of(html)] == [None, "low", "low", None, "low"]


def test_weights_are_shown_where_they_are_not_1():
    plain = match_html(stated_similarity(["a", "b"], ["x"], [[1], [0.5]]))
    assert "<small>" not in plain
    weighed = match_html(stated_similarity(["a", "b"], ["x"], [[1], [0.5]], ([0, 1.25], [0.7])))
    assert [text for text, _ in tokens_of(weighed)] == ["a0.00", "b1.25", "x0.70"]
    assert tokens_of(weighed)[0][1]["class"] == "zero"
    assert "weight 1.25" in weighed


@pytest.mark.parametrize("text", ['<script>alert("a")</script>', "a & b", "'\"><i>", "]]>", "{{ a }}", "مرحبا"])
def test_texts_stay_texts(text):
    html = match_html(stated_similarity([text, "b"], [text], [[1], [0]]))
    assert [shown for shown, _ in tokens_of(html)] == [text, "b", text]
    assert tokens_of(html)[0][1]["title"] == f"{text} → {text}: 1.000"


def test_nothing_comes_from_elsewhere_and_nothing_runs():
    html = match_html(stated_similarity(["a"], ["b"], [[0.5]]))
    names = {name for element in tree_of(html).iter() for name in (element.tag, *element.attrib)}
    assert names == {"dl", "dt", "dd", "span", "class", "dir", "style", "title"}
    assert html.count('dir="auto"') == 2
    assert not re.search(r"url\(|@import|//", MATCH_STYLE)
    assert "prefers-color-scheme: dark" in MATCH_STYLE
    page = match_page([PAGE_MATCHES], "a", ["b"], "")
    assert not re.search(r"https?://|<script|@import|url\(|\son\w+=|<link", page)
    assert '<meta name="viewport"' in page


@pytest.mark.parametrize("colour", [False, True])
def test_texts_without_tokens_have_a_heading_alone(colour):
    found = stated_similarity(["[CLS]"], ["[CLS]"], [[1]])
    assert tokens_of(match_html(found)) == []
    assert "candidate" in match_text(found, colour=colour)


PAGE_MATCHES = stated_similarity(["[CLS]", "cold", "day"], ["[CLS]", "freezing"], [[1, 0.1], [0.2, 0.75], [0.6, 0.3]])


def cells(page):
    rows = re.findall(r"<tr>(<th scope=\"row\".*?)</tr>", page)
    return [re.findall(r'<td(?: class="([^"]*)")? style="--of:[\d.]+">([^<]*)</td>', row) for row in rows]


def test_the_matrix_marks_the_best_of_rows_and_columns():
    page = match_page([PAGE_MATCHES], "cold day", ["freezing"], "signature|a")
    assert cells(page) == [
        [("p r", "1.000"), ("", "0.100")],
        [("", "0.200"), ("p r", "0.750")],
        [("p", "0.600"), ("", "0.300")],
    ]
    assert '<th scope="col" class="none" dir="auto">' not in page  # a special token that weighs 1 here
    assert "<h1>Which tokens match: F 0.333</h1>" in page
    assert "signature|a</p>" in page


def test_of_several_references_the_best_is_shown():
    other = stated_similarity(["cold"], ["<i>"], [[0.9]])
    object.__setattr__(other, "score", Score(0.9, 0.9, 0.9, 0))
    page = match_page([PAGE_MATCHES, other], "cold", ["freezing", "<i>"], "")
    assert "Of 2 references number 2 has the best F, and is shown." in page
    assert page.count("&lt;i&gt;") >= 3
    assert "<i>" not in page
    assert cells(page) == [[("p r", "0.900")]]


@pytest.mark.parametrize("text", ["</style><script>", '" onload="', "&amp;"])
def test_texts_of_a_page_are_escaped(text):
    page = match_page([stated_similarity([text], [text], [[1]])], text, [text], text)
    assert "<script" not in page
    assert '" onload' not in page
    if "&" in text:
        assert "&amp;amp;" in page


def test_a_matrix_that_no_browser_shows_is_left_out():
    size = int(MAX_CELLS**0.5) + 1
    page = match_page([stated_similarity(["a"] * size, ["b"] * size, [[0.5] * size] * size)], "a", ["b"], "")
    assert f"Left out: there are {size} × {size}." in page
    assert cells(page) == []


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


def test_the_tables_stand_below_each_other_where_there_is_no_room():
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
    assert max(columns(STYLE.sub("", line)) for line in shown.splitlines()) <= width
    assert len(shown.splitlines()) >= 9


def test_columns_line_up_with_wide_and_combining_characters():
    found = stated_similarity(["東京", "e\u0301", "day"], ["x"], [[0.5]] * 3)
    lines = match_text(found, width=60).splitlines()[3:6]
    assert {columns(line[: line.index("0.500")]) for line in lines} == {24}


def test_colour_shades_both_texts_by_their_matches():
    lines = match_text(TERMINAL_MATCHES, colour=True).splitlines()
    assert [STYLE.sub("", line) for line in lines[2:7]] == ["candidate", " cold   day ", "", "reference", " freezing "]
    assert lines[3] == "\x1b[38;5;16;48;5;75m cold \x1b[0m \x1b[38;5;16;48;5;195m day \x1b[0m"
    assert STYLE.sub("", "\n".join(lines[:2] + lines[8:])) == match_text(TERMINAL_MATCHES)
    plain = match_text(stated_similarity(["a"], ["b"], [[1]], ([0], [1])), colour=True)
    assert "\x1b[2;3m a \x1b[0m" in plain
