"""Draws the matching tokens of a real pair, from its scores, as an SVG (`make picture`).

    python scripts/draw_matching.py BUNDLE

BUNDLE is the one that `make demo` makes.
"""

import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path

from bertscore_onnx import BERTScorer, Score
from bertscore_onnx.similarity import TokenMatch, TokenSimilarity

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "matching.svg"
CANDIDATE = "The concert was called off at the last minute."
REFERENCE = "At the very last moment they called the concert off."

WIDTH, MARGIN = 460, 30  # as wide as a phone can show
TOP, ROW, BOX = 54, 36, 28  # the first token's upper edge, the distance of tokens, and their height
LEFT, RIGHT = 165, 295  # the inner edges of the columns
LETTER, PADDING = 8.6, 16  # the width of a letter, and within a token
# of a line from its token's middle, so that two lines between the same tokens are both visible
SHIFT = 4
PRECISION, RECALL, INK, PALE, PAPER = "#c2410c", "#1d4ed8", "#1f2937", "#6b7280", "#ffffff"
DARK = {
    PRECISION: "#fb923c",
    RECALL: "#93b4ff",
    INK: "#e5e7eb",
    PALE: "#9ca3af",
    PAPER: "#14161a",
    "#f3f4f6": "#242830",
    "#d1d5db": "#3a404a",
}
"""The colours on a dark screen."""

FACE = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def main() -> None:
    """Write the picture."""
    PICTURE.write_text(picture(Path(sys.argv[1])), encoding="utf-8")


def picture(bundle: Path) -> str:
    """Return the SVG for the pair, scored with a bundle."""
    with BERTScorer(bundle) as scorer:
        matches = scorer.match(CANDIDATE, REFERENCE).best
    return draw(matches.without_special_tokens(), matches.score)


def draw(matches: TokenSimilarity, score: Score) -> str:
    """Return the SVG: the candidate at the left, the reference at the right, a line from each token
    to its match.
    """
    below, above = matches.candidate_matches, matches.reference_matches
    lines = [
        _curve(row, match.position, -SHIFT, match.similarity, PRECISION)
        for row, match in enumerate(below)
    ] + [
        _curve(match.position, row, SHIFT, match.similarity, RECALL)
        for row, match in enumerate(above)
    ]
    foot = TOP + ROW * max(len(below), len(above)) + 28
    figures = [
        text_line(x, foot, text, colour, anchor=anchor, weight="bold", size=16)
        for x, anchor, text, colour in (
            (MARGIN, "start", f"mean P {score.P:.3f}", PRECISION),
            (WIDTH / 2, "middle", f"F {score.F:.3f}", INK),
            (WIDTH - MARGIN, "end", f"mean R {score.R:.3f}", RECALL),
        )
    ]
    height = foot + 24
    title = f"Which token matches which: {CANDIDATE} against {REFERENCE}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
            f'width="{WIDTH}" role="img">',
            f"<title>{escape(title)}</title>",
            dark_style(),
            f'<rect width="{WIDTH}" height="{height}" rx="12" fill="{PAPER}"/>',
            text_line(LEFT, TOP - 20, "candidate", PALE, anchor="end"),
            text_line(RIGHT, TOP - 20, "reference", PALE, anchor="start"),
            *lines,
            *(
                token
                for row, match in enumerate(below)
                for token in _token(match, row, LEFT, -1, PRECISION)
            ),
            *(
                token
                for row, match in enumerate(above)
                for token in _token(match, row, RIGHT, 1, RECALL)
            ),
            *figures,
            "</svg>\n",
        ]
    )


def dark_style() -> str:
    """Return the style that replaces the colours of a picture on a dark screen."""
    rules = "".join(
        f'[fill="{light}"]{{fill:{dark}}}[stroke="{light}"]{{stroke:{dark}}}'
        for light, dark in DARK.items()
    )
    return f"<style>@media(prefers-color-scheme:dark){{{rules}}}</style>"


def _middle(row: int) -> float:
    return TOP + ROW * row + BOX / 2


def _token(match: TokenMatch, row: int, edge: float, side: int, colour: str) -> Iterator[str]:
    """Yield the box of a token beside the inner edge of its column, its text, and the similarity of
    its best match.
    """
    width = len(match.text) * LETTER + PADDING
    x, y = min(edge, edge + side * width), TOP + ROW * row
    yield f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BOX}" rx="6" fill="#f3f4f6" stroke="#d1d5db"/>'
    yield text_line(edge + side * width / 2, y + 19, match.text, INK, size=14)
    anchor = "end" if side < 0 else "start"
    yield text_line(
        edge + side * (width + 8), y + 18, f"{match.similarity:.2f}", colour, anchor=anchor, size=12
    )


def _curve(candidate: int, reference: int, shift: float, similarity: float, colour: str) -> str:
    """Return a line from a row of the left column to one of the right, stronger for more similar
    tokens.
    """
    start, end, half = _middle(candidate) + shift, _middle(reference) + shift, (LEFT + RIGHT) / 2
    return (
        f'<path d="M{LEFT} {start:.1f} C{half} {start:.1f} {half} {end:.1f} {RIGHT} {end:.1f}" '
        'fill="none" '
        f'stroke="{colour}" stroke-width="{0.6 + 2.2 * similarity**3:.1f}" '
        f'stroke-opacity="{0.3 + 0.7 * similarity:.2f}"/>'
    )


def text_line(
    x: float,
    y: float,
    text: str,
    colour: str,
    *,
    anchor: str = "middle",
    weight: str = "normal",
    size: int = 13,
) -> str:
    """Return a line of text."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-family="{FACE}" '
        f'font-size="{size}" '
        f'font-weight="{weight}" fill="{colour}">{escape(text)}</text>'
    )


if __name__ == "__main__":
    main()
