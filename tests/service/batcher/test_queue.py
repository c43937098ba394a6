"""How a request comes apart into pieces, and its scores together again."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx.scores import Scores, best_of_references
from bertscore_onnx.scoring.inputs import collect_pairs
from bertscore_onnx_service.batcher.queue import BatchSize, Request, join_batch, split_scores
from tests.support.fake_scorer import FakeScorer


@given(
    st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=4), max_size=6),
    st.lists(st.integers(-5, 80), min_size=1),
    st.randoms(use_true_random=False),
)
def test_pieces_cover_a_request_once_and_keep_to_their_tokens(references, rooms, random):
    scorer = FakeScorer()
    candidates = ["c" * number for number in range(len(references))]
    pairs, _ = scorer.tokenise(
        collect_pairs(candidates, [["r" * length for length in some] for some in references])
    )
    request = Request(pairs, 1.0)
    pieces, total, texts = [], request.tokens_left, set()
    for room in [*rooms, *[0] * 30]:
        at_least_one = room == 0
        if (
            not request.has_more
            or (piece := request.next_sub_batch(room, texts, at_least_one=at_least_one)) is None
        ):
            continue
        assert piece.cost <= max(room, 0) or (at_least_one and piece.stop == piece.start + 1)
        total -= piece.tokens
        pieces.append(piece)
    answer = None
    for piece in random.sample(pieces, len(pieces)):
        scores, _ = scorer.score_pairs(join_batch([piece]))
        [part] = split_scores(scores, [piece])
        assert answer is None
        answer = request.add_scores(piece, part)
    assert (total, request.tokens_left) == (0, 0)
    counts = np.array([*map(len, references)], dtype=np.int64)
    single = collect_pairs(
        np.repeat(candidates, counts).tolist(), ["r" * one for some in references for one in some]
    )
    whole, _ = scorer.score_pairs(scorer.tokenise(single)[0])
    expected = best_of_references(whole, counts) if references else whole
    assert isinstance(answer, Scores)
    np.testing.assert_array_equal(answer, expected)
    np.testing.assert_array_equal(answer.best_reference, expected.best_reference)


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
