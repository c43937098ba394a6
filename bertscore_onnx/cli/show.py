"""`bertscore-onnx show`: shows which tokens of two texts match.

It shows them on the terminal or in a file.
"""

import os
import sys
from contextlib import ExitStack
from heapq import nsmallest
from itertools import islice
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated

import typer

from bertscore_onnx.cli.inputs import InputFile, choose_inputs
from bertscore_onnx.cli.options import check_contexts, check_effects, shared_options
from bertscore_onnx.cli.outputs import check_destination
from bertscore_onnx.cli.pairs import TextPair, TextPairs, open_pairs
from bertscore_onnx.cli.specs import columns_of, columns_option
from bertscore_onnx.cli.terminal import echo, has_colour, print_coloured, print_table
from bertscore_onnx.errors import InputError
from bertscore_onnx.files import write_whole
from bertscore_onnx.tables.aligned import terminal_width
from bertscore_onnx.tables.roles import check_uses
from bertscore_onnx.tables.sources import lines_of

if TYPE_CHECKING:
    from bertscore_onnx.scorer import BERTScorer
    from bertscore_onnx.settings import ScorerSettings
    from bertscore_onnx.similarity import TokenMatches


_ROLES = ("candidate", "reference", "segment")


@shared_options(without=("all_layers", "idf", "batch_size"))
def show(
    cand: Annotated[
        list[str],
        typer.Option(
            "-c",
            "--cand",
            metavar="TEXT",
            help="The candidate; with --line or --worst a file of them.",
        ),
    ],
    ref: Annotated[
        list[str] | None,
        typer.Option(
            "-r",
            "--ref",
            metavar="TEXT...",
            help=(
                "The reference; of several, the best one is shown. With --line or --worst files "
                "of them."
            ),
        ),
    ] = None,
    *,
    settings: "ScorerSettings",
    idf_counts: str | None,
    line: Annotated[
        int | None,
        typer.Option(
            "--line", min=1, metavar="N", help="Show the pair in line, or row, N of the files."
        ),
    ] = None,
    worst: Annotated[
        int | None,
        typer.Option(
            "--worst",
            min=1,
            metavar="N",
            help="Score the files, and show the N pairs with the lowest F.",
        ),
    ] = None,
    columns: Annotated[list[str] | None, columns_option(*_ROLES)] = None,
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
    idf_sents: Annotated[
        str | None,
        typer.Option(
            "--idf-sents",
            metavar="FILE",
            help="Compute idf weights from the sentences of this file, one per line.",
        ),
    ] = None,
) -> None:
    """Show which tokens of a candidate and a reference match.

    Prints P, R and F as `score` computes them, and each token with its best match in the other
    text, their similarity and, with idf, its weight. With several references the matches are those
    of the one with the best F, and each has its scores. On a terminal the coloured texts come
    first, unless NO_COLOR is set.

    The pair is given as two texts, or found in files that `score` reads: by its line, or as one of
    those with the lowest F.

    Examples:
        # Show the matches of two texts
        bertscore-onnx show --lang en -c "It is cold today." -r "The weather is cold."
        # Draw them on a page
        bertscore-onnx show --lang en -c "It is cold." -r "It freezes." -o match.html
        # Show the pairs of files that score lowest
        bertscore-onnx show -m BUNDLE -c candidates.txt -r references.txt --worst 5
        # Weigh tokens by how rare they are in a file of references
        bertscore-onnx show -m BUNDLE -c "A cat" -r "A dog" --idf-sents ref.txt
    """
    kind = _kind(output)
    check_contexts(settings, "`show` takes no contexts")
    of_files = line is not None or worst is not None
    check_effects(
        (
            "--idf-sents",
            idf_sents is not None and idf_counts is not None,
            "with --idf-counts; leave out one",
        ),
        ("--worst", line is not None and worst is not None, "with --line; leave out one"),
        (
            "--output",
            output is not None and (worst or 1) > 1,
            "with several pairs; use --line, or --worst 1",
        ),
    )
    named = columns_of(columns, *_ROLES)
    from bertscore_onnx.similarity.drawing import check_matplotlib, save_drawing

    if kind in (".svg", ".png"):
        check_matplotlib()
    inputs: list[InputFile] = []
    if of_files:
        inputs = choose_inputs(cand, ref or (), columns=named)
    else:
        check_uses(named, ["two texts"], ())
    check_destination(output, [idf_sents, idf_counts, *(file.name for file in inputs)])
    if idf_sents is not None:
        settings["idf"] = True
        settings["idf_sents"] = lines_of(idf_sents, "references, one per line")

    with ExitStack() as stack:
        if not of_files:
            found = [(0, _given_pair(cand, ref))]
        else:
            pairs = stack.enter_context(open_pairs(inputs, "texts"))
        if line is not None:
            found = [_pair_at(pairs, line, inputs[0])]
        from bertscore_onnx.scorer import BERTScorer

        scorer = stack.enter_context(BERTScorer(**settings))
        if worst is not None:
            scored = (
                (score.F, row, pairs.take()[0])
                for row, score in enumerate(scorer.stream(pairs, verbose=None), 1)
            )
            # of equal ones the first
            found = [(row, pair) for _, row, pair in nsmallest(worst, scored)]
        for place, (number, (candidate, references)) in enumerate(found):
            if of_files and output is None:
                if place:
                    print()
                print(f"{inputs[0].unit.capitalize()} {number} of {inputs[0].name}")
            matches = scorer.match(candidate, references)
            if output is None:
                _print(matches, scorer)
            elif kind == ".html":
                write_whole(output, matches.to_html())
            else:
                save_drawing(matches.best, output)


def _given_pair(candidates: list[str], references: list[str] | None) -> TextPair:
    """Return the texts that the options give."""
    if not references:
        raise typer.BadParameter("give at least one reference.", param_hint="--ref")
    if len(candidates) > 1:
        raise typer.BadParameter(
            f"there are {len(candidates)} candidates, {', '.join(map(repr, candidates))}; "
            "expected one. Put a text of several words in quotes.",
            param_hint="--cand",
        )
    [candidate] = candidates
    for text in (candidate, *references):
        if os.path.isfile(text):
            echo(
                f"Note: {text} is shown as a text. To show the pairs of files, add --line N or "
                "--worst N."
            )
    return candidate, references


def _pair_at(pairs: TextPairs, line: int, file: InputFile) -> tuple[int, TextPair]:
    number = 0
    for number, _ in enumerate(islice(pairs, line), 1):
        pair, _ = pairs.take()
        if number == line:
            return line, pair
    raise InputError(
        f"{file.name} has {file.counted(number)}, and {file.unit} {line} was asked for."
    )


def _kind(output: str | None) -> str:
    """Return the suffix of the output file, "" without one."""
    if output is None:
        return ""
    kind = PurePath(output).suffix.lower()
    if kind not in (".html", ".svg", ".png"):
        raise typer.BadParameter(
            f"Cannot write {output}; expected a name that ends in .html, .svg or .png.",
            param_hint="--output",
        )
    return kind


def _print(matches: "TokenMatches", scorer: "BERTScorer") -> None:
    from bertscore_onnx.similarity.render import match_text, score_line, shown_reference

    width = terminal_width()
    heading = score_line(matches)
    if len(matches.references) > 1:
        print(f"{heading}\n")
        print_table(_score_rows(matches), width=width)
        print()
        heading = shown_reference(matches)
    encoding = sys.stdout.encoding or "utf-8"
    colour = has_colour(sys.stdout)
    print_coloured(match_text(matches.best, heading, width=width, encoding=encoding, colour=colour))
    signature = scorer.signature
    matching = "" if signature.matching is None else f"; matching: {signature.matching}"
    print(
        f"\n{signature.model}, layer {signature.layer}; idf: {signature.idf}; rescale: "
        f"{signature.rescale}{matching}"
    )


def _score_rows(matches: "TokenMatches") -> list[list[str]]:
    """Return the scores of each reference."""
    rows = zip(matches.similarities, matches.references, strict=True)
    return [
        ["", "P", "R", "F", "reference"],
        *(
            [str(number), *(f"{value:.3f}" for value in found.score), " ".join(text.split())]
            for number, (found, text) in enumerate(rows, 1)
        ),
    ]
