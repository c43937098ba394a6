"""Writes the figures of reports into `docs/performance.md`: `python -m benchmarks.document REPORT.json ...`."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.contest import ROOT
from benchmarks.report import as_markdown
from benchmarks.results import Report, read_report

DOCUMENT = ROOT / "docs" / "performance.md"
BEGIN, END = "<!-- figures: begin -->", "<!-- figures: end -->"


def main() -> None:
    """Replace what stands between the marks."""
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    reports = [read_report(Path(path)) for path in sys.argv[1:]]
    DOCUMENT.write_text(with_figures(DOCUMENT.read_text(encoding="utf-8"), reports), encoding="utf-8")


def with_figures(document: str, reports: Sequence[Report], show: Callable[[Report], str] = as_markdown) -> str:
    """Return a document with these reports, as `show` puts them, between its marks."""
    before, _, rest = document.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"The document has no lines {BEGIN!r} and {END!r} to write the figures between.")
    return f"{before}{BEGIN}\n\n" + "\n".join(map(show, reports)) + f"\n{END}{after}"


if __name__ == "__main__":
    main()
