"""Generates the reference of the commands from the command line itself."""

import re
from inspect import cleandoc

import typer
from sphinx.application import Sphinx
from typer.cli import get_docs_for_click

from bertscore_onnx.cli import app as command_line

MARK = "<!-- commands -->"


def setup(sphinx: Sphinx) -> dict[str, bool]:
    """Connect this to the build."""
    sphinx.connect("source-read", write_commands)
    return {"parallel_read_safe": True}


def write_commands(sphinx: Sphinx, document: str, source: list[str]) -> None:
    """Replace the mark in a document by the help of all commands."""
    if MARK in source[0]:
        group = typer.main.get_command(command_line)
        context = typer.Context(group, info_name="bertscore-onnx")
        commands = {name: group.get_command(context, name) for name in group.list_commands(context)}
        # as they are changed for the page
        group.get_command = lambda _context, name: commands[name]
        for command in commands.values():
            # whole, where typer would cut it
            command.short_help = (command.help or "").partition("\n\n")[0]
            _, title, *examples = cleandoc(command.epilog).splitlines()
            command.epilog = "\n".join([title, "", "```bash", *map(str.strip, examples), "```"])
        text = get_docs_for_click(obj=group, ctx=context, name="bertscore-onnx", title="Commands")
        source[0] = source[0].replace(MARK, _with_quoted_options(text))


def _with_quoted_options(text: str) -> str:
    """Put options in prose into backticks, so that Sphinx does not turn their hyphens into
    dashes.
    """
    return re.sub(r"(`[^`]*`)|(--[a-z][\w-]*)", lambda found: found[1] or f"`{found[2]}`", text)
