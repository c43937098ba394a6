"""Node and the packages of `examples/web`, for tests that run what is written for them."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.parity_texts import EDGE_CASE_PAIRS, ORDINARY_PAIRS

WEB = Path(__file__).parents[2] / "examples" / "web"
OLDEST = (20, 11)
TIMEOUT = 120
NODE = shutil.which("node") or ""

GREEK_CAPITALS = "ΣΊΣΥΦΟΣ ΟΔΟΣ"
"""The JavaScript package lowercases a last capital sigma to another letter than the Rust package."""

LINE_PAIRS = [
    *ORDINARY_PAIRS,
    *(pair for pair in EDGE_CASE_PAIRS if "\n" not in "".join(pair) and pair[0] != GREEK_CAPITALS),
    ("  leading \x1cand trailing\u3000\x85", "leading and trailing"),
    ("\ufeff the mark of an order of bytes", "the mark of an order of bytes"),
]
"""Pairs of which each text is a line."""


def what_is_missing() -> str:
    """Say what has to be installed before Node can run the examples; nothing where all is."""
    if not NODE:
        return "Node is not installed"
    version = subprocess.run([NODE, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    if tuple(map(int, re.findall(r"\d+", version)[:2])) < OLDEST:
        return f"Node {'.'.join(map(str, OLDEST))} or newer is needed, and {version} is installed"
    if not (WEB / "node_modules" / "onnxruntime-node").exists():
        return "the packages of examples/web are not installed: make web"
    return ""


_MISSING = what_is_missing()
needs_node = pytest.mark.skipif(_MISSING != "", reason=_MISSING)


def run_node(*arguments: object, **options: object) -> "subprocess.CompletedProcess[str]":
    """Run Node in `examples/web`; return what it printed."""
    return subprocess.run(
        [NODE, *map(str, arguments)],
        cwd=WEB,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=TIMEOUT,
        **options,
    )
