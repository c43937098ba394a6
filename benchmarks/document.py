"""Writes the figures of reports into `docs/performance.md`: `python -m benchmarks.document REPORT.json ...`."""

import sys
from pathlib import Path

from benchmarks.report import as_markdown
from harness.checkout import ROOT
from harness.document import with_figures
from harness.results import read_report

DOCUMENT = ROOT / "docs" / "performance.md"


def main() -> None:
    """Replace what stands between the marks."""
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    reports = [read_report(Path(path)) for path in sys.argv[1:]]
    DOCUMENT.write_text(with_figures(DOCUMENT.read_text(encoding="utf-8"), reports, as_markdown), encoding="utf-8")


if __name__ == "__main__":
    main()
