"""Scores name the pairs with a text that is longer than the model's maximum: `truncated`."""

import numpy as np
import pytest

from bertscore_onnx import BERTScorer, score

pytestmark = [
    pytest.mark.filterwarnings("ignore:.* longer than .* tokens and truncated:UserWarning"),
    pytest.mark.filterwarnings("ignore:.* 0 because a side is empty:UserWarning"),
]

FULL = "the cat sat on the red"  # as many tokens as the model takes here, special ones included
LONG = f"{FULL} mat"
LONGER = "a dog ran " * 20
PAIRS = [
    ("a cat", ["the cat"], False),
    (LONG, ["the cat"], True),
    ("a cat", [LONG], True),
    (FULL, [FULL], False),
    ("a dog", ["the dog", LONGER, "a"], True),
    (LONG, [LONGER], True),
    (FULL, [LONG], True),
    ("", ["a dog", "the cat sat"], False),
    ("a dog", ["a dog ran", FULL], False),
]


@pytest.fixture(scope="module")
def short(tiny_bundle):
    with BERTScorer(tiny_bundle, device="cpu", max_length=8) as scorer:
        yield scorer


def sides(pairs=PAIRS):
    candidates, references, expected = zip(*pairs, strict=True)
    return list(candidates), list(references), list(expected)


def test_the_truncated_pairs_are_named(short):
    candidates, references, expected = sides()
    scores = short.score(candidates, references)
    assert scores.truncated.tolist() == expected
    assert scores.truncated.dtype == np.bool_
    assert [one.truncated for one in scores.each()] == expected
    assert [
        one.truncated for one in short.stream(zip(candidates, references, strict=True))
    ] == expected
    assert (
        score(candidates, references, short.bundle.path, max_length=8).truncated.tolist()
        == expected
    )
    assert not short.score(["", "a"], ["a", ""]).truncated.any()
    assert short.score([], []).truncated.shape == (0,)


def test_encoded_texts_keep_it(short):
    candidates, references, expected = sides()
    encoded = short.encode(candidates), short.encode(references)
    assert short.score(*encoded).truncated.tolist() == expected
    assert short.score(candidates, encoded[1]).truncated.tolist() == expected
    assert short.score(encoded[0][1:5], references[1:5]).truncated.tolist() == expected[1:5]
    singles = ["a cat", LONG, FULL]
    assert short.pairwise(singles, short.encode(singles)).truncated.tolist() == [
        [False, True, False],
        [True, True, True],
        [False, True, False],
    ]


def test_rescaled_scores_keep_it(short, baseline_path):
    candidates, references, expected = sides()
    with short.with_rescaling(baseline_path=baseline_path) as rescaled:
        assert rescaled.score(candidates, references).truncated.tolist() == expected
