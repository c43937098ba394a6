from collections import defaultdict
from math import log

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.errors import IdfError
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.matching.weights import (
    idf_given,
    idf_of_counts,
    idf_of_mapping,
    idf_of_references,
    uniform,
)

DIFFERENT = [np.array([2, 5, 3]), np.array([2, 6, 3])]


@pytest.fixture(scope="module")
def manifest(tiny_bundle):
    return read_manifest(tiny_bundle)


def idf_of_documents(slices, manifest):
    return idf_of_counts(
        DocumentCounts.of_documents(slices, manifest.vocab_size, "test"), manifest, "test"
    )


def test_without_idf_only_the_zero_ids_weigh_nothing(manifest):
    table = uniform(manifest).table
    assert np.flatnonzero(table == 0).tolist() == manifest.zero_weight_ids == [2, 3]


def test_idf_weights_come_from_the_documents(manifest):
    table = idf_of_documents([DIFFERENT], manifest).table
    assert table[[2, 5, 7]].tolist() == pytest.approx([0, log(3 / 2), log(3)])


@pytest.mark.parametrize(
    "documents", [DIFFERENT[:1], DIFFERENT[:1] * 3, [np.array([5, 6]), np.array([6, 5])]]
)
def test_references_that_do_not_differ_are_refused(manifest, documents):
    counts = DocumentCounts.of_documents([documents], manifest.vocab_size, "test")
    with pytest.raises(IdfError, match="idf needs at least two different"):
        idf_of_references(counts, manifest, "test")


def test_an_empty_mapping_is_no_idf_as_in_bert_score(manifest):
    assert idf_given({}, manifest, "test") is None
    assert idf_given(defaultdict(lambda: 3.0), manifest, "test").table[5] == 3


def test_a_table_of_idf_is_named_by_its_content(manifest):
    name = idf_of_documents([DIFFERENT], manifest).name
    assert idf_of_documents([DIFFERENT[::-1]], manifest).name == name
    assert idf_of_documents(iter([DIFFERENT[:1], DIFFERENT[1:]]), manifest).name == name
    assert idf_of_documents([[*DIFFERENT, DIFFERENT[0]]], manifest).name != name


def test_a_ready_table_is_taken_as_it_is(manifest):
    weights = idf_of_mapping({np.int64(5): np.float32(0.5), 6: 2}, manifest)
    assert weights.of(np.array([5, 6, 5])).tolist() == weights.table[[5, 6, 5]].tolist()
    assert weights.table[[5, 6]].tolist() == [0.5, 2]
    with pytest.raises(IdfError, match="2 token ids that occur, 7"):
        weights.of(np.array([5, 7, 8]))
    assert idf_of_mapping(defaultdict(lambda: 3.0, {5: 0.5}), manifest).table[[5, 6]].tolist() == [
        0.5,
        3,
    ]


@pytest.mark.parametrize("token", [-1, 10_000, True, np.True_, 5.5, 6.0, "a", None, (5, 6)])
def test_a_ready_table_with_impossible_ids_is_refused(manifest, token):
    with pytest.raises(IdfError, match="token id"):
        idf_of_mapping({5: 0.5, token: 1.0}, manifest)


@pytest.mark.parametrize("weight", [-1.0, 3e38, np.inf, np.nan, "a", None, np.ones(2)])
@pytest.mark.parametrize("of_unseen", [False, True])
def test_a_weight_that_is_none_or_could_overflow_is_refused(manifest, weight, of_unseen):
    table, tokens = (
        (defaultdict(lambda: weight), "unseen tokens") if of_unseen else ({5: weight}, "token id 5")
    )
    with pytest.raises(IdfError, match=f"{tokens} the weight"):
        idf_of_mapping(table, manifest)


def test_the_largest_weights_weigh_alike(tiny_bundle):
    scores = []
    for weight in (1.0, 1e30):
        with BERTScorer(tiny_bundle, idf=defaultdict(lambda weight=weight: weight)) as scorer:
            scores.append(np.stack(scorer.score(["the cat sat"], ["a dog sat on a mat"])))
    assert np.abs(scores[0] - scores[1]).max() <= 1e-6
