"""What a page of the documentation shows: its commands with their output, its code, and whether that is still true."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

_VARYING = {"bundle", "version"}
"""The fields of a signature that differ from one export, or one release, to the next."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command of a console, and what it is shown to print; nothing where the page shows nothing."""

    line: str
    output: str


def code_blocks(page: Path, language: str) -> list[str]:
    """Return the content of a page's blocks of a language; "" for those of none."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    return [content for named, content in blocks if named == language]


def commands(page: Path) -> list[Command]:
    """Return the commands of a page's consoles, each in one line and without its comment."""
    found = []
    for block in code_blocks(page, "console"):
        for part in re.split(r"^\$ ", block.replace("\\\n", " "), flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            found.append(Command(re.sub(r"\s+# .*", "", line).strip(), output.rstrip("\n")))
    return found


def assert_same_form(shown: object, got: object) -> None:
    """Check that what a page shows could have come out.

    Structures have the same keys in the same order, numbers are near, texts equal. A signature has the same fields in
    the same order, with the same values but for the bundle's digest and the version.
    """
    if isinstance(shown, dict):
        assert list(got) == list(shown)
        for key, value in shown.items():
            assert_same_form(value, got[key])
    elif isinstance(shown, list):
        assert len(got) == len(shown)
        for one, other in zip(shown, got, strict=True):
            assert_same_form(one, other)
    elif isinstance(shown, float):
        assert got == pytest.approx(shown, abs=1e-3)
    elif isinstance(shown, str) and shown.startswith("bertscore-onnx|"):
        assert _signature_fields(got) == _signature_fields(shown)
    else:
        assert (type(got), got) == (type(shown), shown)


def assert_same_lines(shown: str, got: str) -> None:
    """Check lines of JSON, each for its form."""
    assert len(got.splitlines()) == len(shown.splitlines())
    for one, other in zip(shown.splitlines(), got.splitlines(), strict=True):
        assert_same_form(json.loads(one), json.loads(other))


def _signature_fields(signature: str) -> list[tuple[str, str]]:
    fields = [field.partition(":") for field in signature.split("|")[1:]]
    return [(name, "" if name in _VARYING else value) for name, _, value in fields]
