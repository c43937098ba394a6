import threading
import time
from concurrent.futures import wait

import numpy as np
import pytest

from bertscore_onnx.errors import ClosedError, DeadlineError, EncodingError, IdfError, QueueFullError, WorkerError
from bertscore_onnx_service.batcher.worker import MAX_STALLED
from tests.support.fake_scorer import GUARD, FakeScorer
from tests.support.http_server import wait_until


@pytest.mark.parametrize("fault", [RuntimeError("poison"), MemoryError(), IdfError("no weight")])
def test_one_poisonous_request_fails_alone(make_batcher, fake, score_together, fault):
    fake.faults["poison"] = fault
    batcher = make_batcher()
    good, poisonous, better = score_together(batcher, "a", "poison", "bb")
    assert [good.result(0).P.tolist(), better.result(0).P.tolist()] == [[1], [2]]
    assert poisonous.exception(0) is fault
    assert batcher.stats().restarts == 0
    assert batcher.ready
    del fake.calls[:]
    assert batcher.submit(["poison"], ["x"]).exception(GUARD) is fault
    assert fake.batches == [["poison"]]  # alone, it is scored once


def test_undefined_scores_become_an_error_of_their_request(make_batcher, score_together):
    good, undefined = score_together(make_batcher(), "a", "nan")
    assert good.result(0).P.tolist() == [1]
    assert isinstance(undefined.exception(0), EncodingError)


@pytest.mark.parametrize("death", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_a_worker_that_dies_fails_its_requests_and_is_replaced(make_batcher, fake, score_together, death):
    fake.faults["death"] = death
    batcher = make_batcher()
    for future in score_together(batcher, "a", "death", "b"):
        error = future.exception(0)
        assert isinstance(error, WorkerError)
        assert error.__cause__ is death
    wait_until(lambda: batcher.ready)
    assert batcher.submit(["abc"], ["x"]).result(GUARD).P.tolist() == [3]
    assert batcher.stats().restarts == 1
    assert ["a probe"] in fake.calls[-2:]


def test_a_callback_that_ends_its_thread_loses_no_answer(make_batcher, fake, held):
    def leave(future):
        raise SystemExit

    batcher = make_batcher()
    held(batcher)
    futures = [batcher.submit([text], ["x"]) for text in ("a", "b")]
    futures[0].add_done_callback(leave)
    fake.gate.set()
    assert wait(futures, GUARD).not_done == set()
    wait_until(lambda: batcher.stats().restarts == 1 and batcher.ready)


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


def test_a_scorer_that_breaks_is_replaced_by_a_fresh_one(make_batcher, fake, held):
    fresh = FakeScorer()
    batcher = make_batcher(make_scorer=lambda: fresh)
    held(batcher)
    futures = [batcher.submit([text], ["x"]) for text in ("a", "b")]
    fake.broken = RuntimeError("the device is lost")
    fake.gate.set()
    for future in futures:
        assert isinstance(future.exception(GUARD), WorkerError)
    wait_until(lambda: batcher.ready)
    assert fake.closed
    assert batcher.submit(["abc"], ["x"]).result(GUARD).P.tolist() == [3]
    assert fresh.calls == [["a probe"], ["abc"]]
    batcher.close()
    assert fresh.closed


def test_a_fresh_scorer_is_awaited_without_being_ready(make_batcher, fake):
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


def test_a_restart_is_tried_again_until_it_succeeds(make_batcher, fake):
    attempts = iter([RuntimeError("no memory"), FakeScorer("another"), FakeScorer()])

    def make_scorer():
        attempt = next(attempts)
        if isinstance(attempt, Exception):
            raise attempt
        return attempt

    batcher = make_batcher(make_scorer=make_scorer)
    fake.faults["death"] = SystemExit()
    batcher.submit(["death"], ["x"])
    wait_until(lambda: batcher.stats().restarts == 3 and batcher.ready)
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
    batcher = make_batcher(deadline=0.5)  # long enough for the worker to take the request
    assert isinstance(held(batcher).exception(GUARD), DeadlineError)


def test_a_request_that_is_late_when_it_is_taken_is_not_scored(make_batcher, fake, held):
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
    wait_until(lambda: time.monotonic() > due)
    fake.gate.set()
    assert isinstance(late.exception(GUARD), DeadlineError)
    assert after.result(GUARD).P.tolist() == [5]
    let.set()
    assert fake.batches == [["hold"], ["after"]]


def test_a_stalled_worker_is_replaced_and_its_scorer_kept(make_batcher, fake, held):
    batcher = make_batcher(max_stall=0.05, make_scorer=FakeScorer)
    stalled = held(batcher, deadline=0.5)
    wait_until(lambda: batcher.stats().restarts == 1 and batcher.ready)
    assert batcher.submit(["a"], ["x"]).result(GUARD).P.tolist() == [1]
    assert fake.calls[-1] == ["a"]
    assert not fake.closed
    assert isinstance(stalled.exception(GUARD), DeadlineError)


def test_a_stalled_worker_that_comes_back_in_time_answers(make_batcher, fake, held):
    batcher = make_batcher(max_stall=0.05)
    stalled = held(batcher)
    wait_until(lambda: batcher.stats().restarts == 1 and batcher.ready)
    threads = threading.active_count()
    fake.gate.set()
    assert stalled.result(GUARD).P.tolist() == [4]
    wait_until(lambda: threading.active_count() == threads - 1)


def stalled(scorer):
    """Let every call of a scorer wait until the event that is returned is set."""
    gate, healthy = threading.Event(), scorer.score_pairs

    def stall(pairs):
        gate.wait(GUARD)
        assert not scorer.closed
        return healthy(pairs)

    scorer.score_pairs = stall
    return gate


def test_a_scorer_that_stalls_twice_is_replaced_and_closed(make_batcher, fake):
    fresh = FakeScorer()
    batcher = make_batcher(max_stall=0.05, make_scorer=lambda: fresh)
    gate = stalled(fake)
    waiting = batcher.submit(["b"], ["x"])
    wait_until(lambda: batcher.stats().restarts == 2 and batcher.ready)
    assert batcher.submit(["a"], ["x"]).result(GUARD).P.tolist() == [1]
    assert fresh.calls == [["a probe"], ["a"]]
    gate.set()
    assert waiting.result(GUARD).P.tolist() == [1]
    wait_until(lambda: fake.closed)


def test_a_batcher_whose_replacements_stall_too_is_not_ready(make_batcher, fake, held):
    batcher = make_batcher(max_stall=0.02)
    gate = stalled(fake)
    futures = [batcher.submit(["a"], ["x"], deadline=0.05)]
    wait_until(lambda: batcher.stats().restarts == MAX_STALLED)
    futures.append(batcher.submit(["b"], ["x"], deadline=0.05))
    for future in futures:
        assert isinstance(future.exception(GUARD), DeadlineError)
    assert not batcher.ready
    assert batcher.stats().restarts == MAX_STALLED
    gate.set()
    wait_until(lambda: batcher.ready)
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
