"""`examples/web/index.html` in a real browser, from a server that only sends files."""

import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path

import msgspec
import numpy as np
import pytest
from assemble import copy_model, copy_page

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.bundle.catalogue import Baseline
from tests.support.bundles import link_or_copy
from tests.support.manifests import seal
from tests.support.programs import (
    LINE_PAIRS,
    WEB,
    chromium,
    contrast,
    luminance,
    needs_node,
    prefer,
)

pytestmark = [pytest.mark.browser, needs_node]

CANDIDATE, REFERENCE = "The weather is cold today.", "It is freezing today."
# of every kind, and none that takes seconds
PAIRS = [pair for pair in LINE_PAIRS[10:] if len("".join(pair)) < 100]
TEXTS = [
    (WEB.parent / f"{side}.txt").read_text(encoding="utf-8").splitlines()
    for side in ("candidates", "references")
]
MANY_PAIRS = [*product(*TEXTS)][::2][:200]
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
def site(minilm_scoring_bundle, tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, WEB / "assemble.py", minilm_scoring_bundle, folder]
    subprocess.run(command, check=True)
    return folder


@pytest.fixture(scope="module")
def half_site(minilm_half_scoring_bundle, tmp_path_factory):
    folder = tmp_path_factory.mktemp("half")
    copy_page(folder)
    copy_model(minilm_half_scoring_bundle, folder)
    return folder


@pytest.fixture
def changed_site(site, tmp_path):
    """A copy of the page and its files; returns a function that changes the manifest of its
    bundle.
    """
    folder = shutil.copytree(site, tmp_path / "site", copy_function=link_or_copy)

    def change(**fields):
        seal(folder / "bundle", **fields)
        return folder

    return change


@pytest.fixture
def wait(browser):
    from selenium.webdriver.support.ui import WebDriverWait

    return lambda condition: WebDriverWait(browser, 60, poll_frequency=0.05).until(
        lambda _: condition()
    )


@pytest.fixture
def opened(browser, wait):
    def open_page(address):
        browser.get("about:blank")  # another fragment alone would not load the page
        browser.get(address)
        wait(lambda: browser.find_element("id", "go").is_enabled() or error_of(browser))

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
    script = """const error = document.getElementById("error"), isShown = error.offsetHeight > 0;
        return [isShown, isShown ? error.innerText.trim() : ""]"""
    is_shown, text = browser.execute_script(script)  # at once, since the page may change in between
    assert is_shown == bool(text)
    return text


def complaints(browser):
    """Return the messages of the browser's console, except that this machine has no graphics
    processor.
    """
    messages = [entry["message"] for entry in browser.get_log("browser")]
    return [message for message in messages if not message.endswith("No available adapters.")]


def expected_of(bundle, pairs):
    with (
        BERTScorer(bundle, device="cpu") as scorer,
        pytest.warns(UserWarning, match=r"empty|longer"),
    ):
        return np.stack(scorer.score(*zip(*[*pairs, *PAIRS], strict=True)))


def test_scores_are_those_of_python_and_no_text_leaves_the_page(
    browser, opened, compare, site, minilm_scoring_bundle
):
    with serving(site) as address:
        opened(address)
        compare([CANDIDATE], [REFERENCE])
    scores = compare(*zip(*MANY_PAIRS, *PAIRS, strict=True))  # nothing serves any more
    expected = expected_of(minilm_scoring_bundle, MANY_PAIRS)
    np.testing.assert_allclose(scores, expected, rtol=0, atol=1e-5)
    assert error_of(browser) == ""
    assert complaints(browser) == []
    fetched = browser.execute_script(
        "return performance.getEntriesByType('resource').map(one => one.name)"
    )
    assert {name.startswith(address) for name in fetched} == {True}


def test_half_precision_stays_close(
    browser, opened, compare, half_site, minilm_scoring_bundle, record_property
):
    with serving(half_site) as address:
        opened(address)
        scores = compare(*zip(*MANY_PAIRS[::2], *PAIRS, strict=True))
    difference = np.abs(scores - expected_of(minilm_scoring_bundle, MANY_PAIRS[::2])).max()
    record_property("largest difference of fp16", float(difference))
    assert difference < 1e-3  # as docs/try.md states


def test_the_page_works_offline_after_its_first_load(browser, opened, wait, compare, half_site):
    with serving(half_site) as address:
        opened(address)
        loads = browser.find_element("id", "status").text
        first = compare([CANDIDATE], [REFERENCE])
        script = "navigator.serviceWorker.ready.then(arguments[0])"
        browser.execute_async_script(script)
    opened(f"{address}#candidates=It+rains.&references=It+rains.")  # nothing serves any more
    assert loads == "The first comparison loads the model, 53 MB, which this browser then keeps."
    assert "kept in this browser" in browser.find_element("id", "status").text
    browser.find_element("id", "go").click()
    wait(lambda: browser.execute_script(SCORES))
    np.testing.assert_allclose(browser.execute_script(SCORES), 1, atol=1e-3)
    np.testing.assert_array_equal(compare([CANDIDATE], [REFERENCE]), first)


def test_a_link_holds_the_texts(browser, opened, wait, half_site):
    texts = {"candidates": "a & b\n#c=1", "references": "ünï +"}
    with serving(half_site) as address:
        opened(address)
        for field, text in texts.items():
            browser.execute_script(
                "document.getElementById(arguments[0]).value = arguments[1]", field, text
            )
        browser.find_element("id", "share").click()
        wait(lambda: "The link is" in browser.find_element("id", "status").text)
        link = browser.current_url
        opened(link)
        shown = {field: browser.find_element("id", field).get_property("value") for field in texts}
    assert shown == texts


def test_the_page_is_used_by_keyboard_alone(browser, opened, wait, half_site):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    with serving(half_site) as address:
        opened(address)
        ActionChains(browser).send_keys(
            Keys.TAB, "It rains.", Keys.TAB, "It snows.", Keys.TAB, Keys.TAB
        ).perform()
        assert browser.switch_to.active_element.get_attribute("id") == "go"
        ActionChains(browser).send_keys(Keys.ENTER).perform()
        wait(lambda: browser.execute_script(SCORES))
        ActionChains(browser).send_keys(Keys.TAB, Keys.ARROW_RIGHT).perform()
    assert nearest(browser)
    names = [
        one.accessible_name
        for one in browser.find_elements("css selector", "textarea, button, [role=toolbar]")
    ]
    assert "" not in names


@pytest.mark.parametrize("is_right", [True, False])
def test_webgpu_is_used_where_it_gives_the_scores_of_the_manifest(
    tmp_path, scoring_bundle, is_right
):
    from selenium.webdriver.support.ui import WebDriverWait

    golden = read_manifest(scoring_bundle).golden
    wrong = [
        msgspec.structs.replace(pair, f1=[score + 0.01 for score in pair.f1]) for pair in golden
    ]
    folder = tmp_path / "site"  # with a tiny model, as shaders are slow where they are emulated
    copy_page(folder)
    copy_model(scoring_bundle, folder)
    if not is_right:
        seal(folder / "bundle", golden=wrong)
    emulated = ("enable-unsafe-webgpu", "use-webgpu-adapter=swiftshader", "enable-features=Vulkan")
    with chromium(tmp_path / "profile", *emulated) as browser, serving(folder) as address:
        browser.get(address)
        if not browser.execute_async_script(
            "navigator.gpu.requestAdapter().then(one => arguments[0](Boolean(one)))"
        ):
            pytest.skip("this Chromium does not emulate WebGPU")
        go = browser.find_element("id", "go")
        WebDriverWait(browser, 60).until(lambda _: go.is_enabled())
        go.click()
        WebDriverWait(browser, 60).until(lambda _: go.is_enabled())
        assert browser.find_element("id", "timing").text.endswith(
            "webgpu." if is_right else "wasm."
        )
        scores = browser.execute_script(SCORES)
    with BERTScorer(scoring_bundle, device="cpu") as scorer:
        np.testing.assert_allclose(
            scores, np.concatenate(scorer.score([CANDIDATE], [REFERENCE])), atol=1e-5
        )


def test_tokens_are_shaded_by_their_nearest_and_show_it(
    browser, opened, compare, site, minilm_scoring_bundle
):
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    with serving(site) as address:
        opened(address)
        compare([CANDIDATE], [REFERENCE])
    with BERTScorer(minilm_scoring_bundle, device="cpu") as scorer:
        found = scorer.match(CANDIDATE, REFERENCE).best
    for side, matches in (
        ("candidate", found.candidate_matches),
        ("reference", found.reference_matches),
    ):
        buttons = browser.find_elements("css selector", f".{side} button")
        assert [button.text for button in buttons] == [match.text for match in matches]
        for button, match in zip(buttons, matches, strict=True):
            label = f"{match.text}, nearest {match.other}, {match.similarity:.3f}"
            assert button.accessible_name.replace("\u2212", "-") == label
            assert ("unweighted" in button.get_attribute("class")) == match.is_special
            shade = browser.execute_script(
                "return arguments[0].style.getPropertyValue('--shade')", button
            )
            assert (
                shade == ""
                if match.is_special
                else float(shade) == pytest.approx(match.shade, abs=2e-3)
            )
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
        # markup stays text
        assert compare(["<b>one</b>", "", ""], ["<i>one</i>", "two"]).shape == (3, 2)
        assert error_of(browser) == ""
        assert browser.find_elements("css selector", "#results b, #results i") == []


FILES = [
    "bundle/bertscore.json",
    "bundle/model.onnx.data",
    "lib/tokenizers.min.mjs",
    "lib/ort-wasm-simd-threaded.wasm",
]
REMEDY = "`make web site` builds the site with one"


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(browser, opened, wait, changed_site, name):
    folder = changed_site()
    (folder / name).unlink()
    with serving(folder) as address:
        opened(address)
        if not error_of(browser):
            browser.find_element("id", "go").click()
            wait(lambda: error_of(browser))
    assert name in error_of(browser)


def test_a_page_without_a_model_shows_the_remedy(browser, opened, tmp_path):
    copy_page(tmp_path)
    with serving(tmp_path) as address:
        opened(address)
    assert REMEDY in error_of(browser)
    assert not browser.find_element("id", "go").is_enabled()


def test_a_page_opened_as_a_file_shows_the_remedy(browser, site):
    browser.get((site / "index.html").as_uri())
    assert "python3 -m http.server" in browser.find_element("id", "status").text
    assert not browser.find_element("id", "go").is_enabled()


def test_a_missing_package_is_named_before_anything_is_written(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"bertscore\.json is missing"):
        copy_model(Path("absent"), tmp_path)
    assert [*tmp_path.iterdir()] == []


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
            # WCAG 2.2, 1.4.3
            assert contrast(ink, section.value_of_css_property("background-color")) >= 4.5
        assert (luminance(body.value_of_css_property("background-color")) < 0.2) == (
            scheme == "dark"
        )
