"""The page at `/`: its content policy, and its behaviour in a real browser."""

import re
from functools import partial

import pytest

from bertscore_onnx_service.http.app import ApiKeys
from bertscore_onnx_service.http.limits import Limits
from tests.support.http_server import serving, serving_bundles
from tests.support.programs import contrast, luminance, prefer

KEY = "correct-horse-battery"


def test_the_page_loads_nothing_from_elsewhere(client):
    response = client.get("/")
    policy = dict(
        rule.split(" ", 1) for rule in response.headers["Content-Security-Policy"].split("; ")
    )
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
        {*re.findall(rf'<{pattern}="([^"]+)"', page)}
        for pattern in ("(?:textarea|select|input) id", "label for")
    )
    assert fields == labels == {"candidate", "reference", "model", "idf", "rescale", "key"}


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
    expected = client.post(
        "/v1/match", json={"candidate": "the cat sat", "reference": "a dog sat on it"}
    ).json()
    for name in ("precision", "recall", "f1"):
        assert with_sign(page[name]) == f"{expected['score'][name]:.3f}"
    assert [cell.text for cell in page.find(".matrix thead th")] == expected["reference"]
    grounds = {
        token.value_of_css_property("background-color") for token in page.find(".match span")
    }
    assert len(grounds) > 2  # the page's policy allows the shades
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
    expected = client.post(
        "/v1/match", json={"candidate": "the cat sat", "references": texts, "idf": "zoo"}
    ).json()
    assert "best of 2 references" in page["best"].text
    assert page["best"].text.endswith("number 2, which has the best F1: the cat sat on it")
    assert page["made-with"].text == f"Model: {expected['model']}, layer 2"
    weights = [weight.text for weight in page.find(".match .side:first-child + .tokens small")]
    assert weights == [f"{weight:.2f}" for weight in expected["candidate_weights"][1:-1]]
    page.choose("idf", "")
    page["go"].click()
    page.wait(lambda: not page.find(".match small"))


@pytest.mark.browser
def test_texts_that_are_truncated_or_too_long_are_named(client, opened, monkeypatch):
    monkeypatch.setattr("bertscore_onnx_service.http.endpoints.MAX_MATCH_TOKENS", 30)
    page = opened(client)
    page.write(candidate="the cat sat on the mat " * 6, reference="a dog")
    page.score()
    assert (
        page["truncated"].text
        == "A text has more than the model’s 32 tokens: its end does not count."
    )
    assert (
        page["matches"].text
        == "The candidate has more than 32 tokens; matches are shown for at most 30."
    )
    page.write(candidate="the cat sat")
    page["go"].click()
    page.wait(lambda: not page["truncated"].is_displayed())
    assert page.find(".matrix")


@pytest.mark.browser
def test_a_model_can_be_chosen_where_there_are_several(rescaled_bundle, tiny_bundle, opened):
    with serving_bundles(f"one={rescaled_bundle}", f"two={tiny_bundle}") as client:
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
            browser.execute_script(
                "document.getElementById(arguments[0]).textContent = '\u22120.888'", name
            )
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
def test_old_scores_do_not_stay_beside_an_empty_field(client, opened):
    page = opened(client)
    page.score()
    page["reference"].clear()
    page["go"].click()
    page.wait(lambda: not page["result"].is_displayed())


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
