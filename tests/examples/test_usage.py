import ast
import sys

import pytest

from tests.examples.conftest import EXAMPLES

SCRIPTS = sorted(
    path for path in EXAMPLES.rglob("*.py") if "sys.argv" in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_an_example_without_arguments_shows_its_usage(path, monkeypatch):
    """Of the block that runs, the first statement, which needs none of the packages that the
    example imports.
    """
    module = ast.parse(path.read_text(encoding="utf-8"))
    [block] = [statement for statement in module.body if isinstance(statement, ast.If)]
    names = {"sys": sys, "__doc__": ast.get_docstring(module)}
    monkeypatch.setattr(sys, "argv", [path.name])
    with pytest.raises(SystemExit, match=rf"{path.name} \S*(BUNDLE|MODEL|FOLDER|NUMBER)"):
        exec(compile(ast.Module(block.body[:1], []), str(path), "exec"), names)  # noqa: S102
