"""`bertscore-onnx batch`: scores files of any size into a folder, and goes on where it was ended."""

import json
from typing import TYPE_CHECKING, Annotated, Literal

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
from bertscore_onnx.cli.terminal import silence_warnings

if TYPE_CHECKING:
    from bertscore_onnx.distributed.job import JobResult


def batch(
    inputs: Annotated[
        list[str],
        typer.Option(
            "-i",
            "--input",
            metavar="FILE...",
            help="Parquet, JSON lines, CSV or TSV; a pattern in quotes, such as 'pairs/*.parquet'; or a folder.",
        ),
    ],
    output: Annotated[
        str,
        typer.Option("-o", "--output", metavar="FOLDER", help="Where to: a new or empty folder, or that of this job."),
    ],
    model_type: Model = None,
    lang: Lang = None,
    engine: Annotated[
        Literal["local", "ray", "spark"],
        typer.Option(help="What scores. With ray and spark all machines need to see the files at the same paths."),
    ] = "local",
    candidate: Annotated[
        str | None, typer.Option(metavar="NAME", help="The column of candidates.  [default: candidate]")
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The column of references; in JSON lines and Parquet a value may be a list.  "
            "[default: reference or references]",
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME...", help="The columns to keep beside the scores.  [default: all]"),
    ] = None,
    errors: Annotated[
        Literal["raise", "null"],
        typer.Option(help="A row that cannot be scored ends the job, or gets nulls and a reason."),
    ] = "raise",
    part_rows: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="The rows of each file of scores.  [default: 16384]")
    ] = None,
    no_header: Annotated[
        bool, typer.Option("--no-header", help="TSV and CSV without a header; columns are called 1, 2, and so on.")
    ] = False,
    no_quotes: Annotated[
        bool, typer.Option("--no-quotes", help="TSV and CSV whose double quotes are characters of the texts.")
    ] = False,
    idf: Idf = False,
    idf_counts: IdfCounts = None,
    num_layers: NumLayers = None,
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
    as_json: Annotated[bool, typer.Option("--json", help="Print the summary as one JSON object.")] = False,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Score files of any size into a folder of Parquet files; started again, do what is missing.

    The scores of each input stand beside its columns, in parts of some thousand rows: precision, recall, f1,
    best_reference. A part is there whole or not at all. `_manifest.json` says what was scored, and how. After a
    failure, or a kill, the same command does the parts that are missing; where inputs or options are others, it
    refuses.

    All inputs are looked at before anything is scored. With --idf all references are counted first, by the tokenizer
    alone.

    Needs the extra `parquet`; with --engine the extra of this name. docs/at_scale.md says how to run it on a cluster.
    """
    check_model(model_type, lang)
    check_effects(
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
    from bertscore_onnx.distributed.job import score_files
    from bertscore_onnx.distributed.parts import PART_ROWS
    from bertscore_onnx.matching.document_counts import DocumentCounts

    result = score_files(
        inputs,
        output,
        model_type,
        engine=engine,
        candidate=candidate,
        reference=reference,
        columns=columns,
        errors=errors,
        part_rows=part_rows or PART_ROWS,
        has_header=not no_header,
        has_quotes=not no_quotes,
        verbose=verbose or (False if quiet else None),
        num_layers=num_layers,
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
    _print_summary(result, as_json=as_json)


def _print_summary(result: "JobResult", *, as_json: bool) -> None:
    if as_json:
        from dataclasses import asdict

        print(json.dumps(asdict(result), ensure_ascii=False))
        return
    before = f", of which {result.parts_before:,} were complete before" if result.parts_before else ""
    print(
        f"{result.output}: {_counted(result.rows, 'row')} in {_counted(result.parts, 'part')}{before}; "
        f"{result.failures:,} without scores"
    )
    if result.f1 is not None:
        print(f"{result.signature} P: {result.precision:.6f} R: {result.recall:.6f} F1: {result.f1:.6f}")


def _counted(number: int, unit: str) -> str:
    return f"{number:,} {unit}{'' if number == 1 else 's'}"
