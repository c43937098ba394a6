"""Gives the captions of lists of pages a level, which screen readers need for a heading."""

from typing import Any

from docutils import nodes
from sphinx.application import Sphinx


def setup(sphinx: Sphinx) -> dict[str, bool]:
    """Connect this to the build."""
    sphinx.connect("html-page-context", add_levels, priority=900)  # after the theme made its list
    return {"parallel_read_safe": True}


def add_levels(
    sphinx: Sphinx, page: str, template: str, context: dict[str, Any], tree: nodes.document | None
) -> None:
    """Add the level to the captions in the text and at the side."""
    for part in ("body", "furo_navigation_tree"):
        if part in context:
            context[part] = context[part].replace(
                'role="heading">', 'role="heading" aria-level="2">'
            )
