"""How commands are called, how they fail, and where their `--help` comes from.

Typer has its own copy of Click from some version on, so the types of Click are reached through Typer, or are `Any`.
"""

import os
import re
import shlex
from collections.abc import Sequence
from itertools import takewhile
from textwrap import indent
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from bertscore_onnx.cli.help import names_of, write_options, write_sections
from bertscore_onnx.cli.options import ABSENT
from bertscore_onnx.cli.terminal import echo, one_line_warnings, with_option_names
from bertscore_onnx.errors import BertScoreOnnxError, meant, one_line

_UsageError: Any = typer.BadParameter.__base__  # which has no public name in Typer


class Command(TyperCommand):
    """A command whose repeatable options accept several values at once; its other options are given once."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line, with arguments by their plain names."""
        arguments = [argument for argument in self.get_params(ctx) if isinstance(argument, TyperArgument)]
        names = [str(name.metavar) if name.required else f"[{name.metavar}]" for name in arguments]
        return [str(self.options_metavar), *names]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat such an option before each of its values, then parse."""
        names = [name for option in self.params if getattr(option, "multiple", False) for name in option.opts]
        repeated = _repeated(args, names)
        try:
            if not ctx.resilient_parsing:  # this is not a completion in a shell
                self._check_once(ctx, repeated)
            return super().parse_args(ctx, [*repeated])
        except _UsageError as error:
            option = getattr(error, "option_name", "")  # which Click gives an error of an unknown option
            if option in ABSENT:
                raise _UsageError(f"There is no option {option}: {ABSENT[option]}.", ctx) from error
            if option and not getattr(error, "param", None) and error.message.startswith("No such"):
                near = meant(option, [name for parameter in self.params for name in parameter.opts])
                advice = f"`{ctx.command_path} -h` lists the options."
                raise _UsageError(f"There is no option {option}.{near} {advice}", ctx) from error
            if message := _of_missing(error, option, self.params, ctx):
                raise _UsageError(message, ctx) from error
            if found := re.fullmatch(r"Got unexpected extra argument(?:s|\(s\))? \((.*)\)", error.message):
                raise _UsageError(f"{found[1]} is one argument too many; see `{ctx.command_path} -h`.", ctx) from error
            error.message = _without_pydantic(one_line(error.message), self._value(ctx, repeated, error))
            raise

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the options, group by group."""
        write_options(self, ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples as they are."""
        with formatter.section("Examples"):
            formatter.write(indent(f"{self.epilog}\n", "  "))

    def _value(self, ctx: Any, args: Sequence[str], error: Any) -> object:
        """Return the value that an option was given which an error is about; None if it is about none."""
        name = getattr(getattr(error, "param", None), "name", None)
        return None if name is None else self.make_parser(ctx).parse_args(args=[*args])[0].get(name)

    def _check_once(self, ctx: Any, args: Sequence[str]) -> None:
        # Click alone can split arguments such as -sb4, and after parsing it keeps the last value only.
        _, extra, given = self.make_parser(ctx).parse_args(args=[*args])
        if extra and not any(isinstance(parameter, TyperArgument) for parameter in self.params):
            has_files = any("--cand" in parameter.opts for parameter in self.params)
            advice = f"`{ctx.command_path} -h` lists them"
            if has_files:
                advice = f"files follow options: {_as_options(extra)}"
            raise _UsageError(f"{' '.join(extra)} follows no option; {advice}.", ctx)
        for option in dict.fromkeys(given):
            takes_one = isinstance(option, TyperOption) and not (option.multiple or option.is_flag)
            if takes_one and given.count(option) > 1:
                raise typer.BadParameter(
                    f"it is given {given.count(option)} times; expected once.", param_hint=", ".join(option.opts)
                )


def _of_missing(error: Any, name: str, parameters: Sequence[Any], ctx: Any) -> str:
    """Return the message for an option or argument that is missing, or lacks a value; nothing for other errors."""
    is_missing = type(error).__name__ == "MissingParameter"
    if not is_missing and "requires an argument" not in error.message:
        return f"{name} takes no value; leave out = and what follows." if "not take a value" in error.message else ""
    parameter = error.param if is_missing else next(one for one in parameters if name in one.opts)
    expected = str(parameter.metavar) if isinstance(parameter, TyperArgument) else names_of(parameter, ctx)
    help_text = str(parameter.help or "").partition("  [")[0]
    return f"{'Give' if is_missing else f'{name} has no value; expected'} {expected.rstrip('.')}. {help_text}".rstrip()


_OWN = ("--help", "-h", "--version")
"""Options that stand without a command."""


def _as_options(files: Sequence[str]) -> str:
    """Return files of candidates and references as options."""
    return " ".join(f"{'-r' if number else '-c'} {shlex.quote(name)}" for number, name in enumerate(files))


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


class Commands(TyperGroup):
    """All commands, whose warnings and errors are printed as one line each, without a traceback."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, each with the first line of its help, then the options."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, command in self.commands.items():
            summary, *_ = str(command.help).splitlines()
            sections.setdefault(str(command.rich_help_panel), []).append((name, summary))  # type: ignore[attr-defined]
        write_sections(sections, formatter)
        write_options(self, ctx, formatter)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse what precedes a command; `help COMMAND` is `COMMAND --help`, and options alone need a command."""
        if args[:1] == ["help"]:
            args = [*args[1:2], "--help"]
        first = args[0].partition("=")[0] if args else ""
        score = self.commands["score"]
        if first.replace("_", "-") in [name for option in score.params for name in option.opts if name not in _OWN]:
            raise _UsageError(f"Name a command: bertscore-onnx score {shlex.join(args)}", ctx)
        return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command; files in its place get the command that scores them."""
        if args[0] not in self.commands and os.path.exists(args[0]):
            files = [*takewhile(lambda arg: not arg.startswith("-"), args)]
            command = f"bertscore-onnx score {_as_options(files)} {shlex.join(args[len(files) :])}".rstrip()
            raise _UsageError(f"{args[0]} is a file; expected a command, such as {command}", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run the command; exit with 1 after an error of ours."""

        def with_options(message: object) -> str:
            command = self.commands.get(ctx.invoked_subcommand)
            return with_option_names(str(message), command) if isinstance(command, TyperCommand) else str(message)

        try:
            with one_line_warnings(with_options):
                return super().invoke(ctx)
        except BertScoreOnnxError as error:
            echo(f"Error: {with_options(error)}")
            raise typer.Exit(1) from error
        except _UsageError as error:  # which the caller prints, with what was typed
            error.message = _without_pydantic(one_line(error.message))
            raise
        except MemoryError as error:
            echo(f"Error: There is not enough memory. {error}".rstrip())
            raise typer.Exit(1) from error


def _without_pydantic(message: str, value: object = None) -> str:
    """Return the message of a wrong value of an option without the words of pydantic or Click, as Typer has them."""
    expected = re.sub(r"^Value error, |, unable to parse string as an? \w+$", "", message)
    expected = re.sub(r"^Input should be (greater|less)", r"expected a number \1", expected)
    expected = re.sub(r"^Input should be ", "expected ", expected)
    expected = re.sub(r"^('.*' is not|expected) a valid int(eger|( range)?\.).*", "expected a whole number", expected)
    if found := re.fullmatch(r"\S+ is not in the range (?:(\S+)<=)?x(?:(<=|>=)(\S+))?\.", expected):  # of older Typers
        least, most = (found[3], None) if found[2] == ">=" else (found[1], found[3])
        bounds = [f"greater than or equal to {least}"] * bool(least) + [f"less than or equal to {most}"] * bool(most)
        expected = f"expected a number {' and '.join(bounds)}"
    expected = re.sub(r"^('.*' is not|expected) a valid (number|float).*", "expected a number", expected)
    return f"{value!r} is given; {expected}." if value is not None and expected.startswith("expected") else expected
