import threading
import time
from concurrent.futures import wait

import numpy as np
import pytest

from bertscore_onnx.errors import (
    ClosedError,
    DeadlineError,
    EncodingError,
    IdfError,
    QueueFullError,
    WorkerError,
)
from bertscore_onnx.serving.worker import MAX_STALLED
from tests.support.fake_scorer import GUARD, FakeScorer


@pytest.mark.parametrize("fault", [RuntimeError("poison"), MemoryError(), IdfError("no weight")])
def test_one_poisonous_request_fails_alone(make_batcher, fake, held, fault):
    fake.faults["poison"] = fault
    batcher = make_batcher()
    held(batcher)
    futures = {text: batcher.submit([text], ["x"]) for text in ("a", "poison", "bb")}
    fake.gate.set()
    assert futures["a"].result(GUARD).P.tolist() == [1]
    assert futures["bb"].result(GUARD).P.tolist() == [2]
    assert futures["poison"].exception(GUARD) is fault
    assert batcher.stats().restarts == 0
    assert batcher.ready


def test_a_lone_request_that_fails_is_not_scored_again(make_batcher, fake):
    fake.faults["poison"] = RuntimeError("poison")
    assert make_batcher().submit(["poison"], ["x"]).exception(GUARD) is fake.faults["poison"]
    assert fake.batches == [["poison"]]


def test_undefined_scores_become_an_error_of_their_request(make_batcher, fake, held):
    batcher = make_batcher()
    held(batcher)
    futures = [batcher.submit([text], ["x"]) for text in ("a", "nan")]
    fake.gate.set()
    assert futures[0].result(GUARD).P.tolist() == [1]
    assert isinstance(futures[1].exception(GUARD), EncodingError)


def test_warnings_about_texts_are_counted_and_not_shown(make_batcher, recwarn):
    batcher = make_batcher()
    for _ in range(3):
        assert batcher.submit([""], ["x"]).result(GUARD).P.tolist() == [0]
    assert batcher.stats().warnings == 3
    assert not recwarn.list


@pytest.mark.parametrize("death", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_a_worker_that_dies_answers_all_it_held_and_is_replaced(make_batcher, fake, held, until, death):
    fake.faults["death"] = death
    batcher = make_batcher()
    held(batcher)
    futures = [batcher.submit([text], ["x"]) for text in ("a", "death", "b")]
    fake.gate.set()
    for future in futures:
        error = future.exception(GUARD)
        assert isinstance(error, WorkerError)
        assert error.__cause__ is death
    until(lambda: batcher.ready)
    assert batcher.submit(["abc"], ["x"]).result(GUARD).P.tolist() == [3]
    assert batcher.stats().restarts == 1
    assert ["a probe"] in fake.calls[-2:]


def test_a_callback_that_ends_its_thread_costs_no_answer(make_batcher, fake, held, until):
    def leave(future):
        raise SystemExit

    batcher = make_batcher()
    held(batcher)
    futures = [batcher.submit([text], ["x"]) for text in ("a", "b")]
    futures[0].add_done_callback(leave)
    fake.gate.set()
    assert wait(futures, GUARD).not_done == set()
    until(lambda: batcher.stats().restarts == 1 and batcher.ready)


def test_callbacks_that_fail_do_not_end_the_supervisor(make_batcher, held):
    def leave(future):
        raise SystemExit

    batcher = make_batcher()
    held(batcher)
    late = batcher.submit(["a"], ["x"], deadline=0.01)
    late.add_done_callback(leave)
    later = batcher.submit(["a"], ["x"], deadline=0.05)
    assert isinstance(later.exception(GUARD), DeadlineError)
    assert isinstance(late.exception(GUARD), DeadlineError)


def test_a_scorer_that_breaks_is_replaced_by_a_fresh_one(make_batcher, fake, held, until):
    fresh = FakeScorer()
    batcher = make_batcher(make_scorer=lambda: fresh)
    held(batcher)
    futures = [batcher.submit([text], ["x"]) for text in ("a", "b")]
    fake.broken = RuntimeError("the device is lost")
    fake.gate.set()
    for future in futures:
        assert isinstance(future.exception(GUARD), WorkerError)
    until(lambda: batcher.ready)
    assert fake.closed
    assert batcher.submit(["abc"], ["x"]).result(GUARD).P.tolist() == [3]
    assert fresh.calls == [["a probe"], ["abc"]]
    batcher.close()
    assert fresh.closed


def test_a_fresh_scorer_is_awaited_without_being_ready(make_batcher, fake, until):
    called, let = threading.Event(), threading.Event()

    def make_scorer():
        called.set()
        assert let.wait(GUARD)
        return FakeScorer()

    batcher = make_batcher(make_scorer=make_scorer)
    fake.faults["death"] = SystemExit()
    assert isinstance(batcher.submit(["death"], ["x"]).exception(GUARD), WorkerError)
    assert called.wait(GUARD)
    assert not batcher.ready
    waiting = batcher.submit(["a"], ["x"])
    let.set()
    assert waiting.result(GUARD).P.tolist() == [1]
    assert batcher.ready


def test_a_restart_is_tried_again_until_it_succeeds(make_batcher, fake, until):
    attempts = iter([RuntimeError("no memory"), FakeScorer("another"), FakeScorer()])

    def make_scorer():
        attempt = next(attempts)
        if isinstance(attempt, Exception):
            raise attempt
        return attempt

    batcher = make_batcher(make_scorer=make_scorer)
    fake.faults["death"] = SystemExit()
    batcher.submit(["death"], ["x"])
    until(lambda: batcher.stats().restarts == 3 and batcher.ready)
    assert batcher.submit(["a"], ["x"]).result(GUARD).P.tolist() == [1]


def test_a_thread_that_cannot_be_started_is_tried_again(make_batcher, fake, monkeypatch):
    batcher = make_batcher()
    failures = iter([RuntimeError("can't start new thread")])
    start = threading.Thread.start

    def fail_once(thread):
        for failure in failures:
            raise failure
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", fail_once)
    fake.faults["death"] = SystemExit()
    assert isinstance(batcher.submit(["death"], ["x"]).exception(GUARD), WorkerError)
    assert batcher.submit(["a"], ["x"]).result(GUARD).P.tolist() == [1]
    assert batcher.stats().restarts == 2


def test_waiting_requests_get_their_deadline_while_the_worker_is_busy(make_batcher, fake, held):
    batcher = make_batcher()
    busy = held(batcher)
    late = batcher.submit(["late"], ["x"], deadline=0.01)
    with pytest.raises(TimeoutError, match=r"no score within 0.01 s"):
        late.result(GUARD)
    fake.gate.set()
    assert busy.result(GUARD).P.tolist() == [4]
    assert batcher.drain(GUARD)
    assert fake.batches == [["hold"]]
    assert batcher.stats().expired == 1


def test_a_running_request_gets_its_deadline(make_batcher, held):
    batcher = make_batcher(deadline=0.5)  # long enough for the worker to take the request
    assert isinstance(held(batcher).exception(GUARD), DeadlineError)


def test_a_request_that_is_late_when_it_is_taken_is_not_scored(make_batcher, fake, held, until):
    batcher = make_batcher()
    held(batcher)
    entered, let = threading.Event(), threading.Event()

    def keep_the_supervisor_busy(future):
        entered.set()
        let.wait(GUARD)

    batcher.submit(["first"], ["x"], deadline=0.01).add_done_callback(keep_the_supervisor_busy)
    assert entered.wait(GUARD)
    late = batcher.submit(["late"], ["x"], deadline=0.001)
    after = batcher.submit(["after"], ["x"])
    due = time.monotonic() + 0.001
    until(lambda: time.monotonic() > due)
    fake.gate.set()
    assert isinstance(late.exception(GUARD), DeadlineError)
    assert after.result(GUARD).P.tolist() == [5]
    let.set()
    assert fake.batches == [["hold"], ["after"]]


def test_a_stalled_worker_is_replaced(make_batcher, fake, held, until):
    batcher = make_batcher(max_stall=0.05)
    stalled = held(batcher, deadline=1.0)
    until(lambda: batcher.stats().restarts == 1 and batcher.ready)
    assert batcher.submit(["a"], ["x"]).result(GUARD).P.tolist() == [1]
    assert isinstance(stalled.exception(GUARD), DeadlineError)


def test_a_stalled_worker_that_comes_back_in_time_answers(make_batcher, fake, held, until):
    batcher = make_batcher(max_stall=0.05)
    stalled = held(batcher)
    until(lambda: batcher.stats().restarts == 1 and batcher.ready)
    threads = threading.active_count()
    fake.gate.set()
    assert stalled.result(GUARD).P.tolist() == [4]
    until(lambda: threading.active_count() == threads - 1)


def test_a_run_that_is_only_long_costs_no_scorer(make_batcher, fake, held, until):
    batcher = make_batcher(max_stall=0.05, make_scorer=FakeScorer)
    held(batcher, deadline=0.1)
    until(lambda: batcher.stats().restarts == 1 and batcher.ready)
    assert batcher.submit(["a"], ["x"]).result(GUARD).P.tolist() == [1]
    assert fake.calls[-1] == ["a"]
    assert not fake.closed


def test_a_scorer_that_stalls_twice_is_replaced_and_closed_when_no_run_uses_it(make_batcher, fake, until):
    fresh, gate = FakeScorer(), threading.Event()
    healthy = fake.score_pairs

    def stall(pairs):
        gate.wait(GUARD)
        assert not fake.closed
        return healthy(pairs)

    batcher = make_batcher(max_stall=0.05, make_scorer=lambda: fresh)
    fake.score_pairs = stall
    stalled = batcher.submit(["b"], ["x"])
    until(lambda: batcher.stats().restarts == 2 and batcher.ready)
    assert batcher.submit(["a"], ["x"]).result(GUARD).P.tolist() == [1]
    assert fresh.calls == [["a probe"], ["a"]]
    gate.set()
    assert stalled.result(GUARD).P.tolist() == [1]
    until(lambda: fake.closed)


def test_a_batcher_whose_replacements_stall_too_is_not_ready_and_leaves_few_threads(make_batcher, fake, held, until):
    gate = threading.Event()
    healthy = fake.score_pairs

    def stall(pairs):
        gate.wait(GUARD)
        return healthy(pairs)

    batcher = make_batcher(max_stall=0.02)
    fake.score_pairs = stall
    futures = [batcher.submit(["a"], ["x"], deadline=0.05)]
    until(lambda: batcher.stats().restarts == MAX_STALLED)
    futures.append(batcher.submit(["b"], ["x"], deadline=0.05))
    for future in futures:
        assert isinstance(future.exception(GUARD), DeadlineError)
    assert not batcher.ready
    assert batcher.stats().restarts == MAX_STALLED
    gate.set()
    until(lambda: batcher.ready)
    assert batcher.submit(["c"], ["x"]).result(GUARD).P.tolist() == [1]


def test_no_future_ever_hangs(make_batcher, fake):
    fake.faults = {"poison": RuntimeError("poison"), "death": SystemExit(), "memory": MemoryError()}
    batcher = make_batcher(max_queue=40, max_batch_tokens=40, deadline=1.0)
    futures, refused = [], []

    def hand_in(seed):
        chance = np.random.default_rng(seed)
        for _ in range(60):
            text = chance.choice(["a", "bb", "", "nan", "poison", "memory", "death"], p=[0.4, 0.3, *[0.06] * 5])
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
    assert stats.restarts
