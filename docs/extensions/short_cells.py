"""Keeps short cells of tables, such as `1.7e-04`, on one line: browsers break lines after a
hyphen.
"""

from docutils import nodes
from sphinx.application import Sphinx

MAX_LENGTH = 16


def setup(sphinx: Sphinx) -> dict[str, bool]:
    """Connect this to the build."""
    sphinx.connect("doctree-read", mark_short_cells)
    return {"parallel_read_safe": True}


def mark_short_cells(sphinx: Sphinx, document: nodes.document) -> None:
    """Give each short cell of a table a class, which the style of the site keeps on one line."""
    for cell in document.findall(nodes.entry):
        if len(cell.astext()) <= MAX_LENGTH:
            cell["classes"].append("short")
