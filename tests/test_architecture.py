"""Packages import only from those to their left, and no modules import each other;
docs/architecture.md has the map.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RUNTIME = ROOT / "bertscore_onnx"
EVALUATION = ROOT / "evaluation"
SERVICE = ROOT / "service"
EXPORT = ROOT / "export"
SHIPPED = [RUNTIME, EVALUATION, SERVICE, EXPORT, ROOT / "models"]

DIRECTION = [
    {"errors", "arrays", "files", "protobuf", "scores", "concurrency"},
    {"text", "tables"},
    {"bundle"},
    {"hub"},
    {"encoding"},
    {"matching"},
    {"settings"},
    {"scoring"},
    {"similarity"},
    {"scorer", "functional"},
    {"baselines", "compat"},
    {"cli", "__main__"},
]
FLOOR_OF = {room: floor for floor, rooms in enumerate(DIRECTION) for room in rooms}
EXPORT_USES = ("text", "bundle", "encoding.providers", "scoring.golden", "errors", "__version__")
USES = {
    EVALUATION: (
        "__version__",
        "bundle.catalogue",
        "bundle.manifest",
        "cli.inputs",
        "cli.options",
        "cli.outputs",
        "cli.specs",
        "cli.terminal",
        "errors",
        "files",
        "matching.variants",
        "scorer",
        "scoring.inputs",
        "settings",
        "similarity",
        "tables.aligned",
        "tables.batches",
        "tables.columns",
        "tables.formats",
        "tables.joins",
        "tables.order",
        "tables.repeats",
        "tables.roles",
        "tables.sources",
        "tables.whole_table",
        "text.texts",
    ),
    SERVICE: (
        "__version__",
        "bundle.bundle",
        "bundle.store",
        "cli.inputs",
        "cli.options",
        "cli.specs",
        "cli.terminal",
        "concurrency.closeable",
        "encoding.encoder",
        "errors",
        "files",
        "functional",
        "matching.document_counts",
        "matching.rescaling",
        "scorer",
        "scores",
        "scoring.text_stats",
        "scoring.inputs",
        "scoring.progress",
        "scoring.tokenization",
        "settings",
        "similarity",
        "tables.batches",
        "tables.columns",
        "tables.formats",
        "tables.json_lines",
        "tables.readers",
        "tables.roles",
        "tables.row_reader",
        "tables.score_columns",
        "tables.sources",
        "text.texts",
        "text.tokenizer",
    ),
}
"""All that evaluation and service take from the core; these lists may only shrink."""


def modules(folder: Path) -> Iterator[Path]:
    return (file for file in sorted(folder.rglob("*.py")) if file != RUNTIME / "__init__.py")


@cache
def imports(file: Path) -> list[str]:
    """Return the full names of all that a file imports, wherever in the file."""
    names = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively"
            names += [f"{node.module}.{name.name}" for name in node.names]
    return names


def imports_of_runtime(file: Path) -> Iterator[str]:
    """Yield what a file imports of the runtime, by its name in there."""
    for name in imports(file):
        package, _, inside = name.partition(".")
        if package == "bertscore_onnx":
            yield inside


def is_within(name: str, rooms: tuple[str, ...]) -> bool:
    return any(name == room or name.startswith(f"{room}.") for room in rooms)


def test_rooms_import_only_what_stands_to_their_left() -> None:
    wrong = []
    for file in modules(RUNTIME):
        own = file.relative_to(RUNTIME).with_suffix("").parts[0]
        for name in imports_of_runtime(file):
            other = name.partition(".")[0]
            if other != "__version__" and FLOOR_OF[other] > FLOOR_OF[own]:
                wrong.append(f"{file.relative_to(ROOT)} imports {name}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("house", USES, ids=lambda house: house.name)
def test_a_house_uses_what_is_listed_of_the_core(house: Path) -> None:
    """A module that is no longer used leaves the list, so that the list can only shrink."""
    used = {name for file in modules(house) for name in imports_of_runtime(file)}
    rooms = {room for room in USES[house] if any(is_within(name, (room,)) for name in used)}
    assert sorted(name for name in used if not is_within(name, USES[house])) == []
    assert rooms == {*USES[house]}


def test_the_houses_do_not_know_each_other_and_the_core_knows_none() -> None:
    """Commands are named by a table, whose modules are loaded by name."""
    wrong = []
    for house in (RUNTIME, EVALUATION, SERVICE, EXPORT):
        others = {"bertscore_onnx_evaluation", "bertscore_onnx_service", "reproduce"} - {
            f"bertscore_onnx_{house.name}"
        }
        wrong += [
            f"{file.relative_to(ROOT)} imports {name}"
            for file in modules(house)
            for name in imports(file)
            if name.partition(".")[0] in others
        ]
    assert not wrong, "\n".join(wrong)


def test_the_export_uses_a_few_rooms_of_the_runtime() -> None:
    wrong = [
        f"{file.relative_to(ROOT)} imports {name}"
        for file in modules(EXPORT)
        for name in imports_of_runtime(file)
        if not is_within(name, EXPORT_USES)
    ]
    assert not wrong, "\n".join(wrong)


def test_of_the_runtime_only_a_command_imports_the_export() -> None:
    files = [
        file
        for file in modules(RUNTIME)
        if any(is_within(name, ("bertscore_onnx_export",)) for name in imports(file))
    ]
    assert files == [RUNTIME / "cli" / "export.py"]


def test_the_equations_need_only_numpy() -> None:
    packages = {name.partition(".")[0] for name in imports(RUNTIME / "matching" / "greedy.py")}
    assert packages - sys.stdlib_module_names == {"numpy"}


def module_name(file: Path) -> str:
    parts = (
        file.relative_to(next(root for root in SHIPPED if file.is_relative_to(root)).parent)
        .with_suffix("")
        .parts
    )
    houses = "|".join(folder.name for folder in SHIPPED if folder != RUNTIME)
    return re.sub(rf"^({houses})\.|\.__init__$", "", ".".join(parts))


def test_no_modules_import_each_other() -> None:
    files = {module_name(file): file for folder in SHIPPED for file in modules(folder)}
    graph: dict[str, set[str]] = {}
    for name, file in files.items():
        imported = {full if full in files else full.rpartition(".")[0] for full in imports(file)}
        graph[name] = {other for other in imported & files.keys() if other != name}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


CHOICES = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.IfExp)
NO_LOAD = (ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)
MOST_CHOICES = {RUNTIME: 8.0, EVALUATION: 10.0, SERVICE: 6.0, EXPORT: 8.0}
MOST_NODES = {RUNTIME: 8.0, EVALUATION: 9.0, SERVICE: 7.4, EXPORT: 8.0}
"""What 100 statements of a house may hold of comprehensions and conditional expressions, and the
syntax nodes that a statement may have on average.
"""
MOST_CHOICES_OF_A_FILE = 15.0


def statements(source: str) -> Iterator[list[ast.AST]]:
    """Yield the nodes of each statement of a file, without docstrings and inner statements."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and not _is_docstring(node):
            yield [node, *_own_nodes(node)]


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.stmt, ast.ExceptHandler, ast.match_case, *NO_LOAD)):
            yield child
            yield from _own_nodes(child)


def choices(files: Iterable[Path]) -> tuple[float, float]:
    """Return the comprehensions and conditional expressions of 100 statements, and the syntax nodes
    of a statement.
    """
    loads = [load for file in files for load in statements(file.read_text(encoding="utf-8"))]
    number = sum(isinstance(node, CHOICES) for load in loads for node in load)
    return 100 * number / max(len(loads), 1), sum(map(len, loads)) / max(len(loads), 1)


@pytest.mark.parametrize("house", MOST_CHOICES, ids=lambda house: house.name)
def test_statements_of_a_house_are_plain(house: Path) -> None:
    of_100, nodes = choices(modules(house))
    assert of_100 <= MOST_CHOICES[house]
    assert nodes <= MOST_NODES[house]


@pytest.mark.parametrize("house", MOST_CHOICES, ids=lambda house: house.name)
def test_statements_of_a_file_are_plain(house: Path) -> None:
    fuller = [file for file in modules(house) if choices([file])[0] > MOST_CHOICES_OF_A_FILE]
    assert fuller == []


DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


@pytest.mark.parametrize("house", MOST_CHOICES, ids=lambda house: house.name)
def test_docstrings_begin_with_a_short_line(house: Path) -> None:
    """A module begins with at most 72 characters, and so do three in four of its public names; no
    private docstring has a second paragraph on what "it" is.
    """
    long_modules, lengths, cut_in_two = [], [], []
    for file in modules(house):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if not isinstance(node, DOCUMENTED):
                continue
            docstring = ast.get_docstring(node) or ""
            first = docstring.partition("\n")[0]
            name = getattr(node, "name", "")
            if first and not name.startswith("_"):
                lengths.append(len(first))
            elif not name.endswith("__") and re.search(r"\n\n(It|They|None)\b", docstring):
                cut_in_two.append(f"{file}: {name}")
            if isinstance(node, ast.Module) and len(first) > 72:
                long_modules.append(str(file))
    assert long_modules == []
    assert cut_in_two == []
    assert sum(length > 72 for length in lengths) <= len(lengths) / 4
