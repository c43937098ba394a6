"""Heat maps of the similarities of two texts' tokens.

They are like those of bert-score's `plot_example`.
"""

import io
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bertscore_onnx.arrays import Float32Array
from bertscore_onnx.errors import InputError, needs_extra
from bertscore_onnx.files import StrPath, write_whole
from bertscore_onnx.matching.rescaling import rescale
from bertscore_onnx.similarity.matches import TokenSimilarity

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_TOKENS = 1000
"""The most tokens of either side: matplotlib draws at most 65,536 pixels, and nobody can read
more.
"""

MAX_NUMBERED = 60
"""The most tokens of either side for which cells are large enough for a number."""

_STYLE = {"svg.fonttype": "none", "svg.hashsalt": "bertscore-onnx"}
"""Text in an SVG stays text, in the reader's fonts; and equal drawings are equal files."""


def check_matplotlib() -> None:
    """Raise a MissingExtraError if matplotlib is not installed."""
    with needs_extra("plot", "Drawing"):
        import matplotlib as mpl  # noqa: F401


def plot_matches(matches: TokenSimilarity, file: StrPath = "") -> None:
    """Draw similarities, and show the drawing if there is a screen.

    Args:
        matches: the similarities.
        file: the file to save the drawing to, if any; errors and warnings are as of `save_drawing`.
    """
    check_matplotlib()
    import matplotlib.pyplot as plt

    figure = plt.figure()
    try:
        draw_matches(matches, figure)
        if file:
            _save(figure, file, stacklevel=3)
        if plt.get_backend().lower() != "agg":
            plt.show()
    finally:
        plt.close(figure)


def save_drawing(matches: TokenSimilarity, file: StrPath) -> None:
    """Draw similarities into a file.

    The file is replaced only when the drawing is complete.

    Args:
        matches: the similarities.
        file: its suffix is the format, one of matplotlib's; without a suffix it gets `.png`.

    Raises:
        MissingExtraError: matplotlib is not installed.
        InputError: the format is unknown, the file cannot be written, or a text has no token or
            more than `MAX_TOKENS`.

    Warns:
        UserWarning: no font has some of the characters.
    """
    check_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure()
    draw_matches(matches, figure)
    _save(figure, file, stacklevel=2)


def draw_matches(matches: TokenSimilarity, figure: "Figure") -> None:
    """Draw the similarities of all tokens except special ones.

    The figure is empty; its size is set. The best match of each row and each column is in bold. If
    scores are rescaled, so are similarities, by the baseline of F, as in bert-score's drawing. With
    idf each token has its weight beside it.
    """
    shown = matches.without_special_tokens()
    rows, columns = shown.similarity.shape
    if not (rows and columns):
        raise InputError("A drawing needs a token on both sides, and one of the texts has none.")
    if max(rows, columns) > MAX_TOKENS:
        raise InputError(
            f"A text has {max(rows, columns):,} tokens; a drawing has room for {MAX_TOKENS:,} a "
            "side."
        )
    is_numbered = max(rows, columns) <= MAX_NUMBERED
    similarity = shown.similarity
    title = "Similarity Matrix"
    if matches.baseline is not None:
        similarity = rescale(similarity, matches.baseline)
        title += " (after Rescaling)"

    cell = 0.7 if is_numbered else 0.2  # inches
    figure.set_size_inches(max(4, cell * columns + 2), max(3, cell * rows + 2))
    figure.set_layout_engine("constrained")
    axes: Any = figure.add_subplot()
    image = axes.imshow(similarity, cmap="Blues", vmin=0, vmax=1)
    figure.colorbar(image, shrink=min(0.85, 4 / (cell * rows)))
    font_size = 10 if is_numbered else 7
    labels: dict[str, Any] = {"fontsize": font_size, "parse_math": False}
    candidates = _labels(shown.candidate, shown.candidate_weights, shown.has_weights)
    references = _labels(shown.reference, shown.reference_weights, shown.has_weights)
    axes.set_xticks(
        range(columns), references, rotation=45, ha="right", rotation_mode="anchor", **labels
    )
    axes.set_yticks(range(rows), candidates, **labels)
    kind = "tokenized, with weights" if shown.has_weights else "tokenized"
    axes.set(xlabel=f"Reference ({kind})", ylabel=f"Candidate ({kind})")
    score = matches.score
    axes.set_title(f"{title}\nP {score.P:.3f}, R {score.R:.3f}, F {score.F:.3f}", fontsize=12)
    if is_numbered:
        _write_numbers(similarity, axes)


def _write_numbers(similarity: Float32Array, axes: Any) -> None:
    """Write each similarity into its cell."""
    best_of_rows = similarity.max(axis=1, keepdims=True)
    best_of_columns = similarity.max(axis=0)
    is_best = (similarity == best_of_rows) | (similarity == best_of_columns)
    for (row, column), value in np.ndenumerate(similarity):
        colour = "w" if value >= 0.6 else "k"
        weight = "bold" if is_best[row, column] else "normal"
        axes.text(
            column, row, f"{value:.3f}", ha="center", va="center", color=colour, weight=weight
        )


def _save(figure: "Figure", file: StrPath, stacklevel: int) -> None:
    import matplotlib as mpl

    path = Path(file)
    if not path.suffix:
        path = path.with_name(f"{path.name}.png")
    kind = path.suffix[1:].lower()
    formats = figure.canvas.get_supported_filetypes()
    if kind not in formats:
        raise InputError(
            f"{path.suffix} is no format of drawings. Name the file .svg or .png, or "
            f"{', '.join(formats)}."
        )
    # Equal drawings are equal files, so an SVG has no date.
    metadata = {"Date": None} if kind == "svg" else None
    content = io.BytesIO()
    with mpl.rc_context(_STYLE), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.savefig(content, format=kind, dpi=100, metadata=metadata)
    if kind != "svg" and any("missing from" in str(warning.message) for warning in caught):
        warnings.warn(
            "No installed font has some of the characters, which are boxes in the drawing. Save "
            "it as .svg, which a browser shows in its own fonts, or install a font such as Noto.",
            UserWarning,
            stacklevel=stacklevel + 1,
        )
    write_whole(path, content.getvalue())


def _labels(tokens: list[str], weights: Float32Array, has_weights: bool) -> list[str]:
    if not has_weights:
        return tokens
    labels = []
    for token, weight in zip(tokens, weights.tolist(), strict=True):
        labels.append(f"{token} · {weight:.2f}")
    return labels
