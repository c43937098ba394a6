"""The index of the examples names each of them, and the version it is run with."""

import json
import re

import pytest

from tests.examples.conftest import EXAMPLES
from tests.support.programs import WEB

INDEX = (EXAMPLES / "README.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\|.*\| \[(\S+)\]\((\S+)\) \| (?:(\S+) (\S+) )?\|$", INDEX, re.MULTILINE)
NO_EXAMPLES = {
    "README.md",
    "candidates.txt",
    "references.txt",
    "systems.csv",
    "minilm.py",
    "demo.py",
    "constraints",
    "__pycache__",
}


def pins(file):
    lines = file.read_text(encoding="utf-8").splitlines()
    of_node = [
        name
        for line in lines
        if line.startswith("# npm: ")
        for name in line.removeprefix("# npm: ").split()
    ]
    return dict(
        [line.split("==") for line in lines if "==" in line] + [name.split("@") for name in of_node]
    )


@pytest.mark.parametrize(
    "file", sorted(EXAMPLES.glob("constraints/*.txt")), ids=lambda file: file.stem
)
def test_every_package_that_an_environment_is_made_from_is_pinned(file):
    [line] = re.findall(r"^# From: (.+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    names = [re.match(r"[\w-]+", requirement)[0] for requirement in line.split()]
    pinned = {name.lower().replace("_", "-") for name in pins(file)}
    assert names
    assert {*names} <= pinned


def test_every_example_is_in_the_index():
    assert {name.rstrip("/") for name, *_ in ROWS} == {
        path.name for path in EXAMPLES.iterdir()
    } - NO_EXAMPLES
    assert all((EXAMPLES / path).is_file() for _, path, *_ in ROWS)


def test_every_export_of_the_script_for_pages_has_a_type():
    exported = [
        re.findall(r"^export (?:function|class) (\w+)", path.read_text("utf-8"), re.MULTILINE)
        for path in (WEB / "bertscore.mjs", WEB / "bertscore.d.mts")
    ]
    assert exported[0] == exported[1] != []


def test_every_version_is_the_one_that_tests_install():
    files = {file.stem: file for file in EXAMPLES.glob("constraints/*.txt")}
    named = {package: version for _, _, package, version in ROWS if package}
    assert files.keys() <= named.keys()
    of_node = json.loads((WEB / "package.json").read_bytes())["dependencies"]
    for package, version in named.items():
        pinned = (
            of_node
            if package in of_node
            else pins(files.get(package, EXAMPLES.parent / "constraints.txt"))
        )
        assert {name.replace("_", "-"): pin for name, pin in pinned.items()}[package] == version
