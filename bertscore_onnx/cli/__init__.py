"""The command line, `bertscore-onnx COMMAND`.

Results go to standard output, everything else to standard error. The exit status is 0 after
success, 1 where a gate or a check failed, 2 after an error and 130 after Ctrl-C.
"""

import errno
import os
import shlex
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from inspect import cleandoc, signature
from math import inf
from operator import methodcaller
from textwrap import dedent
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from typer.core import TyperCommand, TyperGroup

from bertscore_onnx import __version__
from bertscore_onnx.cli.terminal import echo, one_line_warnings, prepare_streams, with_options
from bertscore_onnx.errors import BertScoreOnnxError, one_line, shortened

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
"""By name, the group in the help, and the function, whose docstring describes the command and ends
with examples.
"""


# Typer has its own copy of Click, so the types of Click are reached through Typer, or are `Any`.


_UsageError: Any = typer.BadParameter.__base__  # which has no public name in Typer


class Command(TyperCommand):
    """A command whose repeatable options accept several values at once.

    For example `--ref FILE FILE`.
    """

    choices: Mapping[str, Sequence[str]]
    """The options that take each choice, such as `--format json` by `--json`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat such an option before each of its values, then parse."""
        names = [
            name
            for option in self.params
            if getattr(option, "multiple", False)
            for name in option.opts
        ]
        try:
            rest = super().parse_args(ctx, _repeated(args, names))
        except _UsageError as error:
            # it is an unknown option, perhaps the value of another
            if hasattr(error, "possibilities"):
                error.possibilities = self.choices.get(error.option_name) or error.possibilities
            raise
        if rest and not ctx.resilient_parsing:  # as when a shell completes a word
            first = self.params[0]
            form = f"an option before it, such as {first.opts[0]}"
            if first.param_type_name == "argument":
                form = f"a single {first.metavar}"
            ctx.fail(f"{shlex.join(rest)} is unexpected; expected {form}.")
        return rest

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the parameters under the headings of their panels.

        Typer does this only with rich.
        """
        records = []
        for parameter in list[Any](self.get_params(ctx)):
            record = parameter.get_help_record(ctx)
            if record is not None:
                usual_panel = f"{parameter.param_type_name.capitalize()}s"
                records.append((parameter.rich_help_panel or usual_panel, record))
        _write_panels(formatter, records)


def _parse_values(command: Any) -> dict[str, list[str]]:
    """Have numbers and choices parsed by `_parser`.

    Return the options with their choices, by `--choice`.
    """
    choices: dict[str, list[str]] = {}
    for parameter in signature(command).parameters.values():
        if parameter.annotation is typer.Context:
            continue
        kind, option = get_args(parameter.annotation)
        while get_origin(kind) not in (None, Literal):
            kind = get_args(kind)[0]  # int of list[int] | None
        if kind in (int, float) or get_args(kind):
            option.parser = _parser(kind, option.min, option.max)
        for choice in get_args(kind):
            name = (option.default, *option.param_decls)[-1]
            choices.setdefault(f"--{choice}", []).append(f"{name} {choice}")
    return choices


def _parser(kind: Any, low: float | None, high: float | None) -> Callable[[Any], Any]:
    """Return a parser of numbers or choices whose errors name the given and the expected values."""
    choices = get_args(kind)
    expected = "a whole number" if kind is int else "a number"
    if choices:
        expected = f"one of {', '.join(map(repr, choices))}"
    if low is not None and high is None:
        expected += f" of at least {low:,}"
    elif low is not None:
        expected += f" from {low:,} to {high:,}"
    lowest = -inf if low is None else low
    highest = inf if high is None else high

    def parse(text: Any) -> Any:
        with suppress(ValueError):
            value = text if choices else kind(text)
            is_in_range = not choices and lowest <= value <= highest and abs(value) < inf
            if is_in_range or value in choices:
                return value
        raise typer.BadParameter(f"it is {shortened(str(text))!r}; expected {expected}.")

    parse.__name__ = "|".join(choices) or "number"  # for the help of older versions of Typer
    return parse


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


def _load_command(name: str) -> Any:
    """Import a command of the table, and return it as Typer makes it."""
    group, function = COMMANDS[name]
    module, _, attribute = function.partition(":")
    command = getattr(import_module(module), attribute)
    choices = _parse_values(command)
    text, _, examples = cleandoc(command.__doc__ or "").partition("\n\nExamples:\n")
    rest = {"allow_extra_args": True}  # for `parse_args` to refuse
    typer_app = typer.Typer(add_completion=False, rich_markup_mode=None, context_settings=rest)
    epilog = "\b\nExamples:\n" + dedent(examples)  # \b keeps its lines as they are
    typer_app.command(name, cls=Command, rich_help_panel=group, help=text, epilog=epilog)(command)
    made: Any = typer.main.get_command(typer_app)
    made.choices = choices
    return made


CLOSED_PIPE = 128 + 13
"""The status where the reader of `… | head -1` has gone away: that of a program which the signal
SIGPIPE ends.
"""


@contextmanager
def _own_status_of_closed_pipes() -> Iterator[None]:
    """Exit with `CLOSED_PIPE` where Typer would exit with 1."""
    try:
        yield
    except BrokenPipeError as error:
        raise typer.Exit(CLOSED_PIPE) from error


class Commands(TyperGroup):
    """All commands.

    Warnings and errors are printed as one line each, without a traceback.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        names: dict[str, Any] = dict.fromkeys(COMMANDS)
        self.commands = names  # from which Typer suggests the nearest one for another name

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the table."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return the command of this name, or None if there is none.

        A command is imported with its first use.
        """
        return _load_command(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the first sentence of each command's help, grouped by panel."""
        records = []
        for name in COMMANDS:
            command = _load_command(name)
            help_text = command.get_short_help_str(formatter.width)
            records.append((command.rich_help_panel, (name, help_text)))
        _write_panels(formatter, records)

    def make_context(self, *arguments: Any, **options: Any) -> Any:
        """Read the arguments.

        Print the help or the version if they ask for these.
        """
        with _own_status_of_closed_pipes():
            return super().make_context(*arguments, **options)

    def invoke(self, ctx: Any) -> Any:
        """Run the command.

        Exit with 2 after an error of ours, and with 130 after Ctrl-C, with the command's notes.
        """
        arguments = list(ctx.args)
        try:
            with one_line_warnings(), _own_status_of_closed_pipes():
                return super().invoke(ctx)
        except BertScoreOnnxError as error:
            command = ["bertscore-onnx", ctx.invoked_subcommand, *arguments]
            echo(f"Error: {with_options(error, command)}")
            raise typer.Exit(2) from error
        except _UsageError as error:  # which the caller prints, with what was typed
            error.message = one_line(error.message)
            raise
        except KeyboardInterrupt as interruption:
            for note in getattr(interruption, "__notes__", ["Interrupted."]):
                echo(note)
            raise typer.Exit(130) from interruption
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
        # bert-score spells options with underscores
        "token_normalize_func": methodcaller("replace", "_", "-"),
    },
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"bertscore-onnx {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Print the version.", callback=_print_version, is_eager=True
        ),
    ] = False,
) -> None:
    """BERTScore on ONNX Runtime: the numbers of bert-score, without PyTorch at run time.

    A model is exported once, into a bundle, which `score` uses. Which model? `--lang en` selects
    roberta-large, as in bert-score, whose authors recommend microsoft/deberta-xlarge-mnli for
    English; `models` lists all models. The help of every command has examples: `bertscore-onnx
    COMMAND --help`.
    """


def main() -> None:
    """Run the command line.

    An error of the system, such as a full disk, is printed as one line.
    """
    prepare_streams()
    try:
        try:
            app()
        finally:
            print(end="", flush=True)
    except OSError as error:
        status = CLOSED_PIPE
        if not isinstance(error, BrokenPipeError):
            status = 2
            fault = str(error)
            if error.errno == errno.ENOSPC and error.filename is None:
                fault = f"Cannot write all of the output ({error.strerror})."
            echo(f"Error: {fault}")
        # the interpreter flushes once more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(status)
    except Exception:  # which would end with 1, as a gate that failed
        traceback.print_exc()
        sys.exit(2)
