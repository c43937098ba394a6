"""What all pages, and all fragments for notebooks, have in common."""

import re
import sys
from base64 import b64encode
from hashlib import sha256
from itertools import pairwise

import pytest

from bertscore_onnx.errors import MissingExtraError
from tests.support.html_tree import tree_of

from .conftest import CASES


def test_a_page_is_well_formed_and_its_names_lead_somewhere(any_page):
    page = tree_of(any_page)
    ids = [one.get("id") for one in page.iter() if one.get("id")]
    assert len(ids) == len({*ids})
    links = [one.get("href").removeprefix("#") for one in page.iter("a")]
    labelled = [one.get("aria-labelledby") for one in page.iter() if one.get("aria-labelledby")]
    assert {*links, *labelled} <= {*ids}
    assert (page.get("lang"), len([*page.iter("h1")])) == ("en", 1)
    levels = [int(one.tag[1]) for one in page.iter() if re.fullmatch(r"h\d", one.tag)]
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_a_page_needs_nothing_from_elsewhere_and_runs_one_script(any_page):
    page = tree_of(any_page)
    assert {"img", "iframe", "object", "embed", "form", "base"}.isdisjoint(
        one.tag for one in page.iter()
    )
    attributes = [(name, value) for one in page.iter() for name, value in one.items()]
    assert not [
        name
        for name, _ in attributes
        if name.startswith("on") or name in ("src", "srcset", "action")
    ]
    assert {value for name, value in attributes if name.endswith("href") and value[:1] != "#"} == {
        "data:,"
    }
    [style] = page.iter("style")
    assert not re.search(r"url\(|@import|//", style.text)
    [policy] = [one.get("content") for one in page.iter("meta") if one.get("http-equiv")]
    [script] = page.iter("script")
    digest = b64encode(sha256(script.text.encode()).digest()).decode()
    assert policy.startswith(
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline';"
    )


def test_every_drawing_has_words_and_whole_numbers_only(any_page):
    page = tree_of(any_page)
    drawings = [one for one in page.iter("svg") if one.get("preserveaspectratio") is None]
    assert drawings
    hidden = [one for part in page.iter() if part.get("aria-hidden") for one in part.iter("svg")]
    for drawing in drawings:
        assert drawing in hidden or (
            drawing.get("role") == "img" and len(drawing.get("aria-label")) > 10
        )
        for part in drawing.iter():
            for name in (
                "d",
                "x",
                "x1",
                "x2",
                "y",
                "y1",
                "y2",
                "cx",
                "cy",
                "width",
                "height",
                "viewbox",
            ):
                value = part.get(name)
                assert value is None or re.fullmatch(r"[-MLHVZmh\d. %]+", value), (
                    part.tag,
                    name,
                    value,
                )
            width = part.get("width", "0").rstrip("%")
            assert float(width) >= 0


def test_the_same_result_gives_the_same_bytes(any_result, any_page):
    assert any_page.encode() == any_result.to_html().encode()


def test_without_jinja_the_extra_is_named(monkeypatch):
    result = CASES["two"]()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"Install the extra evaluation: `pip install "):
        result.to_html()


def test_the_styles_of_a_fragment_hold_for_it_alone(any_result):
    fragment = any_result._repr_html_()
    root = tree_of(fragment)
    [style] = root.iter("style")
    selectors = [
        one.strip() for block in re.findall(r"([^{}]+)\{", style.text) for one in block.split(",")
    ]
    assert selectors
    assert all(one.startswith(f".{root.get('class')}") for one in selectors)
    assert {"script", "link", "img"}.isdisjoint(one.tag for one in root.iter())
    assert not [one.get("id") for one in root.iter() if one.get("id")]
    assert all(one.get("aria-label") for one in root.iter("svg"))
    assert not re.search(r"\bnan\b|\binf\b", fragment)
