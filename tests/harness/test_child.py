import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.child import Child, ChildError, call_in_child


def double(number):
    return 2 * number


def fail():
    raise ValueError("what went wrong")


def test_a_child_does_one_work_after_the_other():
    with Child() as child:
        assert [child.do(double, number, limit=60) for number in (1, 2)] == [2, 4]


def test_one_call_has_a_process_of_its_own_that_asks_no_hub():
    assert call_in_child(os.getenv, "HF_HUB_OFFLINE", limit=60) == "1"
    assert call_in_child(os.getpid, limit=60) != os.getpid()


def test_an_error_is_told_and_the_child_goes_on():
    with Child() as child:
        with pytest.raises(ChildError, match="what went wrong"):
            child.do(fail, limit=60)
        assert child.do(double, 3, limit=60) == 6


def test_a_crash_is_told():
    with Child() as child, pytest.raises(ChildError, match="ended with status 7"):
        child.do(os._exit, 7, limit=60)


def start_sleeper():
    return subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]).pid


def test_what_a_child_started_ends_with_it():
    with Child() as child:
        sleeper = child.do(start_sleeper, limit=60)
        os.kill(sleeper, 0)
    until = time.monotonic() + 30
    while (
        Path(f"/proc/{sleeper}/cmdline").exists() and Path(f"/proc/{sleeper}/cmdline").read_bytes()
    ):  # a zombie has none
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_hang_is_told():
    with Child() as child, pytest.raises(ChildError, match=r"no answer in 0\.5 s"):
        child.do(time.sleep, 60, limit=0.5)
