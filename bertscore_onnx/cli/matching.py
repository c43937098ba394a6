"""The matching that the options of a command describe: a preset, and the fields that other options change."""

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, get_args

import typer

from bertscore_onnx.cli.inputs import lines_of
from bertscore_onnx.errors import InputError
from bertscore_onnx.matching.variants import Excluded, Matching
from bertscore_onnx.tables.sources import STANDARD_INPUT

_RANGE = re.compile(r"(-?\d{1,4})(?:-(-?\d{1,4}))?")


def chosen_matching(values: Mapping[str, Any]) -> Matching | None:
    """Return the matching that the values of the options describe; None if none of them is given.

    A command may lack --layers and --pool, and have several presets, which it handles itself.
    """
    preset = values["preset"] if isinstance(values["preset"], str) else None
    fields: dict[str, Any] = {"method": values["matching"], "beta": values["beta"], "pool": values.get("pool")}
    if values["exclude"]:
        fields["exclude"], fields["words"] = _excluded(values["exclude"])
    if values.get("layers") is not None:
        fields["layers"] = _layers(values["layers"])
    if values["center"] is not None:
        fields["center"] = _center(values["center"])
    fields = {name: value for name, value in fields.items() if value is not None}
    if not fields and preset is None:
        return None
    matching = Matching.named(preset or "bertscore", **fields)
    if fields.get("pool") is not None and not matching.layers:
        raise typer.BadParameter("it has no effect without --layers; add it.", param_hint="--pool")
    return matching


def _excluded(given: Sequence[str]) -> tuple[list[str] | None, list[str] | None]:
    """Return the kinds of tokens, and the words in files; None for what is not given."""
    known = get_args(Excluded)
    kinds, files = [name for name in given if name in known], [name for name in given if name not in known]
    for name in files:
        if not os.path.isfile(name):
            raise InputError(f"--exclude {name!r} is no file, and none of {', '.join(known)}.")
    words = [word.strip() for file in files for word in lines_of(file, "words, one per line") if word.strip()]
    return kinds or None, words or None


def _layers(given: str) -> list[int]:
    """Return the layers of numbers and ranges such as 2-4, 8,9,12 or -5--1."""
    layers: list[int] = []
    for part in given.split(","):
        found = _RANGE.fullmatch(part.strip())
        first = int(found[1]) if found else 0
        numbers = range(first, int(found[2] or first) + 1) if found else range(0)
        if not numbers:
            raise InputError(f"--layers is {given!r}; expected numbers and ranges, such as 2-4, 8,9,12 or -5--1.")
        layers += numbers
    return layers


def _center(given: str) -> str | list[str]:
    if given == "references":
        return given
    if given == STANDARD_INPUT:
        raise typer.BadParameter("standard input is for the texts to score; name a file.", param_hint="--center")
    return [line for line in lines_of(given, "sentences, one per line") if line.strip()]
