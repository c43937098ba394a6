"""`bertscore-onnx show`: shows which tokens of two texts match, on the terminal or in a file."""

import os
import sys
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated

import typer

from bertscore_onnx.cli.inputs import lines_of
from bertscore_onnx.cli.options import check_effects, shared_options
from bertscore_onnx.cli.outputs import check_destination
from bertscore_onnx.cli.terminal import echo, has_colour, print_coloured, print_table, terminal_width

if TYPE_CHECKING:
    from bertscore_onnx.scorer import BERTScorer
    from bertscore_onnx.settings import ScorerSettings
    from bertscore_onnx.similarity import TokenSimilarity


DEFAULT_WIDTH = 80
"""Width of a line without a terminal."""


@shared_options(without=("all_layers", "idf", "batch_size"))
def show(
    cand: Annotated[list[str], typer.Option("-c", "--cand", metavar="TEXT", help="The candidate: the text itself.")],
    ref: Annotated[
        list[str],
        typer.Option("-r", "--ref", metavar="TEXT...", help="The reference; of several, the best one is shown."),
    ],
    *,
    settings: "ScorerSettings",
    idf_counts: str | None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            "-f",
            "--file",
            metavar="FILE",
            help="Write a page (.html), or a drawing (.svg or .png; needs the extra plot).",
        ),
    ] = None,
    all_layers: Annotated[
        bool, typer.Option("--all-layers", help="Use a bundle of all layers, and show the layer of -l.")
    ] = False,
    idf_sents: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Compute idf weights from the sentences of this file, one per line."),
    ] = None,
) -> None:
    """Show which tokens of a candidate and a reference match.

    Prints P, R and F as `score` computes them, and each token with its best match in the other text, their similarity
    and, with idf, its weight. On a terminal the coloured texts come first, unless NO_COLOR is set.
    """
    candidate = _only(cand)
    kind = _kind(output)
    check_effects(("--idf-sents", idf_sents is not None and idf_counts is not None, "with --idf-counts; leave out one"))
    if kind in (".svg", ".png"):
        from bertscore_onnx.similarity.drawing import check_matplotlib

        check_matplotlib()
    check_destination(output, [idf_sents, idf_counts])
    layer = settings["num_layers"]
    if all_layers:
        settings["all_layers"], settings["num_layers"] = True, None
    if idf_sents is not None:
        settings["idf"], settings["idf_sents"] = True, lines_of(idf_sents, "references, one per line")
    for text in (candidate, *ref):
        if os.path.isfile(text):
            echo(f"Note: {text} is shown as a text. To score files, use `bertscore-onnx score`.")

    from bertscore_onnx.scorer import BERTScorer
    from bertscore_onnx.similarity import TokenNames, token_similarities

    with BERTScorer(**settings) as scorer:
        layer = layer if all_layers else scorer.num_layers
        matches = token_similarities(scorer, TokenNames(scorer.bundle), candidate, ref, layer=layer)
        if matches[0].num_truncated:
            echo(
                f"Warning: A text is longer than {scorer.max_length} tokens, and was truncated. --long-text window "
                "includes the rest."
            )
        if output is None:
            _print(matches, ref, scorer, layer)
        else:
            _write(output, kind, matches, candidate, ref, scorer)


def _only(candidates: list[str]) -> str:
    if len(candidates) > 1:
        raise typer.BadParameter(
            f"there are {len(candidates)} candidates, {', '.join(map(repr, candidates))}; expected one. Put a text of "
            "several words in quotes.",
            param_hint="--cand",
        )
    return candidates[0]


def _kind(output: str | None) -> str:
    """Return the suffix of the output file, "" without one."""
    if output is None:
        return ""
    kind = PurePath(output).suffix.lower()
    if kind not in (".html", ".svg", ".png"):
        raise typer.BadParameter(
            f"Cannot write {output}; expected a name that ends in .html, .svg or .png.", param_hint="--output"
        )
    return kind


def _print(matches: "list[TokenSimilarity]", references: list[str], scorer: "BERTScorer", layer: int | None) -> None:
    from bertscore_onnx.similarity import best_match
    from bertscore_onnx.similarity.render import match_text

    best, width = best_match(matches), terminal_width() or DEFAULT_WIDTH
    if len(matches) > 1:
        print(f"Reference {best + 1} of {len(matches)} is the best match.\n")
        print_table(_score_rows(matches, references), width=width)
        print()
    encoding, colour = sys.stdout.encoding or "utf-8", has_colour(sys.stdout)
    print_coloured(match_text(matches[best], width=width, encoding=encoding, colour=colour))
    signature = scorer.signature
    print(f"\n{signature.model}, layer {layer}; idf: {signature.idf}; rescale: {signature.rescale}")


def _score_rows(matches: "list[TokenSimilarity]", references: list[str]) -> list[list[str]]:
    """Return the scores of each reference, and the best P, R and F, which are the candidate's."""
    scores = [tuple(match.score) for match in matches]
    names = [str(number) for number in range(1, len(matches) + 1)]
    rows = zip([*names, "best"], [*scores, map(max, zip(*scores, strict=True))], [*references, ""], strict=True)
    return [
        ["", "P", "R", "F", "reference"],
        *([name, *(f"{value:.3f}" for value in values), " ".join(text.split())] for name, values, text in rows),
    ]


def _write(
    output: str,
    kind: str,
    matches: "list[TokenSimilarity]",
    candidate: str,
    references: list[str],
    scorer: "BERTScorer",
) -> None:
    from bertscore_onnx.files import write_whole
    from bertscore_onnx.similarity import best_match

    if kind == ".html":
        from bertscore_onnx.similarity.render import match_page

        write_whole(output, match_page(matches, candidate, references, scorer.hash))
    else:
        from bertscore_onnx.similarity.drawing import save_drawing

        save_drawing(matches[best_match(matches)], output)
