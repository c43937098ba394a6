"""What every report has, in Markdown: when and where it was made, and tables."""

from collections.abc import Sequence

from harness.results import Report

Row = Sequence[str]


def preamble(report: Report) -> str:
    """Return when the report was made, on what machine and with what settings."""
    facts, settings = (
        "; ".join(f"{name}: {value}" for name, value in some.items()) for some in (report.machine, report.settings)
    )
    return f"Measured {report.made}.\n\nMachine: {facts}.\n\nSettings: {settings}."


def table(header: Row, rows: Sequence[Row]) -> str:
    """Lay out a table so that it can be read as it stands; nothing where there are no rows."""
    if not rows:
        return ""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    lines = [header, ["-" * width for width in widths], *rows]
    padded = [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in padded)
