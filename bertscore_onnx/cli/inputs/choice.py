"""Chooses the files to read, their formats and their columns, from the options of the command line."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

import typer

from bertscore_onnx.cli.inputs.columns import candidate_column, reference_columns
from bertscore_onnx.cli.inputs.files import InputFile
from bertscore_onnx.tables.batches import Column
from bertscore_onnx.tables.sources import STANDARD_INPUT, InputFormat, format_of


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


def choose_documents(names: Sequence[str], options: TableOptions) -> list[InputFile]:
    """Return the files to read, whose columns are those of references.

    Args:
        names: what was given as files of references.
        options: how to read them.

    Raises:
        typer.BadParameter: the options do not fit together.
    """
    _check_standard_input(names, "--ref")
    columns = reference_columns(options.reference_columns)
    files = [_input_file(name, options.input_format, columns, options) for name in names]
    _check_effects(options, set(), {file.format for file in files})
    return files


def choose_systems(systems: Sequence[str], references: Sequence[str]) -> tuple[list[str], list[InputFile]]:
    """Return the names of systems, and the files to read: one for each system, then those of the references.

    A system is called after its file, without folder and endings; where that is the name of two, as it was given, so
    that all names differ.

    Args:
        systems: the files of candidates.
        references: the files of references.

    Raises:
        typer.BadParameter: there are fewer than two systems, or a file is given twice.
    """
    if len(systems) < 2:
        raise typer.BadParameter(
            "there is one system; expected a baseline and at least one to compare with it, such as -c BASE -c OTHER.",
            param_hint="--cand",
        )
    _check_standard_input([*systems, *references])
    for position, name in enumerate(systems):
        if any(_is_same_file(name, other) for other in systems[:position]):
            raise typer.BadParameter(f"{name} is given twice; each system counts once.", param_hint="--cand")
    stems = [PurePath(PurePath(name.removesuffix(".gz")).stem).name for name in systems]
    names = [
        stem if stems.count(stem) == 1 and stem not in systems else name
        for name, stem in zip(systems, stems, strict=True)
    ]
    options = TableOptions()
    return names, [
        *(_input_file(name, None, (candidate_column(),), options) for name in systems),
        *(_input_file(name, None, reference_columns(), options) for name in references),
    ]


def _is_same_file(name: str, other: str) -> bool:
    return name == other or (os.path.isfile(name) and os.path.isfile(other) and Path(name).samefile(other))


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
            f"there are {len(candidates)} files of candidates, {', '.join(candidates)}; expected one. "
            "`bertscore-onnx compare` compares several.",
            param_hint="--cand",
        )
    _check_standard_input([*candidates, *references])


def _check_standard_input(names: Sequence[str], options: str = "--cand, --ref") -> None:
    if names.count(STANDARD_INPUT) > 1:
        raise typer.BadParameter("standard input, -, can be only one of the files.", param_hint=options)


def _check_columns(files: Sequence[InputFile], options: TableOptions) -> None:
    """Raise where the references are missing, or there is no file that an option could be about."""
    candidates, *references = (file.format for file in files)
    if candidates == "text" and not references:
        raise typer.BadParameter(
            f"give the references, -r FILE. {files[0].name} is read as text, one candidate a line; a table with both, "
            "in TSV, CSV, JSON lines or Parquet, is known by its name or by --input-format.",
            param_hint="--ref",
        )
    if options.reference_format and not references:
        raise typer.BadParameter("it has no effect without -r.", param_hint="--reference-format")
    _check_effects(options, {candidates}, set(references or [candidates]))


def _check_effects(options: TableOptions, candidates: set[InputFormat], references: set[InputFormat]) -> None:
    """Raise where no file is in a format that an option could be about."""
    delimited = {"tsv", "csv"} & (candidates | references)
    for option, given, has_effect in (
        ("--candidate-column", options.candidate_column, candidates != {"text"}),
        ("--reference-column", options.reference_columns, references != {"text"}),
        ("--no-header", options.no_header, delimited),
        ("--no-quotes", options.no_quotes, delimited),
    ):
        if given and not has_effect:
            raise typer.BadParameter(
                "it has no effect, for no file that it could be about is a table. A format is known by the end of the "
                "file's name, such as .tsv, or by --input-format.",
                param_hint=option,
            )
