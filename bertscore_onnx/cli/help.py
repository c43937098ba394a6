"""What `--help` prints: arguments, and options in groups, the same with every version of Typer and without rich."""

import re
from collections.abc import Mapping, Sequence
from inspect import signature
from textwrap import wrap
from typing import Any

from typer.core import TyperArgument

FIRST: Mapping[str, str] = {
    "score": "--cand --ref --model --lang --output",
    "batch": "--input --output --model --lang --engine",
    "count-documents": "--ref --output --model --lang",
    "show": "--cand --ref --model --lang --output",
    "compare": "--cand --ref --model --lang --metric",
    "meta": "--model --matching --metric --score --task",
    "tune-layers": "--model --judgements --matching",
    "baseline": "--model --corpus --output --into-bundle",
    "export": "--model --output --precision --force",
    "serve": "--model --host --port --log-format",
}
"""The few options of a command that everybody needs. Those of the other commands stand together."""

GROUPS: Mapping[str, str] = {
    "EvalSet": "--gold --reference --metric-scores",
    "Texts and tables": "--context --ref-context --documents --by --context-sentences --line --worst --systems --runs "
    "--missing --language-pair --columns --input-format --no-header --no-quotes --delimiter",
    "Model": "--from-onnx --name --adapter --revision --license --num-layers --all-layers --inner-norm "
    "--scoring-graph --tokenizer-mode --precision --exporter --use-fast-tokenizer --long-text --max-length",
    "Scores": "--scores --lower-better --rescale-with-baseline --baseline-path --allow-fp32-baseline --idf "
    "--idf-counts --idf-sents --matching --pairs --max-words",
    "Tasks": "--threshold --human-system --num-hybrids --num-candidates --num-trials --min-examples",
    "Tests": "--baseline --sentinels --hold-out --max-delta --test --resamples --all-pairs --margin --power --deltas "
    "--fail-if-worse --min-f1 --subtract-optimism --tolerance --seed",
    "Speed": "--device --nthreads --batch-size --optimize-for",
    "Access and limits": "--api-key-file --allow-anonymous --limits",
    "Job": "--errors --part-rows --verify",
    "Output": "--seg-level --output --format --keep --html --methods --examples --verbose --quiet",
}
"""The other options, in the order of the help."""

_NAME_WIDTH = 30
"""Longer names of options have a line of their own."""


def write_options(command: Any, ctx: Any, formatter: Any) -> None:
    """Write the arguments and options of a command into a formatter of Click, group by group."""
    options = [parameter for parameter in command.get_params(ctx) if not isinstance(parameter, TyperArgument)]
    groups: dict[str, list[Any]] = {"Options": []}
    if command.name in FIRST:
        for group, names in {"Options": FIRST[command.name], **GROUPS}.items():
            found = (option for name in names.split() for option in options if name in option.opts)
            groups[group] = [*dict.fromkeys(found)]
            options = [option for option in options if option not in groups[group]]
    groups["Options"] += options  # among them --help
    declared = signature(command.callback).parameters  # with the help that Typer before 0.26 loses with Click 8.5
    arguments = [
        (str(argument.metavar), _description(argument, declared[argument.name].annotation.__metadata__[0].help))
        for argument in command.get_params(ctx)
        if isinstance(argument, TyperArgument)
    ]
    rows = {
        group: [(names_of(option, ctx), _description(option, option.help)) for option in options]
        for group, options in groups.items()
    }
    write_sections({"Arguments": arguments, **rows}, formatter)


def write_sections(sections: Mapping[str, Sequence[tuple[str, str]]], formatter: Any) -> None:
    """Write sections of names and descriptions, with all descriptions in one column."""
    names = [name for rows in sections.values() for name, _ in rows]
    width = max(len(name) for name in names if len(name) <= _NAME_WIDTH)
    for section, rows in sections.items():
        if rows:
            with formatter.section(section):
                formatter.write("".join(_entry(name, text, width, formatter.width) for name, text in rows))


def _entry(name: str, text: str, name_width: int, width: int) -> str:
    """Return a name and its description, wrapped between words, but not before the last one or in a short default."""
    text = re.sub(r"\[default: .{,24}\]$| +\S+$", lambda end: end[0].replace(" ", "\0"), text)
    lines = wrap(text, width - name_width - 4, break_on_hyphens=False)
    first = "" if len(name) > name_width else lines.pop(0)
    gap = "\n" + " " * (name_width + 4)
    return "  " + gap.join([f"{name:<{name_width}}  {first}".rstrip(), *lines]).replace("\0", " ") + "\n"


def names_of(option: Any, ctx: Any) -> str:
    """Return the names of an option with its metavar, or with its choices, such as raise|drop."""
    names, _ = option.get_help_record(ctx)
    return re.sub(r"(?<= )[\[<](\S+\|\S+)[\]>]$", r"\1", names)  # versions of Typer differ in the brackets


def _description(parameter: Any, text: str) -> str:
    """Return the help of a parameter with its default."""
    default = parameter.default
    if parameter.required:
        return f"{text}  [required]"
    if isinstance(default, bool) or not isinstance(default, str | int | float) or default == "":
        return text
    return f"{text}  [default: {getattr(default, 'value', default)}]"
