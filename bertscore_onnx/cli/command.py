"""How commands are called, how they fail, and the headings of their help.

Typer has its own copy of Click, so the types of Click are reached through Typer, or are `Any`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from bertscore_onnx.cli.terminal import echo, one_line_warnings
from bertscore_onnx.errors import BertScoreOnnxError, one_line

_UsageError: Any = typer.BadParameter.__base__  # which has no public name in Typer


class Command(TyperCommand):
    """A command whose repeatable options accept several values at once, as in `--ref FILE FILE`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat such an option before each of its values, then parse."""
        names = [name for option in self.params if getattr(option, "multiple", False) for name in option.opts]
        return super().parse_args(ctx, _repeated(args, names))

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
        """Run the command; exit with 1 after an error of ours."""
        try:
            with one_line_warnings():
                return super().invoke(ctx)
        except BertScoreOnnxError as error:
            echo(f"Error: {error}")
            raise typer.Exit(1) from error
        except _UsageError as error:  # which the caller prints, with what was typed
            error.message = one_line(error.message)
            raise
        except MemoryError as error:
            echo(f"Error: There is not enough memory. {error}".rstrip())
            raise typer.Exit(1) from error


def _write_panels(formatter: Any, records: Iterable[tuple[str, tuple[str, str]]]) -> None:
    panels: dict[str, list[tuple[str, str]]] = {}
    for panel, record in records:
        panels.setdefault(panel, []).append(record)
    for panel, rows in panels.items():
        with formatter.section(panel):
            formatter.write_dl(rows)
