"""Chooses the files to read, their formats and their columns, from the options of the command line."""

from collections.abc import Sequence
from dataclasses import dataclass

import typer

from bertscore_onnx.cli.inputs.files import InputFile
from bertscore_onnx.cli.inputs.formats import InputFormat, format_of
from bertscore_onnx.cli.inputs.sources import STANDARD_INPUT
from bertscore_onnx.cli.inputs.tables.columns import Column, candidate_column, reference_columns


@dataclass(frozen=True, slots=True)
class TableOptions:
    """What the options say of files with columns."""

    candidate_column: str | None = None
    reference_columns: Sequence[str] = ()
    input_format: InputFormat | None = None
    """That of all files; None for what each name says."""

    reference_format: InputFormat | None = None
    """That of the files of references, where it is another."""

    no_header: bool = False
    no_quotes: bool = False


def choose_inputs(candidates: Sequence[str], references: Sequence[str], options: TableOptions) -> list[InputFile]:
    """Return the files to read, that of the candidates first.

    Args:
        candidates: what was given as a file of candidates, of which there must be one.
        references: the files of references; without one they are in that of the candidates.
        options: how to read them.

    Raises:
        typer.BadParameter: the options do not fit together.
    """
    _check_names(candidates, references)
    candidate = candidate_column(options.candidate_column)
    of_references = reference_columns(options.reference_columns)
    first = candidates[0]
    files = [
        _input_file(first, options.input_format, (candidate,) if references else (candidate, *of_references), options),
        *(
            _input_file(name, options.reference_format or options.input_format, of_references, options)
            for name in references
        ),
    ]
    _check_columns(files, options)
    return files


def _input_file(name: str, said: InputFormat | None, columns: tuple[Column, ...], options: TableOptions) -> InputFile:
    return InputFile(
        name,
        said or format_of(name),
        said is not None,
        columns=columns,
        has_header=not options.no_header,
        has_quotes=not options.no_quotes,
    )


def _check_names(candidates: Sequence[str], references: Sequence[str]) -> None:
    if len(candidates) > 1:
        raise typer.BadParameter(
            f"there are {len(candidates)} files of candidates, {', '.join(candidates)}; expected one. Run the command "
            "once for each to compare them.",
            param_hint="--cand",
        )
    if [*candidates, *references].count(STANDARD_INPUT) > 1:
        raise typer.BadParameter("standard input, -, can be only one of the files.", param_hint="--cand, --ref")


def _check_columns(files: Sequence[InputFile], options: TableOptions) -> None:
    """Raise where there is no file that an option could be about."""
    candidates, *references = (file.format for file in files)
    if candidates == "text" and not references:
        raise typer.BadParameter(
            f"give the references, -r FILE. {files[0].name} is read as text, one candidate a line; a table with both, "
            "in TSV, CSV, JSON lines or Parquet, is known by its name or by --input-format.",
            param_hint="--ref",
        )
    if options.reference_format and not references:
        raise typer.BadParameter("it has no effect without -r.", param_hint="--reference-format")
    delimited = {"tsv", "csv"} & {candidates, *references}
    of_references = set(references or [candidates])
    for option, given, has_effect in (
        ("--candidate-column", options.candidate_column, candidates != "text"),
        ("--reference-column", options.reference_columns, of_references != {"text"}),
        ("--no-header", options.no_header, delimited),
        ("--no-quotes", options.no_quotes, delimited),
    ):
        if given and not has_effect:
            raise typer.BadParameter(
                "it has no effect, for no file that it could be about is a table. A format is known by the end of the "
                "file's name, such as .tsv, or by --input-format.",
                param_hint=option,
            )
