"""`bertscore-onnx compare`: says which of several systems is better, and whether that may be luck."""

from contextlib import ExitStack
from typing import Annotated, Any, Literal

import typer

from bertscore_onnx.cli.inputs import choose_systems
from bertscore_onnx.cli.options import (
    AllowFp32Baseline,
    BaselinePath,
    BatchSize,
    Device,
    Idf,
    IdfCounts,
    Lang,
    LongText,
    MaxLength,
    Model,
    NumLayers,
    NumThreads,
    PrecisionOf,
    Quiet,
    RescaleWithBaseline,
    UseFastTokenizer,
    Verbose,
    check_effects,
    check_model,
)
from bertscore_onnx.cli.outputs import chosen_format
from bertscore_onnx.cli.terminal import silence_warnings

BERTSCORE = "bertscore"


def compare(
    cand: Annotated[
        list[str],
        typer.Option(
            "-c",
            "--cand",
            metavar="FILE...",
            help="The texts of each system, one a line, or the column candidate of a table; the first is the baseline.",
        ),
    ],
    ref: Annotated[
        list[str],
        typer.Option("-r", "--ref", metavar="FILE...", help="References; of several the best counts for each segment."),
    ],
    model_type: Model = None,
    lang: Lang = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME...", help="bertscore, bleu, chrf or ter, or several.  [default: bertscore]"),
    ] = None,
    bleu_tokenize: Annotated[
        str | None, typer.Option(metavar="NAME", help="BLEU's tokenizer, such as zh or char.  [default: 13a]")
    ] = None,
    chrf_word_order: Annotated[
        int | None, typer.Option(metavar="N", min=0, help="chrF's longest word n-gram; 2 is chrF++.  [default: 0]")
    ] = None,
    test: Annotated[Literal["bs", "ar"], typer.Option(help="Paired bootstrap, or approximate randomization.")] = "bs",
    resamples: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="How many are drawn.  [default: 1,000; with --test ar 10,000 swaps]"),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Of what is drawn.")] = 12345,
    all_pairs: Annotated[
        bool, typer.Option("--all-pairs", help="Test every pair of systems too, with Holm's correction.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    as_tsv: Annotated[bool, typer.Option("--tsv", help="Print a row for each metric and system, with all digits.")] = (
        False
    ),
    as_latex: Annotated[bool, typer.Option("--latex", help="Print a table for LaTeX.")] = False,
    html: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write a report with pictures: one page, to read in a browser.")
    ] = None,
    examples: Annotated[
        int, typer.Option(metavar="N", min=0, help="Show the N segments of largest gain and loss, by system.")
    ] = 3,
    num_layers: NumLayers = None,
    idf: Idf = False,
    idf_counts: IdfCounts = None,
    rescale_with_baseline: RescaleWithBaseline = False,
    baseline_path: BaselinePath = None,
    allow_fp32_baseline: AllowFp32Baseline = False,
    device: Device = None,
    nthreads: NumThreads = None,
    batch_size: BatchSize = None,
    precision: PrecisionOf = None,
    use_fast_tokenizer: UseFastTokenizer = False,
    long_text: LongText = "truncate",
    max_length: MaxLength = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Say which system is better, and whether that may be luck.

    Every system is compared with the first, the baseline. p is the chance of such a difference, or a larger one, if
    both were equally good; below 0.05 it has a *. It is not corrected for the number of systems, but with --all-pairs
    it is, by Holm. `wins` is the share of resamples in which the system is ahead. Then come the segments that it wins,
    loses and ties.

    Needs the extra `evaluation`.
    """
    metrics = list(dict.fromkeys(metric or [BERTSCORE]))
    has_bertscore = BERTSCORE in metrics
    if has_bertscore:
        check_model(model_type, lang)
    check_effects(
        *(
            (option, given and not has_bertscore, "without --metric bertscore; add it")
            for option, given in (
                ("--model", model_type is not None),
                ("--lang", lang is not None),
                ("--num-layers", num_layers is not None),
                ("--idf", idf),
                ("--idf-counts", idf_counts is not None),
                ("--rescale-with-baseline", rescale_with_baseline),
            )
        ),
        ("--bleu-tokenize", bleu_tokenize is not None and "bleu" not in metrics, "without --metric bleu; add it"),
        ("--chrf-word-order", chrf_word_order is not None and "chrf" not in metrics, "without --metric chrf; add it"),
        ("--baseline-path", baseline_path is not None and not rescale_with_baseline, "without --rescale-with-baseline"),
        ("--verbose", verbose and quiet, "with --quiet; leave out one"),
        ("--idf", idf and idf_counts is not None, "with --idf-counts; leave out one"),
    )
    given: dict[str, dict[str, Any]] = {name: {} for name in metrics}
    if bleu_tokenize is not None:
        given["bleu"]["tokenize"] = bleu_tokenize
    if chrf_word_order is not None:
        given["chrf"]["word_order"] = chrf_word_order
    chosen = chosen_format(as_json=as_json, as_tsv=as_tsv, as_latex=as_latex)
    names, files = choose_systems(cand, ref)
    if quiet:
        silence_warnings()

    from bertscore_onnx.cli.inputs import open_systems
    from bertscore_onnx.cli.outputs import check_destination, print_comparison
    from bertscore_onnx.errors import check_installed
    from bertscore_onnx.evaluation import compare as compare_systems
    from bertscore_onnx.files import write_whole
    from bertscore_onnx.matching.document_counts import DocumentCounts
    from bertscore_onnx.scorer import BERTScorer

    needed = {"tabulate": chosen in (None, "latex"), "sacrebleu": metrics != [BERTSCORE], "jinja2": html is not None}
    check_installed((package for package, is_needed in needed.items() if is_needed), "evaluation", "Comparing systems")
    with open_systems(files[: len(names)], files[len(names) :]) as opened:
        segments = list(opened)
    check_destination(html, [*cand, *ref], "--html")
    systems = {name: [outputs[row] for outputs, _ in segments] for row, name in enumerate(names)}
    references = [references for _, references in segments]
    with ExitStack() as stack:
        scorer = None
        if has_bertscore:
            scorer = BERTScorer(
                model_type,
                num_layers,
                batch_size=batch_size,
                idf=idf if idf_counts is None else DocumentCounts.load(idf_counts),
                device=device,
                nthreads=nthreads,
                lang=lang,
                rescale_with_baseline=rescale_with_baseline,
                baseline_path=baseline_path,
                use_fast_tokenizer=use_fast_tokenizer or None,
                max_length=max_length,
                precision=precision,
                long_text=long_text,
                allow_fp32_baseline=allow_fp32_baseline,
            )
            stack.enter_context(scorer)
        comparison = compare_systems(
            systems,
            references,
            scorer=scorer,
            metrics=given,
            test=test,
            num_resamples=resamples,
            seed=seed,
            all_pairs=all_pairs,
            num_examples=examples,
            verbose=verbose or (False if quiet else None),
        )
    try:
        print_comparison(comparison, chosen)
    finally:  # the scores are the costly part, and do not depend on who reads the table
        if html is not None:
            write_whole(html, comparison.to_html())
