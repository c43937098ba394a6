from bertscore_onnx.serving.stats import BOUNDS, DurationCounter


def test_durations_are_counted_up_to_their_bound():
    counter = DurationCounter()
    for seconds in (0.0, 0.001, 0.0011, 60.0, 61.0):
        counter.add(seconds)
    found = counter.durations()
    assert found.counts == (2, 1, *[0] * (len(BOUNDS) - 3), 1, 1)
    assert found.total == 0.0 + 0.001 + 0.0011 + 60.0 + 61.0
    counter.add(0.0)
    assert sum(found.counts) == 5
