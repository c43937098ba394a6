"""What the command line says on standard error: errors, warnings and log messages, one line each."""

import io
import logging
import os
import re
import sys
import textwrap
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any, Self, TextIO

import typer
from typer.core import TyperCommand, TyperGroup

from bertscore_onnx.cli.options import with_option_names
from bertscore_onnx.errors import BertScoreOnnxError, one_line


class PlainMessages(TyperGroup):
    """A group of commands whose warnings and errors of ours are one line each, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; exit 1 for an error of ours."""

        def in_its_words(message: object) -> str:
            command = self.commands.get(ctx.invoked_subcommand)
            return with_option_names(str(message), command) if isinstance(command, TyperCommand) else str(message)

        try:
            with _one_line_warnings(in_its_words):
                return super().invoke(ctx)
        except BertScoreOnnxError as error:
            tell(f"Error: {in_its_words(error)}")
            raise typer.Exit(1) from error
        except MemoryError as error:
            tell(f"Error: There is not enough memory. {error}".rstrip())
            raise typer.Exit(1) from error


def tell(message: object) -> None:
    """Print a message as one line on standard error, which no other thread's message can divide."""
    print(f"{one_line(message)}\n", end="", file=sys.stderr)


def silence_warnings() -> None:
    """Print errors alone until the command ends."""
    warnings.simplefilter("ignore")
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _OneLineHandler):
            handler.setLevel(logging.ERROR)


@contextmanager
def _one_line_warnings(in_its_words: Callable[[object], str]) -> Iterator[None]:
    def show_warning(message: Warning | str, *_place: object, **_more: object) -> None:
        tell(f"Warning: {in_its_words(message)}")

    handler = _OneLineHandler(logging.WARNING)
    with warnings.catch_warnings():
        warnings.showwarning = show_warning
        logging.getLogger().addHandler(handler)
        try:
            yield
        finally:
            logging.getLogger().removeHandler(handler)


class _OneLineHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        tell(f"{record.levelname.capitalize()}: {record.getMessage()}")


# The standard streams as a command line may find them: closed, or in an encoding that lacks characters.


def prepare_streams() -> None:
    """Open what is closed as /dev/null, and let what cannot be encoded be written as an escape.

    Otherwise the next file that is opened takes the number of a closed stream, and what is said on it goes there.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115 -- for good
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def has_colour(stream: TextIO) -> bool:
    """Return whether to write colours: to a terminal that is not a dumb one, unless NO_COLOR is set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


# Tells how a long command gets on, one line a stage, with the seconds it took.


class Stages:
    """Prints `[3/5] Writing the graph ...  12.1 s` on standard error, the seconds when the stage is over."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._number = 0
        self._begun = 0.0

    def begin(self, name: str) -> None:
        """End the stage before and begin one."""
        if self._number:
            self._end()
        self._number += 1
        self._begun = time.perf_counter()
        print(f"[{self._number}/{self._total}] {name} ...", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        """Return itself; no stage has begun."""
        return self

    def __exit__(self, *failure: object) -> None:
        """End the last stage."""
        if self._number:
            self._end()

    def _end(self) -> None:
        print(f"  {time.perf_counter() - self._begun:.1f} s", file=sys.stderr)


# Prints rows with their columns aligned, within a width.


_GAP = "  "


def print_table(rows: Sequence[Sequence[str]], *, file: TextIO | None = None, width: int | None = None) -> None:
    """Print rows of as many cells each, every column as wide as its widest cell.

    Args:
        rows: the cells.
        file: what to print to; None for standard output.
        width: the most characters of a line; cells of the last columns then take more lines. No word is broken but
            after a hyphen. None for no limit.
    """
    columns = [*zip(*rows, strict=True)]
    widths = [max(map(len, column)) for column in columns]
    if width is not None:
        widths = _narrowed(widths, [max(map(_longest_word, column)) for column in columns], width)
    for row in rows:
        cells = [
            [cell] if len(cell) <= size else textwrap.wrap(cell, size, break_long_words=False)
            for cell, size in zip(row, widths, strict=True)
        ]
        for line in zip_longest(*cells, fillvalue=""):
            print(_GAP.join(part.ljust(size) for part, size in zip(line, widths, strict=True)).rstrip(), file=file)


def terminal_width() -> int | None:
    """Return how many characters a line of the terminal has, as COLUMNS says or the terminal; None without one."""
    if columns := os.environ.get("COLUMNS", ""):
        return int(columns) if columns.isdecimal() and int(columns) else None
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or None
    except (OSError, ValueError):  # it is none, or closed
        return None


def _longest_word(cell: str) -> int:
    return max(map(len, re.split(r"\s|(?<=-)", cell)))


def _narrowed(widths: Sequence[int], least: Sequence[int], total: int) -> list[int]:
    """Return widths that fit into a total, taken from the last columns first; none below its least."""
    narrowed = list(widths)
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - total
    for column in reversed(range(len(narrowed))):
        taken = min(max(excess, 0), narrowed[column] - least[column])
        narrowed[column] -= taken
        excess -= taken
    return narrowed
