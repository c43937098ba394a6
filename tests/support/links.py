"""The links of Markdown documents, and the anchors that they may lead to."""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt

_parser = MarkdownIt("commonmark").enable("table")


def links(document: Path) -> Iterator[str]:
    """Yield where the links and pictures of a document lead to."""
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
