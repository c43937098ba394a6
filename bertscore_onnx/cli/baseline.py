"""`bertscore-onnx baseline`: measures what unrelated texts score with a bundle."""

from typing import TYPE_CHECKING, Annotated

import typer

from bertscore_onnx.cli.options import BatchSize, Device, NumThreads, Quiet, Verbose, complete_model
from bertscore_onnx.cli.terminal import silence_warnings, tell

if TYPE_CHECKING:
    from bertscore_onnx.bundle.bundle import Bundle
    from bertscore_onnx.evaluation.baselines import MeasuredBaseline


def baseline(
    model_type: Annotated[
        str,
        typer.Option(
            "-m",
            "--model",
            metavar="BUNDLE",
            help="The path of a bundle, or a model's name; one of all layers gets a baseline for each.",
            autocompletion=complete_model,
        ),
    ],
    corpus: Annotated[
        str,
        typer.Option(
            metavar="FILE",
            help="Texts of one language, one a line, of which the first million are read; - is standard input.",
        ),
    ],
    pairs: Annotated[
        int | None,
        typer.Option(metavar="N", min=2, help="The most pairs to score.  [default: half as many as there are texts]"),
    ] = None,
    max_words: Annotated[
        int, typer.Option(metavar="N", min=2, help="Lines count that have fewer words than this.")
    ] = 32,
    seed: Annotated[int, typer.Option(metavar="N", min=0, max=2**32 - 1, help="The seed of the draw.")] = 12345,
    tolerance: Annotated[
        float, typer.Option(metavar="X", min=0, help="Stop when all standard errors are below this; 0 for all pairs.")
    ] = 1e-4,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="Write to a file, not to standard output."),
    ] = None,
    into_bundle: Annotated[
        str | None,
        typer.Option(
            metavar="CODE", help="Write it into the bundle too, as the baseline of this language, such as en."
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Write one JSON object, with standard errors and the quantiles of F1.")
    ] = False,
    device: Device = None,
    nthreads: NumThreads = None,
    batch_size: BatchSize = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Measure what unrelated texts score.

    That is the baseline which rescaling takes as 0.

    Draws candidates and references from a corpus at random, as bert-score does, scores them at every layer of the
    bundle and writes the means of P, R and F1: LAYER,P,R,F, which `score --baseline-path` reads. It is done when all
    standard errors are below --tolerance, or all pairs are scored.

    With --into-bundle the bundle itself has the baseline from then on, so that `score --rescale-with-baseline` works
    with this language, and `score` says above how many of the unrelated pairs a score stands. The bundle's digest, and
    with it the signature of its scores, is another one then.
    """
    if quiet:
        silence_warnings()
    from bertscore_onnx.cli.outputs import check_destination
    from bertscore_onnx.evaluation.baselines import check_bundle, compute_baseline, write_baseline
    from bertscore_onnx.files import write_whole
    from bertscore_onnx.scorer import BERTScorer

    file = None if output == "-" else output
    bundle = _resolved(model_type)
    check_destination(file, [corpus])
    if into_bundle is not None:
        check_bundle(bundle.path, into_bundle)
    texts = _texts(corpus, max_words)
    with BERTScorer(
        bundle.path,
        batch_size=batch_size,
        nthreads=nthreads,
        all_layers=bundle.manifest.all_layers,
        device=device,
    ) as scorer:
        measured = compute_baseline(
            scorer,
            texts,
            num_pairs=pairs,
            max_words=max_words,
            seed=seed,
            tolerance=tolerance,
            verbose=verbose or (False if quiet else None),
        )
        scorer.bundle.check_unchanged()
    content = measured.to_json() + "\n" if as_json else measured.to_csv()
    if file is None:
        print(content, end="")
    else:
        write_whole(file, content)
    if not quiet:
        _tell_precision(measured, tolerance)
    if into_bundle is not None:
        language = into_bundle.lower()
        replaced = ", in place of the one there" if language in bundle.manifest.baselines else ""
        sealed = write_baseline(bundle.path, measured, language)
        if not quiet:
            tell(f"{bundle.path} has the baseline of {language} now{replaced}; its digest is {sealed.digest[:12]}.")


def _resolved(model: str) -> "Bundle":
    """Return the bundle, whose layers do not matter."""
    from bertscore_onnx.bundle.resolver import resolve_bundle
    from bertscore_onnx.hub import local_path

    return resolve_bundle(local_path(model), all_layers=None)


def _texts(corpus: str, max_words: int) -> list[str]:
    from bertscore_onnx.evaluation.baselines import short_texts
    from bertscore_onnx.tables.sources import open_source, read_lines

    with open_source(corpus) as source:
        return short_texts(read_lines(source), max_words)


def _tell_precision(measured: "MeasuredBaseline", tolerance: float) -> None:
    error = measured.largest_standard_error
    reached = "" if error < tolerance or not tolerance else f"; more pairs would bring it below {tolerance:g}"
    tell(f"{measured.num_pairs:,} pairs; the largest standard error of a mean is {error:.1e}{reached}.")
