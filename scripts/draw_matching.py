"""Draws the matching tokens of a real pair, from its scores, as an SVG (`make picture`).

python scripts/draw_matching.py BUNDLE
"""

import sys
from html import escape
from pathlib import Path

import numpy as np

from bertscore_onnx import BERTScorer, Score
from bertscore_onnx.similarity import TokenMatch, TokenSimilarity

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "matching.svg"
CANDIDATE = "The concert was called off at the last minute."
REFERENCE = "At the very last moment they called the concert off."

WIDTH, HEIGHT, MARGIN = 860, 330, 30
TOP, BOTTOM, BOX = 84, 214, 30  # the rows' upper edges, and their height
GAP, LETTER, PADDING = 8, 8.6, 16  # between tokens, of a letter, within a token
SHIFT = 4  # of a line from its token's middle, so that two lines between the same tokens are both visible
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
    """Return the SVG: the candidate above, the reference below, and a line from each token to its best match."""
    upper, lower = _middles(matches.candidate), _middles(matches.reference)
    below, above = matches.candidate_matches, matches.reference_matches
    lines = [
        _curve(x - SHIFT, lower[match.position] - SHIFT, match.similarity, PRECISION)
        for x, match in zip(upper, below, strict=True)
    ] + [
        _curve(upper[match.position] + SHIFT, x + SHIFT, match.similarity, RECALL)
        for x, match in zip(lower, above, strict=True)
    ]
    tokens = [
        *_row(below, upper, TOP, TOP - 10, PRECISION),
        *_row(above, lower, BOTTOM, BOTTOM + BOX + 20, RECALL),
    ]
    legend = [
        text_line(MARGIN, 34, "candidate: each token and its best match in the reference", PALE, anchor="start"),
        text_line(
            MARGIN, HEIGHT - 24, "reference: each token and its best match in the candidate", PALE, anchor="start"
        ),
        _figure(TOP + 20, f"mean P {score.P:.3f}", PRECISION),
        _figure((TOP + BOX + BOTTOM) / 2 + 5, f"F {score.F:.3f}", INK),
        _figure(BOTTOM + 20, f"mean R {score.R:.3f}", RECALL),
    ]
    title = f"Which token matches which: {CANDIDATE} against {REFERENCE}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
            f"<title>{escape(title)}</title>",
            dark_style(),
            f'<rect width="{WIDTH}" height="{HEIGHT}" rx="12" fill="{PAPER}"/>',
            *lines,
            *tokens,
            *legend,
            "</svg>\n",
        ]
    )


def dark_style() -> str:
    """Return the style that replaces the colours of a picture on a dark screen."""
    rules = "".join(
        f'[fill="{light}"]{{fill:{dark}}}[stroke="{light}"]{{stroke:{dark}}}' for light, dark in DARK.items()
    )
    return f"<style>@media(prefers-color-scheme:dark){{{rules}}}</style>"


def _width(token: str) -> float:
    return len(token) * LETTER + PADDING


def _middles(tokens: list[str]) -> list[float]:
    """Return the x-coordinate of each token's middle, with the tokens side by side from the left margin."""
    widths = np.array([_width(token) for token in tokens])
    return (MARGIN + np.cumsum(widths + GAP) - GAP - widths / 2).tolist()  # type: ignore[no-any-return]


def _row(matches: list[TokenMatch], middles: list[float], top: float, baseline: float, colour: str) -> list[str]:
    """Return the boxes of one side's tokens, each with the similarity of its best match."""
    return [
        f'<rect x="{middle - _width(match.text) / 2:.1f}" y="{top}" width="{_width(match.text):.1f}" height="{BOX}" '
        f'rx="6" fill="#f3f4f6" stroke="#d1d5db"/>'
        + text_line(middle, top + 20, match.text, INK, size=14)
        + text_line(middle, baseline, f"{match.similarity:.2f}", colour, size=11)
        for match, middle in zip(matches, middles, strict=True)
    ]


def _curve(start: float, end: float, similarity: float, colour: str) -> str:
    """Return a line from an upper token to a lower one, stronger for more similar tokens."""
    half = (TOP + BOX + BOTTOM) / 2
    return (
        f'<path d="M{start:.1f} {TOP + BOX} C{start:.1f} {half} {end:.1f} {half} {end:.1f} {BOTTOM}" fill="none" '
        f'stroke="{colour}" stroke-width="{0.6 + 2.2 * similarity**3:.1f}" '
        f'stroke-opacity="{0.3 + 0.7 * similarity:.2f}"/>'
    )


def _figure(y: float, text: str, colour: str) -> str:
    return text_line(WIDTH - MARGIN, y, text, colour, anchor="end", weight="bold", size=16)


def text_line(
    x: float, y: float, text: str, colour: str, *, anchor: str = "middle", weight: str = "normal", size: int = 13
) -> str:
    """Return a line of text."""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-family="{FACE}" font-size="{size}" '
        f'font-weight="{weight}" fill="{colour}">{escape(text)}</text>'
    )


if __name__ == "__main__":
    main()
