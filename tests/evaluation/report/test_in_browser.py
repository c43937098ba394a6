"""The report in a real browser, from a file: nothing is fetched, nothing sticks out, everything can
be read.
"""

import base64
import io
import re

import numpy as np
import pytest
from PIL import Image

from tests.support.programs import chromium, contrast, prefer

from .conftest import CASES

pytestmark = [pytest.mark.browser, pytest.mark.slow]

COLOURS = """
const parse = colour => {
  const [r, g, b, a = 1] = colour.match(/[\\d.]+/g).map(Number);
  return [r, g, b, a];
};
const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a)];
const ground = element => {
  if (!element) return [255, 255, 255];
  return over(parse(getComputedStyle(element).backgroundColor), ground(element.parentElement));
};
const found = [];
for (const element of document.body.querySelectorAll("*")) {
  const own = [...element.childNodes].some(node => node.nodeType === 3 && node.data.trim());
  if (!own || !element.checkVisibility() || element.tagName === "title") continue;
  const style = getComputedStyle(element);
  const paper = ground(element);
  const ink = over(parse(element.tagName === "text" ? style.fill : style.color), paper);
  const [one, other] = [ink, paper].map(colour => colour.map(Math.round).join());
  found.push([one, other, element.tagName + "." + element.getAttribute("class")]);
}
return found;
"""
"""The colours of each text and of its ground, as a screen shows them."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    for name, result in CASES.items():
        (folder / f"{name}.html").write_text(result().to_html(), encoding="utf-8")
    return folder


@pytest.fixture
def opened(browser, files):
    def open_report(name, width, scheme="light"):
        prefer(browser, scheme)
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        browser.get((files / f"{name}.html").resolve(strict=True).as_uri())
        browser.execute_script(
            "for (const one of document.querySelectorAll('details')) one.open = true"
        )

    return open_report


@pytest.mark.parametrize("width", [320, 390, 1280])
@pytest.mark.parametrize("name", CASES)
def test_a_report_fits_its_screen_and_fetches_nothing(browser, opened, name, width):
    opened(name, width)
    assert browser.get_log("browser") == []
    assert (
        browser.execute_script(
            "return performance.getEntriesByType('resource').map(one => one.name)"
        )
        == []
    )
    inner, shown, content = browser.execute_script(
        "const page = document.documentElement; return [innerWidth, page.clientWidth, "
        "page.scrollWidth]"
    )
    assert (inner, content) == (width, shown)


@pytest.mark.parametrize("name", ["three", "evil"])
def test_wide_parts_scroll_on_a_phone_and_with_the_keyboard(browser, opened, name):
    opened(name, 320)
    wide = browser.execute_script(
        "return [...document.querySelectorAll('.wide')].map(one => [one.scrollWidth > "
        "one.clientWidth, one.tabIndex])"
    )
    assert [True, 0] in wide
    assert {index for _, index in wide} == {0}


CUT = """
return [...document.querySelectorAll('.wide')].filter(one => one.scrollWidth > one.clientWidth)
  .map(one => one.getAttribute('aria-label'))
"""

COLLISIONS = """
const found = [];
for (const axis of document.querySelectorAll('.axis svg, svg.scatter')) {
  const boxes = [...axis.querySelectorAll('text')].map(one => one.getBoundingClientRect());
  for (const [at, one] of boxes.entries()) for (const other of boxes.slice(at + 1)) {
    const gap = Math.max(one.left, other.left) - Math.min(one.right, other.right);
    const below = Math.max(one.top, other.top) - Math.min(one.bottom, other.bottom);
    if (gap < 2 && below < 0) found.push(axis.textContent);
  }
}
return found;
"""
"""The axes on which the texts of two ticks touch."""

BROKEN = """
const found = [];
for (const name of document.querySelectorAll('bdi')) {
  if (/^\\S{1,19}$/.test(name.textContent) && name.checkVisibility()) {
    const range = document.createRange();
    range.selectNodeContents(name);
    const tops = new Set([...range.getClientRects()].map(one => Math.round(one.top)));
    if (tops.size > 1) found.push(name.textContent);
  }
}
return found;
"""
"""The short names without spaces that take several lines."""

ORPHANS = """
const found = [];
for (const name of document.querySelectorAll('bdi')) {
  const next = name.nextSibling;
  if (next?.nodeType === 3 && /^[.,;:)]/.test(next.data) && name.checkVisibility()) {
    const sign = document.createRange();
    sign.setStart(next, 0);
    sign.setEnd(next, 1);
    const last = [...name.getClientRects()].at(-1);
    if (sign.getBoundingClientRect().top >= last.bottom) found.push(name.textContent + next.data.slice(0, 20));
  }
}
return found;
"""
"""The names whose full stop or comma begins the next line."""


@pytest.mark.parametrize("name", ["three", "twenty", "groups"])
def test_no_column_is_cut_on_a_screen(browser, opened, name):
    opened(name, 1280)
    assert browser.execute_script(CUT) == []


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("name", ["two", "three", "constant", "groups"])
def test_no_ticks_collide_and_no_name_or_p_is_broken(browser, opened, name, width):
    opened(name, width)
    assert browser.execute_script(COLLISIONS) == []
    assert browser.execute_script(BROKEN) == []
    text = browser.execute_script("return document.body.textContent")
    spaces = {*re.findall(r"\bp(\s)[=<](\s)\.?\d", text)}
    assert spaces == {("\N{NO-BREAK SPACE}", "\N{NO-BREAK SPACE}")}


def test_no_sign_after_a_name_begins_a_line(browser, opened):
    for width in range(320, 400, 5):
        opened("groups", width)
        assert browser.execute_script(ORPHANS) == []


def test_names_keep_their_direction_to_themselves(browser, opened):
    opened("evil", 390)
    isolation = (
        "return [...document.querySelectorAll('bdi')].map(one => getComputedStyle(one).unicodeBidi)"
    )
    assert {*browser.execute_script(isolation)} == {"isolate"}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_shadow_marks_where_a_table_continues(browser, opened, scheme):
    opened("three", 390, scheme)
    wide = browser.execute_script(
        "return [...document.querySelectorAll('.wide')].find(one => one.scrollWidth > "
        "one.clientWidth + 40)"
    )

    def ground(column):
        with Image.open(io.BytesIO(wide.screenshot_as_png)) as image:
            return np.median(np.asarray(image.convert("RGB"))[:, column].sum(axis=1))

    shadow = ground(-2)
    browser.execute_script("arguments[0].scrollLeft = arguments[0].scrollWidth", wide)
    assert shadow < ground(-2) - 20


@pytest.mark.parametrize("width", [360, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["intervals", "distributions", "scatter"])
def test_drawings_have_their_colours(browser, opened, kind, scheme, width):
    opened("three", width, scheme)
    png = browser.find_element("css selector", f".{kind}").screenshot_as_png
    with Image.open(io.BytesIO(png)) as image:
        pixels = np.asarray(image.convert("RGB"), dtype=int).reshape(-1, 3)
    blue = pixels[:, 2] - pixels[:, 0] > 35  # greys differ by 19
    assert 0.001 < blue.mean() < 0.5
    assert pixels.shape[0] > 200 * 80


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["three", "matches", "evil", "constant", "groups"])
def test_all_text_stands_out_from_its_ground(browser, opened, name, scheme):
    opened(name, 1280, scheme)
    colours = browser.execute_script(COLOURS)
    found = [(contrast(ink, paper), name) for ink, paper, name in colours]
    assert len(found) > 40
    assert min(found)[0] >= 4.5, sorted(found)[:5]  # WCAG 2.2, 1.4.3
    light = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (light == "rgb(247, 247, 245)") == (scheme == "light")


def test_a_script_in_a_name_does_not_run(browser, opened):
    opened("evil", 1280)
    # its own
    assert browser.execute_script("return [document.scripts.length, document.images.length]") == [
        1,
        0,
    ]


def test_it_prints_on_white_with_folded_parts_open(browser, opened):
    opened("three", 1280, "dark")
    browser.refresh()  # so that what is folded is folded
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"media": "print", "features": [{"name": "prefers-color-scheme", "value": "dark"}]},
    )
    assert (
        browser.execute_script("return getComputedStyle(document.body).backgroundColor")
        == "rgb(255, 255, 255)"
    )
    heights = browser.execute_script(
        "return [...document.querySelectorAll('details:not([open]) svg.scatter')]"
        ".map(one => one.getBoundingClientRect().height)"
    )
    assert len(heights) == 4  # two systems under each metric but the first
    assert min(heights) > 100
    pdf = base64.b64decode(
        browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    )
    assert pdf.startswith(b"%PDF")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["three"])
def test_a_fragment_takes_colours_and_leaves_the_page_alone(browser, tmp_path, name, scheme):
    prefer(browser, scheme)
    ink, paper = (
        ("rgb(10, 20, 30)", "rgb(255, 255, 255)")
        if scheme == "light"
        else ("rgb(240, 241, 242)", "rgb(0, 0, 0)")
    )
    fragment = CASES[name]()._repr_html_()
    other = "<table id='other'><tr><th>a</th><td>1</td></tr></table><p id='text'>text</p>"
    styles = (
        "return ['other', 'text'].map(name => {const style = "
        "getComputedStyle(document.getElementById(name));return [...style].map(one => "
        "style.getPropertyValue(one)).join()})"
    )
    found = []
    for content in ("", fragment):
        page = (
            "<!doctype html><meta charset=utf-8><body "
            f"style='color:{ink};background:{paper}'>{other}{content}"
        )
        (tmp_path / "cell.html").write_text(page, encoding="utf-8")
        browser.get((tmp_path / "cell.html").as_uri())
        found.append(browser.execute_script(styles))
    assert found[0] == found[1]
    cell = browser.find_element("css selector", ".bertscore-onnx-result td")
    assert cell.value_of_css_property("color").replace("rgba", "rgb").replace(", 1)", ")") == ink
    assert browser.get_log("browser") == []


def test_a_button_copies_the_paragraph_for_a_paper(browser, opened):
    opened(next(iter(CASES)), 1280)
    button = browser.find_element("css selector", "button.copy[data-of=methods]")
    assert button.is_displayed()
    button.click()
    assert button.text == "Copied"
    selected = browser.execute_script("return getSelection().toString()")
    assert selected.startswith("We compared ")
