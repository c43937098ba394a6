"""Writes the speeds of this library, of bert-score and of a script.

It writes them into benchmarks/figures.md, and from that page three tables for docs/performance.md,
and of the machine with AMX a sentence for the README and an SVG for both.

    python scripts/draw_speed.py [REPORT …]

REPORT is a file that `make bench` wrote, such as build/benchmarks/cpu.json.
"""

import re
import sys
import textwrap
from pathlib import Path

from draw_matching import INK, PALE, PAPER, RECALL, dark_style, text_line

from benchmarks.report import DOCUMENT, marks, with_reports
from harness.results import read_report, with_figures

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

COLUMNS_ON_AVX2 = {
    "bert-score": "bert-score 0.3.13",
    "a script": "a script",
    "ours": "bertscore-onnx",
    "ours, int8": "in int8",
}
"""The contestants that are shown, by their names without default settings, and the headings of the
table.
"""

COLUMNS_WITH_BF16 = {
    "bert-score": "bert-score 0.3.13",
    "bert-score 0.3.13, model in bfloat16": "its model in bfloat16",
    "a script": "a script",
    "ours": "bertscore-onnx",
    "ours, int8": "in int8",
    "ours, fp32 bundle on OpenVINO": "on OpenVINO, in bfloat16",
}
"""Likewise on a processor with bfloat16: AMX, or AVX-512 with BF16."""

INEXACT = ("bert-score 0.3.13, model in bfloat16", "ours, int8", "ours, fp32 bundle on OpenVINO")
"""The contestants whose scores differ from bert-score's."""

WITH_MEMORY = ("bert-score", "ours", "ours, int8", "ours, fp32 bundle on OpenVINO")
"""The contestants whose memory is shown."""

Measured = dict[str, dict[str, str]]
"""By contestant the cells of its row, as they are written, by the headings of their columns."""


def main() -> None:
    """Write the figures of reports, if any, the picture, and the text between the marks of the page
    and the README.
    """
    page = with_reports(
        DOCUMENT.read_text(encoding="utf-8"), [read_report(Path(path)) for path in sys.argv[1:]]
    )
    figures = figures_of(page, "AMX")
    if missing := [letter for letter in WORK if f"### ({letter}) " not in figures]:
        raise SystemExit(
            f"The figures on AMX lack the cases {', '.join(missing)}: run `make bench` with them."
        )
    written = {DOCUMENT: page, PICTURE: picture(figures)}
    for document in (PAGE, README):
        text = document.read_text(encoding="utf-8")
        written[document] = with_figures(text, [f"{summary(page, document)}\n"], SUMMARY)
    for path, text in written.items():
        path.write_text(text, encoding="utf-8")


def figures_of(page: str, instruction_set: str) -> str:
    """Return the part of the page with the figures of an instruction set."""
    begin, end = marks(instruction_set)
    return page.split(begin, 1)[1].split(end, 1)[0]


def machine(figures: str) -> dict[str, str]:
    """Return when and where figures were measured, by the names of the facts."""
    [day] = re.findall(r"^Measured (\S+)", figures, re.MULTILINE)
    [facts] = re.findall(r"^Machine: (.+)\.$", figures, re.MULTILINE)
    return {"day": day, **dict(fact.split(": ", 1) for fact in facts.split("; "))}


def measured(figures: str, letter: str) -> Measured:
    """Return the rows of one case by contestant."""
    section = figures.split(f"### ({letter}) ", 1)[1].split("### ", 1)[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in section.splitlines()
        if "|" in line
    ]
    # of its weights, so that differences mean little
    is_random = "architecture" in section.partition("\n")[0]
    headings = rows[0]
    found = {}
    for row in reversed(rows):
        if len(row) != len(headings):
            continue  # of the table below, of ratios
        cells = dict(zip(headings, row, strict=True))
        if is_random:
            cells["largest difference"] = "-"
        found[DEFAULTS.sub("", row[0])] = cells
    return found


def short(time: str) -> str:
    """Return a time with one digit after the point, in seconds from a tenth of one."""
    exact = seconds(time)
    return f"{exact:.1f} s" if exact >= 0.1 else f"{1000 * exact:.1f} ms"


def seconds(written: str) -> float:
    """Return a time in seconds."""
    number, unit = written.split()
    return float(number) / {"s": 1, "ms": 1000}[unit]


def cell(found: Measured, name: str) -> str:
    """Return the time of a contestant, with how many times as fast as bert-score it is; "-" if it
    was not measured.

    In brackets is its processor time, in the same unit, where that was measured.
    """
    if name not in found:
        return "-"
    entry = found[name]
    time = entry["median"]
    processor = entry.get("processor", "-")
    if processor == "-":
        parts = [short(time)]
    else:
        unit = short(time).split()[1]
        parts = [f"{short(time)} ({short(processor).removesuffix(unit).strip()})"]
    if entry["peak memory"] != "-" and name in WITH_MEMORY:
        parts.append(entry["peak memory"])
    if name != "bert-score":
        parts.append(f"{seconds(found['bert-score']['median']) / seconds(time):.1f} ×")
    if name in INEXACT and entry["largest difference"] != "-":
        parts.append(f"F ± {float(entry['largest difference']):.4f}")
    return ", ".join(parts)


MKL = (
    "On AMD, MKL multiplies matrices for PyTorch about half as fast as ONNX Runtime does (97 and 192 "
    "GFLOP in a second of processor time on a Zen 5): compare with the script there."
)
"""What to know of speeds against PyTorch on AMD; no environment variable changes it."""


def summary(page: str, document: Path) -> str:
    """Return the tables of a document, and where they are from; for the README a sentence."""
    if document == README:
        return headline(figures_of(page, "AMX"))
    with_bfloat16 = [_summary_on(page, name, COLUMNS_WITH_BF16) for name in ("AMX", "AVX-512")]
    on_avx2 = _summary_on(page, "AVX2", COLUMNS_ON_AVX2)
    return "\n\n".join([*with_bfloat16, on_avx2, textwrap.fill(MKL, 120)])


def headline(figures: str) -> str:
    """Return a sentence with the gain in speed, in int8 too, and in memory on pairs of sentences."""
    found = measured(figures, "a")
    theirs, ours, int8 = (found[name] for name in ("bert-score", "ours", "ours, int8"))
    full = seconds(theirs["median"])
    text = (
        f"**{full / seconds(ours['median']):.1f} times as fast** as bert-score with equal scores, "
        f"**{full / seconds(int8['median']):.1f} times** in int8 (F ± "
        f"{float(int8['largest difference']):.4f}), in **{ours['peak memory']}** of memory instead "
        f"of {theirs['peak memory']}: {WORK['a']}, on {_processor(figures)}."
    )
    return "\n".join(textwrap.wrap(text, 120))


def _processor(figures: str) -> str:
    """Return the cores and the processor that figures with AMX were measured on."""
    facts = machine(figures)
    return f"{facts['cores usable']} cores of an {facts['processor']} with AMX"


def _summary_on(page: str, instruction_set: str, columns: dict[str, str]) -> str:
    figures = figures_of(page, instruction_set)
    facts = machine(figures)
    headings = [f"on {facts['cores usable']} CPU cores", *columns.values()]
    lines = [f"| {' | '.join(headings)} |", "|---" * len(headings) + "|"]
    for letter, work in WORK.items():
        entries = measured(figures, letter)
        cells = [cell(entries, name) for name in columns]
        lines.append(f"| {work} | {' | '.join(cells)} |")
    commit = f", commit {facts['commit']}" if "commit" in facts else ""
    processor = f"{facts['processor']} with {instruction_set}"
    load = f"load {facts['load at the start']} at the start"
    lines += ["", f"{facts['day']}{commit}, on an {processor}, {load}."]
    return "\n".join(lines)


def picture(figures: str) -> str:
    """Return the SVG: for each case two bars, bert-score's at full length."""
    height, full = ROW * len(WORK) + 74, WIDTH - 2 * MARGIN - 210
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        'role="img">',
        "<title>The time of bert-score and of bertscore-onnx for the same work</title>",
        dark_style(),
        f'<rect width="{WIDTH}" height="{height}" rx="12" fill="{PAPER}"/>',
    ]
    for number, (letter, work) in enumerate(WORK.items()):
        found, top = measured(figures, letter), TOP + ROW * number
        shown = {name: found[name]["median"] for name in ("bert-score", "ours")}
        slowest = max(map(seconds, shown.values()))
        parts.append(text_line(MARGIN, top + 6, work, INK, anchor="start", size=14))
        for place, ((name, time), colour) in enumerate(
            zip(shown.items(), (PALE, RECALL), strict=True)
        ):
            length, y = full * seconds(time) / slowest, top + 13 + place * (BAR + 2)
            parts.append(
                f'<rect x="{MARGIN}" y="{y}" width="{length:.1f}" height="{BAR}" rx="3" '
                f'fill="{colour}"/>'
            )
            label = f"{name.replace('ours', 'bertscore-onnx')} {short(time)}"
            parts.append(
                text_line(MARGIN + length + 8, y + 12, label, colour, anchor="start", size=12)
            )
        faster = seconds(shown["bert-score"]) / seconds(shown["ours"])
        parts.append(
            text_line(
                WIDTH - MARGIN,
                top + 34,
                f"{faster:.1f} ×",
                INK,
                anchor="end",
                weight="bold",
                size=18,
            )
        )
    notes = [_processor(figures), "fp32, equal weights and scores"]
    for number, note in enumerate(notes):
        parts.append(text_line(MARGIN, height - 34 + 18 * number, note, PALE, anchor="start"))
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    main()
