"""Finds the input files that names, patterns and folders mean."""

import glob
import os
from collections.abc import Sequence
from pathlib import Path

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.sources import format_of


def find_inputs(names: Sequence[str]) -> list[str]:
    """Return the files, in the order of the names; those of a pattern or a folder by name.

    Args:
        names: files; patterns such as `pairs/*.parquet`, in which `**` stands for folders; or folders, which stand for
            the Parquet, JSON lines, CSV and TSV files in them whose names do not begin with `.` or `_`.

    Raises:
        InputError: one of them means no file, or a file is meant twice.
    """
    if not names:
        raise InputError("There are no inputs; expected one file at least.")
    files = [file for name in names for file in _files_of(os.fspath(name))]
    places: dict[str, str] = {}
    for file in files:
        other = places.setdefault(os.path.realpath(file), file)
        if other is not file:
            raise InputError(f"{file} is given twice, the first time as {other}. Give each file once.")
    return files


def _files_of(name: str) -> list[str]:
    if "://" in name:
        raise InputError(
            f"{name} is not a path on this machine. Mount it; or use `score_dataset` of bertscore_onnx.distributed.ray "
            "or `score_dataframe` of bertscore_onnx.distributed.spark, whose engines read such places themselves."
        )
    if os.path.isdir(name):
        files = [str(file) for file in sorted(Path(name).iterdir()) if file.name[0] not in "._" and file.is_file()]
        files = [file for file in files if format_of(file) != "text"]
        if not files:
            raise InputError(f"The folder {name} has no file that ends in .parquet, .jsonl, .csv or .tsv.")
        return files
    if os.path.lexists(name) or not glob.has_magic(name):
        return [name]
    files = sorted(file for file in glob.glob(name, recursive=True) if not os.path.isdir(file))  # noqa: PTH207 -- absolute too
    if not files:
        raise InputError(f"No file matches {name}. Check the pattern; `ls` shows what it matches.")
    return files
