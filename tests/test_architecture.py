"""Rooms import only what stands to their left, and rooms and files stay small; docs/architecture.md draws the map."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
RUNTIME = ROOT / "bertscore_onnx"
EXPORT = ROOT / "export"
SHIPPED = [RUNTIME, EXPORT, ROOT / "models"]

DIRECTION = [
    {"errors", "extras", "files", "scores", "signature", "concurrency"},
    {"text", "tables"},
    {"bundle"},
    {"hub"},
    {"encoding"},
    {"matching"},
    {"scoring"},
    {"similarity"},
    {"scorer", "scorer_cache", "functional"},
    {"serving", "evaluation", "distributed", "compat"},
    {"server"},
    {"cli", "__main__"},
]
FLOOR_OF = {room: floor for floor, rooms in enumerate(DIRECTION) for room in rooms}
EXPORT_USES = ("text", "bundle", "encoding.onnx_runtime.providers", "scoring.golden", "errors", "__version__")
MAX_FILES = 10
MAX_LINES = 300


def modules(folder: Path) -> Iterator[Path]:
    return (file for file in sorted(folder.rglob("*.py")) if file != RUNTIME / "__init__.py")


def imports(file: Path) -> Iterator[str]:
    """Yield the full names of all that a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file} imports relatively"
            yield from (f"{node.module}.{name.name}" for name in node.names)


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
        file for file in modules(RUNTIME) if any(is_within(name, ("bertscore_onnx_export",)) for name in imports(file))
    ]
    assert files == [RUNTIME / "cli" / "commands" / "export.py"]


@pytest.mark.parametrize("name", ["greedy", "idf"])
def test_the_equations_need_only_numpy(name: str) -> None:
    packages = {one.partition(".")[0] for one in imports(RUNTIME / "matching" / f"{name}.py")}
    assert packages - sys.stdlib_module_names == {"numpy"}


def test_no_room_has_many_files() -> None:
    rooms = {file.parent for folder in SHIPPED for file in folder.rglob("*.py")}
    counts = {str(room.relative_to(ROOT)): len([*room.glob("*.py")]) for room in rooms}
    large = {room: count for room, count in counts.items() if count > MAX_FILES}
    assert not large, large


def test_no_file_is_long() -> None:
    files = [file for folder in SHIPPED for kind in ("py", "html", "js", "css") for file in folder.rglob(f"*.{kind}")]
    lengths = {str(file.relative_to(ROOT)): len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    long = {name: length for name, length in lengths.items() if length > MAX_LINES}
    assert not long, long
