"""Renders the token matches of two texts as HTML, as a page, and as lines for a terminal."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import zip_longest

from bertscore_onnx.scores import PRF, Signature
from bertscore_onnx.similarity.matches import TokenMatch, TokenSimilarity
from bertscore_onnx.tables.aligned import text_width


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class TokenMatches:
    """The tokens of a candidate, matched with the tokens of each of its references.

    `print` shows those of the best reference as `bertscore-onnx show` does, and a notebook shows them as HTML. `P`, `R`
    and `F` are the scores of the candidate: with several references each is the best over these, independently, as
    `BERTScorer.score` returns them. The scores with one reference are those of its `TokenSimilarity`.
    """

    candidate: str
    """The text of the candidate."""

    references: tuple[str, ...]
    """The texts of its references."""

    similarities: tuple[TokenSimilarity, ...]
    """The matches with each reference."""

    signature: Signature
    """The settings of the scorer."""

    @property
    def P(self) -> float:  # noqa: N802 -- the paper's names, as in `Scores`
        """The precision of the candidate."""
        return max(similarity.score.P for similarity in self.similarities)

    @property
    def R(self) -> float:  # noqa: N802
        """The recall of the candidate."""
        return max(similarity.score.R for similarity in self.similarities)

    @property
    def F(self) -> float:  # noqa: N802
        """The F of the candidate."""
        return self.best.score.F

    @property
    def precision(self) -> float:
        """The precision of the candidate, `P` for short."""
        return self.P

    @property
    def recall(self) -> float:
        """The recall of the candidate, `R` for short."""
        return self.R

    @property
    def f1(self) -> float:
        """The F of the candidate, `F` for short; with a beta other than 1 it is the F of that."""
        return self.F

    @property
    def best_reference(self) -> int:
        """The position of the reference with the best F, the first of equal ones, as in `Score.best_reference`."""
        return max(range(len(self.similarities)), key=lambda reference: self.similarities[reference].score.F)

    @property
    def best(self) -> TokenSimilarity:
        """The matches with that reference."""
        return self.similarities[self.best_reference]

    def to_html(self) -> str:
        """Return a whole page, with the matrix of similarities, without script, style sheet or external files."""
        title = f"Which tokens match: F {self.F:.3f}"
        parts = [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title>\n<style>\n{_PAGE_STYLE}{MATCH_STYLE}</style></head>\n<body><h1>{title}</h1>",
            f"<p>Candidate: <bdi>{escape(self.candidate)}</bdi></p>",
            _references(self),
            *(f"<p>{remark}</p>" for remark in self.best.remarks),
            match_html(self.best, with_matrix=True),
            f'<p class="soft">{escape(str(self.signature))}</p></body></html>\n',
        ]
        return "\n".join(parts)

    def __str__(self) -> str:
        """Return the scores of the candidate and the matches of the best reference as lines."""
        heading = score_line(self) if len(self.references) == 1 else f"{score_line(self)}\n\n{shown_reference(self)}"
        return match_text(self.best, heading)

    def __repr__(self) -> str:
        """Return the scores of the candidate."""
        return f"TokenMatches(P={self.P:.3f}, R={self.R:.3f}, F={self.F:.3f})"

    def _repr_html_(self) -> str:
        """Return the matches of the best reference as a notebook shows them."""
        several = len(self.references) > 1
        scores = f"{_best_of_each(self)} {shown_reference(self)}" if several else f"F {self.F:.3f}."
        return (
            f"<style>{MATCH_STYLE}</style>{match_html(self.best)}"
            f"<p>{' '.join([scores, *self.best.remarks])}</p><p>{self.signature._repr_html_()}</p>"
        )


LOW = 1 / 3
"""A shade below which a token has a dotted line instead of a solid one, for eyes and paper without colour."""

STEPS = 20
"""Shades of the HTML: classes, since the content policies of many pages forbid elements with styles of their own."""

MATCH_STYLE = """\
.match { --shade: 59 130 246; line-height: 1.6; margin: .75em 0; }
.match dl { margin: 0; }
.match dt, .match p { color: var(--soft, inherit); font-size: .85em; margin: 0; }
.match dd { margin: .2em 0 .6em; display: flex; flex-wrap: wrap; gap: .3em; }
.match span, .match .matrix td { background: rgb(var(--shade) / calc(var(--of, 0) * .5)); border-radius: .25em; }
.match span { padding: 0 .3em; border-bottom: 2px solid rgb(var(--shade)); overflow-wrap: anywhere; }
.match .low { border-bottom-style: dotted; }
.match .zero { border-bottom-color: transparent; background: none; color: var(--soft, inherit); font-style: italic; }
.match small { margin-inline-start: .3em; font-size: .7em; opacity: .85; }
.match details { margin-top: 1em; }
.match summary { cursor: pointer; font-weight: 600; }
.match .wide { overflow: auto; max-height: 85vh; margin-top: .5em; background:
  linear-gradient(to left, var(--ground, Canvas) 40%, transparent) right / 3rem 100% no-repeat local,
  linear-gradient(to left, rgb(0 0 0 / .3), transparent) right / 1rem 100% no-repeat scroll; }
.match table { border-collapse: separate; border-spacing: 2px; font-size: .85em; font-variant-numeric: tabular-nums; }
.match th { padding: .2em .4em; white-space: nowrap; text-align: start; background: var(--ground, Canvas); }
.match th.zero { font-weight: 400; }
.match th small { display: block; margin: 0; font-size: .8em; font-weight: 400; }
.match td { padding: .3em .4em; border: 2px solid transparent; }
.match .matrix td { text-align: center; }
.match .matrix thead th { position: sticky; top: 0; z-index: 1; text-align: center; }
.match .matrix tbody th { position: sticky; left: 0; }
.match td.p { border-color: currentColor; font-weight: 700; }
.match td.r { text-decoration: underline 2px; text-underline-offset: 3px; }
@media print {
  .match { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .match .wide { max-height: none; }
}
""" + "".join(f".match .s{step} {{ --of: {step / STEPS}; }}\n" for step in range(1, STEPS + 1))
"""The style of the HTML from `match_html`, for the `<style>` of the page.

Letters have the colour of the text around them. A page may set `--soft`, the colour of notes, and `--ground`, that of
the page where the matrix stands.
"""

MAX_CELLS = 40_000
"""The most cells of the matrix; a page leaves out a larger one, for which browsers take seconds."""


def match_html(found: TokenSimilarity, *, with_matrix: bool = False) -> str:
    """Return both texts as a fragment of HTML, without script, style sheet or external files.

    Each token of the texts is shaded by the similarity of its best match, as in `TokenSimilarity.shades`, and names
    this match in its `title`. If weights differ, each token has its weight beside it; weight 0 is in italics.

    Args:
        found: the matches.
        with_matrix: whether to explain the shades, and add all similarities and a list of the best matches, in which
            special tokens have a place too.
    """
    has_weights = found.has_weights
    candidate, reference = found.candidate_matches, found.reference_matches
    parts = [
        f"<dl><dt>Candidate, precision {found.score.P:.3f}</dt>",
        f'<dd dir="auto">{_tokens(candidate, has_weights)}</dd>',
        f"<dt>Reference, recall {found.score.R:.3f}</dt>",
        f'<dd dir="auto">{_tokens(reference, has_weights)}</dd></dl>',
    ]
    if with_matrix:
        about_weights = " The number beside a token is its weight." if has_weights else ""
        parts += [
            "<p>The stronger the shade of a token, the closer its match in the other text; hover to see it. A dotted "
            f"line marks those with the least close match.{about_weights}</p>",
            _matrix(found, candidate, reference),
            '<details><summary>The matches as a list</summary><div class="wide">',
            _list("candidate", "reference", candidate, has_weights),
            _list("reference", "candidate", reference, has_weights),
            "</div></details>",
        ]
    return f'<div class="match">{"".join(parts)}</div>'


def _tokens(matches: Sequence[TokenMatch], has_weights: bool) -> str:
    """Return the tokens of one text, without the special ones."""
    return " ".join(_token(match, has_weights) for match in matches if not match.is_special) or "<i>no tokens</i>"


def _token(match: TokenMatch, has_weights: bool) -> str:
    kind = "zero" if match.weight == 0 else _shade(match.shade) + (" low" if match.shade < LOW else "")
    title = f"{match.text} → {match.other}: {_number(match.similarity)}"
    if has_weights:
        title += f", weight {match.weight:.2f}"
    return f'<span class="{kind}" title="{escape(title)}">{_named(match, has_weights)}</span>'


def _named(match: TokenMatch, has_weights: bool) -> str:
    """Return the text of a token, with its weight where weights differ."""
    return escape(match.text) + (f"<small>{match.weight:.2f}</small>" if has_weights else "")


def _shade(shade: float) -> str:
    return f"s{round(shade * STEPS)}"


def _number(similarity: float) -> str:
    return f"{similarity:.3f}".replace("-", "\N{MINUS SIGN}")


def _matrix(tokens: TokenSimilarity, candidate: Sequence[TokenMatch], reference: Sequence[TokenMatch]) -> str:
    """Return the table of all similarities."""
    rows, columns = tokens.similarity.shape
    if rows * columns > MAX_CELLS:
        return f"<p>The matrix of similarities is left out: it has {rows:,} × {columns:,}.</p>"
    similarities, shades, has_weights = tokens.similarity.tolist(), tokens.shades.tolist(), tokens.has_weights
    body = []
    for row, token in enumerate(candidate):
        cells = [
            f'<td class="{_shade(shade)}{" p" * (token.position == column)}{" r" * (other.position == row)}">'
            f"{_number(similarity)}</td>"
            for column, (other, shade, similarity) in enumerate(
                zip(reference, shades[row], similarities[row], strict=True)
            )
        ]
        body.append(f"<tr>{_heading(token, 'row', has_weights)}{''.join(cells)}</tr>\n")
    return (
        "<details open><summary>All similarities</summary>"
        "<p>Cosine similarities of the tokens of the candidate (rows) and of the reference (columns), not rescaled. "
        "A frame marks the best match of each row: their weighted mean is the precision. An underline marks the best "
        "of each column: their weighted mean is the recall. Tokens in <i>italics</i> weigh nothing, but may be "
        "matches.</p>"
        '<div class="wide" role="region" aria-label="All similarities" tabindex="0"><table class="matrix"><thead><tr>'
        f"<td></td>{''.join(_heading(token, 'col', has_weights) for token in reference)}</tr></thead>\n"
        f"<tbody>{''.join(body)}</tbody></table></div></details>"
    )


def _list(name: str, other: str, matches: Sequence[TokenMatch], has_weights: bool) -> str:
    """Return a table of the tokens of one text, each with its best match."""
    rows = "".join(
        f'<tr>{_heading(match, "row", has_weights)}<td dir="auto">{escape(match.other)}</td>'
        f"<td>{_number(match.similarity)}</td></tr>\n"
        for match in matches
    )
    return (
        f'<table><thead><tr><th scope="col">{name.capitalize()} token</th><th scope="col">Best {other} token</th>'
        f'<th scope="col">Similarity</th></tr></thead>\n<tbody>{rows}</tbody></table>'
    )


def _heading(match: TokenMatch, scope: str, has_weights: bool) -> str:
    kind = "" if match.weight else ' class="zero"'
    return f'<th scope="{scope}"{kind} dir="auto">{_named(match, has_weights)}</th>'


_PAGE_STYLE = """\
:root { color-scheme: light dark; --ground: #fff; --ink: #1f2937; --soft: #5b6472; }
@media (prefers-color-scheme: dark) { :root { --ground: #14161a; --ink: #e5e7eb; --soft: #9ca3af; } }
body { margin: 0 auto; padding: 1rem; max-width: 64rem; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4rem; margin: 0 0 .5rem; }
p { margin: .25rem 0; overflow-wrap: anywhere; }
.soft { color: var(--soft); font-size: .85rem; }
.text { min-width: 10rem; }
.best { font-weight: 700; }
"""


def _references(matches: TokenMatches) -> str:
    """Return the reference, or a table of several with their scores."""
    if len(matches.references) == 1:
        return f"<p>Reference: <bdi>{escape(matches.references[0])}</bdi></p>"
    best = matches.best_reference
    is_best = ' class="best"'
    rows = "".join(
        f"<tr{is_best if number == best else ''}><td>{number + 1}</td>"
        + "".join(f"<td>{_number(value)}</td>" for value in similarity.score)
        + f'<td class="text" dir="auto">{escape(reference)}</td></tr>'
        for number, (similarity, reference) in enumerate(zip(matches.similarities, matches.references, strict=True))
    )
    return (
        f"<p>{_best_of_each(matches)} {shown_reference(matches)}</p>"
        '<div class="match"><div class="wide"><table><thead><tr><th></th><th>P</th><th>R</th><th>F</th>'
        f"<th>Reference</th></tr></thead><tbody>{rows}</tbody></table></div></div>"
    )


SHADES = (231, 195, 153, 117, 75, 33, 26, 19)
"""Colours of a terminal's palette of 256 for shades from the lightest to the darkest: white to dark blue."""

NUM_LIGHT = 6
"""The number of shades on which letters are black."""

MAX_TOKEN = 20
"""The most columns of a token; longer ones are cut."""

MIN_TOKEN = 6

BAR = 5
"""The longest bar."""

_GAP, _BETWEEN = "  ", "    "
_FAINT, _RESET = "\x1b[2m", "\x1b[0m"


def score_line(score: PRF[float] | TokenMatches) -> str:
    """Return P, R and F as a line."""
    return f"P {score.P:.3f}   R {score.R:.3f}   F {score.F:.3f}"


def shown_reference(matches: TokenMatches) -> str:
    """Return a sentence that names the one of several references whose matches are shown."""
    number, count = matches.best_reference + 1, len(matches.references)
    return f"The matches are those of reference {number} of {count}, which has the best F."


def _best_of_each(matches: TokenMatches) -> str:
    """Return a sentence with the scores of a candidate that has several references."""
    return f"P {matches.P:.3f}, R {matches.R:.3f}, F {matches.F:.3f}: each is the best over the references."


def match_text(
    found: TokenSimilarity, heading: str = "", *, width: int = 80, encoding: str = "utf-8", colour: bool = False
) -> str:
    """Return a picture of the matches as lines, the last without an end.

    First comes a heading; then, with colour, both texts, each token shaded by the similarity of its best match; then a
    table of the tokens of each text, the two side by side if there is room: token, best match, similarity, a bar of the
    length of its shade, and with idf the weight. Special tokens have no row; if they are best matches, a line
    names them.

    Args:
        found: the matches.
        heading: one line or several; "" for P, R and F of the pair.
        width: the most columns of a line, at least 40.
        encoding: the encoding of the output; characters that it lacks are escaped.
        colour: whether to use escape sequences for 256 colours.
    """
    canvas = _Canvas(max(width, 40), encoding)
    texts = {
        name: [match for match in matches if not match.is_special]
        for name, matches in (("candidate", found.candidate_matches), ("reference", found.reference_matches))
    }
    lines = [heading or score_line(found.score), *found.remarks, ""]
    if colour:
        for name, matches in texts.items():
            lines += [f"{_FAINT}{name}{_RESET}", *_shaded(matches, canvas), ""]
    tables = [_table(name, matches, found, canvas) for name, matches in texts.items()]
    lines += _side_by_side(tables, canvas)
    special = {match.other for matches in texts.values() for match in matches if match.other_is_special}
    if special:
        names = canvas.written(" and ".join(sorted(special)))
        lines += ["", f"The model adds {names}: of no weight, but possibly a best match."]
    return "\n".join(lines)


class _Canvas:
    """The width and the encoding of an output."""

    def __init__(self, width: int, encoding: str) -> None:
        self.width, self.encoding = width, encoding

    def written(self, text: str) -> str:
        """Return a text in which characters that the encoding lacks are escaped."""
        return text.encode(self.encoding, "backslashreplace").decode(self.encoding)

    def has(self, text: str) -> bool:
        """Return whether the encoding has all characters of a text."""
        return self.written(text) == text

    def fitted(self, text: str, size: int) -> str:
        """Return a text in exactly this many columns, cut or padded with spaces."""
        written = self.written(text)
        if text_width(written) > size:
            mark = "…" if self.has("…") else "..."
            while text_width(written) > size - len(mark):
                written = written[:-1]
            written += mark
        return written + " " * (size - text_width(written))

    def bar(self, share: float) -> str:
        """Return a bar of a length from 0 to `BAR`."""
        return ("█" if self.has("█") else "#") * round(share * BAR)


def _table(name: str, matches: Sequence[TokenMatch], found: TokenSimilarity, canvas: _Canvas) -> list[str]:
    """Return the tokens of one text, one per line, all lines of equal width."""
    numbers = ["similarity".ljust(BAR + 7)] + [
        f"{match.similarity:6.3f} {canvas.bar(match.shade):{BAR}}" for match in matches
    ]
    if found.has_weights:
        weights = ["weight", *(f"{match.weight:6.2f}" for match in matches)]
        numbers = [_GAP.join(pair) for pair in zip(numbers, weights, strict=True)]
    tokens = [name, *(match.text for match in matches)]
    others = ["best match", *(match.other for match in matches)]
    room = (canvas.width - len(numbers[0]) - 2 * len(_GAP)) // 2
    sizes = [
        min(max(text_width(canvas.written(cell)) for cell in cells), MAX_TOKEN, max(room, MIN_TOKEN))
        for cells in (tokens, others)
    ]
    return [
        _GAP.join((canvas.fitted(token, sizes[0]), canvas.fitted(other, sizes[1]), number))
        for token, other, number in zip(tokens, others, numbers, strict=True)
    ]


def _side_by_side(tables: Sequence[Sequence[str]], canvas: _Canvas) -> Iterator[str]:
    """Yield the lines of two tables, side by side if there is room, else one below the other."""
    left, right = tables
    if text_width(left[0]) + len(_BETWEEN) + text_width(right[0]) > canvas.width:
        yield from (line.rstrip() for line in (*left, "", *right))
        return
    nothing = " " * text_width(left[0])
    for first, second in zip_longest(left, right, fillvalue=None):
        yield f"{first or nothing}{_BETWEEN}{second or ''}".rstrip()


def _shaded(matches: Sequence[TokenMatch], canvas: _Canvas) -> Iterator[str]:
    """Yield lines of a text's tokens, each on a background as dark as its shade."""
    line, used = "", 0
    for match in matches:
        text = f" {canvas.fitted(match.text, min(text_width(canvas.written(match.text)), MAX_TOKEN))} "
        if used and used + 1 + text_width(text) > canvas.width:
            yield line
            line, used = "", 0
        place = min(int(match.shade * len(SHADES)), len(SHADES) - 1)
        ink = 16 if place < NUM_LIGHT else 231
        style = "\x1b[2;3m" if match.weight == 0 else f"\x1b[38;5;{ink};48;5;{SHADES[place]}m"
        line += f"{' ' if used else ''}{style}{text}{_RESET}"
        used += text_width(text) + bool(used)
    yield line
