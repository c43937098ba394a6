"""The results as a notebook shows them: the objects in a cell of a page, in a real browser."""

import pytest

from bertscore_onnx.similarity.render import match_text
from tests.support.programs import chromium
from tests.support.scores import CANDIDATES, REFERENCES


@pytest.fixture
def shown(scorer):
    """What a notebook shows, by name."""
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
    found = scorer.match("the cat", ["a dog", "the cat sat"])
    assert repr(found) == "TokenMatches(P={:.3f}, R={:.3f}, F={:.3f})".format(*found.best.score)
    assert str(found) == match_text(found.best)
    assert scorer.match("the cat", "the cat sat").best.score == found.best.score


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.parametrize("width", [390, 1280])
def test_they_fit_a_page(shown, tmp_path, width):
    page = tmp_path / "notebook.html"
    page.write_text(f"<!doctype html><meta charset=utf-8>{'<hr>'.join(shown.values())}", encoding="utf-8")
    with chromium(tmp_path / "profile") as browser:
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False},
        )
        browser.get(page.as_uri())
        assert browser.get_log("browser") == []
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert [bar.get_attribute("height") != "0.0" for bar in browser.find_elements("css selector", "rect")].count(
            True
        )
        assert browser.find_elements("css selector", ".match b") == []
