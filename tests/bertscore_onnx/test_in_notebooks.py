"""The results as a notebook shows them: the objects in a cell of a page, in a real browser."""

import pytest

from bertscore_onnx.similarity.render import match_text
from tests.support.programs import chromium
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


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_they_fit_a_page(shown, tmp_path, width):
    page = tmp_path / "notebook.html"
    page.write_text(
        f"<!doctype html><meta charset=utf-8>{'<hr>'.join(shown.values())}", encoding="utf-8"
    )
    with chromium(tmp_path / "profile") as browser:
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False},
        )
        browser.get(page.as_uri())
        assert browser.get_log("browser") == []
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert [
            bar.get_attribute("height") != "0.0"
            for bar in browser.find_elements("css selector", "rect")
        ].count(True)
        assert browser.find_elements("css selector", ".match b") == []
