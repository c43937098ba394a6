"""Writes the figures that `make calibration` simulates into the tables of
`tests/evaluation/simulations.md`.

    python scripts/document_calibration.py RESULTS

RESULTS is the file that `pytest --junitxml=RESULTS` writes; a test's property `ROW | COLUMN` goes
into that cell. Cells whose test did not run, such as those of tools that are not installed, keep
their figures.
"""

import sys
from pathlib import Path
from xml.etree import ElementTree

DOCUMENT = Path(__file__).parents[1] / "tests" / "evaluation" / "simulations.md"


def main() -> None:
    """Write the figures of the results that are given."""
    properties = ElementTree.parse(sys.argv[1]).iter("property")  # noqa: S314 -- our own file
    figures = {one.get("name", ""): one.get("value", "") for one in properties}
    DOCUMENT.write_text(filled(DOCUMENT.read_text(encoding="utf-8"), figures), encoding="utf-8")


def filled(page: str, figures: dict[str, str]) -> str:
    """Return a page with the figures in its tables; raise ValueError for one that has no cell."""
    left, header, lines = dict(figures), list[str](), []
    for line in page.splitlines():
        cells = (
            [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        )
        if not header or not cells:
            header = cells
        else:
            cells = [
                left.pop(f"{cells[0]} | {title}", cell)
                for title, cell in zip(header, cells, strict=True)
            ]
        lines.append(f"| {' | '.join(cells)} |" if cells and not line.startswith("|---") else line)
    if left:
        raise ValueError(
            f"These figures have no cell: {', '.join(left)}. Add their rows to {DOCUMENT.name}."
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
