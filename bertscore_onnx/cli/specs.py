"""Values of options that are written NAME=VALUE, such as `--limits max_requests=64 drain=10`."""

import re
from collections.abc import Collection, Iterable
from typing import Any

import typer

_BETWEEN = re.compile(r",\s*(?=\w[\w-]*=)")


def fields_of(specs: Iterable[str], known: Collection[str], option: str) -> dict[str, list[str]]:
    """Return the values of each name, in their order, of one option's specs.

    A comma separates two of them only if `NAME=` follows it, and the first = separates the name from its value, so
    that values may contain both. typer.BadParameter is raised for anything else, and for an unknown name.
    """
    fields: dict[str, list[str]] = {}
    for item in (item for spec in specs for item in _BETWEEN.split(spec)):
        name, _, value = item.partition("=")
        name = name.strip().replace("-", "_")
        if name not in known or not value:
            raise typer.BadParameter(
                f"{item!r} is not of the form NAME=VALUE with one of the names {', '.join(known)}.", param_hint=option
            )
        fields.setdefault(name, []).append(value)
    return fields


def settings_of(specs: Iterable[str], known: Collection[str], option: str) -> dict[str, str]:
    """Return the value of each name, as `fields_of` does, where each is given at most once."""
    fields = fields_of(specs, known, option)
    for name, values in fields.items():
        if len(values) > 1:
            raise typer.BadParameter(f"{name} is given {len(values)} times; expected once.", param_hint=option)
    return {name: value for name, [value] in fields.items()}


def number_of(name: str, value: str, kind: type[int] | type[float], option: str) -> int | float:
    """Return a number; raise typer.BadParameter if the value is none of this kind."""
    try:
        return kind(value)
    except ValueError as error:
        expected = "a whole number" if kind is int else "a number"
        raise typer.BadParameter(f"{name} is {value!r}; expected {expected}.", param_hint=option) from error


def metrics_of(specs: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the metrics, such as of `bleu,tokenize=zh chrf`, with the arguments of sacreBLEU's class of each."""
    metrics: dict[str, dict[str, Any]] = {}
    for spec in specs:
        name, *items = spec.split(",")
        name, settings = name.strip().lower(), dict(item.strip().partition("=")[::2] for item in items)
        if name in metrics or len(settings) < len(items) or not all(settings.values()):
            raise typer.BadParameter(
                f"{spec!r} is not of the form NAME,FIELD=VALUE with each of them once, such as bleu,tokenize=zh.",
                param_hint="--metric",
            )
        if settings and name == "bertscore":
            raise typer.BadParameter(
                f"{spec!r}: bertscore has no fields, but options, such as --idf.", param_hint="--metric"
            )
        metrics[name] = {field: _literal(value) for field, value in settings.items()}
    return metrics


def _literal(text: str) -> bool | int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return {"true": True, "false": False}.get(text, text)
