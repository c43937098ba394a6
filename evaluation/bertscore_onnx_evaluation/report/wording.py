"""Texts, made fit for a page: invisible characters become visible, names are elements, and signs are typographic."""

import re
import unicodedata
from collections.abc import Sequence
from html import escape


def visible(text: str) -> str:
    """Return a text in which control characters have a picture, and invalid ones are U+FFFD.

    Line breaks and tabs stay. A page cannot hold the other control characters, nor UTF-8 half a surrogate pair.
    """
    return "".join(_visible_character(character) for character in text) if not text.isprintable() else text


def typographic(text: str) -> str:
    """Return a text with true minus signs and apostrophes, whose lines do not end within `p = 0.0225` or `95 %`."""
    text = re.sub(r"(?<![^\s(])-(?=\d)", "\N{MINUS SIGN}", text).replace("'", "\N{RIGHT SINGLE QUOTATION MARK}")
    return re.sub(r"(?<=\d) (?=%)| (?=[=<] )|(?<= [=<]) ", "\N{NO-BREAK SPACE}", text)


LONG = 20
"""The characters from which on a name may take several lines."""


def name(text: str) -> str:
    """Return a name as HTML, in an element that isolates its direction; a short one stays in one line."""
    style = ' class="long"' if len(text) >= LONG else ""
    return f"<bdi{style}>{escape(visible(text))}</bdi>"


def sentence(text: str, names: Sequence[str]) -> str:
    """Return a sentence as HTML, with each of the names as `name` writes it."""
    longest_first = sorted({*names} - {""}, key=len, reverse=True)
    parts = re.split(rf"(?<!\w)({'|'.join(map(re.escape, longest_first))})(?!\w)", text)
    return "".join(name(part) if place % 2 else escape(typographic(visible(part))) for place, part in enumerate(parts))


def _visible_character(character: str) -> str:
    code = ord(character)
    if character in "\n\t":
        return character
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\N{SYMBOL FOR DELETE}"
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(character) in ("Cc", "Cs") else character
