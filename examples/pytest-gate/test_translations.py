"""A test that fails where translations have become worse; `conftest.py` says how it is run."""

from collections.abc import Callable
from pathlib import Path


def read_lines(name: str) -> list[str]:
    """Return the texts of a file of this folder's parent."""
    return (Path(__file__).parents[1] / name).read_text(encoding="utf-8").splitlines()


def test_translations(assert_no_drop: Callable[..., None]) -> None:
    """In place of the file of candidates, let your system translate."""
    assert_no_drop("translations", read_lines("candidates.txt"), read_lines("references.txt"), allowed=0.005)
