"""`bertscore-onnx batch`: scores files of any size into a folder.

A job resumes where it left off.
"""

import os
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bertscore_onnx.cli.options import TextOrJson, check_contexts, shared_options
from bertscore_onnx.cli.specs import columns_of, columns_option, dialect_of
from bertscore_onnx.cli.terminal import echo, print_json
from bertscore_onnx.tables.formats import TEXT, format_of
from bertscore_onnx.tables.roles import roles_of_command

if TYPE_CHECKING:
    from bertscore_onnx.settings import ScorerSettings
    from bertscore_onnx_service.jobs.job import JobResult


_ROLES = roles_of_command("batch")
_FILES = "Parquet, JSON lines, CSV or TSV"


@shared_options(without=("all_layers",))
def batch(
    inputs: Annotated[
        list[str],
        typer.Option(
            "-c",
            "--cand",
            "-i",
            "--input",
            metavar="FILE...",
            help=f"{_FILES}; a quoted pattern, such as 'pairs/*.parquet'; or a folder.",
        ),
    ],
    output: Annotated[
        str,
        typer.Option(
            "-o",
            "--output",
            metavar="FOLDER",
            help="A new or empty folder, or the folder of this job.",
        ),
    ],
    *,
    settings: "ScorerSettings",
    named: Annotated[list[str] | None, columns_option(*_ROLES)] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="NAME...",
            help="The columns to keep beside the scores.  [default: all]",
        ),
    ] = None,
    errors: Annotated[
        Literal["raise", "null"],
        typer.Option(
            "--errors",
            help="A row that cannot be scored ends the job, or gets nulls and a reason.",
        ),
    ] = "raise",
    part_rows: Annotated[
        int | None,
        typer.Option(
            "--part-rows",
            metavar="N",
            min=1,
            help="Rows in each file of scores.  [default: about a minute's work]",
        ),
    ] = None,
    input_format: Annotated[
        str | None,
        typer.Option(
            "--input-format",
            metavar="SETTING=VALUE",
            help="Settings of TSV and CSV, joined by commas: header=no (columns are called 1, 2, "
            "and so on), quotes=no (double quotes are ordinary characters) and "
            "delimiter=CHARACTER. The format follows from a file's name.",
        ),
    ] = None,
    output_format: TextOrJson = "text",
    quiet: bool,
) -> None:
    """Score files of any size into a folder, part by part.

    The output is Parquet: the input's columns and precision, recall, f1, best_reference, in parts
    of about a minute's work. A part is either complete or absent. `_manifest.json` records what is
    scored and with which settings. After a failure, or after the job was killed, the same command
    scores the parts that are missing or damaged; it refuses other inputs or options. If an input
    changes while the job runs, the job fails. If no row has a score, the exit status is 1.

    All inputs are checked before anything is scored. With --idf, all references are counted first,
    which needs only the tokenizer.

    Needs the extra `parquet`. docs/many_texts.md describes clusters.

    Examples:
        # Score a folder of tables; the same command resumes a job
        bertscore-onnx batch -m BUNDLE -i 'pairs/*.parquet' -o out
        # Keep one column beside the scores, and go on after a row that fails
        bertscore-onnx batch -m BUNDLE -i a.csv -o out --keep id --errors null
        # Weigh tokens by their idf in the references of all files
        bertscore-onnx batch -m BUNDLE -i pairs -o out --idf
    """
    advice = " --keep names the columns to keep beside the scores."
    names = columns_of(named, *_ROLES, advice=advice)
    if names("context") is None:
        check_contexts(settings, "add --columns context=NAME")
    dialect = dialect_of(input_format)
    if dialect.format is not None:
        raise typer.BadParameter(
            f"{input_format!r} names a format; expected settings alone, such as header=no. "
            "The format of each file follows from its name.",
            param_hint="--input-format",
        )
    from bertscore_onnx_service.jobs.job import score_files

    _check_folder(output)
    model = settings.pop("model_type")
    try:
        result = score_files(
            inputs,
            output,
            model,
            candidate=names("candidate"),
            reference=names.references or None,
            context=names("context"),
            columns=columns,
            names=names.scores,
            errors=errors,
            part_rows=part_rows,
            has_header=dialect.has_header,
            has_quotes=dialect.has_quotes,
            delimiter=dialect.delimiter,
            verbose=False if quiet else None,
            **settings,
        )
    except KeyboardInterrupt as interruption:
        # The job adds a note of what is kept, but only once it scores rows.
        if not hasattr(interruption, "__notes__"):
            kept = "No row was scored in this run; parts that are complete are kept."
            interruption.add_note(f"{kept} Run the same command to resume.")
        raise
    if output_format == "json":
        from dataclasses import asdict

        print_json(asdict(result))
    else:
        _print_summary(result)
    if result.f1 is None:
        reason = "the inputs have no rows"
        if result.rows:
            reason = "every row failed, and the column `error` has the reasons"
        echo(f"Failed: no row has a score: {reason}.")
        raise typer.Exit(1)


def _check_folder(output: str) -> None:
    """Refuse the name of a file in place of a folder."""
    if format_of(output) != TEXT and not os.path.isdir(output):
        raise typer.BadParameter(
            f"{output} is the name of one file, and a job that can be resumed writes a folder of "
            "Parquet files. Name a folder; `bertscore-onnx score -c TABLE -o FILE` writes one "
            "file, and so does "
            '`pandas.read_parquet("FOLDER").to_csv("FILE")`.',
            param_hint="--output",
        )


def _print_summary(result: "JobResult") -> None:
    """Print what was scored, and the means if there are any."""
    summary = f"{result.output}: {_counted(result.rows, 'row')} in {_counted(result.parts, 'part')}"
    if result.parts_before:
        summary += f" ({result.parts_before:,} complete before)"
    summary += f"; {result.failures:,} without scores"
    if result.truncated:
        summary += f", {result.truncated:,} with a truncated text"
    print(summary)
    if result.f1 is not None:
        means = f"P: {result.precision:.6f} R: {result.recall:.6f} F1: {result.f1:.6f}"
        print(f"{result.signature} {means}")


def _counted(number: int, unit: str) -> str:
    """Return a number with its unit, in the plural unless it is 1."""
    if number == 1:
        return f"{number:,} {unit}"
    return f"{number:,} {unit}s"
