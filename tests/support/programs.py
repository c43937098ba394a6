"""Programs that tests need beside Python, and are skipped without: Chromium, Java for Spark, and
Node.
"""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.parity import EDGE_CASE_PAIRS, ORDINARY_PAIRS


@contextmanager
def chromium(profile: Path, *switches: str) -> Iterator:
    """Start a browser that fetches nothing by itself; skip the test if it is not installed.

    Args:
        profile: a folder of its own.
        *switches: further switches of the command line.
    """
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (binary and driver):
        pytest.skip(
            "Chromium and chromedriver are not installed: apt-get install chromium chromium-driver"
        )
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for switch in (
        "headless",
        "no-sandbox",
        "disable-gpu",
        "disable-quic",
        "no-first-run",
        "disable-background-networking",
        "disable-component-update",
        "disable-sync",
        "disable-dev-shm-usage",
        "window-size=1100,1200",
        f"user-data-dir={profile}",
        *switches,
    ):
        options.add_argument(f"--{switch}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    try:
        yield browser
    finally:
        browser.quit()


def prefer(browser, scheme: str) -> None:
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def contrast(colour: str, other: str) -> float:
    """Return the contrast of two CSS colours, from 1 to 21 (WCAG 2.2)."""
    low, high = sorted(map(luminance, (colour, other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: str) -> float:
    """Return the relative luminance of a CSS colour (WCAG 2.2)."""
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


OLDEST_JAVA = 17


def require_java() -> None:
    """Skip the test if Java is not installed or is too old."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else shutil.which("java")  # as Spark looks for it
    if java is None:
        pytest.skip(
            f"Spark needs Java {OLDEST_JAVA} or newer, and none is installed: apt-get install "
            "default-jre-headless"
        )
    printed = subprocess.run([java, "-version"], capture_output=True, text=True, check=True).stderr
    found = re.search(r'version "(\d+)', printed)
    if found is None or int(found[1]) < OLDEST_JAVA:
        pytest.skip(f"Spark needs Java {OLDEST_JAVA} or newer; {java} is {printed.splitlines()[0]}")


WEB = Path(__file__).parents[2] / "examples" / "web"
OLDEST_NODE = (20, 11)
TIMEOUT = 120
NODE = shutil.which("node") or ""

GREEK_CAPITALS = "ΣΊΣΥΦΟΣ ΟΔΟΣ"
"""The JavaScript package lowercases a last capital sigma to another letter than the Rust
package.
"""

LINE_PAIRS = [
    *ORDINARY_PAIRS,
    *(pair for pair in EDGE_CASE_PAIRS if "\n" not in "".join(pair) and pair[0] != GREEK_CAPITALS),
    ("  leading \x1cand trailing\u3000\x85", "leading and trailing"),
    ("\ufeff the mark of an order of bytes", "the mark of an order of bytes"),
]
"""Pairs of which each text is a line."""


def what_is_missing() -> str:
    """Return what has to be installed before Node can run the examples, or nothing."""
    if not NODE:
        return "Node is not installed"
    version = subprocess.run(
        [NODE, "--version"], capture_output=True, text=True, check=True
    ).stdout.strip()
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < OLDEST_NODE:
        return (
            f"Node {'.'.join(map(str, OLDEST_NODE))} or newer is needed, and {version} is installed"
        )
    if not (WEB / "node_modules" / "onnxruntime-node").exists():
        return "the packages of examples/web are not installed: make web"
    return ""


_MISSING = what_is_missing()
needs_node = pytest.mark.skipif(_MISSING != "", reason=_MISSING)


def run_node(*arguments: object, **options: object) -> "subprocess.CompletedProcess[str]":
    """Run Node in `examples/web`, and return the completed process."""
    return subprocess.run(
        [NODE, *map(str, arguments)],
        cwd=WEB,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=TIMEOUT,
        **options,
    )
