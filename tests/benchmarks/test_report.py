from benchmarks.document import DOCUMENT
from benchmarks.report import as_markdown, case_as_markdown, goals_as_markdown
from harness.document import BEGIN, END
from tests.harness.test_results import REPORT


def cells(table_line):
    return [cell.strip() for cell in table_line.strip("|").split("|")]


def test_a_case_shows_its_contestants_figures_stages_and_who_is_missing():
    lines = case_as_markdown(REPORT.cases[0]).split("\n")
    assert lines[0] == "### (a) title"
    tables = [cells(line) for line in lines if line.startswith("|")]
    assert ["ours", "1.50 s", "1.00 s to 2.00 s", "10", "100 MB", "1.0e-06"] in tables
    assert ["faster", "2.00 ×", "1.50 × to 2.50 ×", "at least 1.80 ×", "yes"] in tables
    assert ["10", "100"] in tables
    assert "Where our time goes: encode 90.0 %, other 10.0 %." in lines
    assert "Our rate in the model: 5.0 GFLOP/s." in lines
    assert "Not measured: other (missing)." in lines


def test_the_goals_of_all_cases_stand_in_one_table():
    assert cells(goals_as_markdown(REPORT).split("\n")[-1])[:3] == ["a", "faster", "2.00 ×"]


def test_a_report_says_where_it_was_made():
    assert as_markdown(REPORT).startswith(
        "Measured 2030-01-02 03:04.\n\nMachine: processor: one.\n\nSettings: rounds: 2."
    )


def test_the_document_has_the_marks():
    text = DOCUMENT.read_text(encoding="utf-8")
    assert (text.count(BEGIN), text.count(END)) == (1, 1)
