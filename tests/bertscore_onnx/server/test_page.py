"""The page at `/`: its content policy, and its behaviour in a real browser."""

import re
from functools import partial

import numpy as np
import pytest

from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.middleware import ApiKeys
from bertscore_onnx.server.models import Models
from tests.support.http_server import CPU, serving
from tests.support.programs import chromium, contrast, luminance, prefer

KEY = "correct-horse-battery"


def test_the_page_runs_its_own_script_and_loads_nothing_from_elsewhere(client):
    response = client.get("/")
    policy = dict(rule.split(" ", 1) for rule in response.headers["Content-Security-Policy"].split("; "))
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    for kind in ("script-src", "style-src"):
        assert re.fullmatch(r"'sha256-[\w+/]{43}='", policy[kind])
    assert policy["connect-src"] == "'self'"
    page = response.text.replace("<!-- ", "")
    assert not re.search(r"https?://|//\w|@import|url\(|<script [^>]*src|style=|\son\w+=", page)


def test_every_field_of_the_page_has_a_label(client):
    page = client.get("/").text
    fields, labels = (
        {*re.findall(rf'<{pattern}="([^"]+)"', page)} for pattern in ("(?:textarea|select|input) id", "label for")
    )
    assert fields == labels == {"candidate", "reference", "model", "idf", "rescale", "key"}


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


class Page:
    """The page of a server in a browser."""

    def __init__(self, browser, client):
        self.browser = browser
        browser.get(str(client.base_url) + "/")
        self.wait(lambda: self["go"].is_enabled())

    def __getitem__(self, name):
        return self.browser.find_element("id", name)

    def find(self, selector):
        return self.browser.find_elements("css selector", selector)

    def wait(self, condition):
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.browser, 20, poll_frequency=0.05).until(lambda _: condition())

    def write(self, **texts):
        for name, text in texts.items():
            self[name].clear()
            self[name].send_keys(text)

    def choose(self, name, value):
        self.find(f"#{name} option[value='{value}']")[0].click()

    def score(self):
        self["go"].click()
        self.wait(self["result"].is_displayed)


@pytest.fixture
def opened(browser):
    """Open the page of a server."""
    return partial(Page, browser)


def with_sign(element):
    return element.text.replace("\u2212", "-")


@pytest.mark.browser
def test_two_sentences_get_scores_and_matches(client, browser, opened):
    from selenium.webdriver.common.keys import Keys

    page = opened(client)
    page.write(candidate="the cat sat", reference="a dog sat on it")
    page["reference"].send_keys(Keys.CONTROL, Keys.ENTER)
    page.wait(page["result"].is_displayed)
    expected = client.post("/v1/match", json={"candidate": "the cat sat", "reference": "a dog sat on it"}).json()
    for name in ("precision", "recall", "f1"):
        assert with_sign(page[name]) == f"{expected['score'][name]:.3f}"
    rows = page.find("#rows tr")
    cells = [row.find_elements("tag name", "td") for row in rows]
    assert [[with_sign(cell) for cell in row] for row in cells] == [
        [f"{value:.3f}" for value in row] for row in expected["similarity"]
    ]
    assert [row.find_element("tag name", "th").text for row in rows] == expected["candidate"]
    assert [token.text for token in page.find("#reference-tokens span")] == ["a", "dog", "sat", "on", "it"]
    classes = [[cell.get_attribute("class").split() for cell in row] for row in cells]
    best = [[column for column, names in enumerate(row) if "best" in names] for row in classes]
    assert best == [[column] for column in np.argmax(expected["similarity"], axis=1)]
    columns = [[row for row, names in enumerate(classes) if "best-of-column" in names[column]] for column in range(7)]
    assert columns == [[row] for row in np.argmax(expected["similarity"], axis=0)]
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


@pytest.mark.browser
def test_several_references_and_an_idf_table_are_shown(client, opened):
    page = opened(client)
    page.write(candidate="the cat sat", reference="a dog")
    page["add"].click()
    page["add"].click()
    page.write(**{"reference-2": "the cat sat on it"})
    page.choose("idf", "zoo")
    page.score()
    texts = ["a dog", "the cat sat on it"]
    expected = client.post("/v1/match", json={"candidate": "the cat sat", "references": texts, "idf": "zoo"}).json()
    assert "best of 2 references" in page["best"].text
    assert page["best"].text.endswith("number 2, which has the best F1: the cat sat on it")
    assert page["made-with"].text == f"Model: {expected['model']}, layer 2"
    assert page["about-weights"].is_displayed()
    weights = [weight.text for weight in page.find("#candidate-tokens small")]
    assert weights == [f"{weight:.2f}" for weight in expected["candidate_weights"][1:-1]]
    page.choose("idf", "")
    page["go"].click()
    page.wait(lambda: not page["about-weights"].is_displayed())


@pytest.mark.browser
def test_a_truncated_text_is_named(client, opened):
    page = opened(client)
    page.write(candidate="the cat sat on the mat " * 6, reference="a dog")
    page.score()
    assert page["truncated"].text == "A text has more than the model’s 32 tokens: its end does not count."
    page.write(candidate="the cat sat")
    page["go"].click()
    page.wait(lambda: not page["truncated"].is_displayed())


@pytest.mark.browser
def test_a_model_can_be_chosen_where_there_are_several(rescaled_bundle, tiny_bundle, opened):
    served = [f"one={rescaled_bundle}", f"two={tiny_bundle}"]
    with Models.load(served, {}, Limits(), CPU) as models, serving(models) as client:
        page = opened(client)
        assert page["rescale-field"].is_displayed()
        page.choose("model", "two")
        assert not page["rescale-field"].is_displayed()
        assert not page["idf-field"].is_displayed()
        page["go"].click()
        page.wait(lambda: page["made-with"].text == "Model: two, layer 2")


@pytest.mark.browser
@pytest.mark.parametrize("width", [320, 360])
def test_rescaled_scores_fit_a_phone(client, browser, opened, width):
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        page = opened(client)
        page.choose("rescale", "en")
        page.score()
        assert "|rescale:en|" in page["signature"].get_property("textContent")
        for name in ("precision", "recall", "f1"):  # the widest that may come
            browser.execute_script("document.getElementById(arguments[0]).textContent = '\u22120.888'", name)
            assert page[name].get_property("scrollWidth") <= page[name].get_property("clientWidth")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.browser
def test_old_scores_do_not_stay_under_an_error(models, opened):
    with serving(models, Limits(max_pairs=1)) as client:
        page = opened(client)
        page.score()
        page["add"].click()
        page.write(**{"reference-2": "a dog"})
        page["go"].click()
        page.wait(page["error"].is_displayed)
        assert "more than the 1 pairs" in page["error"].text
        assert not page["result"].is_displayed()


@pytest.mark.browser
def test_the_page_asks_for_a_key_where_one_is_needed(models, opened):
    with serving(models, keys=ApiKeys([KEY])) as client:
        page = opened(client)
        assert page["error"].text == "This server requires an API key."
        assert page["error"].get_attribute("role") == "alert"
        page.write(key="a-wrong-key")
        page["go"].click()
        page.wait(lambda: "key is not one of" in page["error"].text)
        page.write(key=KEY)
        page.score()
        assert not page["error"].is_displayed()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_their_ground_in_both_schemes(client, browser, opened, scheme):
    prefer(browser, scheme)
    page = opened(client)
    body = browser.find_element("tag name", "body")
    for element in (body, page["go"]):
        ink, paper = (element.value_of_css_property(name) for name in ("color", "background-color"))
        assert contrast(ink, paper) >= 4.5  # WCAG 2.2, 1.4.3
    assert (luminance(body.value_of_css_property("background-color")) < 0.2) == (scheme == "dark")
