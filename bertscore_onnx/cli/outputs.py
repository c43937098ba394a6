"""Where a command writes its result, and in which of several formats."""

import logging
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from bertscore_onnx.bundle.store import MANIFEST
from bertscore_onnx.cli.terminal import echo
from bertscore_onnx.errors import InputError
from bertscore_onnx.files import open_device, put_in_place, write_errors

_log = logging.getLogger(__name__)


def check_destination(
    file: str | None, inputs: Iterable[str | None], option: str = "--output"
) -> None:
    """Check before any work that a file can be written, and is no input and in no bundle."""
    if file is None:
        return
    if os.path.isfile(file):
        path = Path(file)
        if any(
            name is not None and os.path.isfile(name) and path.samefile(name) for name in inputs
        ):
            raise InputError(f"{option} {path} is one of the files to read. Write to another file.")
        if path.resolve().with_name(MANIFEST).is_file():
            raise InputError(
                f"{option} {path} is in the folder of a bundle. Write to another file."
            )
        with write_errors(file):
            FileIO(file, "a").close()
    elif not os.path.lexists(file):
        with write_errors(file):
            FileIO(file, "x").close()
        Path(file).unlink()


@contextmanager
def replacing(name: str) -> Iterator[FileIO]:
    """Open a file beside this one, and put it in its place when it is whole.

    `open_device` opens pipes and devices. After an error or an interruption this file is as it was,
    and the rows so far stay in the other.
    """
    with write_errors(name):
        device = open_device(name)
    if device is not None:
        with device:
            yield device
        return
    path = Path(os.path.realpath(name))
    file = _new_part(name, path)
    part = Path(file.name)
    try:
        with file:
            yield file
            os.fsync(file.fileno())
        with write_errors(name):
            put_in_place(part, path)
    except BaseException:
        if part.stat().st_size:
            kept = f"{name} is as it was" if path.exists() else f"there is no {name} yet"
            echo(
                f"The rows so far are in {part}; {kept}. `score` cannot resume; `bertscore-onnx "
                "batch` can."
            )
        else:
            part.unlink()
        raise


def _new_part(name: str, path: Path) -> FileIO:
    """Open a new file beside another file.

    Warn of the files of earlier runs that did not end.
    """
    number = 0
    while True:
        number += 1
        part = path.with_name(f"{path.name[:50]}.part{number}")
        with write_errors(name):
            try:
                return part.open("xb", buffering=0)
            except FileExistsError:
                _log.warning("%s has rows of a run that did not end, or has not ended yet.", part)


@contextmanager
def opened_lines(name: str | None) -> Iterator[Callable[[str], object]]:
    """Open a file of text, or standard output.

    Yield a function that writes lines, each whole or not at all. InputError is raised if the file
    cannot be written, such as on a full disk; the lines before stay.
    """
    if name is None:

        def write_to_stdout(lines: str) -> None:
            sys.stdout.write(lines)
            sys.stdout.flush()

        yield write_to_stdout
        return
    with replacing(name) as file:
        whole = os.fstat(file.fileno()).st_size

        def write(lines: str) -> None:
            nonlocal whole
            data = lines.encode()
            position = 0
            try:
                while position < len(data):
                    position += file.write(data[position:])
            except OSError as error:
                with suppress(OSError):  # of a pipe or a device
                    file.truncate(whole)
                raise full(name, error, "The rows that were written are whole.") from error
            whole += len(data)

        yield write


def full(name: str, error: OSError, rest: str) -> InputError:
    """Return the InputError for a file that could not be written to its end, and its state."""
    return InputError(f"Cannot write {name!r} to its end ({error.strerror}). {rest}")
