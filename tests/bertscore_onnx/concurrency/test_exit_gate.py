import threading

import pytest

from bertscore_onnx.concurrency.exit_gate import ExitGate
from bertscore_onnx.errors import ClosedError
from tests.support.processes import forks, in_forked_child, run_python

SCORING_THREADS = """
import sys, threading
from bertscore_onnx import BERTScorer

bundle, is_daemon = sys.argv[1], sys.argv[2] == "daemon"
scorer = BERTScorer(bundle, device="cpu")
main = threading.current_thread()
one, many = ["the cat sat on the mat"], ["a dog", "a cat sat", "the mat"] * 40
pairs = [(one, one), (many, many[::-1])]
expected = [scorer.score(*pair).F.tolist() for pair in pairs]
begun = threading.Barrier(5)

def score_on():
    begun.wait()
    while is_daemon:
        for pair in pairs:
            scorer.score(*pair)
    main.join()
    is_same = [scorer.score(*pair).F.tolist() for pair in pairs] == expected
    sys.stdout.write(f"{is_same}\\n")

for _ in range(4):
    threading.Thread(target=score_on, daemon=is_daemon).start()
begun.wait()
"""


def run(*arguments):
    ended = run_python(SCORING_THREADS, *arguments)
    return ended.returncode, ended.stdout.split(), ended.stderr


@pytest.fixture
def gate():
    return ExitGate()


@pytest.mark.slow  # it starts processes
def test_threads_score_on_after_the_main_thread_returned(tiny_bundle):
    assert run(tiny_bundle, "not daemon") == (0, ["True"] * 4, "")


@pytest.mark.slow  # it starts processes
def test_python_exits_while_daemon_threads_score(tiny_bundle):
    for _ in range(4):
        assert run(tiny_bundle, "daemon") == (0, [], "")


def test_closing_waits_for_those_inside(gate):
    entered, may_leave, order = threading.Event(), threading.Event(), []

    def stay():
        with gate:
            entered.set()
            assert may_leave.wait(60)
            order.append("left")

    staying = threading.Thread(target=stay)
    staying.start()
    assert entered.wait(60)
    closing = threading.Thread(target=lambda: (gate.close(), order.append("closed")))
    closing.start()
    may_leave.set()
    closing.join(60)
    staying.join(60)
    assert order == ["left", "closed"]


def test_closing_waits_for_a_time_only(gate, monkeypatch):
    monkeypatch.setattr("bertscore_onnx.concurrency.exit_gate.PATIENCE", 0.01)
    with gate:
        gate.close()


def test_a_closed_gate_admits_nobody(gate):
    gate.check()
    gate.close()
    with pytest.raises(ClosedError, match="exiting"):
        gate.check()
    with pytest.raises(ClosedError, match="exiting"), gate:
        pass
    inside = threading.Event()

    def enter():
        with gate:
            inside.set()

    thread = threading.Thread(target=enter, daemon=True)
    thread.start()
    thread.join(0.05)
    assert thread.is_alive()
    assert not inside.is_set()


@forks
def test_a_forked_child_waits_for_none_of_its_parents_threads():
    from bertscore_onnx.concurrency.exit_gate import exit_gate

    with exit_gate:
        assert in_forked_child(lambda: exit_gate.close()) is None
