"""`examples/web/index.html` in a real browser, from a server that only sends files."""

import shutil
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.catalogue import Baseline
from tests.support.bundles import link_or_copy
from tests.support.manifests import seal
from tests.support.programs import LINE_PAIRS, chromium, contrast, luminance, needs_node, prefer, run_node

pytestmark = [pytest.mark.browser, needs_node]

CANDIDATE, REFERENCE = "The weather is cold today.", "It is freezing today."
PAIRS = [pair for pair in LINE_PAIRS[10:] if len("".join(pair)) < 100]  # of every kind, and none that takes seconds
SCORES = "return [...document.querySelectorAll('#results data')].map(one => Number(one.value))"


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        """Log nothing."""


@contextmanager
def serving(folder):
    """Serve the files of a folder from loopback; yields the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture(scope="module")
def site(minilm_scoring_bundle, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    done = run_node("site.mjs", minilm_scoring_bundle, folder)
    assert (done.returncode, done.stderr) == (0, "")
    return folder


@pytest.fixture
def changed_site(site, tmp_path):
    """A copy of the page and its files; returns a function that changes the manifest of its bundle."""
    folder = shutil.copytree(site, tmp_path / "site", copy_function=link_or_copy)

    def change(**fields):
        seal(folder / "bundle", **fields)
        return folder

    return change


@pytest.fixture
def wait(browser):
    from selenium.webdriver.support.ui import WebDriverWait

    return lambda condition: WebDriverWait(browser, 60, poll_frequency=0.05).until(lambda _: condition())


@pytest.fixture
def opened(browser, wait):
    """Open a page and wait until it has its model, or tells why not."""

    def open_page(address):
        browser.get(address)
        wait(lambda: browser.find_element("id", "status").text == "")

    return open_page


@pytest.fixture
def compare(browser, wait):
    def compare(candidates, references):
        """Write texts, one per line, and return the scores that are shown, P, R and F by pairs."""
        for field, texts in (("candidates", candidates), ("references", references)):
            script = "document.getElementById(arguments[0]).value = arguments[1]"
            browser.execute_script(script, field, "\n".join(texts))
        browser.find_element("id", "go").click()
        wait(lambda: browser.find_element("id", "go").is_enabled())
        return np.array(browser.execute_script(SCORES)).reshape(-1, 3).T

    return compare


def error_of(browser):
    error = browser.find_element("id", "error")
    assert error.is_displayed() == bool(error.text)
    return error.text


def complaints(browser):
    return [entry["message"] for entry in browser.get_log("browser")]


def test_scores_are_those_of_python_and_no_text_leaves_the_page(browser, opened, compare, site, minilm_scoring_bundle):
    with serving(site) as address:
        opened(address)
    scores = compare(*zip(*PAIRS, strict=True))  # nothing serves any more
    with BERTScorer(minilm_scoring_bundle, device="cpu") as scorer, pytest.warns(UserWarning, match=r"empty|longer"):
        expected = scorer.score(*zip(*PAIRS, strict=True))
    np.testing.assert_allclose(scores, np.stack(expected), rtol=0, atol=1e-5)
    assert error_of(browser) == ""
    assert complaints(browser) == []
    fetched = browser.execute_script("return performance.getEntriesByType('resource').map(one => one.name)")
    assert {name.startswith(address) for name in fetched} == {True}


def test_tokens_are_shaded_by_their_nearest_and_show_it(browser, opened, compare, site, minilm_scoring_bundle):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    with serving(site) as address:
        opened(address)
        compare([CANDIDATE], [REFERENCE])
    with BERTScorer(minilm_scoring_bundle, device="cpu") as scorer:
        found = scorer.match(CANDIDATE, REFERENCE).best
    for side, matches in (("candidate", found.candidate_matches), ("reference", found.reference_matches)):
        buttons = browser.find_elements("css selector", f".{side} button")
        assert [button.text for button in buttons] == [match.text for match in matches]
        for button, match in zip(buttons, matches, strict=True):
            label = f"{match.text}, nearest {match.other}, {match.similarity:.3f}"
            assert button.accessible_name.replace("\u2212", "-") == label
            assert ("unweighted" in button.get_attribute("class")) == match.is_special
            shade = browser.execute_script("return arguments[0].style.getPropertyValue('--shade')", button)
            assert shade == "" if match.is_special else float(shade) == pytest.approx(match.shade, abs=2e-3)
    colours = {button.text: button.value_of_css_property("background-color") for button in buttons}
    assert len({colours["it"], colours["today"], colours["[SEP]"]}) == 3
    ActionChains(browser).move_to_element(buttons[4]).perform()
    assert nearest(browser) == ["today", "today"]
    buttons[0].click()
    buttons[0].send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert browser.switch_to.active_element.text == "freezing"
    assert nearest(browser) == [found.reference_matches[3].other, "freezing"]
    assert browser.find_element("css selector", ".match").text.startswith("freezing \u2192 ")


def nearest(browser):
    return [token.text for token in browser.find_elements("css selector", ".nearest")]


def test_tokens_run_in_the_direction_of_their_text(browser, opened, compare, site):
    from selenium.webdriver.common.keys import Keys

    with serving(site) as address:
        opened(address)
        compare(["مرحبا"], [REFERENCE])
    first, second, *_ = browser.find_elements("css selector", ".candidate button")
    assert first.location["x"] > second.location["x"]
    first.click()
    first.send_keys(Keys.ARROW_LEFT)
    assert browser.switch_to.active_element == second


def test_scores_are_rescaled(browser, opened, compare, site, changed_site):
    with serving(changed_site(baselines={"en": [Baseline(0.1, 0.2, 0.3)]})) as address:
        opened(address)
        raw = compare([CANDIDATE], [REFERENCE]).ravel()
        browser.find_element("css selector", "#rescale option[value=en]").click()
        rescaled = compare([CANDIDATE], [REFERENCE]).ravel()
    baseline = np.array([0.1, 0.2, 0.3])
    np.testing.assert_allclose(rescaled, (raw - baseline) / (1 - baseline), rtol=0, atol=1e-6)


def test_what_cannot_be_paired_is_told_and_leaves_no_scores(browser, opened, compare, site):
    with serving(site) as address:
        opened(address)
        assert compare([CANDIDATE], [REFERENCE]).size == 3
        assert compare([CANDIDATE, "two"], [REFERENCE]).size == 0
        assert "There are 2 candidates and 1 references." in error_of(browser)
        assert not browser.find_element("id", "cut").is_displayed()
        assert not browser.find_element("id", "results").is_displayed()
        assert compare(["<b>one</b>", "", ""], ["<i>one</i>", "two"]).shape == (3, 2)  # markup stays text
        assert error_of(browser) == ""
        assert browser.find_elements("css selector", "#results b, #results i") == []


FILES = ["bundle/bertscore.json", "bundle/model.onnx.data", "lib/tokenizers.min.mjs", "lib/ort-wasm-simd-threaded.wasm"]


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(browser, opened, changed_site, name):
    folder = changed_site()
    (folder / name).unlink()
    with serving(folder) as address:
        opened(address)
    assert name in error_of(browser)
    assert not browser.find_element("id", "go").is_enabled()


def test_a_bundle_in_the_slow_mode_is_refused(browser, opened, changed_site):
    with serving(changed_site(tokenizer_mode="slow")) as address:
        opened(address)
    assert "--tokenizer-mode fast" in error_of(browser)


def test_a_browser_without_webassembly_is_told(browser, opened, site):
    source = {"source": "delete globalThis.WebAssembly"}
    script = browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", source)
    try:
        with serving(site) as address:
            opened(address)
    finally:
        browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)
    assert "WebAssembly" in error_of(browser)


def test_the_page_fits_a_phone_and_can_be_read(browser, opened, compare, site):
    metrics = {"width": 320, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        with serving(site) as address:
            opened(address)
            compare(["x" * 90 + " y" * 600], [REFERENCE])
    finally:
        width = browser.execute_script("return document.documentElement.scrollWidth")
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert width <= 320
    assert browser.find_element("id", "cut").text.startswith("Longer than the model takes: 1.")
    body, section = (browser.find_element("css selector", name) for name in ("body", "section"))
    for scheme in ("light", "dark"):
        prefer(browser, scheme)
        for name in ("h2", "dt", ".unweighted"):
            ink = section.find_element("css selector", name).value_of_css_property("color")
            assert contrast(ink, section.value_of_css_property("background-color")) >= 4.5  # WCAG 2.2, 1.4.3
        assert (luminance(body.value_of_css_property("background-color")) < 0.2) == (scheme == "dark")
