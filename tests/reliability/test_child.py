import os
import time

import pytest

from reliability.child import Child, ChildError


def double(number):
    return 2 * number


def fail():
    raise ValueError("what went wrong")


def test_a_child_does_one_work_after_the_other():
    with Child() as child:
        assert [child.do(double, number, limit=60) for number in (1, 2)] == [2, 4]


def test_an_error_is_told_and_the_child_goes_on():
    with Child() as child:
        with pytest.raises(ChildError, match="what went wrong"):
            child.do(fail, limit=60)
        assert child.do(double, 3, limit=60) == 6


def test_a_crash_is_told():
    with Child() as child, pytest.raises(ChildError, match="ended with status 7"):
        child.do(os._exit, 7, limit=60)


def test_a_hang_is_told():
    with Child() as child, pytest.raises(ChildError, match=r"no answer in 0\.5 s"):
        child.do(time.sleep, 60, limit=0.5)
