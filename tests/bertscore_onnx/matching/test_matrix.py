import itertools

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import EncodingError, IdfError, InputTypeError
from tests.support.scores import CANDIDATES, REFERENCES, largest_difference

WITH_EMPTY = ["the cat sat on the mat.", "", "a dog ran", "the cat sat on the mat.", "a", "[SEP]"]
OTHERS = ["a cat sits on a mat.", "the dog runs", " ", "the tree is blue!", "the dog runs", "red", "it was not"]
EMPTY_IS_TOLD = pytest.mark.filterwarnings("ignore:.* 0 because :UserWarning")


def of_each_pair(scorer, candidates, references):
    """The scores of all pairs by `score`, as matrices: (…, cands, refs)."""
    pairs = list(itertools.product(candidates, references))
    scores = scorer.score(*map(list, zip(*pairs, strict=True)))
    return [array.reshape(*array.shape[:-1], len(candidates), len(references)) for array in scores]


@EMPTY_IS_TOLD
def test_every_pair_scores_as_by_itself(scorer):
    found = scorer.pairwise(WITH_EMPTY, OTHERS)
    assert [array.dtype for array in found] == [np.float32] * 3
    assert found.F.shape == (6, 7)
    assert largest_difference(found, of_each_pair(scorer, WITH_EMPTY, OTHERS)) <= 1e-6


@EMPTY_IS_TOLD
@pytest.mark.parametrize("max_tokens", [1, 8, 13])
def test_blocks_do_not_change_scores(scorer, monkeypatch, max_tokens):
    expected = of_each_pair(scorer, WITH_EMPTY, OTHERS)
    monkeypatch.setattr("bertscore_onnx.matching.pairs.BLOCK_TOKENS", max_tokens)
    assert largest_difference(scorer.pairwise(WITH_EMPTY, OTHERS), expected) <= 1e-6


@EMPTY_IS_TOLD
def test_a_side_without_words_scores_zero_against_everything(scorer):
    scores = scorer.pairwise(WITH_EMPTY, OTHERS)
    for array in scores:
        assert array[[1, 5]].tolist() == [[0] * 7] * 2
        assert array[:, 2].tolist() == [0] * 6
        assert (array[0, [0, 1, 3, 4, 5, 6]] != 0).all()


@EMPTY_IS_TOLD
def test_equal_texts_get_equal_scores(scorer):
    scores = scorer.pairwise(WITH_EMPTY, OTHERS)
    assert (scores.F[0] == scores.F[3]).all()
    assert (scores.F[:, 1] == scores.F[:, 4]).all()


def test_vectors_that_are_not_finite_are_told(scorer):
    encoded = scorer.encode(REFERENCES)
    encoded.embeddings.vectors_of(0, 1)[2] = np.nan
    with pytest.raises(EncodingError, match="infinite or undefined vectors"):
        scorer.pairwise(CANDIDATES, encoded)


def test_texts_against_themselves_are_perfect_on_the_diagonal_and_swap_across_it(scorer):
    scores = scorer.pairwise(REFERENCES, REFERENCES)
    assert np.diagonal(scores.F) == pytest.approx(1, abs=1e-6)
    assert np.abs(scores.P - scores.R.T).max() <= 1e-6
    assert (scores.F < 0.999).sum() == 6


def test_the_best_reference_of_each_candidate_is_named(scorer):
    scores = scorer.pairwise([REFERENCES[2], REFERENCES[0]], [*REFERENCES, REFERENCES[2]])
    assert scores.best_reference.tolist() == [2, 0]


@EMPTY_IS_TOLD
def test_idf_comes_from_the_references(tiny_bundle):
    with BERTScorer(tiny_bundle, idf=True, idf_sents=OTHERS) as ready:
        expected = of_each_pair(ready, WITH_EMPTY, OTHERS)
    with BERTScorer(tiny_bundle, idf=True) as scorer:
        assert largest_difference(scorer.pairwise(WITH_EMPTY, OTHERS), expected) <= 1e-6
        assert largest_difference(scorer.pairwise(WITH_EMPTY, scorer.encode(OTHERS)), expected) <= 1e-6


def test_idf_with_one_reference_is_refused(tiny_bundle):
    with BERTScorer(tiny_bundle, idf=True) as scorer, pytest.raises(IdfError, match="at least two different"):
        scorer.pairwise(CANDIDATES, ["the cat"])


def test_a_text_of_zero_weight_tokens_scores_zero(tiny_bundle):
    with BERTScorer(tiny_bundle, idf=True) as scorer:
        scores = scorer.pairwise(["the", "a dog"], ["the cat", "the dog"])
    assert [array[0].tolist() for array in scores] == [[0, 0]] * 3
    assert (scores.F[1] > 0).all()


@EMPTY_IS_TOLD
def test_scores_are_rescaled(tiny_bundle, baseline_path):
    with BERTScorer(tiny_bundle, rescale_with_baseline=True, baseline_path=baseline_path) as scorer:
        expected = of_each_pair(scorer, WITH_EMPTY, OTHERS)
        assert largest_difference(scorer.pairwise(WITH_EMPTY, OTHERS), expected) <= 1e-6


@EMPTY_IS_TOLD
@pytest.mark.parametrize("rescaled", [False, True])
def test_every_layer_is_scored(all_layers_bundle, baseline_path, rescaled):
    options = {"rescale_with_baseline": True, "baseline_path": baseline_path} if rescaled else {}
    with BERTScorer(all_layers_bundle, all_layers=True, **options) as scorer:
        found = scorer.pairwise(WITH_EMPTY, OTHERS)
        assert found.F.shape == (4, 6, 7)
        assert found.best_reference.tolist() == found.F.argmax(axis=2).tolist()
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
    assert largest_difference(scorer.pairwise(candidates[2:4], references[1:]), [a[2:4, 1:] for a in expected]) <= 1e-6


@pytest.mark.parametrize(("candidates", "references"), [([], REFERENCES), (CANDIDATES, []), ([], [])])
def test_nothing_scores_as_nothing(scorer, candidates, references):
    scores = scorer.pairwise(candidates, references)
    assert [array.shape for array in scores] == [(len(candidates), len(references))] * 3


def test_a_list_of_references_for_each_candidate_is_refused(scorer):
    with pytest.raises(InputTypeError, match=r"refs\[0\] is list"):
        scorer.pairwise(CANDIDATES, [["a cat", "the cat"]])


def test_texts_that_are_cut_are_warned_of_once(scorer):
    with pytest.warns(UserWarning, match="1 text is longer than 32 tokens") as caught:
        scorer.pairwise(["cat " * 50], ["cat " * 50, "a cat"])
    assert [warning.filename for warning in caught] == [__file__]
