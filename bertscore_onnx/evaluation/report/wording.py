"""Texts of users, made fit for a page: invisible characters become visible."""

import unicodedata

FIRST_STRONG_ISOLATE, POP_ISOLATE = "\u2068", "\u2069"


def visible(text: str) -> str:
    """Return a text in which control characters have a picture, and invalid ones are U+FFFD.

    Line breaks and tabs stay. A page cannot hold the other control characters, nor UTF-8 half a surrogate pair.
    """
    return "".join(_visible_character(one) for one in text) if not text.isprintable() else text


def isolated(name: str) -> str:
    """Return a name that leaves the direction of the sentence around it as it is, also where it runs right to left."""
    shown = visible(name)
    return shown if shown.isascii() else f"{FIRST_STRONG_ISOLATE}{shown}{POP_ISOLATE}"


def _visible_character(character: str) -> str:
    code = ord(character)
    if character in "\n\t":
        return character
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\N{SYMBOL FOR DELETE}"
    return "\N{REPLACEMENT CHARACTER}" if unicodedata.category(character) in ("Cc", "Cs") else character
