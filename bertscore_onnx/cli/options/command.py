"""How every command is called: `-r a.txt b.txt`, as bert-score has it, stands for `-r a.txt -r b.txt`."""

from collections.abc import Sequence
from typing import Any

from typer.core import TyperCommand


class Command(TyperCommand):
    """A command whose repeatable options take several values at once, too."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what stands in the line of usage, an argument by its plain name."""
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Repeat such an option before each of its values, and parse that."""
        names = [name for option in self.params if getattr(option, "multiple", False) for name in option.opts]
        return super().parse_args(ctx, _repeated(args, names))


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
