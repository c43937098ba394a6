"""Texts, made fit for a page.

Invisible characters become visible, names are elements, and signs are typographic.
"""

import re
from collections.abc import Sequence
from html import escape

_INVALID = [*range(0x80, 0xA0), *range(0xD800, 0xE000)]  # control characters and surrogates
_VISIBLE = {
    **dict.fromkeys(_INVALID, "\N{REPLACEMENT CHARACTER}"),
    **{code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"},
    0x7F: "\N{SYMBOL FOR DELETE}",
}


def visible(text: str) -> str:
    """Return a text in which control characters have a picture.

    Invalid ones are U+FFFD. Line breaks and tabs stay. A page cannot hold the other control
    characters, nor UTF-8 half a surrogate pair.
    """
    return text.translate(_VISIBLE)


def typographic(text: str) -> str:
    """Return a text with true minus signs and apostrophes.

    Its lines do not end within `p = 0.0225` or `95 %`.
    """
    text = re.sub(r"(?<![^\s(])-(?=\d)", "\N{MINUS SIGN}", text)
    text = text.replace("'", "\N{RIGHT SINGLE QUOTATION MARK}")
    return re.sub(r"(?<=\d) (?=%)| (?=[=<] )|(?<= [=<]) ", "\N{NO-BREAK SPACE}", text)


LONG = 20
"""The characters from which on a name may take several lines."""


def name(text: str) -> str:
    """Return a name as HTML, in an element that isolates its direction.

    A short name stays in one line.
    """
    style = ""
    if len(text) >= LONG:
        style = ' class="long"'
    return f"<bdi{style}>{escape(visible(text))}</bdi>"


def sentence(text: str, names: Sequence[str]) -> str:
    """Return a sentence as HTML, with each of the names as `name` writes it."""
    longest_first = sorted(set(names) - {""}, key=len, reverse=True)
    alternatives = "|".join(map(re.escape, longest_first))
    html = []
    for place, piece in enumerate(re.split(rf"(?<!\w)({alternatives})(?!\w)", text)):
        if place % 2:  # the group makes every second piece a name
            html.append(name(piece))
        else:
            html.append(escape(typographic(visible(piece))))
    return "".join(html)
