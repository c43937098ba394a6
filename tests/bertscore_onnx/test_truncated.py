"""Scores name the pairs with a text that is longer than the model's maximum: `truncated`."""

import numpy as np
import pytest

from bertscore_onnx import BERTScorer, score
from bertscore_onnx_service import MicroBatcher

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


def test_a_context_that_is_cut_truncates_no_text(short):
    scores = short.score(
        ["a cat", LONG, "a"], ["the cat"] * 3, contexts=["a red mat", "a dog", LONGER]
    )
    assert scores.truncated.tolist() == [False, True, False]


def test_every_layer_and_rescaled_scores_have_it(all_layers_bundle, baseline_path):
    with BERTScorer(all_layers_bundle, device="cpu", all_layers=True, max_length=8) as scorer:
        candidates, references, expected = sides()
        assert scorer.score(candidates, references).truncated.tolist() == expected
        assert [one.truncated for one in scorer.score(candidates, references).each()] == expected
        rescaled = scorer.with_rescaling(baseline_path=baseline_path)
        assert rescaled.score(candidates, references).truncated.tolist() == expected


def test_a_batcher_answers_with_it_and_counts_texts(short):
    candidates, references, expected = sides()
    with MicroBatcher(short, max_batch_tokens=24) as batcher:
        assert batcher.submit(candidates, references).result(30).truncated.tolist() == expected
        assert batcher.stats().truncated == 6
        several = [batcher.submit([candidate], [some]) for candidate, some, _ in PAIRS]
        assert [future.result(30).truncated.item() for future in several] == expected
        assert batcher.stats().truncated == 2 * 6
        before = batcher.stats().warnings
        batcher.submit([LONG], ["a cat"]).result(30)
        assert batcher.stats().warnings == before + 1  # not again when it is scored


def test_matches_warn_of_truncated_texts_at_the_callers_line(short):
    with pytest.warns(UserWarning, match="2 texts") as caught:
        matches = short.match("a cat", [LONG, "the cat", LONGER])
    assert [warning.filename for warning in caught] == [__file__]
    assert [found.is_truncated for found in matches.similarities] == [
        (False, True),
        (False, False),
        (False, True),
    ]
    with pytest.warns(UserWarning, match="1 text is longer"):
        matches = short.match(LONG, "the cat")
    said = "The candidate is longer than the model's maximum, so its end is missing."
    assert all(
        said in shown
        for shown in (str(matches), matches._repr_html_(), matches.to_html().replace("&#x27;", "'"))
    )
