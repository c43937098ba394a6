"""The natural order of names."""

import re
from typing import Any


def natural_key(name: str | int) -> tuple[list[Any], str]:
    """Return a key to sort names by, so that seg-2 comes before seg-10."""
    parts: list[Any] = re.split(r"([0-9]+)", str(name))
    for position in range(1, len(parts), 2):
        # Numbers sort by length, then by digits: they may be too long for int.
        digits = parts[position].lstrip("0")
        parts[position] = (len(digits), digits)
    return parts, str(name)
