"""HTML pages as trees, parsed strictly: an element that is not closed fails."""

import re
from html.parser import HTMLParser
from xml.etree import ElementTree

VOID = {"meta", "link", "br", "hr", "img", "input"}


class _Builder(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.builder = ElementTree.TreeBuilder()
        self.open: list[str] = []

    def handle_starttag(self, tag, attrs):
        assert len({name for name, _ in attrs}) == len(attrs), (
            f"{tag} has an attribute twice: {attrs}"
        )
        self.builder.start(tag, {name: value or "" for name, value in attrs})
        self.open.append(tag)
        if tag in VOID:
            self.handle_endtag(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open[-1] == tag, f"</{tag}> where <{self.open[-1]}> is open"
        self.open.pop()
        self.builder.end(tag)

    def handle_data(self, data):
        if self.open:
            self.builder.data(data)
        else:
            assert not data.strip()


def tree_of(page: str) -> ElementTree.Element:
    """Return the root of a page, or of a fragment with one root."""
    parser = _Builder()
    parser.feed(page)
    parser.close()
    assert not parser.open, f"left open: {parser.open}"
    return parser.builder.close()


def text_of(element: ElementTree.Element) -> str:
    """Return the text inside an element, with single spaces."""
    return re.sub(r"\s+", " ", "".join(element.itertext())).strip()


def rows_of(table: ElementTree.Element) -> list[list[str]]:
    return [[text_of(cell) for cell in row] for row in table.iter("tr")]


def section(page: ElementTree.Element, name: str) -> ElementTree.Element:
    [found] = [one for one in page.iter() if one.get("id") == name]
    return found
