"""The built site in a real browser: `make site` writes it, and these tests are skipped without
it.
"""

from pathlib import Path
from urllib.parse import quote

import pytest

from tests.documents.test_troubleshooting import HEADINGS, OTHER_MESSAGES
from tests.support.programs import contrast, prefer

SITE = Path(__file__).parents[2] / "build" / "site"

pytestmark = [
    pytest.mark.browser,
    pytest.mark.full,
    pytest.mark.skipif(
        not (SITE / "index.html").exists(), reason="there is no site; `make site` builds it"
    ),
]

CUT = """return [...document.querySelectorAll(".highlight pre")].filter(
  one => one.scrollWidth > one.clientWidth + 1).map(one => one.innerText.slice(0, 80))"""


@pytest.fixture
def opened(browser):
    def open_page(page, width):
        browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600},
        )
        browser.get(page.as_uri())

    return open_page


@pytest.mark.parametrize("width", [390, 1280])
def test_every_page_fits_its_screen_and_has_one_title(browser, opened, width):
    pages = [
        page
        for page in (*SITE.glob("*.html"), *SITE.glob("reference/*.html"))
        if page.name != "search.html"
    ]
    pages.append(SITE / "reference/evaluation/bertscore_onnx_evaluation.Comparison.html")
    wrong = {}
    for page in pages:
        opened(page, width)
        shown = browser.execute_script("return document.documentElement.scrollWidth")
        titles = len(browser.find_elements("css selector", "h1"))
        cut = browser.execute_script(CUT) if width == 1280 else []
        if shown > width or titles != 1 or cut:
            wrong[str(page.relative_to(SITE))] = (shown, titles, cut)
    assert not wrong


@pytest.mark.parametrize("width", [700, 1020, 1080, 1270, 1320, 1500, 1900])
def test_pages_fit_screens_of_any_width(browser, opened, width):
    for name in ("index.html", "tables.html", "reference/scoring.html"):
        opened(SITE / name, width)
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width


def test_the_picture_of_matches_fits_a_phone(browser, opened):
    opened(SITE / "index.html", 390)
    picture = browser.find_element("css selector", "img[src$='matching.svg']").rect
    assert picture["x"] >= 0
    assert 300 < picture["width"] <= 390 - picture["x"]


def test_words_that_were_searched_are_marked_for_some_seconds_only(browser):
    from selenium.webdriver.support.ui import WebDriverWait

    browser.get(f"{(SITE / 'tables.html').as_uri()}?highlight=csv")
    WebDriverWait(browser, 5).until(
        lambda _: browser.find_elements("css selector", "[role=main] .highlighted")
    )
    before, after = browser.execute_script("""
        const mark = document.querySelector("[role=main] .highlighted")
        const paper = () => getComputedStyle(mark).backgroundColor
        const before = paper()
        mark.getAnimations().forEach(animation => animation.finish())
        return [before, paper()]""")
    assert after == "rgba(0, 0, 0, 0)" != before


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_first_page_can_be_read_in_either_scheme(browser, opened, scheme):
    prefer(browser, scheme)
    opened(SITE / "index.html", 1280)
    ink, paper = browser.execute_script(
        "return ['color', 'backgroundColor'].map(name => getComputedStyle(document.body)[name])"
    )
    assert contrast(ink, paper) > 7
    links = [
        link.get_attribute("href") for link in browser.find_elements("css selector", "article li a")
    ]
    assert [link.rpartition("/")[2] for link in links] == [
        "tutorial.html",
        "which_system.html",
        "serve.html",
    ]


def test_only_commands_are_copied(browser, opened):
    opened(SITE / "index.html", 1280)
    assert browser.find_elements("css selector", "button.copybtn")
    browser.execute_script(
        "addEventListener('copy', event => { window.copied = event.target.value }, true)"
    )
    # the button appears under the pointer
    browser.find_element("css selector", ".highlight-console").click()
    browser.find_element("css selector", "button.copybtn").click()
    assert browser.execute_script("return window.copied").splitlines()[0].startswith("make demo")


@pytest.fixture
def found(browser, opened):
    """Search the site; return the pages of the results, the best first."""
    from selenium.webdriver.support.ui import WebDriverWait

    def find(query):
        browser.get("about:blank")
        browser.get(f"{(SITE / 'search.html').as_uri()}?q={quote(query)}")
        summary = "#search-results .search-summary, #search-results ul.search, #search-results p"
        is_done = (
            "return !document.querySelector('#search-results h2')?.innerText.includes('Searching')"
        )
        WebDriverWait(browser, 20, poll_frequency=0.02).until(
            lambda _: (
                browser.find_elements("css selector", summary) and browser.execute_script(is_done)
            )
        )
        script = (
            "return [...document.querySelectorAll('ul.search > li > a')].map(one => "
            "one.getAttribute('href'))"
        )
        return browser.execute_script(script)

    return find


@pytest.mark.parametrize(
    ("page", "messages"), [("troubleshooting", HEADINGS), ("migrating", OTHER_MESSAGES)]
)
def test_search_brings_every_message_among_the_first_three(found, page, messages):
    queries = [" ".join(message.replace("…", " ").split()) for message in messages]
    missed = [query for query in queries if f"{page}.html" not in " ".join(found(query)[:3])]
    assert missed == []


FIRST = {
    "German": "models",
    "signature": "signature",
    "multiple references": "tutorial",
    "fine-tuned model": "export",
    "out of memory": "troubleshooting",
    "rescale": "idf_and_rescaling",
    "GPU": "gpu",
    "which layer": "which_metric",
    "long documents": "long_texts",
    "p-value": "how_we_test which_system",
    "compare two systems": "which_system",
    "LaTeX": "csv_to_paper",
    "torchmetrics": "migrating alternatives",
    "torchmetrics other scores larger batch": "migrating alternatives",
    "a build that stops at 600 s": "migrating gate",
    "a download of 1.8 GB a run": "migrating gate",
    "Windows": "install troubleshooting",
    "memory": "limits troubleshooting",
    "confidence interval": "csv_to_paper which_system",
    "lm-eval": "compare_runs",
    "docker": "serve",
    "several references": "tutorial",
    "layer": "which_metric",
    "json": "tables",
    "pandas": "tables",
    "csv": "tables",
    "offline": "hub",
    "chinese": "models",
    "idf": "idf_and_rescaling",
    "baseline": "idf_and_rescaling",
    "threshold": "gate",
    "significance": "which_system",
    "bert-score": "migrating",
    "comet": "which_metric alternatives",
    "int8": "export",
    "negation": "blind_spots",
    "jupyter": "integrations",
    "speed": "performance",
    "multilingual": "models",
    "jsonl": "tables",
    "truncated": "long_texts troubleshooting",
    "document level test": "which_system",
    "why is my score low": "tutorial idf_and_rescaling",
    "HELM": "compare_runs",
    "evalscope": "migrating integrations compare_runs",
    "did my model get worse": "compare_runs",
    "AMX": "performance",
    "int8 shift": "limits performance differences",
}
"""Words that readers search for, and the pages that answer them."""


@pytest.mark.parametrize(("query", "pages"), FIRST.items())
def test_search_brings_the_right_page_first_or_second(found, query, pages):
    assert {page.partition(".html")[0] for page in found(query)[:2]} & {*pages.split()}


@pytest.mark.parametrize("query", ["signature", "latex", "rooms"])
def test_search_leaves_the_architecture_out(found, query):
    assert not [page for page in found(query) if page.startswith("architecture")]


def test_the_demo_scores_in_its_page_and_offline_later(browser):
    from selenium.webdriver.support.ui import WebDriverWait

    from tests.examples.test_web_page import SCORES, serving

    if not (SITE / "demo" / "files.json").exists():
        pytest.skip("the site has no model; `make web site` adds it")
    with serving(SITE) as address:
        browser.get(address + "try.html")
        go = browser.find_element("id", "go")
        WebDriverWait(browser, 20).until(lambda _: go.is_enabled())
        go.click()
        WebDriverWait(browser, 60).until(lambda _: browser.execute_script(SCORES))
        assert 0.7 < browser.execute_script(SCORES)[2] < 0.8
        browser.execute_async_script("navigator.serviceWorker.ready.then(arguments[0])")
    browser.get(address + "try.html")  # nothing serves any more
    WebDriverWait(browser, 20).until(lambda _: browser.find_element("id", "go").is_enabled())
    assert "kept in this browser" in browser.find_element("id", "status").text
