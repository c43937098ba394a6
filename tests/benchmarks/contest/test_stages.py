import threading
import time

import pytest

from benchmarks.contest.stages import OTHER, StageClock, profile, replaced, stage_shares
from bertscore_onnx import BERTScorer


def shares(spans, begin=0.0, end=10.0):
    return {stage: share for stage, share in stage_shares(spans, begin, end).items() if share}


def test_time_in_no_station_is_other():
    assert shares([(1, 3, "encode"), (6, 7, "match")]) == pytest.approx({"encode": 0.2, "match": 0.1, OTHER: 0.7})


def test_threads_share_the_moments_in_which_they_work_side_by_side():
    spans = [(0, 8, "encode"), (0, 4, "encode"), (6, 10, "match")]
    assert shares(spans) == pytest.approx({"encode": 0.7, "match": 0.3})


def test_a_station_inside_another_stops_its_clock():
    clock = StageClock()
    inner = clock.timed("encode", lambda: time.sleep(0.02))
    clock.timed("match", inner)()
    assert [stage for _, _, stage in clock.spans] == ["match", "encode", "match"]
    ends, begins = [end for _, end, _ in clock.spans], [begin for begin, _, _ in clock.spans]
    assert ends[:-1] == begins[1:]
    assert ends[1] - begins[1] >= 0.02


def test_a_generator_counts_while_it_makes_an_item():
    clock = StageClock()

    def numbers():
        yield 1
        yield 2

    assert list(clock.timed("plan", numbers)()) == [1, 2]
    assert len(clock.spans) == 4  # the call, two items and the end


def test_each_thread_has_its_own_stations():
    clock = StageClock()
    station = clock.timed("encode", lambda: None)
    threads = [threading.Thread(target=station) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(clock.spans) == 3


def test_every_station_of_the_library_is_passed(tiny_bundle):
    with BERTScorer(tiny_bundle) as scorer:
        seconds, found = profile(lambda: scorer.score(["the cat sat"], ["a cat sat on the mat"]))
    assert seconds > 0
    assert all(share > 0 for share in found.values()), found
    assert sum(found.values()) == pytest.approx(1)


def test_a_station_that_is_gone_is_an_error_that_names_the_table():
    with pytest.raises(RuntimeError, match=r"no function bertscore_onnx\.no_such\. Adjust STATIONS"):
        replaced("bertscore_onnx.no_such", lambda function: function)
