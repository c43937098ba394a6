from bertscore_onnx_service.batcher.stats import BOUNDS, Durations


def test_durations_are_counted_up_to_their_bound():
    found = Durations()
    for seconds in (0.0, 0.001, 0.0011, 60.0, 61.0):
        found = found.add(seconds)
    assert found.counts == (2, 1, *[0] * (len(BOUNDS) - 3), 1, 1)
    assert found.total == 0.0 + 0.001 + 0.0011 + 60.0 + 61.0
