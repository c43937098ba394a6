"""Draws the speeds of benchmarks/figures.md beside those of bert-score: an SVG, and a table for
docs/performance.md and the README.

Seconds and the picture are of the machine with AVX2; of the one with AVX-512 the table has how many times as fast.

python scripts/draw_speed.py
"""

import re
from pathlib import Path

from draw_matching import INK, PALE, PAPER, RECALL, dark_style, text_line

from benchmarks.report import DOCUMENT, marks
from harness.results import with_figures

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
README = PAGE.parents[1] / "README.md"
PICTURE = PAGE.parent / "images" / "speed.svg"
SUMMARY = "<!-- summary: begin -->", "<!-- summary: end -->"

WORK = {
    "a": "3,004 pairs of sentences, MiniLM",
    "b": "256 pairs, roberta-large's architecture",
    "c": "64 pairs of documents of 400 to 510 tokens, MiniLM",
    "d": "one pair per call, MiniLM",
    "e": "from the start of a process to its first score",
}
"""The cases that are shown, by their letters."""

DEFAULTS = re.compile(r" 0\.3\.13$|, fp32$|, for throughput$")
"""What the names of contestants with their default settings end with."""

ROW, BAR, TOP = 62, 15, 24
WIDTH, MARGIN = 460, 16  # as wide as a phone can show

Measured = dict[str, tuple[str, str]]
"""By contestant the time and the memory, as they are written."""


def main() -> None:
    """Write the picture, and the table between the marks of the page and the README."""
    page = DOCUMENT.read_text(encoding="utf-8")
    PICTURE.write_text(picture(figures_of(page, "AVX2")), encoding="utf-8")
    for document in (PAGE, README):
        text = with_figures(document.read_text(encoding="utf-8"), [f"{summary(page)}\n"], SUMMARY)
        document.write_text(text, encoding="utf-8")


def figures_of(page: str, instruction_set: str) -> str:
    """Return the part of the page with the figures of an instruction set."""
    begin, end = marks(instruction_set)
    return page.split(begin, 1)[1].split(end, 1)[0]


def measured(figures: str, letter: str) -> Measured:
    """Return the entries of one case: bert-score's, ours in fp32, and ours in int8 where it was measured."""
    section = figures.split(f"### ({letter}) ", 1)[1].split("### ", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "|" in line]
    first = {DEFAULTS.sub("", row[0]): (row[1], row[4]) for row in reversed(rows)}
    return {name: first[name] for name in ("bert-score", "ours", "ours, int8") if name in first}


def short(time: str) -> str:
    """Return a time with one digit after the point, in seconds from a tenth of one."""
    exact = seconds(time)
    return f"{exact:.1f} s" if exact >= 0.1 else f"{1000 * exact:.1f} ms"


def described(time: str, memory: str) -> str:
    """Return a time, with the memory if it was measured."""
    return short(time) if memory == "-" else f"{short(time)}, {memory}"


def seconds(written: str) -> float:
    """Return a time in seconds."""
    number, unit = written.split()
    return float(number) / {"s": 1, "ms": 1000}[unit]


def speedup(found: Measured, name: str = "ours") -> str:
    """Return how many times as fast ours is; "-" if it was not measured."""
    return f"{seconds(found['bert-score'][0]) / seconds(found[name][0]):.1f} ×" if name in found else "-"


def summary(page: str) -> str:
    """Return the table of both machines."""
    narrow, wide = (figures_of(page, name) for name in ("AVX2", "AVX-512"))
    lines = [
        "| on two CPU cores | bert-score 0.3.13 | bertscore-onnx | times as fast | with AVX-512 | and in int8 |",
        "|---|---|---|---|---|---|",
    ]
    for letter, work in WORK.items():
        found, also = measured(narrow, letter), measured(wide, letter)
        theirs, ours = (described(*found[name]) for name in ("bert-score", "ours"))
        lines.append(
            f"| {work} | {theirs} | {ours} | {speedup(found)} | {speedup(also)} | {speedup(also, 'ours, int8')} |"
        )
    return "\n".join(lines)


def picture(figures: str) -> str:
    """Return the SVG: for each case two bars, bert-score's at full length."""
    height, full = ROW * len(WORK) + 56, WIDTH - 2 * MARGIN - 210
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img">',
        "<title>The time of bert-score and of bertscore-onnx for the same work, on two cores</title>",
        dark_style(),
        f'<rect width="{WIDTH}" height="{height}" rx="12" fill="{PAPER}"/>',
    ]
    for number, (letter, work) in enumerate(WORK.items()):
        found, top = measured(figures, letter), TOP + ROW * number
        shown = {name: time for name, (time, _) in found.items() if "int8" not in name}
        slowest = max(map(seconds, shown.values()))
        parts.append(text_line(MARGIN, top + 6, work, INK, anchor="start", size=14))
        for place, ((name, time), colour) in enumerate(zip(shown.items(), (PALE, RECALL), strict=True)):
            length, y = full * seconds(time) / slowest, top + 13 + place * (BAR + 2)
            parts.append(f'<rect x="{MARGIN}" y="{y}" width="{length:.1f}" height="{BAR}" rx="3" fill="{colour}"/>')
            label = f"{name.replace('ours', 'bertscore-onnx')} {short(time)}"
            parts.append(text_line(MARGIN + length + 8, y + 12, label, colour, anchor="start", size=12))
        parts.append(text_line(WIDTH - MARGIN, top + 34, speedup(found), INK, anchor="end", weight="bold", size=18))
    note = "two cores of an AMD EPYC, fp32; equal weights and scores"
    return "\n".join([*parts, text_line(MARGIN, height - 16, note, PALE, anchor="start"), "</svg>\n"])


if __name__ == "__main__":
    main()
