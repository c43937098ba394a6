"""Writes the table of a report into `docs/reliability.md`: `python -m reliability.document REPORT.json`."""

import sys
from pathlib import Path

from harness.checkout import ROOT
from harness.document import with_figures
from harness.results import read_report
from reliability.report import as_markdown

DOCUMENT = ROOT / "docs" / "reliability.md"


def main() -> None:
    """Replace what stands between the marks."""
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    report = read_report(Path(sys.argv[1]))
    DOCUMENT.write_text(with_figures(DOCUMENT.read_text(encoding="utf-8"), [report], as_markdown), encoding="utf-8")


if __name__ == "__main__":
    main()
