"""Redirects links to documents at the repository's root, which work on GitHub, to their pages on
the site.

Documents that are only named, such as docs/server.md in a message, become links too.
"""

import posixpath
import re
from pathlib import Path

from sphinx.application import Sphinx

PAGES = {
    "CHANGELOG.md": "project/changelog.md",
    "CODE_OF_CONDUCT.md": "project/contributing.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/contributing.md",
    "examples/README.md": "integrations.md",
    "reproduce/README.md": "which_metric.md",
}
"""Documents outside of this folder, and the pages that include them."""

NAMED = re.compile(r"(?<![\w/(\[`.])docs/(\w+\.md)(?!`)")
"""A document that is named without a link, outside of code."""


def setup(sphinx: Sphinx) -> dict[str, bool]:
    """Connect this to the build."""
    sphinx.connect("source-read", lead_to_pages)
    sphinx.connect("include-read", lead_from_included)
    return {"parallel_read_safe": True}


def lead_to_pages(sphinx: Sphinx, document: str, source: list[str]) -> None:
    """Rewrite the links of a document that reach the root by `../`."""
    source[0] = re.sub(
        r"\]\(\.\./([\w/]+\.md)", lambda found: f"]({_page(found[1]) or found[0][2:]}", source[0]
    )
    source[0] = NAMED.sub(r"[](/\1)", source[0])


def lead_from_included(sphinx: Sphinx, path: Path, parent: str, source: list[str]) -> None:
    """Rewrite the links of a document outside of this folder that is included in a page."""
    folder = path.parent.as_posix().removeprefix("..").strip("/")

    def lead(found: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, found[1]))
        return f"]({_page(target) or '/../' + target}"

    source[0] = re.sub(r"\]\((?!https:|#)([\w./-]+)", lead, source[0])
    source[0] = NAMED.sub(r"[](/\1)", source[0])


def _page(name: str) -> str | None:
    """Return the page of a document given by its path from the root; None for other files."""
    if name.startswith("docs/"):
        return name.removeprefix("docs")
    return f"/{PAGES[name]}" if name in PAGES else None
