"""How much of a request batches have taken, and how large they are."""

from bertscore_onnx.scoring.inputs import collect_pairs
from bertscore_onnx_service.batcher.queue import BatchSize, Request
from tests.support.fake_scorer import FakeScorer


def test_the_tokens_of_a_request_are_left_until_a_batch_takes_them():
    pairs, _ = FakeScorer().tokenise(collect_pairs(["a", "bb", "ccc"], ["x"] * 3))
    request = Request(pairs, 1.0)
    left = [request.tokens_left]
    for max_cost in (8, 0, 100):
        request.next_sub_batch(max_cost, set(), at_least_one=False)
        left.append(request.tokens_left)
    assert left == [3 + 4 + 5 + 3 * 3, 4 + 5 + 2 * 3, 4 + 5 + 2 * 3, 0]


def test_the_size_of_batches_follows_the_pace_of_the_last_one_that_was_not_small():
    size = BatchSize(16_384, 0.25)
    sizes = [size.tokens]
    for tokens, seconds in (
        (512, 0.1),
        (600, 10.0),
        (700, 0.25),
        (2000, 0.01),
        (16_384, 1e3),
        (200, 1e-9),
        (256, 0.1),
    ):
        size.learn(tokens, seconds)
        sizes.append(size.tokens)
    assert sizes == [512, 1280, 1280, 700, 16_384, 512, 512, 640]
