"""`bertscore-onnx baseline`: measures the scores of unrelated texts."""

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertscore_onnx.bundle.store import MODEL_VARIABLE
from bertscore_onnx.cli.options import (
    check_contexts,
    check_effects,
    chosen_model,
    complete_model,
    matching_of,
    shared_options,
)
from bertscore_onnx.cli.outputs import check_destination
from bertscore_onnx.cli.terminal import echo
from bertscore_onnx.files import write_whole

if TYPE_CHECKING:
    from bertscore_onnx.settings import ScorerSettings


@shared_options("device", "nthreads", "batch_size", "matching")
def baseline(
    corpus: Annotated[
        str,
        typer.Option(
            "--corpus",
            metavar="FILE",
            help=(
                "Texts of one language, one per line; only the first million are read. - is "
                "standard input."
            ),
        ),
    ],
    *,
    model_type: Annotated[
        str | None,
        typer.Option(
            "-m",
            "--model",
            metavar="MODEL",
            help="The path of a bundle, or a model's name; a bundle of all layers gets a baseline "
            f"for each.  [default: {MODEL_VARIABLE}]",
            autocompletion=complete_model,
        ),
    ] = None,
    settings: "ScorerSettings",
    pairs: Annotated[
        int | None,
        typer.Option(
            "--pairs",
            metavar="N",
            min=2,
            help="Maximum number of pairs.  [default: half the number of texts]",
        ),
    ] = None,
    max_words: Annotated[
        int,
        typer.Option("--max-words", metavar="N", min=2, help="Ignore lines of N words or more."),
    ] = 32,
    seed: Annotated[
        int,
        typer.Option("--seed", metavar="N", min=0, max=2**32 - 1, help="Seed of the random draw."),
    ] = 12345,
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance",
            metavar="X",
            min=0,
            help="Stop when all standard errors are below this; 0 scores all pairs.",
        ),
    ] = 1e-4,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write to a file instead of standard output."
        ),
    ] = None,
    into_bundle: Annotated[
        str | None,
        typer.Option(
            "--into-bundle",
            metavar="CODE",
            help="Also write it into the bundle, as the baseline of this language, e.g. en.",
        ),
    ] = None,
    output_format: Annotated[
        Literal["csv", "json"],
        typer.Option(
            "--format",
            help="Format of the baseline; json also has standard errors and quantiles of F1.",
        ),
    ] = "csv",
    quiet: bool,
) -> None:
    """Measure what unrelated texts score, for rescaling.

    Draws candidates and references from a corpus at random, as bert-score does, scores them at
    every layer of the bundle and writes the means of P, R and F1: LAYER,P,R,F, which `score
    --baseline-path` reads. It stops when all standard errors are below --tolerance, or all pairs
    are scored.

    With --into-bundle the bundle itself gets the baseline, so that `score --rescale-with-baseline`
    works with this language, and `score` prints the share of pairs that score above unrelated ones.
    This changes the bundle's digest, and with it the signature of its scores.

    Examples:
        # Write a file, and rescale with it
        bertscore-onnx baseline --model BUNDLE --corpus news.en.gz -o baseline.csv
        # Store the baseline of English in the bundle
        bertscore-onnx baseline --model BUNDLE --corpus news.en.gz --into-bundle en
    """
    check_contexts(settings, "random pairs have none")
    from bertscore_onnx.baselines import check_bundle, compute_baseline, short_texts, write_baseline
    from bertscore_onnx.bundle.resolver import resolve_bundle
    from bertscore_onnx.hub import local_path
    from bertscore_onnx.scorer import BERTScorer
    from bertscore_onnx.tables.sources import open_source, read_lines

    matching = matching_of(settings)
    check_effects(
        (
            "--into-bundle",
            into_bundle is not None and not matching.is_default,
            f"on scores of {matching}; write a file, which --baseline-path reads",
        )
    )
    file = None if output == "-" else output
    # of one layer or of all
    bundle = resolve_bundle(local_path(chosen_model(model_type)), all_layers=None)
    check_destination(file, [corpus])
    if into_bundle is not None:
        check_bundle(bundle.path, into_bundle)
    with open_source(corpus) as source:
        texts = short_texts(read_lines(source), max_words)
    settings["model_type"] = bundle.path
    settings["all_layers"] = bundle.manifest.all_layers
    with BERTScorer(**settings) as scorer:
        measured = compute_baseline(
            scorer,
            texts,
            num_pairs=pairs,
            max_words=max_words,
            seed=seed,
            tolerance=tolerance,
            verbose=False if quiet else None,
        )
        scorer.bundle.check_unchanged()
    content = measured.to_json() + "\n" if output_format == "json" else measured.to_csv()
    if file is None:
        print(content, end="")
    else:
        write_whole(file, content)
    if not quiet:
        error = measured.largest_standard_error
        reached = ""
        if tolerance and not error < tolerance:
            reached = f"; more pairs would bring it below {tolerance:g}"
        echo(
            f"{measured.num_pairs:,} pairs; the largest standard error of a mean is "
            f"{error:.1e}{reached}."
        )
    if into_bundle is not None:
        language = into_bundle.lower()
        replaced = ""
        if language in bundle.manifest.baselines:
            replaced = ", replacing the previous one"
        sealed = write_baseline(bundle.path, measured, language)
        if not quiet:
            echo(
                f"{bundle.path} now has the baseline of {language}{replaced}; its digest is "
                f"{sealed.digest[:12]}."
            )
