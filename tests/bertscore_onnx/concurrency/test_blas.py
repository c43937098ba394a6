import multiprocessing
import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from bertscore_onnx.concurrency.blas import BlasGate, blas_gate
from tests.support.processes import forks, in_forked_child


def run_in_thread(work):
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


@pytest.mark.parametrize(
    ("patience", "waited", "order"),
    [(30, 0.1, ["product", "fork"]), (0.01, 60, ["fork", "product"])],
    ids=["a fork waits", "but not for ever"],
)
def test_a_fork_waits_for_a_product_in_progress(monkeypatch, patience, waited, order):
    monkeypatch.setattr("bertscore_onnx.concurrency.blas.PATIENCE", patience)
    gate, done = BlasGate(), []

    def fork():
        gate.before_fork()
        done.append("fork")
        gate.after_fork()

    with gate:
        forking = run_in_thread(fork)
        forking.join(waited)
        done.append("product")
    forking.join(60)
    assert done == order


def test_a_product_waits_for_a_fork_in_progress():
    gate, done = BlasGate(), []

    def multiply():
        with gate:
            done.append("product")

    gate.before_fork()
    multiplying = run_in_thread(multiply)
    multiplying.join(0.1)
    done.append("fork")
    gate.after_fork()
    multiplying.join(60)
    assert done == ["fork", "product"]


def num_blas_threads():
    """The threads of numpy's BLAS, and of other copies that were loaded, such as scipy's; all have
    as many here.
    """
    [number] = {blas["num_threads"] for blas in threadpool_info_of("blas")}
    return number


def threadpool_info_of(api):
    return [one for one in threadpool_info() if one["user_api"] == api]


@pytest.mark.skipif(not threadpool_info_of("blas"), reason="numpy's BLAS has no threads of its own")
def test_blas_keeps_to_one_thread_until_nobody_multiplies():
    gate, may_end = BlasGate(), threading.Event()
    is_inside = threading.Event()

    def multiply():
        with gate:
            is_inside.set()
            may_end.wait(60)

    with threadpool_limits(2, "blas"):
        multiplying = run_in_thread(multiply)
        assert is_inside.wait(60)
        with gate:
            assert num_blas_threads() == 1
        assert num_blas_threads() == 1
        may_end.set()
        multiplying.join(60)
        assert num_blas_threads() == 2


@forks
def test_a_forked_child_may_multiply():
    def multiply():
        with blas_gate:
            return "done"

    assert in_forked_child(multiply) == "done"


def fork_while_others_multiply():
    # large enough for OpenBLAS to share out among its threads
    matrix = np.ones((256, 256), dtype=np.float32)

    def multiply():
        with blas_gate:
            return float((matrix @ matrix)[0, 0])

    def keep_multiplying():
        while True:
            multiply()

    for _ in range(2):
        run_in_thread(keep_multiplying)
    for _ in range(40):
        assert in_forked_child(multiply) == 256


@forks
@pytest.mark.slow
def test_products_in_threads_hang_neither_a_fork_nor_its_child():
    # it may hang as a whole
    process = multiprocessing.get_context("spawn").Process(target=fork_while_others_multiply)
    process.start()
    process.join(60)
    status = process.exitcode
    process.kill()
    process.join()
    assert status == 0
