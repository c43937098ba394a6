"""`bertscore-onnx count-documents`: counts the documents with each token.

They are counted once for many runs and machines.
"""

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from bertscore_onnx.cli.inputs import (
    InputFile,
    check_standard_input,
    check_tables,
    read_rows,
    reference_columns,
)
from bertscore_onnx.cli.options import TOKENIZER_SETTINGS, FilesFormat, shared_options
from bertscore_onnx.cli.outputs import check_destination
from bertscore_onnx.cli.specs import columns_of, columns_option, dialect_of
from bertscore_onnx.cli.terminal import echo
from bertscore_onnx.tables.sources import STANDARD_INPUT

if TYPE_CHECKING:
    from bertscore_onnx.settings import TokenizerSettings


@shared_options(*TOKENIZER_SETTINGS)
def count_documents(
    ref: Annotated[
        list[str],
        typer.Option(
            "-r",
            "--ref",
            metavar="FILE...",
            help=(
                "References: text, one per line, or tables; counts of several files add up. - is "
                "standard input."
            ),
        ),
    ],
    output: Annotated[
        str, typer.Option("-o", "--output", metavar="FILE", help="Write the counts to this file.")
    ],
    *,
    settings: "TokenizerSettings",
    columns: Annotated[list[str] | None, columns_option("reference")] = None,
    input_format: FilesFormat = None,
    quiet: bool,
) -> None:
    """Count the references with each token, for --idf-counts.

    Loads only the tokenizer, not the model. Every reference counts, duplicates too, as with --idf.
    The counts are valid for all layers and precisions of a model with the same tokenizer,
    --long-text and --max-length.

    In Python, `DocumentCounts.load` reads the file, and the counts of parts of a corpus add up with
    +.

    Examples:
        # Count the references once, and weigh tokens by them in other commands
        bertscore-onnx count-documents -m BUNDLE -r ref.txt -o counts.json
        bertscore-onnx score -m BUNDLE -c cand.txt -r ref.txt --idf-counts counts.json
        # Count the parts of a corpus together
        bertscore-onnx count-documents -m BUNDLE -r part-1.gz part-2.gz -o sum.json
    """
    check_standard_input(ref, "--ref")
    named = columns_of(columns, "reference")
    dialect = dialect_of(input_format)
    files = [InputFile(name, reference_columns(named), dialect) for name in ref]
    check_tables(files, dialect, named)
    check_destination(output, ref)

    from bertscore_onnx.scoring.progress import progress_bar
    from bertscore_onnx.scoring.tokenization import count_documents as count

    num_rows = _num_rows(files)
    shown = False if quiet else None
    with progress_bar(num_rows, shown=shown, stage="counting documents", unit="rows") as advance:

        def rows() -> Iterator[list[str]]:
            for row in read_rows(files):
                yield row
                advance(1)

        counts = count(rows(), **settings)
    counts.save(output)
    if not quiet:
        echo(
            f"{output}: {len(counts.tokens):,} different tokens in {counts.num_documents:,} "
            "references"
        )


def _num_rows(files: Sequence[InputFile]) -> int | None:
    """Read all files but pipes, to find errors before counting.

    Return the number of rows, None with a pipe.
    """
    regular = []
    for file in files:
        is_pipe = os.path.exists(file.name) and not os.path.isfile(file.name)
        if file.name != STANDARD_INPUT and not is_pipe:
            regular.append(file)
    number = sum(1 for _ in read_rows(regular))
    return number if len(regular) == len(files) else None
