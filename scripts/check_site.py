"""Checks the built site: all links lead to existing pages and anchors, every page has a
description, headings have levels, and no resource is loaded from elsewhere.

Run it with the folder of the site: `python scripts/check_site.py build/site`.
"""

import re
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADING = {
    "link": "href",
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "use": "href",
}
"""Elements that load a resource, and the attribute with its address."""


@dataclass
class Page(HTMLParser):
    """The anchors of a page, its links, the resources that it loads, and whether it has what
    readers need.
    """

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    is_described: bool = False
    has_levels: bool = True
    """Whether screen readers know the level of each heading."""

    def __post_init__(self) -> None:
        """Prepare the parser."""
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the anchors, link and resource of an element."""
        values = {name: value for name, value in attrs if value is not None}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        self.is_described |= values.get("name") == "description" and bool(values.get("content"))
        self.has_levels &= values.get("role") != "heading" or "aria-level" in values
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if (name := LOADING.get(tag, "")) in values and values.get("rel") != "canonical":
            self.loaded.append(values[name])


def faults(site: Path) -> list[str]:
    """Return the faults of a site: dead links, resources loaded from elsewhere, missing
    descriptions and levels.
    """
    pages = {
        file.resolve(): read_page(file)
        for file in site.rglob("*.html")
        if file.parts[-3] != "_downloads"
    }
    problems = []
    for file, page in pages.items():
        wrong = [
            fault for link in [*page.links, *page.loaded] if (fault := _fault(file, link, pages))
        ]
        wrong += [] if page.is_described else ["it has no description"]
        wrong += [] if page.has_levels else ["a heading has no level"]
        wrong += [
            f"{address} is loaded from elsewhere"
            for address in page.loaded
            if urlsplit(address).netloc
        ]
        problems += [f"{file.relative_to(site.resolve())}: {fault}" for fault in wrong]
    for file in site.rglob("*.css"):
        outside = re.findall(
            r"(?:url\(|@import)\s*[\"']?(?:https?:)?//[^)\"']+", file.read_text(encoding="utf-8")
        )
        problems += [f"{file.relative_to(site)}: {address}" for address in outside]
    return problems


def read_page(file: Path) -> Page:
    """Parse a page."""
    page = Page()
    page.feed(file.read_text(encoding="utf-8"))
    return page


def _fault(file: Path, link: str, pages: dict[Path, Page]) -> str | None:
    address = urlsplit(link)
    if address.scheme in ("data", "mailto"):
        return None
    if address.scheme or address.netloc:
        is_web = address.scheme == "https" and re.fullmatch(r"[\w-]+(\.[\w-]+)+", address.netloc)
        return None if is_web else f"{link} is not an https address"
    target = (file.parent / unquote(address.path)).resolve() if address.path else file
    if not target.is_file():
        return f"{link} leads to no file"
    anchor = unquote(address.fragment)
    if anchor and target in pages and anchor not in pages[target].anchors:
        return f"{link} leads to no anchor"
    return None


if __name__ == "__main__":
    site = Path(sys.argv[1])
    problems = faults(site)
    print(
        "\n".join(problems) or f"All links of {len([*site.rglob('*.html')])} pages lead somewhere."
    )
    sys.exit(bool(problems))
