"""A page with the matches of a pair."""

import re

import pytest

from bertscore_onnx.scores import Score
from bertscore_onnx.similarity.render import MAX_CELLS, match_page
from tests.support.token_similarity import stated_similarity

FOUND = stated_similarity(["[CLS]", "cold", "day"], ["[CLS]", "freezing"], [[1, 0.1], [0.2, 0.75], [0.6, 0.3]])


def cells(page):
    rows = re.findall(r"<tr>(<th scope=\"row\".*?)</tr>", page)
    return [re.findall(r'<td(?: class="([^"]*)")? style="--of:[\d.]+">([^<]*)</td>', row) for row in rows]


def test_the_matrix_marks_the_best_of_rows_and_columns():
    page = match_page([FOUND], "cold day", ["freezing"], "signature|a")
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
    page = match_page([FOUND, other], "cold", ["freezing", "<i>"], "")
    assert "Of 2 references number 2 has the best F, and is shown." in page
    assert page.count("&lt;i&gt;") >= 3
    assert "<i>" not in page
    assert cells(page) == [[("p r", "0.900")]]


def test_the_page_needs_nothing_from_elsewhere():
    page = match_page([FOUND], "a", ["b"], "")
    assert not re.search(r"https?://|<script|@import|url\(|\son\w+=|<link", page)
    assert '<meta name="viewport"' in page


@pytest.mark.parametrize("text", ["</style><script>", '" onload="', "&amp;"])
def test_texts_stay_texts(text):
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
