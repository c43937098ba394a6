"""Lays out tables in Markdown."""

from collections.abc import Sequence

Row = Sequence[str]


def table(header: Row, rows: Sequence[Row]) -> str:
    """Lay out a table so that it can be read as it stands; nothing where there are no rows."""
    if not rows:
        return ""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    padded = [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in padded)
