"""Every speed in the README and on docs/performance.md is in the figures that `make bench`
wrote.
"""

import re
from pathlib import Path

import pytest
from draw_speed import PAGE, PICTURE, README, SUMMARY, figures_of, picture, summary

from benchmarks.report import DOCUMENT

FIGURES = DOCUMENT.read_text(encoding="utf-8")
BEGIN, END = SUMMARY
SPEED = re.compile(
    r"\d ?(?:×|ms|s|seconds|pairs/s|times)(?![\w-])|(?:half|twice|thrice|times) (?:as|the|its) "
    r"(?:fast|time|speed)"
)
"""How prose could tell a speed."""


@pytest.mark.parametrize("document", [README, PAGE], ids=["README", "performance"])
def test_a_table_of_speeds_is_made_of_the_figures(document: Path) -> None:
    before, table = document.read_text(encoding="utf-8").split(BEGIN)
    table, after = table.split(END)
    assert table.strip() == summary(FIGURES, document)
    assert SPEED.findall(table)
    prose = re.sub(r"```.*?```", "", before + after, flags=re.DOTALL)
    assert [line for line in prose.splitlines() if SPEED.search(line)] == []


def test_the_picture_of_speeds_is_drawn_of_the_figures() -> None:
    assert PICTURE.read_text(encoding="utf-8") == picture(figures_of(FIGURES, "AMX"))
