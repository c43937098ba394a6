"""The check of the built site finds dead links and foreign resources."""

from pathlib import Path

import pytest
from check_site import faults

HEAD = '<meta name="description" content="A page."><link rel="stylesheet" href="style.css">'
PAGE = f'<html><head>{HEAD}</head><body><h1 id="top">A</h1>{{}}</body></html>'


@pytest.fixture
def site(tmp_path: Path) -> Path:
    (tmp_path / "style.css").write_text(
        "h1 { color: black; background: url(data:,) }", encoding="utf-8"
    )
    (tmp_path / "other.html").write_text(PAGE.format(""), encoding="utf-8")
    return tmp_path


def faults_with(site: Path, body: str) -> list[str]:
    (site / "index.html").write_text(PAGE.format(body), encoding="utf-8")
    return faults(site)


@pytest.mark.parametrize(
    "link", ["other.html", "other.html#top", "#top", "https://example.org/page", "style.css"]
)
def test_a_link_that_leads_somewhere_is_right(site, link):
    assert faults_with(site, f'<a href="{link}">there</a>') == []


@pytest.mark.parametrize(
    "link", ["absent.html", "other.html#absent", "#absent", "http://example.org", "https://nowhere"]
)
def test_a_dead_link_is_found(site, link):
    assert len(faults_with(site, f'<a href="{link}">there</a>')) == 1


@pytest.mark.parametrize(
    "body",
    [
        '<script src="https://example.org/script.js"></script>',
        '<img src="https://example.org/picture.svg">',
        '<link rel="stylesheet" href="https://example.org/style.css">',
    ],
)
def test_what_is_loaded_from_elsewhere_is_found(site, body):
    assert len(faults_with(site, body)) == 1


def test_a_font_from_elsewhere_is_found(site):
    (site / "style.css").write_text(
        "@import url('https://example.org/font.css');", encoding="utf-8"
    )
    assert len(faults_with(site, "")) == 1


def test_a_heading_without_a_level_is_found(site):
    assert faults_with(site, '<p role="heading" aria-level="2">Use</p>') == []
    assert len(faults_with(site, '<p role="heading">Use</p>')) == 1


def test_a_page_without_a_description_is_found(site):
    (site / "other.html").write_text("<html><body></body></html>", encoding="utf-8")
    assert faults_with(site, "") == ["other.html: it has no description"]
