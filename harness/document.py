"""Writes figures into a document, between two marks."""

from collections.abc import Callable, Sequence
from typing import TypeVar

Shown = TypeVar("Shown")

BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def with_figures(document: str, figures: Sequence[Shown], show: Callable[[Shown], str]) -> str:
    """Return a document with these figures, as `show` puts them, between its marks."""
    before, _, rest = document.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"The document has no lines {BEGIN!r} and {END!r} to write the figures between.")
    return f"{before}{BEGIN}\n\n" + "\n".join(map(show, figures)) + f"\n{END}{after}"
