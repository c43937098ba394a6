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


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_a_bar_asked_for_has_count_rate_and_time_left(stream):
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


@pytest.mark.parametrize(
    ("stream", "shown", "is_slow", "is_there"),
    [
        pytest.param(Terminal, False, True, False, id="unwanted"),
        pytest.param(Terminal, None, False, False, id="short work unasked"),
        pytest.param(Terminal, None, True, True, id="long work unasked"),
        pytest.param(
            io.StringIO, None, True, False, id="long work unasked where there is no terminal"
        ),
    ],
)
def test_a_bar_is_shown_unasked_for_long_work_on_a_terminal(
    monkeypatch, stream, shown, is_slow, is_there
):
    if is_slow:  # a second and a half passes whenever the bar looks at the clock
        clock = count(0, 1.5)
        monkeypatch.setattr("tqdm.std.time", lambda: next(clock))
    written = shown_on(stream(), shown)
    assert ("4/4" in written) is bool(written) is is_there
