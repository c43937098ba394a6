"""Redirects links to documents at the repository's root, which work on GitHub, to their pages on the site."""

import re

from sphinx.application import Sphinx

PAGES = {
    "CHANGELOG.md": "project/changelog.md",
    "CODE_OF_CONDUCT.md": "project/code_of_conduct.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "SECURITY.md": "project/security.md",
}
"""Documents at the root, and the pages that include them."""


def setup(sphinx: Sphinx) -> dict[str, bool]:
    """Connect this to the build."""
    sphinx.connect("source-read", lead_to_pages)
    sphinx.connect("include-read", lead_from_included)
    return {"parallel_read_safe": True}


def lead_to_pages(sphinx: Sphinx, document: str, source: list[str]) -> None:
    """Rewrite the links of a document that reach the root by `../`."""
    source[0] = re.sub(r"\]\(\.\./(\w+\.md)", lambda found: f"]({_page(found[1]) or found[0][2:]}", source[0])


def lead_from_included(sphinx: Sphinx, path: object, parent: str, source: list[str]) -> None:
    """Rewrite the links of a document at the root that is included in a page."""
    source[0] = re.sub(
        r"\]\((?!https:|#)([\w./]+)", lambda found: f"]({_page(found[1]) or '/../' + found[1]}", source[0]
    )


def _page(name: str) -> str | None:
    """Return the page of a document given by its path from the root; None for other files."""
    if name.startswith("docs/"):
        return name.removeprefix("docs")
    return f"/{PAGES[name]}" if name in PAGES else None
