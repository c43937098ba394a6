import numpy as np
import pytest

from bertscore_onnx import BERTScorer, EncodedTexts, score
from bertscore_onnx.errors import InputError
from tests.support.scores import CANDIDATES, REFERENCES, SEVERAL, largest_difference


@pytest.mark.parametrize("references", [REFERENCES, SEVERAL])
@pytest.mark.parametrize("has_small_chunks", [False, True])
def test_encoded_texts_score_like_the_texts(scorer, references, has_small_chunks, request):
    candidates, references = CANDIDATES * 4, references * 4
    expected = scorer.score(candidates, references)
    if has_small_chunks:
        request.getfixturevalue("small_chunks")
    encoded = scorer.encode(candidates), scorer.encode(references)
    for sides in ((candidates, encoded[1]), (encoded[0], references), encoded):
        found = scorer.score(*sides)
        assert largest_difference(found, expected) <= 1e-6
        assert found.best_reference.tolist() == expected.best_reference.tolist()


@pytest.mark.parametrize("references", [REFERENCES, SEVERAL])
@pytest.mark.parametrize(
    ("bundle", "options"),
    [("tiny_bundle", {"idf": True}), ("all_layers_bundle", {"all_layers": True})],
)
def test_idf_and_every_layer_come_from_encoded_references_too(request, bundle, options, references):
    with BERTScorer(request.getfixturevalue(bundle), **options) as scorer:
        expected = scorer.score(CANDIDATES, references)
        assert (
            largest_difference(scorer.score(CANDIDATES, scorer.encode(references)), expected)
            <= 1e-6
        )


def test_nothing_encodes_to_nothing(scorer):
    handle = scorer.encode([])
    assert (len(handle), handle.nbytes) == (0, 0)
    assert scorer.score([], handle).F.shape == (0,)


@pytest.mark.parametrize(
    "items",
    [
        *map(slice, [1, None, -1, 0, 2, 5], [3, 2, None, 0, 1, 9]),
        *(slice(None, None, step) for step in (None, 2, -1)),
    ],
)
def test_some_of_the_items_score_like_their_texts(scorer, items):
    whole = scorer.encode(SEVERAL)
    handle = whole[items]
    assert handle.embeddings is whole.embeddings
    assert len(handle) == len(SEVERAL[items])
    expected = scorer.score(CANDIDATES[items], SEVERAL[items])
    assert [array.tolist() for array in scorer.score(CANDIDATES[items], handle)] == [
        pytest.approx(array, abs=1e-6) for array in expected
    ]


def test_each_value_of_a_distinct_token_takes_four_bytes(scorer):
    handle = scorer.encode(["a cat", "the dog runs", "a cat", " a  cat"])
    assert handle.rows.tolist() == [0, 1, 0, 0]
    assert handle.nbytes == 4 * 32 * ((2 + 2) + (3 + 2))  # each text has two special tokens
    assert repr(handle).startswith("EncodedTexts(4 items, 0.0 MB, ")
    assert "the dog" not in repr(handle)


def test_texts_of_another_model_or_arithmetic_are_refused(
    scorer, tiny_bundle, all_layers_bundle, bfloat16
):
    with BERTScorer(all_layers_bundle, all_layers=True) as other:
        foreign = other.encode(REFERENCES)
    with BERTScorer(tiny_bundle, device="openvino", idf=True) as other:
        in_bfloat16 = other.encode(REFERENCES)
        with pytest.raises(InputError, match="encoded by"):
            other.compute_idf(foreign)
    message = f"encoded by {foreign.model}; this scorer is {scorer.manifest.digest[:12]} in fp32"
    for call in (
        lambda: scorer.score(CANDIDATES, foreign),
        lambda: scorer.score(foreign, REFERENCES),
        lambda: scorer.pairwise(CANDIDATES, foreign),
        lambda: scorer.pairwise(foreign, REFERENCES),
        lambda: scorer.encode(foreign),
    ):
        with pytest.raises(InputError, match=message):
            call()
    with pytest.raises(InputError, match=r"bf16.*fp32"):
        scorer.score(CANDIDATES, in_bfloat16)


def test_encoded_texts_are_refused_where_they_do_not_fit(scorer):
    texts, lists = scorer.encode(REFERENCES), scorer.encode(SEVERAL)
    for method, candidates, references, message in (
        (scorer.score, lists, REFERENCES, "cands was encoded"),
        (scorer.pairwise, lists, REFERENCES, "cands was encoded"),
        (scorer.pairwise, CANDIDATES, lists, "refs was encoded"),
        (scorer.score, CANDIDATES[:2], texts, "differ in number, 2 and 3"),
    ):
        with pytest.raises(InputError, match=message):
            method(candidates, references)


def test_what_is_encoded_already_stays_as_it_is(scorer):
    handle = scorer.encode(REFERENCES)
    assert scorer.encode(handle) is handle
    assert isinstance(handle, EncodedTexts)


def test_it_outlives_the_scorer(tiny_bundle):
    with BERTScorer(tiny_bundle) as scorer:
        handle = scorer.encode(REFERENCES)
    vectors = [handle.embeddings.vectors_of(0, row) for row in handle.rows]
    assert np.linalg.norm(np.concatenate(vectors), axis=1) == pytest.approx(1, abs=1e-6)


def test_the_function_refuses_texts_that_another_model_encoded(scorer, tiny_bundle):
    encoded = scorer.encode(REFERENCES)
    assert np.array_equal(
        score(CANDIDATES, encoded, tiny_bundle).F, scorer.score(CANDIDATES, REFERENCES).F
    )
    for settings in ({"long_text": "window"}, {"max_length": 8}):
        with pytest.raises(InputError, match="encoded by"):
            score(CANDIDATES, encoded, tiny_bundle, **settings)
