"""The output of commands.

It is tables, and on standard error one line for each error, warning and log message.
"""

import io
import logging
import os
import re
import shlex
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from bertscore_onnx.errors import Argument, BertScoreOnnxError, OptionalStep, one_line
from bertscore_onnx.tables.aligned import aligned, filled, terminal_width


def echo(message: object) -> None:
    """Print a message on standard error.

    It is one write, so that threads do not mix theirs; only a terminal breaks it.
    """
    line = one_line(message)
    text = (
        filled(line, terminal_width()) if sys.stderr is not None and sys.stderr.isatty() else line
    )
    print(f"{text}\n", end="", file=sys.stderr)


def with_options(error: BertScoreOnnxError, typed: Sequence[str] = ()) -> str:
    """Return the message of an error with options in place of arguments.

    It shows the typed command without a step.
    """
    parts = []
    for part in error.parts:
        if isinstance(part, Argument):
            parts.append(_as_option(part))
        elif isinstance(part, OptionalStep):
            parts.append(f"{part}: {shlex.join(word for word in typed if word != part.option)}")
        else:
            parts.append(str(part))
    return "".join(parts)


def _as_option(argument: Argument) -> str:
    option = argument.option or f"--{argument.name.replace('_', '-')}"
    value = argument.value
    if value is None or value is True:
        return option
    if isinstance(value, str):
        value = [value]
    elif isinstance(value, Mapping):
        names_of = {
            role: [names] if isinstance(names, str) else names for role, names in value.items()
        }
        value = [f"{role}={name}" for role, names in names_of.items() for name in names]
    return f"{option} {shlex.join(value)}".replace("'…'", "…")


def silence_warnings() -> None:
    """Print only errors until the command ends."""
    warnings.simplefilter("ignore")
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _OneLineHandler):
            handler.setLevel(logging.ERROR)


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Print log messages, and each different warning, as one line each."""
    shown: set[str] = set()

    def show_warning(message: Warning | str, *_place: object, **_more: object) -> None:
        if (line := f"Warning: {message}") not in shown:
            shown.add(line)
            echo(line)

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
        echo(f"{record.levelname.capitalize()}: {record.getMessage()}")


def print_json(value: object) -> None:
    """Print a value as one line of JSON; raise ValueError for a NaN.

    It is in ASCII, which every encoding has.
    """
    import json  # costs start-up time

    print(json.dumps(value, allow_nan=False))


# The standard streams, which may be closed, or in an encoding that lacks characters.


_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")
"""Control characters but the tab and the line feed, and characters that change the direction of
their neighbours.
"""


class Terminal(io.TextIOWrapper):
    """Standard output on a terminal, which obeys control characters.

    In texts and names they are escaped.
    """

    def write(self, text: str) -> int:
        """Write a text, with escapes that JSON has too."""
        return super().write(_CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text))

    def write_as_is(self, text: str) -> int:
        """Write a text in which every control character is ours.

        These are such as for colours.
        """
        return super().write(text)


def print_coloured(text: str) -> None:
    """Print a text of ours that may have colours."""
    (sys.stdout.write_as_is if isinstance(sys.stdout, Terminal) else sys.stdout.write)(f"{text}\n")


def prepare_streams() -> None:
    """Open closed streams as /dev/null, and escape characters.

    These cannot be encoded, or are obeyed by a terminal. Were a stream left closed, the next file
    that is opened takes the number of a closed stream, and receives the output for it.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            stand_in = Path(os.devnull).open(mode, encoding="utf-8")  # noqa: SIM115 -- stays open
            setattr(sys, name, stand_in)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if sys.stdout.isatty() and not isinstance(sys.stdout, Terminal):
        encoding, errors = sys.stdout.encoding, sys.stdout.errors
        sys.stdout = Terminal(sys.stdout.buffer, encoding, errors, line_buffering=True)


def has_colour(stream: TextIO) -> bool:
    """Return whether to write colours.

    They are for a terminal, unless NO_COLOR is set or TERM is dumb.
    """
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def write_utf8() -> None:
    """Write UTF-8 to standard output, as texts are.

    A terminal has its own encoding.
    """
    if isinstance(sys.stdout, io.TextIOWrapper) and not sys.stdout.isatty():
        sys.stdout.reconfigure(encoding="utf-8", errors=sys.stdout.errors)


# Tables and sentences.


def print_table(
    rows: Sequence[Sequence[str]], *, file: TextIO | None = None, width: int | None = None
) -> None:
    """Print rows of cells as `aligned` returns them."""
    print("\n".join(aligned(rows, width)), file=file)
