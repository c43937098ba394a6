"""The results as a notebook shows them: the objects in a cell of a page, in a real browser."""

import pytest

from bertscore_onnx.similarity.render import match_text
from bertscore_onnx_evaluation import compare
from tests.support.scores import CANDIDATES, REFERENCES


@pytest.fixture
def shown(scorer):
    results = {
        "scores": scorer.score(CANDIDATES * 20, REFERENCES * 20),
        "signature": scorer.signature,
        "matches": scorer.match("the <b>cat</b> sat on it", ["a dog", "the cat sat"]),
    }
    return {name: result._repr_html_() for name, result in results.items()}


def test_scores_have_their_signature(scorer, shown):
    assert str(scorer.signature) in shown["scores"]
    assert str(scorer.signature) in shown["signature"]
    assert str(scorer.signature) in shown["matches"]


def test_matches_are_printed_as_show_prints_them(scorer):
    found = scorer.match("the cat", "the cat sat")
    assert str(found) == match_text(found.best)
    assert f"<p>F {found.F:.3f}.</p>" in found._repr_html_()


def test_of_several_references_the_scores_are_those_of_score(scorer):
    references = ["it", "a dog"]  # the first has the best R, the second the best P and F
    found = scorer.match("the cat sat", references)
    [score] = scorer.score(["the cat sat"], [references]).each()
    assert score.R > found.best.score.R
    assert tuple(score) == (found.P, found.R, found.F)
    assert (found.precision, found.recall, found.f1) == (score.precision, score.recall, score.f1)
    assert repr(found) == f"TokenMatches(P={score.P:.3f}, R={score.R:.3f}, F={score.F:.3f})"
    assert str(found).splitlines()[0] == f"P {score.P:.3f}   R {score.R:.3f}   F {score.F:.3f}"
    for shown in (str(found), found._repr_html_(), found.to_html()):
        assert f"R {score.R:.3f}" in shown
        assert "reference 2 of 2, which has the best F" in shown


HEADS = """return [...document.querySelectorAll(".jp-OutputArea thead th")].map(head => {
  const range = document.createRange();
  range.selectNodeContents(head);
  return [head.textContent, new Set([...range.getClientRects()].map(box => box.bottom)).size];
}).filter(([_, lines]) => lines > 1)"""
"""The heads of columns that are broken into lines."""


@pytest.mark.browser
@pytest.mark.full
@pytest.mark.parametrize("width", [390, 1280])
def test_the_style_of_jupyter_leaves_them_in_place(browser, shown, tmp_path, width):
    from nbconvert import HTMLExporter
    from nbformat.v4 import new_code_cell, new_notebook, new_output

    systems = {"first": CANDIDATES * 20, "a_name_of_a_system_without_blanks": REFERENCES * 20}
    comparison = compare(systems, REFERENCES * 20, metrics=["chrf", "bleu"])
    outputs = [
        new_output("display_data", data={"text/html": html})
        for html in [*shown.values(), comparison._repr_html_()]
    ]
    language = {"name": "python", "pygments_lexer": "python"}
    notebook = new_notebook(
        cells=[new_code_cell(outputs=outputs)], metadata={"language_info": language}
    )
    exporter = HTMLExporter(mathjax_url="", require_js_url="", mermaid_js_url="")
    page = tmp_path / "notebook.html"
    page.write_text(exporter.from_notebook_node(notebook)[0], encoding="utf-8")
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False},
    )
    browser.get(page.as_uri())
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script(HEADS) == []
    parts = browser.find_elements("css selector", ".match > div")
    assert [part.text.split()[0] for part in parts] == ["Candidate,", "the", "Reference,", "a"]
    assert {part.rect["x"] for part in parts} == {parts[0].rect["x"]}
    tops = [part.rect["y"] for part in parts]
    assert tops == sorted(set(tops))
    bars = browser.find_elements("css selector", "rect")
    assert any(bar.get_attribute("height") != "0.0" for bar in bars)
    assert browser.find_elements("css selector", ".match b") == []
