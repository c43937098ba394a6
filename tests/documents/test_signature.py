"""docs/signature.md has every field that a signature can have, and no other."""

import ast
import re
from dataclasses import fields

from bertscore_onnx import Signature
from tests.support.snippets import ROOT

PAGE = (ROOT / "docs" / "signature.md").read_text(encoding="utf-8")
DOCUMENTED = {
    name
    for row in re.findall(r"^\| (`.+?) \|", PAGE, re.MULTILINE)
    for name in re.findall(r"`(\w+)`", row)
}
FIELD = re.compile(r"(?:^|\|)([a-z_]+):(?=[\w…])")


def written() -> set[str]:
    """Return the names of the fields in the strings of the source, beside those of `Signature`."""
    found = set()
    for file in (ROOT / "evaluation").rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                text = "".join(
                    str(part.value) if isinstance(part, ast.Constant) else "…"
                    for part in node.values
                )
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            else:
                continue
            if "|" in text and not re.search(r"\s", text):
                found.update(FIELD.findall(text))
    return found


def test_every_field_is_explained():
    assert {field.name for field in fields(Signature)} | written() == DOCUMENTED


def test_fields_of_comparisons_are_found():
    assert {"test", "runs", "seed", "value", "negative", "scores"} <= written()
