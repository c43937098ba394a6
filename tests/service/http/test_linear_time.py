"""Each stage of a request takes at most two and a half times as long for twice the input, the worst
known ones too.
"""

import json
import math
import time
from functools import partial

import msgspec
import numpy as np
import pytest

from bertscore_onnx.scores import Scores
from bertscore_onnx.scoring.inputs import collect_pairs
from bertscore_onnx_service.batcher.queue import Request, join_batch, schedule, split_scores
from bertscore_onnx_service.http.bodies import (
    PairBody,
    ScoreAnswer,
    decode_score_body,
    score_values,
    to_pairs,
)
from bertscore_onnx_service.http.errors import ApiError
from tests.support.fake_scorer import FakeScorer

pytestmark = [pytest.mark.full, pytest.mark.usefixtures("no_garbage_collection")]

MAX_RATIO = 2.5
ROUNDS, DOUBLINGS = 5, 4
"""Of each size the least time counts, and one doubling has to be linear: other processes may be at
work.
"""

LEAST = 0.001
"""Seconds that an input is taken to need at least."""

SIZE = 1000


def decoded(body):
    """Decode a body; what is wrong with it takes no less time to find out."""
    try:
        return decode_score_body(body, 10**9)
    except ApiError as error:
        return error.response()


def bodies(of_number):
    return lambda number: partial(
        decoded, b'{"pairs": [' + b",".join(map(of_number, range(number))) + b"]}"
    )


def pair(candidate, **more):
    return json.dumps({"candidate": candidate, **(more or {"reference": "b"})}).encode()


def tokenised(number, references=1):
    texts = [f"{position}" for position in range(number)]
    pairs = collect_pairs(
        texts[: number // references], [texts[:references]] * (number // references)
    )
    return FakeScorer().tokenise(pairs)[0]


def request(number, references=1):
    return partial(Request, tokenised(number, references), 1.0)


def all_pieces(number):
    """Take many small requests and a large one into batches, to the end."""
    pairs = [tokenised(4) for _ in range(number // 4)]

    def take():
        requests = [Request(some, 1.0) for some in pairs[:256]]
        requests.append(Request(tokenised(number), 1.0))
        while batch := schedule(requests, 16_384):
            split_scores(FakeScorer().score_pairs(join_batch(batch))[0], batch)

    return take


def answers(number):
    values = np.linspace(0, 1, number, dtype=np.float32)
    scores = Scores(values, values, values, np.zeros(number, np.int64))
    return lambda: msgspec.json.encode(ScoreAnswer("signature", "model", score_values(scores)))


STAGES = {
    "decode pairs": bodies(lambda number: pair(f"text {number}")),
    "decode many references": bodies(lambda number: pair("a", references=["b"] * 8)),
    "decode escapes": bodies(
        lambda number: b'{"candidate": "%s", "reference": ""}' % (rb"\u00e9\n" * 50)
    ),
    "decode a key that is there twice": lambda number: partial(
        decoded, b'{%s,"k0":0}' % b",".join(b'"k%d":0' % key for key in range(number))
    ),
    "decode unknown keys": bodies(lambda number: b'{"%d": 0}' % number),
    "decode many keys": lambda number: partial(
        decoded, b"{%s}" % b",".join(b'"k%d":0' % key for key in range(number))
    ),
    "decode brackets": lambda number: partial(decoded, b"[" * number * 100),
    "decode digits": lambda number: partial(decoded, b'{"pairs": %s}' % (b"9" * number * 100)),
    "decode bytes that are no UTF-8": lambda number: partial(
        decoded, b'{"pairs": "%s' % (b"\xc3\xa9" * number * 100)
    ),
    "pair up": lambda number: partial(to_pairs, [PairBody("a", references=["b", "c"])] * number),
    "count tokens": request,
    "count tokens of many references": partial(request, references=1000),
    "take pieces": all_pieces,
    "encode the answer": answers,
}


def seconds(work):
    begun = time.process_time()
    work()
    return time.process_time() - begun


def is_linear(stage, size):
    once, twice = stage(size), stage(2 * size)
    short = long = math.inf
    for _ in range(ROUNDS):
        short, long = min(short, seconds(once)), min(long, seconds(twice))
    return long <= MAX_RATIO * max(short, LEAST)


@pytest.mark.parametrize("stage", STAGES.values(), ids=STAGES)
def test_twice_the_input_takes_no_more_than_twice_the_time(stage):
    assert any(is_linear(stage, SIZE << doubling) for doubling in range(DOUBLINGS))


def test_the_measure_finds_what_is_quadratic():
    def quadratic(number):
        return lambda: [one for one in range(number) for _ in range(number // 2)]

    assert not is_linear(quadratic, SIZE)
