"""How commands are called, how they fail, and where their `--help` comes from.

Typer has its own copy of Click from some version on, so the types of Click are reached through Typer, or are `Any`.
"""

import re
from collections.abc import Sequence
from itertools import takewhile
from textwrap import indent
from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from bertscore_onnx.cli.help import write_options, write_sections
from bertscore_onnx.cli.options import REPLACED
from bertscore_onnx.cli.terminal import echo, one_line_warnings, with_option_names
from bertscore_onnx.errors import BertScoreOnnxError, one_line

_UsageError: Any = typer.BadParameter.__base__  # which has no public name in Typer


class Command(TyperCommand):
    """A command whose repeatable options accept several values at once; its other options are given once."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return the parts of the usage line, with arguments by their plain names."""
        arguments = [argument for argument in self.get_params(ctx) if isinstance(argument, TyperArgument)]
        names = [str(name.metavar) if name.required else f"[{name.metavar}]" for name in arguments]
        return [str(self.options_metavar), *names]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat such an option before each of its values, then parse; name the new spelling of a replaced option."""
        names = [name for option in self.params if getattr(option, "multiple", False) for name in option.opts]
        repeated = _repeated(args, names)
        try:
            if not ctx.resilient_parsing:  # this is not a completion in a shell
                self._check_once(ctx, repeated)
            return super().parse_args(ctx, repeated)
        except _UsageError as error:
            option = getattr(error, "option_name", "")  # which Click gives an error of an unknown option
            if option in REPLACED:
                raise _UsageError(f"{option} is now {_new_spelling(option, args)}.", ctx) from error
            raise

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments and the options, group by group."""
        write_options(self, ctx, formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples as they are."""
        with formatter.section("Examples"):
            formatter.write(indent(f"{self.epilog}\n", "  "))

    def _check_once(self, ctx: Any, args: Sequence[str]) -> None:
        # Click alone can split arguments such as -sb4, and after parsing it keeps the last value only.
        *_, given = self.make_parser(ctx).parse_args(args=[*args])
        for option in dict.fromkeys(given):
            takes_one = isinstance(option, TyperOption) and not (option.multiple or option.is_flag)
            if takes_one and given.count(option) > 1:
                raise typer.BadParameter(
                    f"it is given {given.count(option)} times; expected once.", param_hint=", ".join(option.opts)
                )


def _new_spelling(option: str, args: Sequence[str]) -> str:
    """Return the new spelling of a replaced option, with the values that follow it."""
    place = next(place for place, arg in enumerate(args) if arg.partition("=")[0].replace("_", "-") == option)
    _, equals, value = args[place].partition("=")
    values = [value] if equals else [*takewhile(lambda arg: not arg.startswith("-"), args[place + 1 :])]
    return REPLACED[option].format(" ".join(values), "+".join(values))


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


def _without_pydantic(message: str) -> str:
    """Return the message of a wrong value of an option without the wording of pydantic, which Typer passes on."""
    message = re.sub(r"^Value error, |, unable to parse string as an? \w+$", "", message)
    message = re.sub(r"^Input should be (greater|less)", r"expected a number \1", message)
    return re.sub(r"^Input should be ", "expected ", message)
