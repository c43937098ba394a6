"""`bertscore-onnx count-documents`: counts what idf weights are made from, once for many runs and machines."""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from bertscore_onnx.cli.options import (
    Lang,
    LongText,
    MaxLength,
    Model,
    NumLayers,
    PrecisionOf,
    Quiet,
    UseFastTokenizer,
    Verbose,
    check_effects,
    check_model,
)
from bertscore_onnx.cli.terminal import silence_warnings, tell
from bertscore_onnx.tables.sources import STANDARD_INPUT, InputFormat

if TYPE_CHECKING:
    from bertscore_onnx.cli.inputs import InputFile


def count_documents(
    ref: Annotated[
        list[str],
        typer.Option(
            "-r",
            "--ref",
            metavar="FILE...",
            help="References: text, one a line, or tables; counts of several files add up. - is standard input.",
        ),
    ],
    output: Annotated[str, typer.Option("-o", "--output", metavar="FILE", help="Where the counts go.")],
    model_type: Model = None,
    lang: Lang = None,
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
    no_header: Annotated[
        bool, typer.Option("--no-header", help="TSV and CSV without a header; columns are called 1, 2, and so on.")
    ] = False,
    no_quotes: Annotated[
        bool, typer.Option("--no-quotes", help="TSV and CSV whose double quotes are characters of the texts.")
    ] = False,
    num_layers: NumLayers = None,
    precision: PrecisionOf = None,
    use_fast_tokenizer: UseFastTokenizer = False,
    long_text: LongText = "truncate",
    max_length: MaxLength = None,
    verbose: Verbose = False,
    quiet: Quiet = False,
) -> None:
    """Count in how many references each token occurs, for --idf-counts of other commands.

    The tokenizer alone is loaded, not the model. Every reference counts, duplicates too, as with --idf. The counts
    serve all layers and precisions of a model with the same tokenizer, --long-text and --max-length.

    In Python, `DocumentCounts.load` reads the file, and counts of parts of a corpus add up with +.
    """
    from bertscore_onnx.cli.inputs import TableOptions, choose_documents
    from bertscore_onnx.cli.outputs import check_destination

    tables = TableOptions(None, reference_column or (), input_format, None, no_header, no_quotes)
    files = choose_documents(ref, tables)
    check_model(model_type, lang)
    check_effects(("--verbose", verbose and quiet, "with --quiet; leave out one"))
    if quiet:
        silence_warnings()
    check_destination(output, ref)

    from bertscore_onnx.scoring.progress import progress_bar
    from bertscore_onnx.scoring.tokenization import count_documents as count

    shown = verbose or (False if quiet else None)
    with progress_bar(_num_rows(files), shown=shown, stage="counting documents", unit="rows") as advance:

        def rows() -> Iterator[list[str]]:
            for row in _rows(files):
                yield row
                advance(1)

        counts = count(
            rows(),
            model_type,
            num_layers,
            lang=lang,
            use_fast_tokenizer=use_fast_tokenizer or None,
            precision=precision,
            long_text=long_text,
            max_length=max_length,
        )
    counts.save(output)
    if not quiet:
        tell(f"{output}: {len(counts.tokens):,} different tokens in {counts.num_documents:,} references")


def _rows(files: "Sequence[InputFile]") -> Iterator[list[str]]:
    """Yield the texts of each row, file by file."""
    from bertscore_onnx.cli.inputs import open_input

    for file in files:
        with open_input(file) as opened:
            yield from opened.rows()


def _num_rows(files: "Sequence[InputFile]") -> int | None:
    """Return the number of rows, so that what is wrong is found before anything is counted; None with a pipe.

    Pipes are not read.
    """
    rereadable = [file for file in files if not _is_pipe(file.name)]
    number = sum(1 for _ in _rows(rereadable))
    return number if rereadable == files else None


def _is_pipe(name: str) -> bool:
    return name == STANDARD_INPUT or (os.path.exists(name) and not os.path.isfile(name))
