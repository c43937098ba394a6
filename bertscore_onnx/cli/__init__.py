"""The command line, `bertscore-onnx COMMAND`.

Results go to standard output, everything else to standard error. The exit status is 0 after success, 1 after an error,
2 after wrong usage and 130 after Ctrl-C.
"""

import errno
import os
import sys
from inspect import cleandoc
from operator import methodcaller
from textwrap import dedent
from typing import Annotated

import typer

from bertscore_onnx import __version__
from bertscore_onnx.cli import (
    baseline,
    batch,
    compare,
    count_documents,
    doctor,
    export,
    inspect,
    meta,
    models,
    pull,
    push,
    score,
    serve,
    show,
    tune_layers,
)
from bertscore_onnx.cli.command import Command, Commands
from bertscore_onnx.cli.terminal import echo, prepare_streams

__all__ = ["app", "main"]

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "token_normalize_func": methodcaller("replace", "_", "-"),  # bert-score spells options with underscores
    },
)
_COMMANDS = {
    "Score": (score.score, batch.batch, count_documents.count_documents, show.show, serve.serve),
    "Judge": (compare.compare, meta.meta, tune_layers.tune_layers, baseline.baseline),
    "Models": (export.export, pull.pull, push.push, models.models, inspect.inspect, doctor.doctor),
}
"""The commands in the groups of the help, each described by its docstring, with examples at its end."""

for _group, _commands in _COMMANDS.items():
    for _command in _commands:
        _help, _, _examples = cleandoc(_command.__doc__ or "").partition("\n\nExamples:\n")
        app.command(cls=Command, rich_help_panel=_group, help=_help, epilog=dedent(_examples))(_command)


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
