"""What all pages, and all fragments for notebooks, have in common."""

import json
import re
import sys
from base64 import b64encode
from hashlib import sha256
from itertools import pairwise

import pytest

from bertscore_onnx.errors import MissingExtraError
from tests.support.html_tree import text_of, tree_of

from .conftest import EVIL, RESULTS


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
    assert {"img", "iframe", "object", "embed", "form", "base"}.isdisjoint(one.tag for one in page.iter())
    attributes = [(name, value) for one in page.iter() for name, value in one.items()]
    assert not [name for name, _ in attributes if name.startswith("on") or name in ("src", "srcset", "action")]
    assert {value for name, value in attributes if name.endswith("href") and value[:1] != "#"} == {"data:,"}
    [style] = page.iter("style")
    assert not re.search(r"url\(|@import|//", style.text)
    [policy] = [one.get("content") for one in page.iter("meta") if one.get("http-equiv")]
    [script] = page.iter("script")
    digest = b64encode(sha256(script.text.encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline';")


def test_every_drawing_has_words_and_whole_numbers_only(any_page):
    page = tree_of(any_page)
    drawings = [one for one in page.iter("svg") if one.get("preserveaspectratio") is None]
    assert drawings
    hidden = [one for part in page.iter() if part.get("aria-hidden") for one in part.iter("svg")]
    for drawing in drawings:
        assert drawing in hidden or (drawing.get("role") == "img" and len(drawing.get("aria-label")) > 10)
        for part in drawing.iter():
            for name in ("d", "x", "x1", "x2", "y", "y1", "y2", "cx", "cy", "width", "height", "viewbox"):
                value = part.get(name)
                assert value is None or re.fullmatch(r"[-MLHVZmh\d. %]+", value), (part.tag, name, value)
            width = part.get("width", "0").rstrip("%")
            assert float(width) >= 0


def test_the_same_result_gives_the_same_bytes(any_result, any_page):
    assert any_page.encode() == any_result.to_html().encode()


@pytest.mark.parametrize("name", ["two", "meta", "layers"])
def test_without_jinja_the_extra_is_named(monkeypatch, name):
    result = RESULTS[name]()
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"Install the extra evaluation: `pip install "):
        result.to_html()


def test_the_styles_of_a_fragment_hold_for_it_alone(any_result):
    fragment = any_result._repr_html_()
    root = tree_of(fragment)
    [style] = root.iter("style")
    selectors = [one.strip() for block in re.findall(r"([^{}]+)\{", style.text) for one in block.split(",")]
    assert selectors
    assert all(one.startswith(f".{root.get('class')}") for one in selectors)
    assert {"script", "link", "img"}.isdisjoint(one.tag for one in root.iter())
    assert not [one.get("id") for one in root.iter() if one.get("id")]
    assert all(one.get("aria-label") for one in root.iter("svg"))
    assert not re.search(r"\bnan\b|\binf\b", fragment)


@pytest.mark.parametrize("name", ["meta-evil", "layers-evil"])
def test_names_are_shown_and_not_obeyed(name):
    for content in (RESULTS[name]().to_html(), RESULTS[name]()._repr_html_()):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", content)
        page = tree_of(content)
        assert EVIL[0] in text_of(page)
        assert len([*page.iter("script")]) == content.startswith("<!doctype")
        assert not [one for one in page.iter("title") if len([*one])]


# Every number on a page is in the JSON.


NUMBER = re.compile(r"(?<![\w.])[+−-]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?![\w])")
CONSTANTS = {"95", "0.05", "0.01"}
"""The level of intervals, and the bounds of p."""


def shown_numbers(page):
    """Return the numbers on a page, without those of axes, in names, in the numbering of a matrix, and in prose."""

    def texts(element):
        is_left_out = (
            element.tag in ("style", "script", "bdi", "text", "abbr", "code", "pre")
            or element.get("id") == "method"
            or (element.tag == "th" and element.get("scope") == "row")
        )
        if not is_left_out:
            yield element.text or ""
            for child in element:
                yield from texts(child)
                yield child.tail or ""

    return [one.replace(",", "").replace("−", "-").lstrip("+") for one in NUMBER.findall(" ".join(texts(page)))]


def json_numbers(value):
    """Yield the numbers in JSON, also those in its texts."""
    if isinstance(value, dict):
        value = [*value.values()]
    if isinstance(value, list):
        for one in value:
            yield from json_numbers(one)
    elif isinstance(value, str):
        yield from (float(one.replace(",", "")) for one in NUMBER.findall(value))
    elif value is not None and not isinstance(value, bool):
        yield value


@pytest.mark.parametrize("name", ["meta", "meta-marked", "meta-pairs", "layers", "layers-missing"])
def test_every_number_is_in_the_json(name):
    result = RESULTS[name]()
    known = [*json_numbers(json.loads(result.to_json()))]
    shown = shown_numbers(tree_of(result.to_html()))
    assert len(shown) > 40
    for number in {*shown} - CONSTANTS:
        decimals = len(number.partition(".")[2])
        assert any(
            value == float(number) if not decimals else f"{value:.{decimals}f}" == f"{float(number):.{decimals}f}"
            for value in known
        ), number
