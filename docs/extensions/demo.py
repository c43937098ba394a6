"""Puts the page of examples/web into pages of the site: BERTScore in the reader's browser.

The model and its packages come from `make web`; without them the site is built all the same, and
its page names the command, as a link to it says before.
"""

import shutil
import sys
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.util import logging

ROOT = Path(__file__).parents[2]
BUNDLE = ROOT / "build" / "minilm-web"
MARK = "<!-- demo -->"
LINK_MARK = "<!-- demo link -->"
"""Stands behind a link to the page."""

sys.path.insert(0, str(ROOT / "examples" / "web"))

from assemble import HERE, copy_model, copy_page  # noqa: E402 -- an example, and no package

_logger = logging.getLogger(__name__)


def setup(sphinx: Sphinx) -> dict[str, bool]:
    """Connect this to the build."""
    sphinx.connect("source-read", insert_page)
    sphinx.connect("build-finished", copy_files)
    return {"parallel_read_safe": True}


def insert_page(sphinx: Sphinx, document: str, source: list[str]) -> None:
    """Replace the mark in a document by the page, or by how to get it where its model is
    missing.
    """
    if MARK in source[0] and not BUNDLE.is_dir():
        source[0] = source[0].replace(
            MARK, "This copy of the site has no model: `make web site` adds it."
        )
    if not BUNDLE.is_dir():
        source[0] = source[0].replace(LINK_MARK, " (this copy of the site has no model)")
    if MARK in source[0]:
        markup = (HERE / "index.html").read_text(encoding="utf-8")
        markup = (
            markup.partition("<!-- demo: begin -->")[2].partition("<!-- demo: end -->")[0].strip()
        )
        head = '<link rel="stylesheet" href="demo/style.css"><script type="module" src="demo/page.mjs"></script>'
        source[0] = source[0].replace(MARK, f"````{{raw}} html\n{head}\n{markup}\n````")


def copy_files(sphinx: Sphinx, error: Exception | None) -> None:
    """Copy the files of the page beside the pages of the site, and the model if it is there."""
    if error or sphinx.builder.format != "html":
        return
    folder = Path(sphinx.outdir) / "demo"
    copy_page(folder)
    (folder / "index.html").unlink()
    shutil.move(folder / "offline.js", sphinx.outdir)  # it serves the pages beside it and below
    try:
        copy_model(BUNDLE, folder)
    except FileNotFoundError as missing:
        _logger.info("The demo has no model: %s `make web` before `make site` adds it.", missing)
