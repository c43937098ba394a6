import pytest

from harness.document import BEGIN, END, with_figures
from tests.harness.test_results import REPORT


def as_sentence(report):
    return f"Measured {report.made}.\n"


def test_figures_are_written_between_the_marks_only():
    document = with_figures(f"before\n{BEGIN}\nold\n{END}\nafter\n", [REPORT], as_sentence)
    assert document.startswith(f"before\n{BEGIN}\n\nMeasured")
    assert document.endswith(f"\n{END}\nafter\n")
    assert "old" not in document
    assert with_figures(document, [REPORT], as_sentence) == document


def test_a_document_without_marks_is_refused():
    with pytest.raises(SystemExit, match="no lines"):
        with_figures("nothing here", [REPORT], as_sentence)
