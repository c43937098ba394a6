"""The built site in a real browser: `make site` writes it, and these tests are skipped without it."""

from pathlib import Path

import pytest

from tests.support.programs import chromium, contrast, prefer

SITE = Path(__file__).parents[2] / "build" / "site"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.full,
    pytest.mark.skipif(not (SITE / "index.html").exists(), reason="there is no site; `make site` builds it"),
]

CUT = """return [...document.querySelectorAll(".highlight pre")].filter(
  one => one.scrollWidth > one.clientWidth + 1).map(one => one.innerText.slice(0, 80))"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture
def opened(browser):
    """Open a page at a width."""

    def open_page(page, width):
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        browser.get(page.as_uri())

    return open_page


@pytest.mark.parametrize("width", [390, 1280])
def test_every_page_fits_its_screen_and_has_one_title(browser, opened, width):
    pages = [page for page in (*SITE.glob("*.html"), *SITE.glob("reference/*.html")) if page.name != "search.html"]
    pages.append(SITE / "reference/evaluation/bertscore_onnx.evaluation.Comparison.html")
    wrong = {}
    for page in pages:
        opened(page, width)
        shown = browser.execute_script("return document.documentElement.scrollWidth")
        titles = len(browser.find_elements("css selector", "h1"))
        cut = browser.execute_script(CUT) if width == 1280 else []
        if shown > width or titles != 1 or cut:
            wrong[str(page.relative_to(SITE))] = (shown, titles, cut)
    assert not wrong


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_page_can_be_read_in_either_scheme(browser, opened, scheme):
    prefer(browser, scheme)
    opened(SITE / "index.html", 1280)
    ink, paper = browser.execute_script(
        "return ['color', 'backgroundColor'].map(name => getComputedStyle(document.body)[name])"
    )
    assert contrast(ink, paper) > 7
    links = [card.get_attribute("href") for card in browser.find_elements("css selector", ".sd-card a")]
    assert [link.rpartition("/")[2] for link in links] == ["tutorial.html", "which_system.html", "server.html"]


def test_only_commands_are_copied(browser, opened):
    opened(SITE / "index.html", 1280)
    assert browser.find_elements("css selector", "button.copybtn")
    browser.execute_script("addEventListener('copy', event => { window.copied = event.target.value }, true)")
    browser.find_element("css selector", ".highlight-console").click()  # the button appears under the pointer
    browser.find_element("css selector", "button.copybtn").click()
    assert browser.execute_script("return window.copied").splitlines()[0].startswith("make demo")
