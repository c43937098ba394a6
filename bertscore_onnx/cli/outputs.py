"""Where a command writes its result, and in which of several formats."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO, cast

import typer

from bertscore_onnx.bundle.store import MANIFEST
from bertscore_onnx.errors import InputError


def chosen_format(**options: bool) -> str | None:
    """Return the one format that is requested, such as "json" for as_json=True; None if none is."""
    requested = [name.removeprefix("as_") for name, is_requested in options.items() if is_requested]
    if len(requested) > 1:
        raise typer.BadParameter(
            "only one format can be printed; leave out the others.",
            param_hint=", ".join(f"--{name}" for name in requested),
        )
    return requested[0] if requested else None


def check_destination(file: str | None, inputs: Iterable[str | None], option: str = "--output") -> None:
    """Check before any work is done that a file can be written, and is no input and no part of a bundle."""
    if file is None:
        return
    if os.path.isfile(file):
        path = Path(file)
        if any(name is not None and os.path.isfile(name) and path.samefile(name) for name in inputs):
            raise InputError(f"{option} {path} is one of the files to read. Write to another file.")
        if path.resolve().with_name(MANIFEST).is_file():
            raise InputError(f"{option} {path} is in the folder of a bundle. Write to another file.")
        with opened(file, "a"):
            pass
    elif not os.path.lexists(file):
        with opened(file, "x"):
            pass
        Path(file).unlink()


@contextmanager
def opened(name: str, mode: str) -> Iterator[TextIO]:
    """Open a file of text; raise InputError if it cannot be written."""
    from bertscore_onnx.files import unwritable

    try:
        file = cast(TextIO, Path(name).open(mode, encoding="utf-8", newline="\n"))  # noqa: SIM115 -- see below
    except OSError as error:  # of opening alone: others are raised as they are
        raise unwritable(name, error) from error
    with file:
        yield file
