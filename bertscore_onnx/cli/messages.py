"""What the command line says on standard error: errors, warnings and log messages, one line each."""

import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from bertscore_onnx.errors import BertScoreOnnxError, one_line


class PlainMessages(TyperGroup):
    """A group of commands whose warnings and errors of ours are one line each, without a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; exit 1 for an error of ours."""
        try:
            with _one_line_warnings():
                return super().invoke(ctx)
        except BertScoreOnnxError as error:
            tell(f"Error: {error}")
            raise typer.Exit(1) from error
        except MemoryError as error:
            tell(f"Error: There is not enough memory. {error}".rstrip())
            raise typer.Exit(1) from error


def tell(message: object) -> None:
    """Print a message as one line on standard error."""
    print(one_line(message), file=sys.stderr)


@contextmanager
def _one_line_warnings() -> Iterator[None]:
    handler = _OneLineHandler(logging.WARNING)
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        logging.getLogger().addHandler(handler)
        try:
            yield
        finally:
            logging.getLogger().removeHandler(handler)


def _show_warning(message: Warning | str, *place: object, **more: object) -> None:
    tell(f"Warning: {message}")


class _OneLineHandler(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        tell(f"{record.levelname.capitalize()}: {record.getMessage()}")
