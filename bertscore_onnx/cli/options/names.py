"""Says options where messages of the library say arguments: `--num-layers` for num_layers."""

import re

from typer.core import TyperCommand

_FORMS = (
    (r"`{name}`", "`{option}`"),
    (r"^{name} is\b", "{option} is"),
    (r"\bLeave {name} out\b", "Leave {option} out"),
    (r"(?<![\w/-]){name}=True\b(?: \({option}\))?", "{option}"),
    (r'(?<![\w/-]){name}="([^"]*)"', r"{option} \1"),
)
"""How messages name an argument that could be a word of English, and what to say instead."""

_ANYWHERE = (r"(?<![\w/.\\-]){name}(?![\w/\\-])", "{option}")
"""The same for a name with an underscore, which is no such word."""


def with_option_names(message: str, command: TyperCommand) -> str:
    """Return a message with the options of a command in place of the library's arguments of the same names."""
    for parameter in command.params:
        option = max(parameter.opts, key=len)
        if parameter.name is None or not option.startswith("--"):
            continue
        for pattern, replacement in (*_FORMS, *([_ANYWHERE] if "_" in parameter.name else [])):
            named = pattern.format(name=parameter.name, option=option)
            message = re.sub(named, replacement.format(option=option), message)
    return message
