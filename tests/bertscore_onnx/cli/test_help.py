"""The help: options and commands in groups, the same in every terminal."""

import re

import pytest
from typer.main import get_command

from bertscore_onnx.cli import app
from bertscore_onnx.cli.help import FIRST, GROUPS

COMMANDS = get_command(app).commands


@pytest.fixture(params=COMMANDS)
def help_of(request, run, monkeypatch):
    """The lines of a command's help in a narrow terminal, by the heading above them; "" above the first."""
    monkeypatch.setenv("COLUMNS", "80")
    sections, heading = {}, ""
    for line in run(request.param, "--help").stdout.splitlines():
        if re.fullmatch(r"[A-Z][\w ]*:", line):
            heading = line.removesuffix(":")
            assert heading not in sections
        sections.setdefault(heading, []).append(line)
    return request.param, sections


def options_of(lines):
    """The first name of each option."""
    return [line.split()[0].rstrip(",") for line in lines if line.startswith("  -")]


def test_every_option_stands_in_a_group_and_the_groups_in_their_order(help_of):
    command, sections = help_of
    headings = [heading for heading in sections if heading not in ("", "Arguments", "Examples")]
    assert headings == [heading for heading in ("Options", *GROUPS) if heading in headings]
    shown = {option for heading in headings for option in options_of(sections[heading])}
    options = [option for option in COMMANDS[command].params if option.param_type_name == "option"]
    assert shown == {"-h", *(option.opts[0] for option in options)}


def test_the_tables_of_the_help_name_all_options_and_no_others():
    used = set()
    for command, first in FIRST.items():
        named = {*" ".join((first, *GROUPS.values())).split()}
        options = [{*option.opts} for option in COMMANDS[command].params if option.param_type_name == "option"]
        assert [names for names in options if not names & named] == [], command
        used |= set().union(*options)
    assert {*" ".join((*FIRST.values(), *GROUPS.values())).split()} - used == set()


def test_a_newcomer_reads_five_options_at_most(help_of):
    _, sections = help_of
    *first, last = options_of(sections["Options"])
    assert (1 <= len(first) <= 5, last) == (True, "-h")


def test_no_line_is_wider_than_the_terminal(help_of):
    _, sections = help_of
    assert [line for lines in sections.values() for line in lines if len(line) > 80] == []


def test_the_help_of_all_commands_names_each_once_and_uncut(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = run("--help").stdout.splitlines()
    for name, command in COMMANDS.items():
        summary = command.help.splitlines()[0]
        assert [line.split(maxsplit=1)[1] for line in lines if line.startswith(f"  {name} ")] == [summary]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("score", "-c pairs.csv -o scored.csv"),
        ("score", "--rescale-with-baseline"),
        ("score", "--matching code-bert-score,beta=3"),
        ("score", "--all-layers"),
        ("score", "-m hf://ORG/REPO"),
        ("compare", "-c a b c --documents"),
        ("meta", "--score comet"),
        ("serve", "--api-key-file"),
        ("export", "--precision int8"),
    ],
)
def test_a_common_task_is_among_the_examples(command, words):
    assert words in COMMANDS[command].epilog
