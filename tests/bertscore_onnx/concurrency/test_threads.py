import gc
import threading
import time
import weakref

import pytest

from bertscore_onnx.concurrency.threads import Threads
from bertscore_onnx.errors import ClosedError


@pytest.fixture
def threads():
    threads = Threads(2, "bertscore-test")
    yield threads
    threads.close()


def workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("bertscore-test")]


def join_workers() -> None:
    for thread in workers():
        thread.join(60)
        assert not thread.is_alive()


def name_of_thread(_: object) -> str:
    return threading.current_thread().name


def test_results_come_in_order_whichever_is_done_first(threads):
    second_done = threading.Event()

    def work(item):
        if item == 0:
            assert second_done.wait(60)
        if item == 1:
            second_done.set()
        assert name_of_thread(item).startswith("bertscore-test")
        return item * 10

    assert list(threads.map(work, range(20))) == [item * 10 for item in range(20)]


def test_without_threads_callers_do_the_work_one_at_a_time():
    none, inside, most = Threads(0, "bertscore-test"), [], []

    def work(item):
        inside.append(item)
        most.append(len(inside))
        time.sleep(0.001)  # in which another caller could come in
        inside.remove(item)
        return threading.current_thread()

    def call(names):
        names.extend(none.map(work, range(20)))

    callers = [(threading.Thread(target=call, args=(found := [],)), found) for _ in range(4)]
    for thread, _ in callers:
        thread.start()
    for thread, found in callers:
        thread.join(60)
        assert found == [thread] * 20
    assert max(most) == 1


def test_an_error_comes_after_the_results_before_it(threads):
    results = threads.map(lambda item: 12 // (3 - item), range(6))
    assert [next(results) for _ in range(3)] == [4, 6, 12]
    with pytest.raises(ZeroDivisionError):
        next(results)


@pytest.mark.parametrize(("number", "ahead", "expected"), [(0, None, 1), (2, None, 5), (2, 1, 2)])
def test_only_a_few_items_are_read_ahead(number, ahead, expected):
    read = []
    results = Threads(number, "bertscore-test").map(
        lambda item: item, iter(lambda: read.append(0), 0), ahead
    )
    next(results)
    assert len(read) == expected


def test_an_interrupted_caller_waits_for_nothing(threads, late, raise_late):
    may_go = threading.Event()
    with pytest.raises(late):
        list(threads.map(lambda _: (raise_late(), may_go.wait(60)), range(9)))
    may_go.set()
    assert list(threads.map(lambda item: item, range(9))) == [*range(9)]


def test_several_callers_share_the_threads(threads):
    other_done = threading.Event()
    slow = threads.map(lambda item: other_done.wait(60), range(1))
    results = []
    waiting = threading.Thread(target=lambda: results.extend(slow))
    waiting.start()
    assert list(threads.map(lambda item: item, range(9))) == [*range(9)]
    other_done.set()
    waiting.join(60)
    assert results == [True]


def test_closing_lets_the_work_in_progress_finish(threads):
    started, may_go = threading.Event(), threading.Event()
    results = []
    work = threads.map(lambda _: (started.set(), may_go.wait(60)), [0])
    caller = threading.Thread(target=lambda: results.extend(work))
    caller.start()
    assert started.wait(60)
    threads.close()
    with pytest.raises(ClosedError, match="closed"):
        list(threads.map(name_of_thread, [1, 2]))
    may_go.set()
    caller.join(60)
    assert results == [(None, True)]


def test_threads_start_as_they_are_needed_and_end_with_their_owner():
    threads = Threads(8, "bertscore-test")
    join_workers()
    for item in range(9):
        assert list(threads.map(lambda item: item, [item])) == [item]
    assert 1 <= len(workers()) < 8
    del threads
    join_workers()


def test_threads_keep_nothing_of_what_they_have_done(threads):
    class Item:
        pass

    item = Item()
    kept = weakref.ref(item)
    with pytest.raises(ZeroDivisionError):
        list(threads.map(lambda item: 1 // 0, [item]))
    del item
    gc.collect()
    assert kept() is None


def test_without_a_thread_from_the_system_the_caller_works(threads, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    assert {*threads.map(name_of_thread, range(3))} == {threading.current_thread().name}
