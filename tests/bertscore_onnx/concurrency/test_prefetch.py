import threading

import pytest

from bertscore_onnx.concurrency.thread_pool import prefetch


def test_the_next_item_is_begun_before_one_is_finished():
    begun = [threading.Event() for _ in range(4)]

    def finish(item, result):
        return begun[min(item + 1, 3)].wait(60)

    assert list(prefetch(iter(range(4)), lambda item: begun[item].set(), finish)) == [True] * 4


@pytest.mark.parametrize("number", [1, 2, 5])
def test_of_several_items_only_the_beginning_is_in_a_thread(number):
    items = (threading.get_ident() for _ in range(number))
    for read_in, begun_in, finished_in in prefetch(
        items, lambda item: threading.get_ident(), lambda item, begun: (item, begun, threading.get_ident())
    ):
        assert read_in == finished_in == threading.get_ident()
        assert (begun_in == read_in) == (number == 1)


def test_an_interrupted_caller_leaves_nothing_to_begin(late, raise_late):
    may_go, begun = threading.Event(), []

    def begin(item):
        begun.append(item)
        raise_late()
        assert may_go.wait(60)

    with pytest.raises(late):
        list(prefetch(iter(range(4)), begin, lambda item, result: item))
    may_go.set()
    for thread in threading.enumerate():
        if thread.name.startswith("bertscore-chunk"):
            thread.join(60)
    assert begun == [0]
