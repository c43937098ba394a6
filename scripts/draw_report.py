"""Draws the report of a comparison as readers see it, in Chromium (`make picture`).

    python scripts/draw_report.py BUNDLE

BUNDLE is the one that `make demo` makes.
"""

import re
import shutil
import subprocess
import sys
import tempfile
from html import unescape
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "images" / "report.png"
WORDS = PICTURE.with_suffix(".txt")
"""The words of the page of which the picture was taken, as far as it shows them."""

BELOW = "Differences with"
"""The first words below the picture."""

OPTIONS = (
    *("-c", str(ROOT / "examples" / "systems.csv"), "--systems", "rules", "small", "large"),
    *("--columns", "reference=reference+reference2", "--metric", "bertscore", "chrf"),
)


def write_page(bundle: Path, page: Path) -> None:
    """Compare the systems of an example, and write the report."""
    command = [
        sys.executable,
        "-m",
        "bertscore_onnx",
        "compare",
        "--model",
        str(bundle),
        *OPTIONS,
        "--html",
        str(page),
    ]
    subprocess.run(command, check=True, capture_output=True)


def words_of(page: Path) -> str:
    """Return the words that the picture shows: a paragraph or cell in each line, without
    numbers.
    """
    body = page.read_text(encoding="utf-8").partition("<body")[2].partition(BELOW)[0]
    body = re.sub(r"<(script|style|svg)\b.*?</\1>", "", body, flags=re.DOTALL)
    lines = re.sub(r"</(p|h\d|td|th|li|div|dt|dd|a)>", "\n", body)
    text = unescape(re.sub(r"<[^>]*>", " ", lines.partition(">")[2]))
    words = [" ".join(re.findall(r"[^\W\d_]+", line)) for line in text.splitlines()]
    return "\n".join(filter(None, words)) + "\n"


def main() -> None:
    """Draw the report."""
    browser = shutil.which("chromium")
    if browser is None:
        sys.exit("Chromium is not installed.")
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder, "report.html")
        write_page(Path(sys.argv[1]), page)
        size = ["--window-size=1000,860", "--hide-scrollbars", "--headless", "--no-sandbox"]
        subprocess.run(
            [browser, *size, f"--screenshot={PICTURE}", page.as_uri()],
            check=True,
            capture_output=True,
        )
        WORDS.write_text(words_of(page), encoding="utf-8")


if __name__ == "__main__":
    main()
