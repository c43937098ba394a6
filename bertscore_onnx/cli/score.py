"""`bertscore-onnx score`: scores candidates against references, from files and into files."""

from typing import Annotated

import typer

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
from bertscore_onnx.cli.outputs import OutputFormat, choose_output
from bertscore_onnx.cli.terminal import silence_warnings
from bertscore_onnx.tables.sources import InputFormat


def score(
    cand: Annotated[
        list[str],
        typer.Option(
            "-c",
            "--cand",
            metavar="FILE",
            help="Candidates: text, one a line, or a table, which may hold the references too; - is standard input.",
        ),
    ],
    ref: Annotated[
        list[str] | None,
        typer.Option("-r", "--ref", metavar="FILE...", help="References; of several the best counts for each pair."),
    ] = None,
    model_type: Model = None,
    lang: Lang = None,
    candidate_column: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The column of candidates in a table.  [default: candidate]"),
    ] = None,
    reference_column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME...",
            help="The column of references in a table, or several; in JSON lines and Parquet a value may be a list.  "
            "[default: reference or references]",
        ),
    ] = None,
    input_format: Annotated[
        InputFormat | None,
        typer.Option(help="The format of all files.  [default: by the end of each name, such as .tsv.gz; else text]"),
    ] = None,
    reference_format: Annotated[
        InputFormat | None,
        typer.Option(help="The format of the files of references, where --input-format is that of others."),
    ] = None,
    no_header: Annotated[
        bool, typer.Option("--no-header", help="TSV and CSV without a header; columns are called 1, 2, and so on.")
    ] = False,
    no_quotes: Annotated[
        bool, typer.Option("--no-quotes", help="TSV and CSV whose double quotes are characters of the texts.")
    ] = False,
    seg_level: Annotated[
        bool,
        typer.Option(
            "-s", "--seg-level", help="Print P, R and F1 of every pair, as they come; the means go to standard error."
        ),
    ] = False,
    output: Annotated[
        str | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="Write the pairs to a file, and print the means as without -s."
        ),
    ] = None,
    output_format: Annotated[
        OutputFormat | None,
        typer.Option(
            help="How to write pairs; json has the means too, and no pairs without -s or -o.  "
            "[default: by the end of --output's name; else tsv]"
        ),
    ] = None,
    with_texts: Annotated[bool, typer.Option("--with-texts", help="Write the texts of a pair beside its scores.")] = (
        False
    ),
    as_json: Annotated[bool, typer.Option("--json", help="The same as --output-format json.")] = False,
    num_layers: NumLayers = None,
    all_layers: Annotated[
        bool, typer.Option("--all-layers", help="Print the means of every layer, of a bundle that holds all.")
    ] = False,
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
    """Score candidates against their references.

    Text is UTF-8, one a line; a blank line is an empty text, which scores 0. Tables are TSV, CSV, JSON lines or
    Parquet. Any of them but Parquet may be packed with gzip. Files and pipes are read as they are needed, and checked
    before anything is scored, as far as they can be read twice.

    What is a good score? That depends on the model and the task: compare systems on the same references, with one
    signature, which stands before the means. Unrelated English sentences get an F1 of 0.83 from roberta-large, on
    average, which --rescale-with-baseline makes 0.

    Which model? --lang takes bert-score's default; `bertscore-onnx models` lists the others. All formats, with
    examples, are in docs/command_line.md.
    """
    from bertscore_onnx.cli.inputs import choose_inputs, open_pairs

    inputs = choose_inputs(
        cand,
        ref or (),
        candidate_name=candidate_column,
        reference_names=reference_column or (),
        input_format=input_format,
        reference_format=reference_format,
        has_header=not no_header,
        has_quotes=not no_quotes,
    )
    result = choose_output(
        seg_level=seg_level,
        file=output,
        output_format=output_format,
        as_json=as_json,
        with_texts=with_texts,
        all_layers=all_layers,
    )
    check_model(model_type, lang)
    check_effects(
        ("--num-layers", num_layers is not None and all_layers, "with --all-layers; leave out one"),
        ("--verbose", verbose and quiet, "with --quiet; leave out one"),
        ("--idf", idf and idf_counts is not None, "with --idf-counts; leave out one"),
        *(
            (option, given and not rescale_with_baseline, "without --rescale-with-baseline; give that too")
            for option, given in (
                ("--baseline-path", baseline_path is not None),
                ("--allow-fp32-baseline", allow_fp32_baseline),
            )
        ),
    )
    if quiet:
        silence_warnings()
    with open_pairs(inputs, to_read_again=idf) as pairs:
        from bertscore_onnx.cli.outputs import check_destination, write_scores
        from bertscore_onnx.matching.document_counts import DocumentCounts
        from bertscore_onnx.scorer import BERTScorer

        check_destination(result.file, [*(file.name for file in inputs), *([idf_counts] if idf_counts else [])])
        with BERTScorer(
            model_type,
            num_layers,
            batch_size=batch_size,
            all_layers=all_layers,
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
        ) as scorer:
            write_scores(scorer, pairs, result, lang=lang, reads_twice=idf, verbose=verbose, quiet=quiet)
