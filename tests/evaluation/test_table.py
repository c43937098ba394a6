"""A table in Markdown, read by another program."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from bertscore_onnx_evaluation.table import Table, number

NAMES = st.text("ab <>|*_`#[]()!\\&~-\t\n\xa0") | st.text(st.characters(exclude_characters="\0"))


@given(st.lists(NAMES, min_size=1, max_size=4))
def test_names_of_any_characters_stay_one_cell(names):
    rows = [{"name": name, "score": 0.5} for name in names]
    text = Table([("name", "name", str), ("score", "score", number(3))], rows).markdown()
    tokens = MarkdownIt().enable("table").parse(text)
    cells = [
        "".join(part.content for part in token.children if part.type == "text")
        for before, token in pairwise(tokens)
        if before.type in ("th_open", "td_open")
    ]
    expected = ["name", "score"]
    for name in names:
        expected += [" ".join(name.split()), "0.500"]  # blanks in a row are one in Markdown
    assert cells == expected
