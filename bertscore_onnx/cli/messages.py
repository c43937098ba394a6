"""What the command line says on standard error: errors, warnings and log messages, one line each."""

import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from bertscore_onnx.cli.options.names import with_option_names
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
    def show_warning(message: Warning | str, *place: object, **more: object) -> None:
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
