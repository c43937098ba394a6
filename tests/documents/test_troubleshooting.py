"""docs/troubleshooting.md quotes messages that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "troubleshooting.md"
HEADINGS = re.findall(r"^### `(.+)`$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
MIGRATING = PAGE.with_name("migrating.md").read_text(encoding="utf-8")
OTHER_MESSAGES = re.findall(r"^\| `(.+?)`", MIGRATING.partition("| message |")[2], re.MULTILINE)
"""The messages of other packages."""

OTHERS = re.compile(  # of pip, shells, ONNX Runtime, CUDA and transformers
    "matching distribution|zsh:|externally|satisfies|Errno|command not found|no "
    "attribute|PROTOBUF|DLL|libcublas|Specified provider|driver version|allocate memory|couldn't "
    "connect|model identifier|Some weights"
)
OURS = [heading for heading in HEADINGS if not OTHERS.search(heading)]


@pytest.fixture(scope="module")
def messages():
    """Return every string of the package's source, with … for each value in it."""
    found = []
    for folder in ("bertscore_onnx", "evaluation", "service", "export"):
        for file in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                if isinstance(node, ast.JoinedStr):
                    parts = (
                        one.value if isinstance(one, ast.Constant) else "…" for one in node.values
                    )
                    found.append("".join(map(str, parts)))
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.append(node.value)
    return found


def test_at_least_thirty_messages_are_explained():
    assert len(OTHER_MESSAGES) >= 10
    assert len(HEADINGS) == len({*HEADINGS}) >= 30
    assert len(OURS) >= 15


@pytest.mark.parametrize("heading", OURS)
def test_a_message_of_ours_is_in_the_source(heading, messages):
    pieces = [piece.strip(" .") for piece in heading.split("…") if piece.strip(" .")]
    pattern = re.compile(".*".join(map(re.escape, pieces)), re.DOTALL)
    assert any(pattern.search(message) for message in messages)
