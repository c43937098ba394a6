"""The command line, `bertscore-onnx COMMAND`.

Results go to standard output, everything else to standard error. The exit status is 0 after success, 1 where a gate
or a check failed, 2 after an error and 130 after Ctrl-C.
"""

import errno
import os
import sys
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from inspect import cleandoc
from operator import methodcaller
from textwrap import dedent
from typing import Annotated, Any, cast

import typer
from typer.core import TyperCommand, TyperGroup

from bertscore_onnx import __version__
from bertscore_onnx.cli.terminal import ARGUMENTS, echo, one_line_warnings, prepare_streams
from bertscore_onnx.errors import BertScoreOnnxError, one_line

__all__ = ["COMMANDS", "app", "main"]

COMMANDS = {
    "score": ("Score", "bertscore_onnx.cli.score:score"),
    "batch": ("Score", "bertscore_onnx_service.cli.batch:batch"),
    "count-documents": ("Score", "bertscore_onnx.cli.count_documents:count_documents"),
    "show": ("Score", "bertscore_onnx.cli.show:show"),
    "serve": ("Score", "bertscore_onnx_service.cli.serve:serve"),
    "compare": ("Judge", "bertscore_onnx_evaluation.cli.compare:compare"),
    "meta": ("Judge", "bertscore_onnx_evaluation.cli.meta:meta"),
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


# Typer has its own copy of Click, so the types of Click are reached through Typer, or are `Any`.


_UsageError: Any = typer.BadParameter.__base__  # which has no public name in Typer


class Command(TyperCommand):
    """A command whose repeatable options accept several values at once, as in `--ref FILE FILE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat such an option before each of its values, then parse; messages may show the arguments."""
        ARGUMENTS.set(tuple(args))
        names = [name for option in self.params if getattr(option, "multiple", False) for name in option.opts]
        try:
            return super().parse_args(ctx, _repeated(args, names))
        except _UsageError as error:
            error.message = self._in_own_words(error, args)
            raise

    def _in_own_words(self, error: Any, args: Sequence[str]) -> str:
        """Return the message of an error of usage with the value that was given, and what to do."""
        message, param = str(error.message), getattr(error, "param", None)
        options = {name for option in self.params for name in option.opts}
        if "Input should be " in message and param is not None:
            expected = message.partition("Input should be ")[2].partition(", unable")[0]
            expected = expected.replace("a valid number", "a number").replace("a valid integer", "a whole number")
            expected = f"a number {expected}" if expected.startswith(("greater", "less")) else expected
            return f"it is {_value_of(param.opts, args)!r}; expected {expected}."
        if (option := getattr(error, "option_name", "")) in _FORMATS and "--format" in options:
            return f"{message}. Write `--format {option.removeprefix('--')}`."
        if "--cand" in options and (
            message.startswith("Got unexpected extra") or "--cand" in getattr(param, "opts", ())
        ):
            given = message or "There are no candidates"
            return f"{given}. Put `-c` before the files of candidates, and `-r` before those of references."
        return message.removeprefix("Value error, ")

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the parameters under the headings of their panels, which Typer does only with rich."""
        _write_panels(
            formatter,
            (
                (parameter.rich_help_panel or f"{parameter.param_type_name.capitalize()}s", record)
                for parameter in list[Any](self.get_params(ctx))
                if (record := parameter.get_help_record(ctx)) is not None
            ),
        )


_FORMATS = ("--json", "--jsonl", "--csv", "--tsv", "--latex", "--parquet")


def _value_of(names: Sequence[str], args: Sequence[str]) -> str:
    """Return the value that an option has among arguments."""
    for arg, following in zip(args, [*args[1:], ""], strict=True):
        name, equals, value = arg.partition("=")
        if name.replace("_", "-") in names:
            return value if equals else following
        if arg[:2] in names and not arg.startswith("--"):
            return arg[2:]
    return ""


def _repeated(args: Sequence[str], names: Sequence[str]) -> list[str]:
    repeated: list[str] = []
    option = None
    is_value = False
    for position, arg in enumerate(args):
        if is_value:
            is_value = False
        elif arg == "--":
            return [*repeated, *args[position:]]
        elif arg.startswith("-") and arg != "-":
            name, equals, _ = arg.partition("=")
            option = name if name.replace("_", "-") in names else None
            is_value = option is not None and not equals
        elif option is not None:
            repeated.append(option)
        repeated.append(arg)
    return repeated


def _write_panels(formatter: Any, records: Iterable[tuple[str, tuple[str, str]]]) -> None:
    panels: dict[str, list[tuple[str, str]]] = {}
    for panel, record in records:
        panels.setdefault(panel, []).append(record)
    for panel, rows in panels.items():
        with formatter.section(panel):
            formatter.write_dl(rows)


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


class Commands(TyperGroup):
    """All commands, whose warnings and errors are printed as one line each, without a traceback."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = cast(dict[str, Any], _LoadedByName())

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the first sentence of each command's help, under the headings of their panels."""
        _write_panels(
            formatter,
            (
                (command.rich_help_panel, (name, command.get_short_help_str(formatter.width)))
                for name, command in dict[str, Any](self.commands).items()
            ),
        )

    def invoke(self, ctx: Any) -> Any:
        """Run the command; exit with 2 after an error of ours."""
        try:
            with one_line_warnings():
                return super().invoke(ctx)
        except BertScoreOnnxError as error:
            echo(f"Error: {error}")
            raise typer.Exit(2) from error
        except _UsageError as error:  # which the caller prints, with what was typed
            error.message = one_line(error.message)
            raise
        except BrokenPipeError as error:  # Typer would exit with 1
            raise typer.Exit(2) from error
        except MemoryError as error:
            echo(f"Error: There is not enough memory. {error}".rstrip())
            raise typer.Exit(2) from error


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
        sys.exit(2)
    except Exception:  # which would end with 1, as a gate that failed
        traceback.print_exc()
        sys.exit(2)
