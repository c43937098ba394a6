"""A test that fails if translations got worse; `conftest.py` explains how to run it."""

from collections.abc import Callable
from pathlib import Path


def read_lines(name: str) -> list[str]:
    """Return the texts of a file of this folder's parent."""
    return (Path(__file__).parents[1] / name).read_text(encoding="utf-8").splitlines()


def test_translations(assert_no_drop: Callable[..., None]) -> None:
    """Replace the file of candidates by the output of your system."""
    assert_no_drop(
        "translations", read_lines("candidates.txt"), read_lines("references.txt"), allowed=0.005
    )
