import gc
import threading
import time
import weakref
from collections import Counter

import pytest

from bertscore_onnx.concurrency.thread_pool import ThreadPool
from bertscore_onnx.errors import ClosedError


@pytest.fixture
def threads():
    threads = ThreadPool(2, "bertscore-test")
    yield threads
    threads.close()


def workers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("bertscore-test")]


def join_workers() -> None:
    for thread in workers():
        thread.join(60)
        assert not thread.is_alive()


def test_results_come_in_order_whichever_is_done_first(threads):
    second_done = threading.Event()

    def work(item):
        if item == 0:
            assert second_done.wait(60)
        if item == 1:
            second_done.set()
        assert threading.current_thread().name.startswith("bertscore-test")
        return item * 10

    assert list(threads.map(work, range(20))) == [item * 10 for item in range(20)]


def test_work_for_each_thread_is_done_once_by_each(threads):
    list(threads.map(time.sleep, [0.001] * 4))  # both are started, and idle
    done = []

    def call():
        for _ in range(50):
            threads.run_in_each(lambda: done.append(threading.current_thread().name))

    callers = [threading.Thread(target=call) for _ in range(2)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert Counter(done) == {"bertscore-test_0": 100, "bertscore-test_1": 100}


def test_work_for_each_thread_is_done_once_where_there_are_none():
    done = []
    ThreadPool(0, "bertscore-test").run_in_each(lambda: done.append(threading.current_thread()))
    assert done == [threading.current_thread()]


def test_without_threads_callers_do_the_work_one_at_a_time():
    none, inside, most = ThreadPool(0, "bertscore-test"), [], []

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


def test_without_threads_items_are_read_one_at_a_time():
    order = []
    items = (order.append(f"read {item}") or item for item in range(3))
    results = ThreadPool(0, "bertscore-test").map(lambda item: order.append(f"done {item}"), items)
    next(results)
    assert order == ["read 0", "done 0"]


def test_an_error_comes_after_the_results_before_it(threads):
    results = threads.map(lambda item: 12 // (3 - item), range(6))
    assert [next(results) for _ in range(3)] == [4, 6, 12]
    with pytest.raises(ZeroDivisionError):
        next(results)


def test_an_error_of_the_items_is_raised(threads):
    def items():
        yield 1
        raise OSError("no more")

    with pytest.raises(OSError, match="no more"):
        list(threads.map(lambda item: item, items()))


def test_only_a_few_items_wait(threads):
    read = []
    results = threads.map(lambda item: item, (read.append(item) or item for item in range(100)))
    assert next(results) == 0
    assert len(read) == 5


def test_items_that_nobody_waits_for_are_left(threads):
    may_go, done = threading.Event(), []

    def work(item):
        assert item == 0 or may_go.wait(60)
        done.append(item)

    results = threads.map(work, range(100))
    next(results)
    results.close()
    may_go.set()
    threads.close()
    join_workers()
    assert {*done} <= {0, 1, 2}


def test_an_interrupted_caller_waits_for_nothing_and_none_of_its_items_is_begun(late, raise_late):
    threads, may_go, done = ThreadPool(1, "bertscore-test"), threading.Event(), []
    threads.submit(lambda _: (raise_late(), may_go.wait(60)), None)
    with pytest.raises(late):
        list(threads.map(done.append, range(9)))
    may_go.set()
    threads.close()
    join_workers()
    assert done == []


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

    def work(item):
        started.set()
        assert may_go.wait(60)
        return item

    results = []
    caller = threading.Thread(target=lambda: results.extend(threads.map(work, [7])))
    caller.start()
    assert started.wait(60)
    threads.close()
    with pytest.raises(ClosedError, match="closed"):
        list(threads.map(lambda item: item, [1, 2]))
    may_go.set()
    caller.join(60)
    assert results == [7]


def test_threads_start_as_they_are_needed():
    threads = ThreadPool(8, "bertscore-test")
    join_workers()
    for item in range(9):
        assert threads.submit(lambda item: item, item).result() == item
    assert 1 <= len(workers()) < 8
    threads.close()


def test_threads_end_with_the_pool():
    threads = ThreadPool(2, "bertscore-test")
    assert list(threads.map(lambda item: item, range(9))) == [*range(9)]
    del threads
    join_workers()
    assert workers() == []


def test_threads_keep_nothing_of_what_they_have_done(threads):
    class Item:
        pass

    item = Item()
    kept = weakref.ref(item)
    future = threads.submit(lambda item: 1 // 0, item)
    with pytest.raises(ZeroDivisionError):
        future.result()
    del item, future
    gc.collect()
    assert kept() is None


def test_without_a_thread_from_the_system_the_caller_works(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    threads = ThreadPool(2, "bertscore-test")
    monkeypatch.setattr(threading.Thread, "start", refuse)
    names = threads.map(lambda item: threading.current_thread().name, range(3))
    assert {*names} == {threading.current_thread().name}
