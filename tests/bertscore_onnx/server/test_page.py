"""The page at `/`: what it may load, and in a real browser, what it does."""

import re

import numpy as np
import pytest

from bertscore_onnx.server.limits import Limits
from bertscore_onnx.server.middleware import ApiKeys
from bertscore_onnx.server.models import Models
from tests.support.http_server import CPU, serving
from tests.support.programs import chromium, contrast, luminance, prefer

KEY = "correct-horse-battery"


def test_the_page_runs_its_own_script_and_no_other(client):
    response = client.get("/")
    policy = dict(rule.split(" ", 1) for rule in response.headers["Content-Security-Policy"].split("; "))
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
    for kind in ("script-src", "style-src"):
        assert re.fullmatch(r"'sha256-[\w+/]{43}='", policy[kind])
    assert policy["connect-src"] == "'self'"


def test_the_page_needs_nothing_from_elsewhere(client):
    page = client.get("/").text
    assert not re.search(r"https?://|//\w|@import|url\(|<script [^>]*src|style=|\son\w+=", page.replace("<!-- ", ""))


def test_every_field_of_the_page_has_a_label(client):
    page = client.get("/").text
    fields = re.findall(r'<(?:textarea|select|input) id="([^"]+)"', page)
    assert (
        {*fields}
        == {*re.findall(r'<label for="([^"]+)"', page)}
        == {"candidate", "reference", "model", "idf", "rescale", "key"}
    )


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture
def opened(browser):
    """Open the page of a server; returns a function that waits for something on it."""
    from selenium.webdriver.support.ui import WebDriverWait

    def open_page(client):
        browser.get(str(client.base_url) + "/")

        def wait(condition):
            return WebDriverWait(browser, 20, poll_frequency=0.05).until(lambda _: condition())

        wait(lambda: browser.find_element("id", "go").is_enabled())
        return wait

    return open_page


def write(browser, **texts):
    for name, text in texts.items():
        field = browser.find_element("id", name)
        field.clear()
        field.send_keys(text)


@pytest.mark.browser
def test_two_sentences_get_scores_and_matches(client, browser, opened):
    from selenium.webdriver.common.keys import Keys

    wait = opened(client)
    write(browser, candidate="the cat sat", reference="a dog sat on it")
    browser.find_element("id", "reference").send_keys(Keys.CONTROL, Keys.ENTER)
    wait(lambda: browser.find_element("id", "result").is_displayed())
    expected = client.post("/v1/match", json={"candidate": "the cat sat", "reference": "a dog sat on it"}).json()
    for name in ("precision", "recall", "f1"):
        assert browser.find_element("id", name).text.replace("\u2212", "-") == f"{expected['score'][name]:.3f}"
    rows = browser.find_elements("css selector", "#rows tr")
    shown = [[cell.text.replace("\u2212", "-") for cell in row.find_elements("tag name", "td")] for row in rows]
    assert shown == [[f"{value:.3f}" for value in row] for row in expected["similarity"]]
    assert [row.find_element("tag name", "th").text for row in rows] == expected["candidate"]
    assert [token.text for token in browser.find_elements("css selector", "#reference-tokens span")] == (
        ["a", "dog", "sat", "on", "it"]
    )
    best = [[cell.text for cell in row.find_elements("css selector", "td.best")] for row in rows]
    assert [[float(value.replace("\u2212", "-")) for value in row] for row in best] == [
        [pytest.approx(max(row), abs=5e-4)] for row in expected["similarity"]
    ]
    best = [[cell.get_attribute("class").split() for cell in row.find_elements("tag name", "td")] for row in rows]
    columns = [[row for row, cells in enumerate(best) if "best-of-column" in cells[column]] for column in range(7)]
    assert columns == [[row] for row in np.argmax(expected["similarity"], axis=0)]
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


@pytest.mark.browser
def test_several_references_and_an_idf_table_are_shown(client, browser, opened):
    wait = opened(client)
    write(browser, candidate="the cat sat", reference="a dog")
    browser.find_element("id", "add").click()
    browser.find_element("id", "add").click()
    write(browser, **{"reference-2": "the cat sat on it"})
    browser.find_element("css selector", "#idf option[value=zoo]").click()
    browser.find_element("id", "go").click()
    wait(lambda: browser.find_element("id", "result").is_displayed())
    texts = ["a dog", "the cat sat on it"]
    expected = client.post("/v1/match", json={"candidate": "the cat sat", "references": texts, "idf": "zoo"}).json()
    assert browser.find_element("id", "best").text == (
        "Each is the best of 2 references. The matches are those of number 2, which has the best F1: the cat sat on it"
    )
    assert browser.find_element("id", "made-with").text == f"Model: {expected['model']}, layer 2"
    assert browser.find_element("id", "about-weights").is_displayed()
    shown = browser.find_elements("css selector", "#candidate-tokens small")
    assert [weight.text for weight in shown] == [f"{weight:.2f}" for weight in expected["candidate_weights"][1:-1]]
    browser.find_element("css selector", "#idf option[value='']").click()
    browser.find_element("id", "go").click()
    wait(lambda: not browser.find_element("id", "about-weights").is_displayed())


@pytest.mark.browser
def test_a_model_can_be_chosen_where_there_are_several(rescaled_bundle, tiny_bundle, browser, opened):
    served = [f"one={rescaled_bundle}", f"two={tiny_bundle}"]
    with Models.load(served, {}, Limits(), CPU) as models, serving(models) as client:
        wait = opened(client)
        assert browser.find_element("id", "rescale-field").is_displayed()
        browser.find_element("css selector", "#model option[value=two]").click()
        assert not browser.find_element("id", "rescale-field").is_displayed()
        assert not browser.find_element("id", "idf-field").is_displayed()
        browser.find_element("id", "go").click()
        wait(lambda: browser.find_element("id", "made-with").text == "Model: two, layer 2")


@pytest.mark.browser
@pytest.mark.parametrize("width", [320, 360])
def test_the_page_fits_a_phone(client, browser, opened, width):
    metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        wait = opened(client)
        browser.find_element("css selector", "#rescale option[value=en]").click()
        browser.find_element("id", "go").click()
        wait(lambda: browser.find_element("id", "result").is_displayed())
        for name in ("precision", "recall", "f1"):  # the widest that may come
            browser.execute_script("document.getElementById(arguments[0]).textContent = '\u22120.888'", name)
            number = browser.find_element("id", name)
            assert number.get_property("scrollWidth") <= number.get_property("clientWidth")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.browser
def test_old_scores_do_not_stay_under_an_error(models, browser, opened):
    limits = Limits(max_pairs=1)
    with serving(models, limits) as client:
        wait = opened(client)
        browser.find_element("id", "go").click()
        wait(lambda: browser.find_element("id", "result").is_displayed())
        browser.find_element("id", "add").click()
        write(browser, **{"reference-2": "a dog"})
        browser.find_element("id", "go").click()
        error = browser.find_element("id", "error")
        wait(error.is_displayed)
        assert "more than the 1 pairs" in error.text
        assert not browser.find_element("id", "result").is_displayed()


@pytest.mark.browser
def test_the_page_rescales(client, browser, opened):
    wait = opened(client)
    browser.find_element("css selector", "#rescale option[value=en]").click()
    browser.find_element("id", "go").click()
    wait(lambda: "|rescale:en|" in browser.find_element("id", "signature").text)


@pytest.mark.browser
def test_the_page_asks_for_a_key_where_one_is_needed(models, browser, opened):
    with serving(models, keys=ApiKeys([KEY])) as client:
        wait = opened(client)
        error = browser.find_element("id", "error")
        assert error.text == "This server requires an API key."
        assert error.get_attribute("role") == "alert"
        write(browser, key="a-wrong-key")
        browser.find_element("id", "go").click()
        wait(lambda: error.text == "This key is not one of the server’s.")
        write(browser, key=KEY)
        browser.find_element("id", "go").click()
        wait(lambda: browser.find_element("id", "result").is_displayed())
        assert not error.is_displayed()


@pytest.mark.browser
def test_the_page_tells_what_the_server_refuses(minilm_bundle, browser, opened):
    with Models.load([str(minilm_bundle)], {}, Limits(), CPU) as models, serving(models) as client:
        wait = opened(client)
        write(browser, candidate="cat " * 130)
        browser.find_element("id", "go").click()
        error = browser.find_element("id", "error")
        wait(error.is_displayed)
        assert "A text has 132 tokens; similarities are shown for at most 128." in error.text
        assert not browser.find_element("id", "result").is_displayed()


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_stand_out_from_their_ground_in_both_schemes(client, browser, opened, scheme):
    prefer(browser, scheme)
    opened(client)
    body = browser.find_element("tag name", "body")
    for element, ground in ((body, body), (browser.find_element("id", "go"),) * 2):
        ink, paper = element.value_of_css_property("color"), ground.value_of_css_property("background-color")
        assert contrast(ink, paper) >= 4.5  # WCAG 2.2, 1.4.3
    assert (luminance(body.value_of_css_property("background-color")) < 0.2) == (scheme == "dark")
