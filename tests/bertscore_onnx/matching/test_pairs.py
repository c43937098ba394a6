import itertools

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.concurrency.threads import Threads
from bertscore_onnx.encoding.encoder import TokenEmbeddings
from bertscore_onnx.errors import EncodingError, IdfError
from bertscore_onnx.matching.greedy import greedy_match
from bertscore_onnx.matching.pairs import match_pairs
from bertscore_onnx.matching.weights import TokenWeights
from tests.support.scores import CANDIDATES, REFERENCES, largest_difference
from tests.support.token_similarity import encoded_texts

FRAME, UNKNOWN = 0, 9

"""The id of a special token, which weighs nothing, and one that the table of weights lacks."""

IS_WORD = np.arange(10) != FRAME

WEIGHTS = TokenWeights(np.float32([0, 1, 2, 0.5, 1, 3, 0, 0, 1, np.nan]), IS_WORD, "made up")


@pytest.fixture
def threads():
    threads = Threads(2, "test")
    yield threads
    threads.close()


def table_of(*texts):
    """Embed texts, given as ids, at random, in two layers."""
    lengths = np.array([len(ids) for ids in texts])
    vectors = np.random.default_rng(0).normal(size=(2, lengths.sum(), 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    ids = [*map(np.array, texts)]
    return TokenEmbeddings(ids, lengths, vectors, np.cumsum(lengths) - lengths, documents=ids)


def match(table, candidate, reference, threads):
    """Return precision and recall, (2, layers, pairs), and how many pairs have nothing to match, by
    the reason.
    """
    scores, nothing = match_pairs(
        encoded_texts(table, candidate), encoded_texts(table, reference), WEIGHTS, threads
    )
    return np.array([scores.precision, scores.recall]), {
        reason: has_it.sum() for reason, has_it in nothing.items()
    }


TABLE = table_of([0, 1, 2, 0], [0, 3, 0], [0, 4, 5, 8, 1, 0], [0, 5, 2, 0], [0, 1, 1, 8, 8, 3, 0])

CANDIDATE, REFERENCE = [0, 1, 2, 3, 4, 0, 2], [1, 2, 3, 4, 0, 0, 1]


@pytest.mark.parametrize("max_tokens", [1, 8, 4096])
def test_every_pair_scores_as_by_itself(threads, monkeypatch, max_tokens):
    monkeypatch.setattr("bertscore_onnx.matching.pairs.BATCH_TOKENS", max_tokens)
    together, _ = match(TABLE, CANDIDATE, REFERENCE, threads)
    for pair, texts in enumerate(zip(CANDIDATE, REFERENCE, strict=True)):
        for layer in range(2):
            sides = []
            for text in texts:
                weights = WEIGHTS.table[TABLE.sequences[text]]
                sides += [TABLE.vectors_of(layer, text), weights / weights.sum()]
            expected = greedy_match(*sides)
            assert together[:, layer, pair] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("layer", [0, 1])
def test_vectors_that_are_not_finite_are_an_error(threads, layer):
    table = table_of([0, 1, 2, 0], [0, 3, 0], [0, 4, 5, 0])
    table.vectors_of(layer, 1)[0, 3] = np.nan
    match(table, [0, 2], [2, 0], threads)
    with pytest.raises(EncodingError, match="vectors"):
        match(table, [0, 2], [2, 1], threads)


@pytest.mark.parametrize("together", [False, True])
def test_a_side_with_nothing_to_match_scores_0_and_is_counted(threads, together):
    table = table_of([0, 1, 2, 0], [0, 0], [0, 6, 7, 0], [0, 3, 4, 1, 0])
    table.vectors[:] = 1 / np.sqrt(8)
    for layer in range(2):
        table.vectors_of(layer, 0)[:] *= -1  # all similarities -1
    candidate, reference = [0, 0, 1, 2, 0], [1, 2, 0, 3, 3]
    if together:
        scores, nothing = match(table, candidate, reference, threads)
        assert nothing == {"empty": 2, "zero_weight": 2, "excluded": 0}
    else:
        singly = [
            match(table, [one], [other], threads)
            for one, other in zip(candidate, reference, strict=True)
        ]
        scores = np.concatenate([scores for scores, _ in singly], axis=2)
        assert [nothing["empty"] for _, nothing in singly] == [1, 0, 1, 0, 0]
        assert [nothing["zero_weight"] for _, nothing in singly] == [0, 1, 0, 1, 0]
    assert (scores[..., :4] == 0).all()
    assert not np.signbit(scores[..., :4]).any()
    assert scores[..., 4] == pytest.approx(-1)


def test_a_missing_weight_matters_only_where_its_token_occurs(threads):
    table = table_of([UNKNOWN, 1], [1, 2], [2, 3, 4])
    scores, _ = match(table, [1, 2], [2, 2], threads)
    assert np.isfinite(scores).all()
    for candidate in ([0], [1, 0]):
        with pytest.raises(IdfError, match="9"):
            match(table, candidate, [2] * len(candidate), threads)


WITH_EMPTY = ["the cat sat on the mat.", "", "a dog ran", "the cat sat on the mat.", "a", "[SEP]"]

OTHERS = [
    "a cat sits on a mat.",
    "the dog runs",
    " ",
    "the tree is blue!",
    "the dog runs",
    "red",
    "it was not",
]

EMPTY_IS_TOLD = pytest.mark.filterwarnings("ignore:.* 0 because :UserWarning")


def of_each_pair(scorer, candidates, references):
    """The scores of all pairs by `score`, as matrices: (…, cands, refs)."""
    pairs = list(itertools.product(candidates, references))
    scores = scorer.score(*map(list, zip(*pairs, strict=True)))
    return [array.reshape(*array.shape[:-1], len(candidates), len(references)) for array in scores]


@EMPTY_IS_TOLD
@pytest.mark.parametrize("max_tokens", [None, 1, 8, 13])
def test_every_cell_scores_as_its_pair_in_blocks_of_any_size(scorer, monkeypatch, max_tokens):
    expected = of_each_pair(scorer, WITH_EMPTY, OTHERS)
    if max_tokens:
        monkeypatch.setattr("bertscore_onnx.matching.pairs.BLOCK_TOKENS", max_tokens)
    found = scorer.pairwise(WITH_EMPTY, OTHERS)
    assert [array.dtype for array in found] == [np.float32] * 3
    assert found.F.shape == (6, 7)
    assert largest_difference(found, expected) <= 1e-6


def test_encoded_vectors_that_are_not_finite_are_refused(scorer):
    encoded = scorer.encode(REFERENCES)
    encoded.embeddings.vectors_of(0, 1)[2] = np.nan
    with pytest.raises(EncodingError, match="vectors"):
        scorer.pairwise(CANDIDATES, encoded)


@EMPTY_IS_TOLD
def test_idf_comes_from_the_references(tiny_bundle):
    with BERTScorer(tiny_bundle, idf=True, idf_sents=OTHERS) as ready:
        expected = of_each_pair(ready, WITH_EMPTY, OTHERS)
    with BERTScorer(tiny_bundle, idf=True) as scorer:
        assert largest_difference(scorer.pairwise(WITH_EMPTY, OTHERS), expected) <= 1e-6
        assert (
            largest_difference(scorer.pairwise(WITH_EMPTY, scorer.encode(OTHERS)), expected) <= 1e-6
        )


@EMPTY_IS_TOLD
@pytest.mark.parametrize("rescaled", [False, True])
@pytest.mark.parametrize("all_layers", [False, True])
def test_every_layer_is_scored_and_rescaled(
    tiny_bundle, all_layers_bundle, baseline_path, all_layers, rescaled
):
    bundle = all_layers_bundle if all_layers else tiny_bundle
    options = {"rescale_with_baseline": True, "baseline_path": baseline_path} if rescaled else {}
    with BERTScorer(bundle, all_layers=all_layers, **options) as scorer:
        found = scorer.pairwise(WITH_EMPTY, OTHERS)
        assert found.F.shape == ((4, 6, 7) if all_layers else (6, 7))
        assert found.best_reference.tolist() == found.F.argmax(axis=-1).tolist()
        assert largest_difference(found, of_each_pair(scorer, WITH_EMPTY, OTHERS)) <= 1e-6


@EMPTY_IS_TOLD
def test_encoded_texts_score_like_the_texts(scorer):
    expected = scorer.pairwise(WITH_EMPTY, OTHERS)
    candidates, references = scorer.encode(WITH_EMPTY), scorer.encode(OTHERS)
    for found in (
        scorer.pairwise(candidates, OTHERS),
        scorer.pairwise(WITH_EMPTY, references),
        scorer.pairwise(candidates, references),
    ):
        assert largest_difference(found, expected) <= 1e-6
    assert (
        largest_difference(
            scorer.pairwise(candidates[2:4], references[1:]), [a[2:4, 1:] for a in expected]
        )
        <= 1e-6
    )


@pytest.mark.parametrize(
    ("candidates", "references"), [([], REFERENCES), (CANDIDATES, []), ([], [])]
)
def test_nothing_scores_as_nothing(scorer, candidates, references):
    scores = scorer.pairwise(candidates, references)
    assert [array.shape for array in scores] == [(len(candidates), len(references))] * 3
