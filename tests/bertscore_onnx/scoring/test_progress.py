"""The progress bar."""

import io
from contextlib import redirect_stderr
from itertools import count

import pytest

from bertscore_onnx.scoring.progress import progress_bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown_on(stream, shown):
    """Return what is written to a stream by work of 1 and 3 candidates."""
    with redirect_stderr(stream), progress_bar(4, shown=shown) as advance:
        advance(1)
        advance(3)
    return stream.getvalue()


@pytest.fixture
def slow(monkeypatch):
    """Let a second and a half pass whenever the bar looks at the clock."""
    clock = count(0, 1.5)
    monkeypatch.setattr("tqdm.std.time", lambda: next(clock))


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_a_bar_asked_for_tells_count_rate_and_time_left(stream):
    last = shown_on(stream(), True).splitlines()[-1]
    assert "scoring: 100%" in last
    assert "4/4 [" in last
    assert "<00:00" in last
    assert "candidates/s]" in last


def test_fractions_of_candidates_add_up(capsys):
    with progress_bar(None, shown=True) as advance:
        for _ in range(8):
            advance(0.5)
    assert "4 candidates [" in capsys.readouterr().err.splitlines()[-1]


def test_no_bar_is_shown_to_who_wants_none(slow):
    assert shown_on(Terminal(), False) == ""


def test_short_work_shows_no_bar_unasked():
    assert shown_on(Terminal(), None) == ""


def test_long_work_shows_a_bar_unasked_on_a_terminal(slow):
    assert "4/4" in shown_on(Terminal(), None)


def test_no_bar_is_shown_unasked_where_there_is_no_terminal(slow):
    assert shown_on(io.StringIO(), None) == ""
