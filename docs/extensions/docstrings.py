"""Prepares for Sphinx the docstrings that are written for readers of the source."""

import re

from sphinx.application import Sphinx

_attributes: dict[str, list[str]] = {}
"""The docstrings of attributes while napoleon runs, which would read any text before a colon as a
type.
"""


def setup(sphinx: Sphinx) -> dict[str, bool]:
    """Connect this to the build, before and after napoleon."""
    sphinx.connect("autodoc-process-docstring", put_aside, priority=100)
    sphinx.connect("autodoc-process-docstring", prepare, priority=900)
    return {"parallel_read_safe": True}


def put_aside(
    sphinx: Sphinx, kind: str, name: str, value: object, options: object, lines: list[str]
) -> None:
    """Hide the docstring of an attribute or a constant from napoleon."""
    if kind in ("attribute", "data", "property"):
        _attributes[name] = lines[:]
        lines.clear()


def prepare(
    sphinx: Sphinx, kind: str, name: str, value: object, options: object, lines: list[str]
) -> None:
    """Repeat an explanation for each of the errors that share it, and keep a drawn tree as it
    is.
    """
    of_constructor = _first_line(getattr(value, "__init__", None)) if kind == "class" else ""
    # it follows the text of the class, and adds nothing
    if of_constructor and of_constructor in lines:
        lines.remove(of_constructor)
    lines[:] = [
        _with_bars(one) for line in _attributes.pop(name, lines) for one in _each_error(line)
    ]
    if any("├──" in line for line in lines):
        first = lines.index("") + 1
        lines[first:] = ["::", "", *(f"    {line}" for line in lines[first:])]


def _first_line(function: object) -> str:
    return (function.__doc__ or "").partition("\n")[0]


def _with_bars(line: str) -> str:
    """Escape bars outside of code, such as those of an absolute value."""
    return "".join(
        part if part.startswith("`") else part.replace("|", r"\|")
        for part in re.split("(`+[^`]*`+)", line)
    )


def _each_error(line: str) -> list[str]:
    found = re.fullmatch(r":raises ([\w, ]+): (.*)", line)
    return [f":raises {error}: {found[2]}" for error in found[1].split(", ")] if found else [line]
