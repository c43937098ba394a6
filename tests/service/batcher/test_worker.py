import threading
import time
from concurrent.futures import InvalidStateError, ThreadPoolExecutor, wait
from contextlib import suppress

import numpy as np
import pytest

from bertscore_onnx.errors import (
    ClosedError,
    DeadlineError,
    EncodingError,
    IdfError,
    InputTypeError,
    QueueFullError,
    WorkerError,
)
from tests.support.fake_scorer import GUARD
from tests.support.http_server import wait_until


@pytest.mark.parametrize("fault", [RuntimeError("poison"), MemoryError(), IdfError("no weight")])
def test_one_poisonous_request_fails_alone(make_batcher, fake, score_together, fault):
    fake.faults["poison"] = fault
    batcher = make_batcher()
    good, poisonous, better = score_together(batcher, "a", "poison", "bb")
    assert [good.result(0).P.tolist(), better.result(0).P.tolist()] == [[1], [2]]
    assert poisonous.exception(0) is fault
    assert batcher.live
    assert batcher.ready
    del fake.calls[:]
    assert batcher.submit(["poison"], ["x"]).exception(GUARD) is fault
    assert fake.batches == [["poison"]]  # alone, it is scored once


def test_undefined_scores_become_an_error_of_their_request(make_batcher, score_together):
    good, undefined = score_together(make_batcher(), "a", "nan")
    assert good.result(0).P.tolist() == [1]
    assert isinstance(undefined.exception(0), EncodingError)


@pytest.mark.parametrize("fault", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_what_would_end_the_thread_fails_its_batch_alone(make_batcher, fake, score_together, fault):
    fake.faults["fatal"] = fault
    batcher = make_batcher()
    for future in score_together(batcher, "a", "fatal", "b"):
        error = future.exception(0)
        assert isinstance(error, WorkerError)
        assert error.__cause__ is fault
    assert batcher.submit(["abc"], ["x"]).result(GUARD).P.tolist() == [3]
    assert batcher.live


def leave(future):
    raise SystemExit


def test_a_callback_that_raises_does_not_end_the_worker(make_batcher, fake, held):
    batcher = make_batcher()
    held(batcher)
    futures = [batcher.submit([text], ["x"]) for text in ("a", "bb")]
    futures[0].add_done_callback(leave)
    fake.gate.set()
    assert [future.result(GUARD).P.tolist() for future in futures] == [[1], [2]]
    assert batcher.live


def test_a_callback_that_raises_ends_no_deadline(make_batcher, held):
    batcher = make_batcher()
    held(batcher)
    late = batcher.submit(["a"], ["x"], deadline=0.5)
    leave_once_done(late)
    later = batcher.submit(["a"], ["x"], deadline=0.6)
    assert isinstance(later.exception(GUARD), DeadlineError)
    assert isinstance(late.exception(GUARD), DeadlineError)


def test_a_scorer_that_breaks_is_not_live_until_it_scores_again(make_batcher, fake, held):
    batcher = make_batcher()
    held(batcher)
    futures = [batcher.submit([text], ["x"]) for text in ("a", "b")]
    fake.broken = RuntimeError("the device is lost")
    fake.gate.set()
    for future in futures:
        assert isinstance(future.exception(GUARD), WorkerError)
    assert not batcher.live
    assert not batcher.ready
    fake.broken = None
    assert batcher.submit(["abc"], ["x"]).result(GUARD).P.tolist() == [3]
    assert batcher.live


def test_waiting_requests_get_their_deadline(make_batcher, fake, held):
    batcher = make_batcher()
    busy = held(batcher)
    late = batcher.submit(["late"], ["x"], deadline=0.01)
    with pytest.raises(TimeoutError, match=r"0\.01 s"):
        late.result(GUARD)
    fake.gate.set()
    assert busy.result(GUARD).P.tolist() == [4]
    assert batcher.drain(GUARD)
    assert fake.batches == [["hold"]]
    assert batcher.stats().expired == 1


def test_a_running_request_gets_its_deadline(make_batcher, held):
    batcher = make_batcher(deadline=3)  # long enough for the worker to take the request
    assert isinstance(held(batcher).exception(GUARD), DeadlineError)


def test_a_request_that_is_late_when_it_is_taken_is_not_scored(make_batcher, fake, held):
    batcher = make_batcher()
    held(batcher)
    entered, let = threading.Event(), threading.Event()

    def keep_the_thread_busy(future):
        entered.set()
        let.wait(GUARD)

    batcher.submit(["first"], ["x"], deadline=0.5).add_done_callback(keep_the_thread_busy)
    assert entered.wait(GUARD)
    late = batcher.submit(["late"], ["x"], deadline=0.001)
    after = batcher.submit(["after"], ["x"])
    due = time.monotonic() + 0.001
    wait_until(lambda: time.monotonic() > due)
    fake.gate.set()
    assert isinstance(late.exception(GUARD), DeadlineError)
    assert after.result(GUARD).P.tolist() == [5]
    let.set()
    assert fake.batches == [["hold"], ["after"]]


def test_a_call_that_does_not_return_is_not_live_and_ends_no_deadline(
    make_batcher, fake, held, monkeypatch
):
    monkeypatch.setattr("bertscore_onnx_service.batcher.batcher.MIN_STALL", 0.05)
    batcher = make_batcher(deadline=0.05)
    stalled = held(batcher, deadline=3)  # long enough for the worker to take the request
    waiting = batcher.submit(["a"], ["x"])
    for future in (stalled, waiting):
        assert isinstance(future.exception(GUARD), DeadlineError)
    wait_until(lambda: not batcher.live)
    assert not batcher.ready
    assert isinstance(batcher.submit(["b"], ["x"]).exception(GUARD), DeadlineError)
    fake.gate.set()
    wait_until(lambda: batcher.ready)
    assert batcher.submit(["c"], ["x"], deadline=GUARD).result(GUARD).P.tolist() == [1]


def test_no_future_ever_hangs(make_batcher, fake):
    fake.faults = {"poison": RuntimeError("poison"), "fatal": SystemExit(), "memory": MemoryError()}
    batcher = make_batcher(max_queue=40, max_batch_tokens=40, deadline=1.0)
    futures, refused = [], []

    def hand_in(seed):
        chance = np.random.default_rng(seed)
        for _ in range(60):
            text = chance.choice(
                ["a", "bb", "", "nan", "poison", "memory", "fatal"], p=[0.4, 0.3, *[0.06] * 5]
            )
            try:
                future = batcher.submit([text], ["x"], deadline=chance.choice([0.001, 1.0]))
            except (QueueFullError, ClosedError) as error:
                refused.append(error)
                continue
            futures.append((text, future))
            if chance.random() < 0.2:
                future.cancel()

    threads = [threading.Thread(target=hand_in, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(GUARD)
    batcher.drain(GUARD)
    assert wait([future for _, future in futures], GUARD).not_done == set()
    for text, future in futures:
        if not future.cancelled() and future.exception(0) is None:
            assert future.result(0).P.tolist() == [len(text)]
    stats = batcher.stats()
    assert stats.submitted + stats.rejected == 480
    answered = stats.completed + sum(stats.failed.values()) + stats.cancelled + stats.expired
    assert answered == stats.submitted == len(futures)
    assert stats.completed


class Unhashable:
    def __hash__(self):
        raise ValueError


class Incomparable:
    """A key that is hashed as every other one, and fails when it is compared."""

    def __hash__(self):
        return 1

    def __eq__(self, other):
        raise ValueError


class FailingText(str):
    def __hash__(self):
        raise ValueError


def set_running_twice(future):
    with suppress(RuntimeError):  # it runs already
        future.set_running_or_notify_cancel()


def cancel_and_notify(future):
    future.cancel()
    set_running_twice(future)


def set_answer(future):
    with suppress(InvalidStateError):  # it has its answer already
        future.set_result("the caller's")


def set_error(future):
    with suppress(InvalidStateError):
        future.set_exception(ValueError("the caller's"))


def hide_methods(future):
    future.set_result = future.set_exception = future.done = None


def empty(future):
    vars(future).clear()


def leave_once_done(future):
    with suppress(SystemExit):  # it is done already
        future.add_done_callback(leave)


SPOILS = [
    set_running_twice,
    cancel_and_notify,
    set_answer,
    set_error,
    hide_methods,
    empty,
    leave_once_done,
]
KEYS = [Incomparable, Unhashable, list]


@pytest.mark.parametrize("spoil", SPOILS)
@pytest.mark.parametrize("text", ["hold", "b"])
def test_a_spoiled_future_is_no_matter_to_others(make_batcher, fake, held, spoil, text):
    batcher = make_batcher()
    futures = {
        "hold": held(batcher),
        "a": batcher.submit(["a"], ["x"]),
        "b": batcher.submit(["b"], ["x"]),
    }
    spoil(futures.pop(text))
    assert batcher.ready
    fake.gate.set()
    for other, future in futures.items():
        assert future.result(GUARD).P.tolist() == [len(other)]
    spoil(batcher.submit(["hold"], ["x"]))
    batcher.close()
    stats = batcher.stats()
    assert stats.submitted == 4
    assert stats.completed + stats.cancelled + sum(stats.failed.values()) == 4
    assert (stats.waiting, stats.in_flight) == (0, 0)


def test_callers_who_spoil_futures_and_keys_harm_nobody_else(make_batcher):
    batcher = make_batcher(max_queue=4000)
    kept = []

    def submit(thread):
        for number in range(375):
            text = "a" * (number % 30 + 1)
            if number % 20:
                kept.append((text, batcher.submit([text], ["x"], client=thread % 3)))
            elif number % 40:
                spoil = SPOILS[(number // 40 + thread) % len(SPOILS)]
                spoil(batcher.submit([text], ["x"]))
            else:
                with suppress(InputTypeError):
                    batcher.submit(
                        [text],
                        [FailingText("x")],
                        client=KEYS[(number // 40 + thread) % len(KEYS)](),
                    )

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(submit, range(8)))
    for text, future in kept:
        assert future.result(GUARD).P.tolist() == [len(text)]
    assert len(kept) == 8 * 356
    assert batcher.ready
    assert batcher.drain(GUARD)
