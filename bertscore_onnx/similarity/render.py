"""Pictures of the token matches of two texts.

`match_html` draws them as HTML, `TokenMatches.to_html` as a page, and `match_text` as lines for a
terminal.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import zip_longest

from bertscore_onnx.scores import PRF, Signature
from bertscore_onnx.similarity.matches import TokenMatch, TokenSimilarity
from bertscore_onnx.tables.aligned import text_width


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class TokenMatches:
    """The tokens of a candidate, matched with those of each reference.

    `print` shows those of the best reference as `bertscore-onnx show` does, and a notebook shows
    them as HTML. `P`, `R` and `F` are the scores of the candidate: with several references each is
    the best over these, independently, as `BERTScorer.score` returns them. The scores with one
    reference are those of its `TokenSimilarity`.
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
        """The F of the candidate, `F` for short, with the beta of the matching."""
        return self.F

    @property
    def best_reference(self) -> int:
        """The position of the reference with the best F.

        Of equal ones it is the first, as in `Score.best_reference`.
        """
        scores = [similarity.score.F for similarity in self.similarities]
        return max(range(len(scores)), key=scores.__getitem__)

    @property
    def best(self) -> TokenSimilarity:
        """The matches with that reference."""
        return self.similarities[self.best_reference]

    def to_html(self) -> str:
        """Return a whole page with the matrix of similarities, without script or external files."""
        title = f"Which tokens match: F {self.F:.3f}"
        remarks = [f"<p>{remark}</p>" for remark in self.best.remarks]
        elements = [
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{title}</title>",
            f"<style>\n{_PAGE_STYLE}{MATCH_STYLE}</style></head>",
            f"<body><h1>{title}</h1>",
            f"<p>Candidate: <bdi>{escape(self.candidate)}</bdi></p>",
            _references(self),
            *remarks,
            match_html(self.best, with_matrix=True),
            f'<p class="soft">{escape(str(self.signature))}</p></body></html>\n',
        ]
        return "\n".join(elements)

    def __str__(self) -> str:
        """Return the scores and the matches of the best reference as lines."""
        heading = score_line(self)
        if len(self.references) != 1:
            heading += f"\n\n{shown_reference(self)}"
        return match_text(self.best, heading)

    def __repr__(self) -> str:
        """Return the scores of the candidate."""
        return f"TokenMatches(P={self.P:.3f}, R={self.R:.3f}, F={self.F:.3f})"

    def _repr_html_(self) -> str:
        """Return the matches of the best reference as a notebook shows them."""
        scores = f"F {self.F:.3f}."
        if len(self.references) > 1:
            scores = f"{_best_of_each(self)} {shown_reference(self)}"
        sentences = " ".join([scores, *self.best.remarks])
        return (
            f"<style>{MATCH_STYLE}</style>{match_html(self.best)}"
            f"<p>{sentences}</p><p>{self.signature._repr_html_()}</p>"
        )


LOW = 1 / 3
"""A shade below which a token has a dotted line instead of a solid one.

Eyes and paper without colour need it.
"""

STEPS = 20
"""Shades of the HTML.

They are classes, since the content policies of many pages forbid elements with styles.
"""

MATCH_STYLE = """\
.match { --shade: 59 130 246; line-height: 1.6; margin: .75em 0; }
.match .side, .match p { color: var(--soft, inherit); font-size: .85em; margin: 0; }
.match .tokens { margin: .2em 0 .6em; display: flex; flex-wrap: wrap; gap: .3em; }
.match span, .match .matrix td { background: rgb(var(--shade) / calc(var(--of, 0) * .5)); \
border-radius: .25em; }
.match span { padding: 0 .3em; border-bottom: 2px solid rgb(var(--shade)); \
overflow-wrap: anywhere; }
.match .low { border-bottom-style: dotted; }
.match .zero { border-bottom-color: transparent; background: none; color: var(--soft, inherit); \
font-style: italic; }
.match small { margin-inline-start: .3em; font-size: .7em; opacity: .85; }
.match details { margin-top: 1em; }
.match summary { cursor: pointer; font-weight: 600; }
.match .wide { overflow: auto; max-height: 85vh; margin-top: .5em; background:
  linear-gradient(to left, var(--ground, Canvas) 40%, \
transparent) right / 3rem 100% no-repeat local,
  linear-gradient(to left, rgb(0 0 0 / .3), transparent) right / 1rem 100% no-repeat scroll; }
.match table { border-collapse: separate; border-spacing: 2px; font-size: .85em; \
font-variant-numeric: tabular-nums; }
.match th { padding: .2em .4em; white-space: nowrap; text-align: start; \
background: var(--ground, Canvas); }
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

Letters have the colour of the text around them. A page may set `--soft`, the colour of notes, and
`--ground`, that of the page where the matrix stands.
"""

MAX_CELLS = 40_000
"""The most cells of the matrix; a page leaves out a larger one, for which browsers take seconds."""


def match_html(found: TokenSimilarity, *, with_matrix: bool = False) -> str:
    """Return both texts as a fragment of HTML.

    It has no script, style sheet or external files. Each token of the texts is shaded by the
    similarity of its best match, as in `TokenSimilarity.shades`, and names this match in its
    `title`. If weights differ, each token has its weight beside it; weight 0 is in italics.

    Args:
        found: the matches.
        with_matrix: whether to explain the shades, and add all similarities and a list of the best
            matches, in which special tokens have a place too.
    """
    has_weights = found.has_weights
    candidate = found.candidate_matches
    reference = found.reference_matches
    elements = [
        f'<div class="side">Candidate, precision {found.score.P:.3f}</div>',
        f'<div class="tokens" dir="auto">{_tokens(candidate, has_weights)}</div>',
        f'<div class="side">Reference, recall {found.score.R:.3f}</div>',
        f'<div class="tokens" dir="auto">{_tokens(reference, has_weights)}</div>',
    ]
    if with_matrix:
        about_weights = " The number beside a token is its weight." if has_weights else ""
        elements += [
            "<p>The stronger the shade of a token, the closer its match in the other text; "
            "hover to see it. A dotted line marks those with the least close match."
            f"{about_weights}</p>",
            _matrix(found, candidate, reference),
            '<details><summary>The matches as a list</summary><div class="wide">',
            _list("candidate", "reference", candidate, has_weights),
            _list("reference", "candidate", reference, has_weights),
            "</div></details>",
        ]
    return f'<div class="match">{"".join(elements)}</div>'


def _tokens(matches: Sequence[TokenMatch], has_weights: bool) -> str:
    """Return the tokens of one text, without the special ones."""
    tokens = [_token(match, has_weights) for match in matches if not match.is_special]
    return " ".join(tokens) or "<i>no tokens</i>"


def _token(match: TokenMatch, has_weights: bool) -> str:
    if match.weight == 0:
        kind = "zero"
    elif match.shade < LOW:
        kind = f"{_shade(match.shade)} low"
    else:
        kind = _shade(match.shade)
    title = f"{match.text} → {match.other}: {_number(match.similarity)}"
    if has_weights:
        title += f", weight {match.weight:.2f}"
    return f'<span class="{kind}" title="{escape(title)}">{_named(match, has_weights)}</span>'


def _named(match: TokenMatch, has_weights: bool) -> str:
    """Return the text of a token, with its weight where weights differ."""
    if not has_weights:
        return escape(match.text)
    return f"{escape(match.text)}<small>{match.weight:.2f}</small>"


def _shade(shade: float) -> str:
    return f"s{round(shade * STEPS)}"


def _number(similarity: float) -> str:
    return f"{similarity:.3f}".replace("-", "\N{MINUS SIGN}")


def _matrix(
    tokens: TokenSimilarity,
    candidate: Sequence[TokenMatch],
    reference: Sequence[TokenMatch],
) -> str:
    """Return the table of all similarities."""
    rows, columns = tokens.similarity.shape
    if rows * columns > MAX_CELLS:
        return f"<p>The matrix of similarities is left out: it has {rows:,} × {columns:,}.</p>"
    similarities = tokens.similarity.tolist()
    shades = tokens.shades.tolist()
    has_weights = tokens.has_weights
    headings = "".join(_heading(token, "col", has_weights) for token in reference)
    body = ""
    for row, token in enumerate(candidate):
        cells = ""
        for column, other in enumerate(reference):
            # The style frames cells of class p, and underlines those of class r.
            kind = _shade(shades[row][column])
            if token.position == column:
                kind += " p"
            if other.position == row:
                kind += " r"
            cells += f'<td class="{kind}">{_number(similarities[row][column])}</td>'
        body += f"<tr>{_heading(token, 'row', has_weights)}{cells}</tr>\n"
    return (
        "<details open><summary>All similarities</summary>"
        "<p>Cosine similarities of the tokens of the candidate (rows) and of the reference "
        "(columns), not rescaled. A frame marks the best match of each row: their weighted mean is "
        "the precision. An underline marks the best of each column: their weighted mean is the "
        "recall. Tokens in <i>italics</i> weigh nothing, but may be matches.</p>"
        '<div class="wide" role="region" aria-label="All similarities" tabindex="0">'
        '<table class="matrix"><thead><tr>'
        f"<td></td>{headings}</tr></thead>\n"
        f"<tbody>{body}</tbody></table></div></details>"
    )


def _list(name: str, other: str, matches: Sequence[TokenMatch], has_weights: bool) -> str:
    """Return a table of the tokens of one text, each with its best match."""
    rows = ""
    for match in matches:
        rows += (
            f'<tr>{_heading(match, "row", has_weights)}<td dir="auto">{escape(match.other)}</td>'
            f"<td>{_number(match.similarity)}</td></tr>\n"
        )
    return (
        f'<table><thead><tr><th scope="col">{name.capitalize()} token</th>'
        f'<th scope="col">Best {other} token</th>'
        f'<th scope="col">Similarity</th></tr></thead>\n<tbody>{rows}</tbody></table>'
    )


def _heading(match: TokenMatch, scope: str, has_weights: bool) -> str:
    kind = "" if match.weight else ' class="zero"'
    return f'<th scope="{scope}"{kind} dir="auto">{_named(match, has_weights)}</th>'


_PAGE_STYLE = """\
:root { color-scheme: light dark; --ground: #fff; --ink: #1f2937; --soft: #5b6472; }
@media (prefers-color-scheme: dark) { :root { --ground: #14161a; --ink: #e5e7eb; --soft: #9ca3af; \
} }
body { margin: 0 auto; padding: 1rem; max-width: 64rem; background: var(--ground); \
color: var(--ink);
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
    rows = ""
    for number, similarity in enumerate(matches.similarities):
        kind = ' class="best"' if number == best else ""
        scores = "".join(f"<td>{_number(value)}</td>" for value in similarity.score)
        reference = escape(matches.references[number])
        rows += f"<tr{kind}><td>{number + 1}</td>{scores}"
        rows += f'<td class="text" dir="auto">{reference}</td></tr>'
    return (
        f"<p>{_best_of_each(matches)} {shown_reference(matches)}</p>"
        '<div class="match"><div class="wide"><table><thead><tr>'
        "<th></th><th>P</th><th>R</th><th>F</th>"
        f"<th>Reference</th></tr></thead><tbody>{rows}</tbody></table></div></div>"
    )


SHADES = (231, 195, 153, 117, 75, 33, 26, 19)
"""Colours of a terminal's palette of 256, for shades from the lightest to the darkest.

They go from white to dark blue.
"""

NUM_LIGHT = 6
"""The number of shades on which letters are black."""

MAX_TOKEN = 20
"""The most columns of a token; longer ones are cut."""

MIN_TOKEN = 6

BAR = 5
"""The longest bar."""

_GAP = "  "
_BETWEEN = "    "
_FAINT = "\x1b[2m"
_RESET = "\x1b[0m"


def score_line(score: PRF[float] | TokenMatches) -> str:
    """Return P, R and F as a line."""
    return f"P {score.P:.3f}   R {score.R:.3f}   F {score.F:.3f}"


def shown_reference(matches: TokenMatches) -> str:
    """Return a sentence that names the reference whose matches are shown."""
    number = matches.best_reference + 1
    count = len(matches.references)
    return f"The matches are those of reference {number} of {count}, which has the best F."


def _best_of_each(matches: TokenMatches) -> str:
    """Return a sentence with the best scores over several references."""
    scores = f"P {matches.P:.3f}, R {matches.R:.3f}, F {matches.F:.3f}"
    return f"{scores}: each is the best over the references."


def match_text(
    found: TokenSimilarity,
    heading: str = "",
    *,
    width: int = 80,
    encoding: str = "utf-8",
    colour: bool = False,
) -> str:
    """Return a picture of the matches as lines, the last without an end.

    First comes a heading; then, with colour, both texts, each token shaded by the similarity of its
    best match; then a table of the tokens of each text, the two side by side if there is room:
    token, best match, similarity, a bar of the length of its shade, and with idf the weight.
    Special tokens have no row; if they are best matches, a line names them.

    Args:
        found: the matches.
        heading: one line or several; "" for P, R and F of the pair.
        width: the most columns of a line, at least 40.
        encoding: the encoding of the output; characters that it lacks are escaped.
        colour: whether to use escape sequences for 256 colours.
    """
    canvas = _Canvas(max(width, 40), encoding)
    candidate = [match for match in found.candidate_matches if not match.is_special]
    reference = [match for match in found.reference_matches if not match.is_special]
    lines = [heading or score_line(found.score), *found.remarks, ""]
    if colour:
        lines += [f"{_FAINT}candidate{_RESET}", *_shaded(candidate, canvas), ""]
        lines += [f"{_FAINT}reference{_RESET}", *_shaded(reference, canvas), ""]
    left = _table("candidate", candidate, found, canvas)
    right = _table("reference", reference, found, canvas)
    lines += _side_by_side(left, right, canvas)
    special = {match.other for match in candidate + reference if match.other_is_special}
    if special:
        names = canvas.written(" and ".join(sorted(special)))
        lines += ["", f"The model adds {names}: of no weight, but possibly a best match."]
    return "\n".join(lines)


class _Canvas:
    """The width and the encoding of an output."""

    def __init__(self, width: int, encoding: str) -> None:
        self.width = width
        self.encoding = encoding

    def written(self, text: str) -> str:
        """Return a text in which characters that the encoding lacks are escaped."""
        return text.encode(self.encoding, "backslashreplace").decode(self.encoding)

    def has(self, text: str) -> bool:
        """Return whether the encoding has all characters of a text."""
        return self.written(text) == text

    def widest(self, texts: Sequence[str]) -> int:
        """Return the columns that the widest of some texts takes."""
        return max(text_width(self.written(text)) for text in texts)

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
        block = "█" if self.has("█") else "#"
        return block * round(share * BAR)


def _table(
    name: str,
    matches: Sequence[TokenMatch],
    found: TokenSimilarity,
    canvas: _Canvas,
) -> list[str]:
    """Return the tokens of one text, one per line, all lines of equal width."""
    tokens = [name]
    partners = ["best match"]
    numbers = ["similarity".ljust(BAR + 7)]
    if found.has_weights:
        numbers[0] += f"{_GAP}weight"
    for match in matches:
        tokens.append(match.text)
        partners.append(match.other)
        number = f"{match.similarity:6.3f} {canvas.bar(match.shade):{BAR}}"
        if found.has_weights:
            number += f"{_GAP}{match.weight:6.2f}"
        numbers.append(number)

    room = max((canvas.width - len(numbers[0]) - 2 * len(_GAP)) // 2, MIN_TOKEN)
    size = min(canvas.widest(tokens), MAX_TOKEN, room)
    other_size = min(canvas.widest(partners), MAX_TOKEN, room)
    lines = []
    for token, other, number in zip(tokens, partners, numbers, strict=True):
        cells = (canvas.fitted(token, size), canvas.fitted(other, other_size), number)
        lines.append(_GAP.join(cells))
    return lines


def _side_by_side(left: Sequence[str], right: Sequence[str], canvas: _Canvas) -> Iterator[str]:
    """Yield the lines of two tables, side by side or, without room, one below the other."""
    if text_width(left[0]) + len(_BETWEEN) + text_width(right[0]) > canvas.width:
        for line in (*left, "", *right):
            yield line.rstrip()
        return
    nothing = " " * text_width(left[0])
    for first, second in zip_longest(left, right, fillvalue=None):
        yield f"{first or nothing}{_BETWEEN}{second or ''}".rstrip()


def _shaded(matches: Sequence[TokenMatch], canvas: _Canvas) -> Iterator[str]:
    """Yield lines of a text's tokens, on backgrounds as dark as shades."""
    line = ""
    used = 0
    for match in matches:
        size = min(canvas.widest([match.text]), MAX_TOKEN)
        text = f" {canvas.fitted(match.text, size)} "
        if used and used + 1 + text_width(text) > canvas.width:
            yield line
            line = ""
            used = 0
        if used:
            line += " "
            used += 1
        line += f"{_style(match)}{text}{_RESET}"
        used += text_width(text)
    yield line


def _style(match: TokenMatch) -> str:
    """Return the escape sequence for a token; without weight it is faint and slanted."""
    if match.weight == 0:
        return "\x1b[2;3m"
    place = min(int(match.shade * len(SHADES)), len(SHADES) - 1)
    ink = 16 if place < NUM_LIGHT else 231
    return f"\x1b[38;5;{ink};48;5;{SHADES[place]}m"
