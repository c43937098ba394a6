"""The command line, `bertscore-onnx COMMAND`.

Results go to standard output, everything else to standard error. The exit status is 0 after success, 1 after an error,
2 after wrong usage and 130 after Ctrl-C.
"""

import errno
import os
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from inspect import cleandoc
from operator import methodcaller
from textwrap import dedent
from typing import Annotated, Any, cast

import typer

from bertscore_onnx import __version__
from bertscore_onnx.cli.command import Command, Commands
from bertscore_onnx.cli.terminal import echo, prepare_streams

__all__ = ["COMMANDS", "app", "main"]

COMMANDS = {
    "score": ("Score", "bertscore_onnx.cli.score:score"),
    "batch": ("Score", "bertscore_onnx_service.cli.batch:batch"),
    "count-documents": ("Score", "bertscore_onnx.cli.count_documents:count_documents"),
    "show": ("Score", "bertscore_onnx.cli.show:show"),
    "serve": ("Score", "bertscore_onnx_service.cli.serve:serve"),
    "compare": ("Judge", "bertscore_onnx_evaluation.cli.compare:compare"),
    "meta": ("Judge", "bertscore_onnx_evaluation.cli.meta_command:meta"),
    "tune-layers": ("Judge", "bertscore_onnx_evaluation.cli.tune_layers:tune_layers"),
    "baseline": ("Judge", "bertscore_onnx.cli.baseline:baseline"),
    "export": ("Models", "bertscore_onnx.cli.export:export"),
    "pull": ("Models", "bertscore_onnx.cli.hub:pull"),
    "push": ("Models", "bertscore_onnx.cli.hub:push"),
    "models": ("Models", "bertscore_onnx.cli.models:models"),
    "inspect": ("Models", "bertscore_onnx.cli.inspect:inspect"),
    "doctor": ("Models", "bertscore_onnx.cli.doctor:doctor"),
}
"""By name, the group in the help, and the function, whose docstring describes the command and ends with examples."""


class _LoadedByName(Mapping[str, Any]):
    """The commands of the table, each imported when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        group, function = COMMANDS[name]
        module, _, attribute = function.partition(":")
        command = getattr(import_module(module), attribute)
        text, _, examples = cleandoc(command.__doc__ or "").partition("\n\nExamples:\n")
        one = typer.Typer(add_completion=False, rich_markup_mode=None)
        epilog = "\b\nExamples:\n" + dedent(examples)  # \b keeps its lines as they are
        one.command(name, cls=Command, rich_help_panel=group, help=text, epilog=epilog)(command)
        return typer.main.get_command(one)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Commands(Commands):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = cast(dict[str, Any], _LoadedByName())


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "token_normalize_func": methodcaller("replace", "_", "-"),  # bert-score spells options with underscores
    },
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"bertscore-onnx {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """BERTScore on ONNX Runtime: the numbers of bert-score, without PyTorch at run time.

    A model is exported once, into a bundle, which `score` uses. Which model? `--lang en` selects roberta-large, as in
    bert-score, whose authors recommend microsoft/deberta-xlarge-mnli for English; `models` lists all models. The help
    of every command has examples: `bertscore-onnx COMMAND --help`.
    """


def main() -> None:
    """Run the command line; print an error of the system, such as a full disk, as one line."""
    prepare_streams()
    try:
        try:
            app()
        finally:
            print(end="", flush=True)
    except OSError as error:
        is_full = error.errno == errno.ENOSPC and error.filename is None
        if not isinstance(error, BrokenPipeError):  # the reader of `… | head -1` has gone away, on purpose
            echo(f"Error: Cannot write all of the output ({error.strerror})." if is_full else f"Error: {error}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more at exit
        sys.exit(1)
