"""Every link of a document leads somewhere: to a file, to one of its headings, or to an address of
the web.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from markdown_it import MarkdownIt

from tests.support.snippets import ROOT, documents

_parser = MarkdownIt("commonmark").enable("table")


def links(document: Path) -> Iterator[str]:
    for block in _parser.parse(document.read_text(encoding="utf-8")):
        for token in block.children or []:
            if token.type == "link_open":
                yield str(token.attrs["href"])
            elif token.type == "image":
                yield str(token.attrs["src"])


def anchors(document: Path) -> set[str]:
    """Return the anchors that GitHub gives the headings of a document."""
    blocks = _parser.parse(document.read_text(encoding="utf-8"))
    titles = [block.content for before, block in pairwise(blocks) if before.type == "heading_open"]
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def fault(document: Path, link: str) -> str | None:
    address = urlsplit(link)
    if address.scheme or address.netloc:
        is_web = address.scheme == "https" and re.fullmatch(r"[\w-]+(\.[\w-]+)+", address.netloc)
        return None if is_web else f"{link} is no https address"
    target = (document.parent / address.path).resolve() if address.path else document
    if not target.exists() or not target.is_relative_to(ROOT):
        return f"{link} leads to no file"
    if address.fragment and address.fragment not in anchors(target):
        return f"{link} leads to no heading"
    return None


@pytest.mark.parametrize("document", documents(), ids=lambda file: str(file.relative_to(ROOT)))
def test_every_link_leads_somewhere(document):
    assert [wrong for link in links(document) if (wrong := fault(document, link))] == []


@pytest.mark.parametrize(
    "link", ["absent.md", "README.md#absent", "#absent", "http://example.org", "https://localhost"]
)
def test_a_dead_link_is_found(link):
    assert fault(ROOT / "README.md", link) is not None


def test_every_path_in_the_pages_for_contributors_exists():
    folders = [ROOT, ROOT / "bertscore_onnx", *ROOT.glob("*/bertscore_onnx_*")]
    missing = []
    for document in (ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture.md"):
        code = re.findall(r"`([^`\n]+)`", document.read_text(encoding="utf-8"))
        paths = [text for text in code if re.fullmatch(r"\.?\w[\w./-]*/[\w./-]*", text)]
        for path in paths:
            if not any((folder / path).exists() for folder in folders):
                missing.append(path)
    assert [path for path in missing if not path.startswith("build/")] == []
