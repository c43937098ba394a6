import asyncio
import inspect
import math
import pickle
import re
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress

import numpy as np
import pytest

from bertscore_onnx.errors import (
    ClosedError,
    DeadlineError,
    DrainingError,
    InputError,
    InputTypeError,
    QueueFullError,
)
from bertscore_onnx.scoring.inputs import collect_pairs
from bertscore_onnx_service import MicroBatcher
from bertscore_onnx_service.batcher.stats import BatcherStats
from tests.support.fake_scorer import GUARD, FakeScorer
from tests.support.http_server import wait_until
from tests.support.processes import run_python


def test_each_request_gets_its_own_scores(make_batcher, fake, held):
    batcher = make_batcher()
    first = held(batcher)
    futures = [batcher.submit(["a" * n, "b" * n * n], ["x", ["y", "zz"]]) for n in range(1, 6)]
    fake.gate.set()
    for n, future in enumerate(futures, 1):
        scores = future.result(GUARD)
        np.testing.assert_array_equal(
            scores, [[n, n * n], [n / 2, n * n / 2], [n / 4 + 1, n * n / 4 + 2]]
        )
        assert scores.best_reference.tolist() == [0, 1]
    assert first.result(GUARD).P.tolist() == [4]
    assert [len(call) for call in fake.batches] == [1, 15]


def test_scores_of_all_layers_are_split_by_candidate(make_batcher, fake, score_together):
    one_layer = fake.score_pairs

    def score_pairs(pairs):
        scores, counts = one_layer(pairs)
        layers = (np.stack([part, part + 1]) for part in scores)
        return type(scores)(*layers, np.stack([scores.best_reference] * 2)), counts

    fake.score_pairs = score_pairs
    futures = score_together(make_batcher(), "a", "bb")
    assert [future.result(0).P.tolist() for future in futures] == [[[1], [2]], [[2], [3]]]


def test_checked_pairs_are_scored_as_they_are(make_batcher):
    batcher = make_batcher()
    checked = collect_pairs(["a", "bb"], ["x", ["y", "zz"]])
    for pairs in (checked, batcher.tokenise(checked)):
        scores = batcher.submit_pairs(pairs).result(GUARD)
        assert scores.P.tolist() == asyncio.run(batcher.score_pairs(pairs)).P.tolist() == [1, 2]
        assert scores.best_reference.tolist() == [0, 1]
    assert batcher.submit([], []).result(GUARD).F.shape == (0,)


def test_a_batch_holds_no_more_than_the_limit(make_batcher, fake, held):
    batcher = make_batcher(max_batch_tokens=2 * (5 + 4 + 2))
    held(batcher)
    futures = [batcher.submit([f"ab{n}"], [f"x{n}"]) for n in range(5)]
    large = batcher.submit(["large" * 100], ["x"])
    fake.gate.set()
    wait([*futures, large], GUARD)
    assert [len(call) for call in fake.batches] == [1, 2, 2, 1, 1]


def test_a_large_request_is_scored_in_pieces(make_batcher, fake):
    batcher = make_batcher(max_batch_tokens=4 * (3 + 4 + 1))
    refs = [[f"x{n}"] for n in range(9)]
    refs[4] = [f"y{n}" for n in range(6)] + ["zzz"]
    scores = batcher.submit([*"abcdefghi"], refs).result(GUARD)
    assert 2 < len(fake.batches) < 9
    assert sum(map(len, fake.batches)) == 15
    assert scores.F.tolist() == [2.25] * 4 + [3.25] + [2.25] * 4
    assert scores.best_reference.tolist() == [0] * 4 + [6] + [0] * 4


def test_small_requests_are_not_held_up_by_large_ones(make_batcher, fake, held):
    batcher = make_batcher(max_batch_tokens=10 * (3 + 3))
    held(batcher)
    greedy = [batcher.submit([letter] * 1000, ["x"] * 1000) for letter in "abcdefgh"]
    polite = batcher.submit(["p"], ["x"])
    fake.gate.set()
    assert polite.result(GUARD).P.tolist() == [1]
    wait(greedy, GUARD * 3)
    turn = next(number for number, call in enumerate(fake.batches) if "p" in call)
    assert turn <= 2
    assert all(future.result(0).P.tolist() == [1] * 1000 for future in greedy)


def test_requests_of_like_length_are_scored_together(make_batcher, fake, held):
    batcher = make_batcher()
    held(batcher)
    texts = [letter * number for number in (10, 30, 60) for letter in "abcd"]
    futures = [
        batcher.submit([text], [text.upper()]) for text in texts[::3] + texts[1::3] + texts[2::3]
    ]
    fake.gate.set()
    wait(futures, GUARD)
    assert [sorted(batch) for batch in fake.batches] == [["hold"], texts[:4], texts[4:8], texts[8:]]


def test_a_request_past_half_its_deadline_comes_first(make_batcher, fake, held):
    batcher = make_batcher(max_batch_tokens=10 * (3 + 3))
    held(batcher)
    futures = [batcher.submit([f"{number:02}"], ["x"]) for number in range(50)]
    urgent = batcher.submit(["urgent" * 10], ["x"], deadline=10)
    past_half = time.monotonic() + 5
    wait_until(lambda: time.monotonic() > past_half)
    fake.gate.set()
    wait([*futures, urgent], GUARD)
    assert fake.batches[1] == ["urgent" * 10]


def test_small_requests_overtake_a_large_one_by_no_more_than_its_tokens(make_batcher, fake, held):
    batcher = make_batcher(max_batch_tokens=10 * (10 + 10 + 3), max_queue=2000)
    held(batcher)
    large = batcher.submit(["l" * 98], ["m" * 98])
    small = [batcher.submit([f"{number:08}"], [f"{number:08}"[::-1]]) for number in range(200)]
    fake.gate.set()
    wait([large, *small], GUARD)
    position = next(number for number, call in enumerate(fake.batches) if "l" * 98 in call)
    assert sum(map(len, fake.batches[1:position])) * 20 in range(1, 200 + 10 * 20)


def test_a_polite_client_is_not_held_up_by_a_greedy_one(make_batcher, fake, held):
    batcher = make_batcher(max_batch_tokens=10 * (3 + 3))
    held(batcher)
    greedy = [batcher.submit(["g"], ["x"], client="greedy") for _ in range(400)]
    polite = batcher.submit(["p"], ["x"], client="polite")
    fake.gate.set()
    assert polite.result(GUARD).P.tolist() == [1]
    wait(greedy, GUARD)
    assert next(number for number, call in enumerate(fake.batches) if "p" in call) <= 2


def test_a_batch_takes_no_longer_than_its_share_of_the_deadline(make_batcher, fake):
    pace = 0.0001
    score = fake.score_pairs

    def slowly(pairs):
        texts = (pairs.tokenised or {}).values()  # a probe has none
        threading.Event().wait(pace * sum(len(text.ids) for text in texts))
        return score(pairs)

    fake.score_pairs = slowly
    batcher = make_batcher(deadline=12.0)  # 0.1 s for a batch
    batcher.submit([f"{n:04}" for n in range(600)], ["x"] * 600).result(GUARD)
    assert max(map(len, fake.batches)) * 6 <= 2000


def test_texts_that_are_in_the_batch_already_cost_little(make_batcher, fake, score_together):
    score_together(make_batcher(max_batch_tokens=100), *["a text"] * 20)
    assert [len(call) for call in fake.batches] == [1, 20]


def test_a_batch_grows_where_there_is_time(make_batcher, fake):
    batcher = make_batcher(deadline=1200.0)  # 10 s for a batch
    for start in (0, 10_000):
        batcher.submit([f"{start + n:05}" for n in range(600)], ["x"] * 600).result(GUARD)
    first, *_, last = map(len, fake.batches)
    assert first * 7 <= 512
    assert last == 600


def test_a_request_waits_for_others_after_a_batch_of_several(make_batcher, fake, held):
    batcher = make_batcher(max_delay=GUARD, max_batch_tokens=4 * (3 + 3))
    held(batcher)
    futures = [batcher.submit(["b"], ["x"]) for _ in range(2)]
    fake.gate.set()
    # these fill the batch, which goes at once
    futures += [batcher.submit(["c"], ["x"]) for _ in range(2)]
    assert all(future.result(GUARD / 2) for future in futures)
    assert [len(call) for call in fake.batches] == [1, 4]


def test_a_request_that_comes_to_an_idle_batcher_does_not_wait(make_batcher):
    batcher = make_batcher(max_delay=GUARD * 10)
    for _ in range(3):
        assert batcher.submit(["a"], ["x"]).result(GUARD)


def test_an_idle_batcher_releases_memory_once(make_batcher, fake, monkeypatch):
    monkeypatch.setattr("bertscore_onnx_service.batcher.worker.IDLE_SECONDS", 0.05)
    batcher = make_batcher()
    wait_until(lambda: fake.releases == 1)
    assert not threading.Event().wait(0.3)
    assert fake.releases == 1
    batcher.submit(["a"], ["x"]).result(GUARD)
    wait_until(lambda: fake.releases == 2)


@pytest.mark.parametrize(
    ("cands", "refs", "options", "error"),
    [
        ("text", ["x"], {}, InputTypeError),
        (["a", "b"], ["x"], {}, InputError),
        (["a"], ["x"], {"deadline": -1}, InputError),
        (["a"], ["x"], {"deadline": "5"}, InputError),
        (["a"], ["x"], {"client": (["a"],)}, InputTypeError),
    ],
)
def test_wrong_input_is_refused_in_the_caller(make_batcher, fake, cands, refs, options, error):
    with pytest.raises(error):
        make_batcher().submit(cands, refs, **options)
    assert fake.batches == []


@pytest.mark.parametrize(
    "limit",
    [
        *({name: 0} for name in ("max_batch_tokens", "max_queue", "deadline")),
        {"max_delay": -1},
        {"deadline": math.inf},
    ],
)
def test_a_limit_out_of_range_is_refused_by_its_name(fake, limit):
    with pytest.raises(InputError, match=next(iter(limit))):
        MicroBatcher(fake, **limit)


def test_the_document_names_the_defaults(pytestconfig):
    text = (pytestconfig.rootpath / "docs" / "in_process.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([\d.,]+)", text, re.MULTILINE)
    options = inspect.signature(MicroBatcher).parameters.values()
    defaults = {
        option.name: option.default for option in options if isinstance(option.default, int | float)
    }
    assert {name: float(number.replace(",", "")) for name, number in rows} == defaults


def test_scorers_that_cannot_be_batched_are_refused(fake):
    with pytest.raises(InputError, match="idf_sents"):
        MicroBatcher(FakeScorer(idf="references"))
    fake.broken = RuntimeError("no device")
    with pytest.raises(RuntimeError, match="no device"):
        MicroBatcher(fake)


def test_a_full_queue_names_when_to_try_again(make_batcher, fake, held):
    batcher, begun = make_batcher(max_queue=2), time.monotonic()
    batcher.submit(["a"], ["x"]).result(GUARD)
    seconds = time.monotonic() - begun
    held(batcher)
    waiting = [batcher.submit(["a"], ["x"]) for _ in range(2)]
    assert batcher.stats().waiting == 2
    with pytest.raises(QueueFullError, match="2 requests") as caught:
        batcher.submit(["b"], ["x"])
    assert 0 < caught.value.retry_after <= 2 * seconds
    with pytest.raises(QueueFullError, match="2 requests"):
        batcher.check_capacity()
    assert batcher.stats().rejected == 2
    fake.gate.set()
    wait(waiting, GUARD)
    batcher.check_capacity()
    assert batcher.submit(["b"], ["x"]).result(GUARD).P.tolist() == [1]


def test_a_cancelled_request_costs_nothing_and_makes_room(make_batcher, fake, held):
    batcher = make_batcher(max_queue=1)
    held(batcher)
    cancelled = batcher.submit(["never"], ["x"])
    assert cancelled.cancel()
    assert wait([cancelled], GUARD).done == {cancelled}
    kept = batcher.submit(["kept"], ["x"])
    fake.gate.set()
    assert kept.result(GUARD).P.tolist() == [4]
    assert fake.batches == [["hold"], ["kept"]]
    assert batcher.stats().cancelled == 1


def test_a_call_in_asyncio_needs_no_thread_of_its_executor(make_batcher):
    let = threading.Event()

    async def score():
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        asyncio.get_running_loop().run_in_executor(None, let.wait, GUARD)
        try:
            return await make_batcher().score(["abc"], ["x"])
        finally:
            let.set()

    assert asyncio.run(score()).P.tolist() == [3]


def test_the_deadline_and_the_place_of_a_call_count_from_its_beginning(make_batcher, fake):
    let, tokenise = threading.Event(), fake.tokenise

    def slowly(pairs):
        let.wait(GUARD)
        return tokenise(pairs)

    async def score():
        batcher = make_batcher(max_queue=1)
        fake.tokenise = slowly
        first = asyncio.create_task(batcher.score(["a"], ["x"], deadline=2))
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError):
            await batcher.score(["b"], ["x"])
        with pytest.raises(DeadlineError):
            await first
        let.set()
        return await batcher.score(["abc"], ["x"])

    assert asyncio.run(score()).P.tolist() == [3]
    assert fake.batches == [["abc"]]


def test_texts_that_cannot_be_tokenised_fail_their_request(make_batcher, fake):
    batcher = make_batcher()
    fake.tokenise = lambda pairs: (_ for _ in ()).throw(ValueError("no token"))
    with pytest.raises(ValueError, match="no token"):
        batcher.submit(["a"], ["x"])
    with pytest.raises(ValueError, match="no token"):
        asyncio.run(batcher.score(["a"], ["x"]))
    assert batcher.stats().failed == {"ValueError": 2}


def test_cancelling_a_task_cancels_its_request(make_batcher, fake, held):
    async def cancel():
        batcher = make_batcher()
        held(batcher)
        task = asyncio.create_task(batcher.score(["never"], ["x"]))
        while not batcher.stats().waiting:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        fake.gate.set()
        return batcher

    batcher = asyncio.run(cancel())
    assert batcher.drain(GUARD)
    assert fake.batches == [["hold"]]
    assert batcher.stats().cancelled == 1


def test_draining_finishes_the_requests_and_admits_no_more(make_batcher, fake, held):
    batcher = make_batcher()
    assert batcher.ready
    futures = [held(batcher), batcher.submit(["a"], ["x"])]
    drained = []
    thread = threading.Thread(target=lambda: drained.append(batcher.drain(GUARD)))
    thread.start()
    wait_until(lambda: not batcher.ready)
    with pytest.raises(DrainingError):
        batcher.submit(["b"], ["x"])
    fake.gate.set()
    thread.join(GUARD)
    assert drained == [True]
    assert [future.result(0).P.tolist() for future in futures] == [[4], [1]]


def test_requests_left_by_draining_fail(make_batcher, held):
    batcher = make_batcher()
    futures = [held(batcher), batcher.submit(["a"], ["x"])]
    assert not batcher.drain(0.01)
    for future in futures:
        with pytest.raises(ClosedError, match="closed"):
            future.result(0)
    assert batcher.stats().failed == {"ClosedError": 2}


def test_a_closed_batcher_refuses_and_closes_again(fake):
    before = threading.active_count()
    with MicroBatcher(fake) as batcher:
        assert threading.active_count() == before + 2
    batcher.close()
    assert threading.active_count() == before
    assert not batcher.ready
    assert batcher.drain(0)
    with pytest.raises(ClosedError, match="closed"):
        batcher.submit(["a"], ["x"])


def test_a_callback_may_close_the_batcher(make_batcher):
    batcher = make_batcher()
    closed = threading.Event()

    def close(future):
        batcher.close()
        closed.set()

    batcher.submit(["a"], ["x"]).add_done_callback(close)
    assert closed.wait(GUARD)
    assert not batcher.ready


# an interrupt of a callback of gc
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_leaves_no_lock_locked(make_batcher):
    batcher, interrupts = make_batcher(), []

    def interrupt(*_):
        interrupts.append(None)
        raise InterruptedError

    previous = signal.signal(signal.SIGALRM, interrupt)
    try:
        for number in range(1000):
            with suppress(InterruptedError):
                with suppress(QueueFullError):
                    signal.setitimer(signal.ITIMER_REAL, 0.0001 + number % 10 / 10_000)
                    for _ in range(100):
                        batcher.submit(["a"], ["x"])
                        batcher.stats()
                # has no effect after an interrupt, which comes once
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert len(interrupts) > 100
    assert batcher.drain(GUARD)


def test_the_counts_add_up(make_batcher, fake, held):
    fake.faults["bad"] = ValueError("bad")
    batcher = make_batcher()
    held(batcher)
    futures = [batcher.submit([text], ["x"]) for text in ("a", "bad", "nan", "")]
    futures[0].cancel()
    assert batcher.stats().waiting == 3
    assert batcher.stats().in_flight == 1
    fake.gate.set()
    wait(futures, GUARD)
    assert batcher.drain(GUARD)
    stats = batcher.stats()
    assert stats == BatcherStats(
        submitted=5,
        completed=2,
        failed={"ValueError": 1, "EncodingError": 1},
        cancelled=1,
        expired=0,
        rejected=0,
        waiting=0,
        in_flight=0,
        batches=5,  # the first, the one that failed, and its three requests one by one
        batch_tokens=(6 + 3) + (5 + 5 + 2 + 3) + (5 + 3) + (5 + 3) + (2 + 3),
        padded_tokens=(6 + 3) + (2 * 5 + 2 * 3) + (5 + 3) + (5 + 3) + (3 + 2),  # in two runs each
        warnings=1,
        waits=stats.waits,
        runs=stats.runs,
    )
    assert sum(stats.runs.counts) == 5
    assert sum(stats.waits.counts) == 1 + 3 + 3
    assert stats.waits.total > 0


def test_a_batcher_is_not_pickled(make_batcher):
    with pytest.raises(InputTypeError, match="each process"):
        pickle.dumps(make_batcher())


FORK = """
import os
import threading
from bertscore_onnx.errors import ForkError
from bertscore_onnx_service import MicroBatcher
from tests.support.fake_scorer import FakeScorer

batcher = MicroBatcher(FakeScorer())
def ask():
    while True:
        batcher.stats()
threading.Thread(target=ask, daemon=True).start()  # a lock that is held at the fork stays held in the child
child = os.fork()
if child == 0:
    for use in (lambda: batcher.submit(["a"], ["x"]), batcher.drain, batcher.stats):
        try:
            use()
        except ForkError as error:
            print(error)
    print("ready:", batcher.ready)
    raise SystemExit(7)  # through the exit handlers
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


@pytest.mark.slow  # it starts a process
def test_a_forked_process_gets_an_error():
    done = run_python(FORK)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Make scorer and batcher after the fork") == 3
    assert "ready: False" in done.stdout


LEFT_OPEN = """
from bertscore_onnx_service import MicroBatcher
from tests.support.fake_scorer import FakeScorer

scorer = FakeScorer()
future = MicroBatcher(scorer).submit(["hold"], ["x"])
scorer.entered.wait(10)
"""


@pytest.mark.slow  # it starts a process
def test_a_process_ends_with_a_run_in_progress():
    done = run_python(LEFT_OPEN)
    assert (done.returncode, done.stderr) == (0, "")
