"""Draws the speeds of docs/performance.md beside those of bert-score: an SVG, and a table at the head of that page.

python scripts/draw_speed.py
"""

from pathlib import Path

from draw_matching import INK, MARGIN, PALE, PAPER, RECALL, WIDTH, dark_style, text_line

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
PICTURE = PAGE.parent / "images" / "speed.svg"
BEGIN, END = "<!-- summary: begin -->", "<!-- summary: end -->"

WORK = {
    "a": "3,004 pairs of sentences, MiniLM",
    "b": "256 pairs, roberta-large's architecture",
    "c": "64 pairs of documents of 400 to 510 tokens, MiniLM",
    "d": "one pair per call, MiniLM",
    "e": "from the start of a process to its first score",
}
"""The cases that are shown, by their letters."""

ROW, BAR, TOP = 62, 15, 24

Measured = dict[str, tuple[str, str]]
"""By contestant the time and the memory, as they are written."""


def main() -> None:
    """Write the picture, and the table between the marks of the page."""
    page = PAGE.read_text(encoding="utf-8")
    PICTURE.write_text(picture(page), encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    PAGE.write_text(f"{before}{BEGIN}\n\n{summary(page)}\n\n{END}{rest.partition(END)[2]}", encoding="utf-8")


def measured(page: str, letter: str) -> Measured:
    """Return the page's entries of one case: ours in fp32, and bert-score's."""
    section = page.split(f"### ({letter}) ", 1)[1].split("### ", 1)[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in section.splitlines() if "|" in line]
    first = {row[0].removesuffix(" 0.3.13").removesuffix(", fp32"): (row[1], row[4]) for row in reversed(rows)}
    return {name: first[name] for name in ("bert-score", "ours")}


def seconds(written: str) -> float:
    """Return a time in seconds."""
    number, unit = written.split()
    return float(number) / {"s": 1, "ms": 1000}[unit]


def speedup(found: Measured) -> str:
    """Return how many times as fast ours is."""
    return f"{seconds(found['bert-score'][0]) / seconds(found['ours'][0]):.1f} ×"


def summary(page: str) -> str:
    """Return the table."""
    lines = ["| work | bert-score | bertscore-onnx | times as fast |", "|---|---|---|---|"]
    for letter, work in WORK.items():
        found = measured(page, letter)
        theirs, ours = (", ".join(value for value in found[name] if value != "-") for name in ("bert-score", "ours"))
        lines.append(f"| {work} | {theirs} | {ours} | {speedup(found)} |")
    return "\n".join(lines)


def picture(page: str) -> str:
    """Return the SVG: for each case two bars, bert-score's at full length."""
    height, full = ROW * len(WORK) + 56, WIDTH - 2 * MARGIN - 250
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>The time of bert-score and of bertscore-onnx for the same work, on two cores</title>",
        dark_style(),
        f'<rect width="{WIDTH}" height="{height}" rx="12" fill="{PAPER}"/>',
    ]
    for number, (letter, work) in enumerate(WORK.items()):
        found, top = measured(page, letter), TOP + ROW * number
        slowest = max(seconds(time) for time, _ in found.values())
        parts.append(text_line(MARGIN, top + 6, work, INK, anchor="start", size=14))
        for place, ((name, (time, _)), colour) in enumerate(zip(found.items(), (PALE, RECALL), strict=True)):
            length, y = full * seconds(time) / slowest, top + 13 + place * (BAR + 2)
            parts.append(f'<rect x="{MARGIN}" y="{y}" width="{length:.1f}" height="{BAR}" rx="3" fill="{colour}"/>')
            label = f"{name.replace('ours', 'bertscore-onnx')} {time}"
            parts.append(text_line(MARGIN + length + 8, y + 12, label, colour, anchor="start", size=12))
        parts.append(text_line(WIDTH - MARGIN, top + 34, speedup(found), INK, anchor="end", weight="bold", size=18))
    note = "two cores of an AMD EPYC, fp32; the same weights, texts and scores"
    return "\n".join([*parts, text_line(MARGIN, height - 16, note, PALE, anchor="start"), "</svg>\n"])


if __name__ == "__main__":
    main()
