"""Helps readers and machines find pages: keywords, descriptions, a sitemap and llms.txt.

A comment below the title of a page, `<!-- keywords: one, two words -->`, names queries that the
page answers: the search of the site shows it first.
"""

import re
from html import escape, unescape
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

MAX_LENGTH = 160
PICTURE = "_images/report.png"
KEYWORDS = re.compile(r"^<!-- keywords: (.+) -->$", re.MULTILINE)


def setup(sphinx: Sphinx) -> dict[str, bool]:
    """Connect this to the build."""
    sphinx.connect("doctree-read", add_keywords)
    sphinx.connect("html-page-context", describe)
    sphinx.connect("build-finished", list_pages)
    return {"parallel_read_safe": True}


def add_keywords(sphinx: Sphinx, document: nodes.document) -> None:
    """Make the keywords of a page main entries of the index, which the search puts above words in
    titles and texts.
    """
    if found := KEYWORDS.search(Path(document["source"]).read_text(encoding="utf-8")):
        entries = [("single", word, "", "main", None) for word in found[1].split(", ")]
        document.append(addnodes.index(entries=entries))


def describe(
    sphinx: Sphinx, page: str, template: str, context: dict[str, Any], tree: nodes.document | None
) -> None:
    """Add a description and a picture to the head of a page."""
    project = sphinx.config.project
    title = unescape(re.sub("<[^>]+>", "", context.get("title", ""))) or project
    described = _first_paragraph(tree) or f"{title}: a page of the documentation of {project}."
    base = sphinx.config.html_baseurl
    values = {
        "og:title": title,
        "og:type": "website",
        "og:site_name": project,
        "og:description": described,
        "og:image": base + PICTURE,
        "og:url": base and base + sphinx.builder.get_target_uri(page),
    }
    tags = [
        f'<meta property="{name}" content="{escape(value)}">'
        for name, value in values.items()
        if value
    ]
    tags += [f'<meta name="description" content="{escape(described)}">']
    context["metatags"] = "\n".join([context.get("metatags", ""), *tags])


def list_pages(sphinx: Sphinx, error: Exception | None) -> None:
    """Write llms.txt, which lists and describes the pages, and a sitemap where the address of the
    site is known.
    """
    if error or sphinx.builder.format != "html":
        return
    environment, base = sphinx.env, sphinx.config.html_baseurl
    pages = [
        environment.config.root_doc,
        *sorted(environment.found_docs - {environment.config.root_doc}),
    ]
    addresses = {page: base + sphinx.builder.get_target_uri(page) for page in pages}
    lines = [
        f"- [{environment.titles[page].astext()}]({addresses[page]}): "
        f"{_first_paragraph(environment.get_doctree(page))}"
        for page in pages
        if not page.startswith("reference/evaluation/")
    ]
    head = (
        f"# {sphinx.config.project}\n\n> "
        f"{_first_paragraph(environment.get_doctree(pages[0]))}\n\n## Pages\n\n"
    )
    Path(sphinx.outdir, "llms.txt").write_text(head + "\n".join(lines) + "\n", encoding="utf-8")
    if base:
        entries = "".join(
            f"<url><loc>{escape(address)}</loc></url>\n" for address in addresses.values()
        )
        namespace = "http://www.sitemaps.org/schemas/sitemap/0.9"
        content = f'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="{namespace}">\n{entries}</urlset>\n'
        Path(sphinx.outdir, "sitemap.xml").write_text(content, encoding="utf-8")


def _first_paragraph(tree: nodes.document | None) -> str:
    """Return the first paragraph of a page, cut at a word; or nothing."""
    texts = (
        (" ".join(node.astext().split()) for node in tree.findall(nodes.paragraph))
        if tree
        else iter(())
    )
    text = next(filter(None, texts), "")
    return text if len(text) <= MAX_LENGTH else f"{text[: MAX_LENGTH - 2].rpartition(' ')[0]} …"
