"""`bertscore-onnx show`: shows which tokens of two texts match, in the terminal or in a file."""

import os
import sys
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated

import typer

from bertscore_onnx.cli.options import (
    AllowFp32Baseline,
    BaselinePath,
    Device,
    IdfCounts,
    Lang,
    LongText,
    MaxLength,
    Model,
    NumLayers,
    NumThreads,
    PrecisionOf,
    RescaleWithBaseline,
    UseFastTokenizer,
    check_effects,
    check_model,
)
from bertscore_onnx.cli.terminal import tell

if TYPE_CHECKING:
    from bertscore_onnx.scorer import BERTScorer
    from bertscore_onnx.similarity import TokenSimilarity


DEFAULT_WIDTH = 80
"""Columns of a line where there is no terminal."""


def show(
    cand: Annotated[list[str], typer.Option("-c", "--cand", metavar="TEXT", help="The candidate: the text itself.")],
    ref: Annotated[
        list[str],
        typer.Option("-r", "--ref", metavar="TEXT...", help="The reference, or several, of which the best is shown."),
    ],
    model_type: Model = None,
    lang: Lang = None,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            "-f",
            "--file",
            metavar="FILE",
            help="Write a page (.html), or a drawing (.svg or .png, with the extra plot).",
        ),
    ] = None,
    num_layers: NumLayers = None,
    all_layers: Annotated[
        bool, typer.Option("--all-layers", help="Take a bundle that holds all layers, and show the one of -l.")
    ] = False,
    idf: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Weigh tokens by their inverse document frequency in this text, one a line."),
    ] = None,
    idf_counts: IdfCounts = None,
    rescale_with_baseline: RescaleWithBaseline = False,
    baseline_path: BaselinePath = None,
    allow_fp32_baseline: AllowFp32Baseline = False,
    device: Device = None,
    nthreads: NumThreads = None,
    precision: PrecisionOf = None,
    use_fast_tokenizer: UseFastTokenizer = False,
    long_text: LongText = "truncate",
    max_length: MaxLength = None,
) -> None:
    """Show which tokens of a candidate and a reference match.

    Prints P, R and F as `score` gives them, and each token with its best match in the other text, their similarity
    and, with idf, its weight. On a terminal the texts come in front, coloured, unless NO_COLOR is set.
    """
    candidate = _only(cand)
    kind = _kind(output)
    check_model(model_type, lang)
    check_effects(
        ("--idf", idf is not None and idf_counts is not None, "with --idf-counts; leave out one"),
        *(
            (option, given and not rescale_with_baseline, "without --rescale-with-baseline; give that too")
            for option, given in (
                ("--baseline-path", baseline_path is not None),
                ("--allow-fp32-baseline", allow_fp32_baseline),
            )
        ),
    )
    if kind in (".svg", ".png"):
        from bertscore_onnx.similarity.drawing import check_matplotlib

        check_matplotlib()
    from bertscore_onnx.cli.outputs import check_destination

    check_destination(output, [file for file in (idf, idf_counts) if file is not None])
    idf_sents = None if idf is None else _lines(idf)
    for text in (candidate, *ref):
        if os.path.isfile(text):
            tell(f"Note: {text} is shown as a text. Files are scored with `bertscore-onnx score`.")

    from bertscore_onnx.matching.document_counts import DocumentCounts
    from bertscore_onnx.scorer import BERTScorer
    from bertscore_onnx.similarity import TokenNames, token_similarities

    with BERTScorer(
        model_type,
        None if all_layers else num_layers,
        nthreads=nthreads,
        all_layers=all_layers,
        idf=idf is not None if idf_counts is None else DocumentCounts.load(idf_counts),
        idf_sents=idf_sents,
        device=device,
        lang=lang,
        rescale_with_baseline=rescale_with_baseline,
        baseline_path=baseline_path,
        use_fast_tokenizer=use_fast_tokenizer or None,
        precision=precision,
        long_text=long_text,
        max_length=max_length,
        allow_fp32_baseline=allow_fp32_baseline,
    ) as scorer:
        layer = num_layers if all_layers else scorer.num_layers
        found = token_similarities(scorer, TokenNames(scorer.bundle), candidate, ref, layer=layer)
        if found[0].num_truncated:
            tell(
                f"Warning: A text is longer than {scorer.max_length} tokens, and the rest is missing. With --long-text "
                "window it is there."
            )
        if output is None:
            _print(found, ref, scorer, layer)
        else:
            _write(output, kind, found, candidate, ref, scorer)


def _only(candidates: list[str]) -> str:
    if len(candidates) > 1:
        raise typer.BadParameter(
            f"there are {len(candidates)} candidates, {', '.join(map(repr, candidates))}; expected one. Put a text of "
            "several words in quotes.",
            param_hint="--cand",
        )
    return candidates[0]


def _kind(output: str | None) -> str:
    """Return the suffix of the file to write, "" for none."""
    if output is None:
        return ""
    kind = PurePath(output).suffix.lower()
    if kind not in (".html", ".svg", ".png"):
        raise typer.BadParameter(
            f"{output} has no suffix that says what to write; expected .html, .svg or .png.", param_hint="--output"
        )
    return kind


def _lines(name: str) -> list[str]:
    from bertscore_onnx.tables.sources import open_source, read_lines

    with open_source(name) as source:
        return list(read_lines(source, "references, one a line"))


def _print(found: "list[TokenSimilarity]", references: list[str], scorer: "BERTScorer", layer: int | None) -> None:
    from bertscore_onnx.cli.terminal import has_colour, print_table, terminal_width
    from bertscore_onnx.similarity import best_match
    from bertscore_onnx.similarity.render import match_text

    best, width = best_match(found), terminal_width() or DEFAULT_WIDTH
    if len(found) > 1:
        print(f"Reference {best + 1} of {len(found)} is the best match.\n")
        print_table(_score_rows(found, references), width=width)
        print()
    print(match_text(found[best], width=width, encoding=sys.stdout.encoding or "utf-8", colour=has_colour(sys.stdout)))
    signature = scorer.signature
    print(f"\n{signature.model}, layer {layer}; idf: {signature.idf}; rescale: {signature.rescale}")


def _score_rows(found: "list[TokenSimilarity]", references: list[str]) -> list[list[str]]:
    """Return the scores of each reference, and the best P, R and F, which are those of the candidate."""
    scores = [tuple(match.score) for match in found]
    names = [str(number) for number in range(1, len(found) + 1)]
    rows = zip([*names, "best"], [*scores, map(max, zip(*scores, strict=True))], [*references, ""], strict=True)
    return [
        ["", "P", "R", "F", "reference"],
        *([name, *(f"{value:.3f}" for value in values), " ".join(text.split())] for name, values, text in rows),
    ]


def _write(
    output: str,
    kind: str,
    found: "list[TokenSimilarity]",
    candidate: str,
    references: list[str],
    scorer: "BERTScorer",
) -> None:
    from bertscore_onnx.files import write_whole
    from bertscore_onnx.similarity import best_match

    if kind == ".html":
        from bertscore_onnx.similarity.render import match_page

        write_whole(output, match_page(found, candidate, references, scorer.hash))
    else:
        from bertscore_onnx.similarity.drawing import save_drawing

        save_drawing(found[best_match(found)], output)
