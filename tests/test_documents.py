"""Documents that are written from data or tell of settings are up to date."""

import re
from pathlib import Path

import pytest
from document_calibration import DOCUMENT as CALIBRATION
from document_calibration import filled
from document_models import DOCUMENT, document, read_parity

from bertscore_onnx.bundle import catalogue
from tests.support.programs import OLDEST_JAVA

ROOT = Path(__file__).parents[1]


def test_the_support_matrix_is_that_of_the_catalogue():
    assert DOCUMENT.read_text(encoding="utf-8") == document()


def test_every_family_of_the_catalogue_has_been_measured():
    measured = {row["family"] for row in read_parity()}
    assert (
        {entry.family for entry in catalogue.entries().values()}
        <= measured
        == {*catalogue.largest_differences()}
    )


def test_every_measured_difference_is_within_the_promise():
    rows = read_parity()
    assert max(catalogue.largest_differences().values()) <= 1e-5
    assert {row["tokenizer_differences"] for row in rows} == {"0"}
    known_to_differ = {"convbert": 7.2e-6, "deberta-v2": 4.4e-5}  # named in docs/differences.md
    assert {row["family"]: float(row["batch_difference"]) for row in rows} == {
        row["family"]: known_to_differ.get(row["family"], 0) for row in rows
    }


def test_simulated_figures_are_written_into_their_cells():
    page = "a | b\n\n| tool | bs | ar |\n|---|---|---|\n| x, y | - | 3 |\n"
    assert filled(page, {"x, y | bs": "0.05"}) == page.replace("| - |", "| 0.05 |")
    with pytest.raises(ValueError, match="no cell"):
        filled(page, {"x, y | ttest": "0.05"})


def test_every_test_has_been_simulated():
    assert "| - |" not in CALIBRATION.read_text(encoding="utf-8")


def test_the_numbers_and_targets_of_contributing_are_those_of_the_settings():
    names = ("CONTRIBUTING.md", ".ci/run", "Makefile", ".pre-commit-config.yaml", "pyproject.toml")
    page, run, makefile, hooks, project = ((ROOT / name).read_text("utf-8") for name in names)
    [limit] = re.findall(r"^limit=(\d+)", run, re.MULTILINE)
    [too_long] = re.findall(r"\{(\d+)\}", hooks)
    [oldest_python] = re.findall(r'^requires-python = ">=(.+)"', project, re.MULTILINE)
    for sentence in (
        f"You need Python {oldest_python} or newer",
        f"need Java {OLDEST_JAVA} or newer",
        f"`.ci/run` has {int(limit) // 60} minutes",
        f"subject of at most {int(too_long) - 1} characters",
    ):
        assert sentence in page

    targets = re.findall(r"make ([a-z][\w-]+)", " ".join(re.findall("`.*?`", page)))
    defined = re.findall(r"^([\w-]+)(?=[\w -]*:)", makefile, re.MULTILINE)
    assert len(targets) > 20
    assert {*targets} - {*defined} == set()

    five = re.findall(r"^\| `make ([\w-]+)`", page.partition("Changes to the")[0], re.MULTILINE)
    assert five == ["check", "test", "test-full", "lint", "site"]
    assert re.search(r"^step .* lint site ", run, re.MULTILINE)
    assert re.search(r"^step .* test-both ", run, re.MULTILINE)
