from collections import defaultdict
from math import log

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.errors import IdfError
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.matching.weights import idf_of_counts, idf_of_mapping, uniform

DIFFERENT = [np.array([2, 5, 3]), np.array([2, 6, 3])]


@pytest.fixture(scope="module")
def manifest(tiny_bundle):
    return read_manifest(tiny_bundle)


def idf_of_documents(slices, manifest):
    return idf_of_counts(DocumentCounts.of_documents(slices, manifest.vocab_size, "test"), manifest, "test")


def test_without_idf_only_the_zero_ids_weigh_nothing(manifest):
    table = uniform(manifest).table
    assert np.flatnonzero(table == 0).tolist() == manifest.zero_weight_ids == [2, 3]


def test_idf_weights_come_from_the_documents(manifest):
    table = idf_of_documents([DIFFERENT], manifest).table
    assert table[[2, 5, 7]].tolist() == pytest.approx([0, log(3 / 2), log(3)])


@pytest.mark.parametrize("documents", [[], DIFFERENT[:1], DIFFERENT[:1] * 3, [np.array([5, 6]), np.array([6, 5])]])
def test_documents_that_do_not_differ_are_refused(manifest, documents):
    with pytest.raises(IdfError, match="idf needs at least two different"):
        idf_of_documents([documents] if documents else [], manifest)


def test_the_same_table_has_the_same_name(manifest):
    assert idf_of_documents([DIFFERENT], manifest).name == idf_of_documents([DIFFERENT[::-1]], manifest).name
    assert idf_of_documents([DIFFERENT], manifest).name != idf_of_documents([[*DIFFERENT, DIFFERENT[0]]], manifest).name


def test_documents_may_come_some_at_a_time(manifest):
    assert idf_of_documents(iter([DIFFERENT[:1], DIFFERENT[1:]]), manifest).name == (
        idf_of_documents([DIFFERENT], manifest).name
    )


def test_a_ready_table_is_taken_as_it_is(manifest):
    weights = idf_of_mapping({5: 0.5, 6: 2}, manifest)
    assert weights.of(np.array([5, 6, 5])).tolist() == weights.table[[5, 6, 5]].tolist()
    assert weights.table[[5, 6]].tolist() == [0.5, 2]


def test_an_id_that_a_ready_table_lacks_is_refused_when_it_occurs(manifest):
    with pytest.raises(IdfError, match="no weight for 2 token ids that occur, 7 among them"):
        idf_of_mapping({5: 0.5}, manifest).of(np.array([5, 7, 8]))


def test_a_defaultdict_says_what_unseen_tokens_weigh(manifest):
    assert idf_of_mapping(defaultdict(lambda: 3.0, {5: 0.5}), manifest).table[[5, 6]].tolist() == [0.5, 3]


@pytest.mark.parametrize("table", [{5: -1}, {5: float("nan")}, {5: float("inf")}, {-1: 1.0}, {10_000: 1.0}])
def test_a_ready_table_with_impossible_entries_is_refused(manifest, table):
    with pytest.raises(IdfError, match="The idf table"):
        idf_of_mapping(table, manifest)


@pytest.mark.parametrize("weight", [-1.0, 3e38, np.inf, np.nan])
def test_a_weight_that_could_overflow_a_sum_or_is_none_is_refused(manifest, weight):
    with pytest.raises(IdfError, match=r"gives token id 5 the weight .*; expected 0 to 1e"):
        idf_of_mapping({5: weight}, manifest)
    with pytest.raises(IdfError, match=r"gives unseen tokens the weight .*; expected 0 to 1e"):
        idf_of_mapping(defaultdict(lambda: weight), manifest)


def test_the_largest_weights_weigh_alike(tiny_bundle):
    scores = []
    for weight in (1.0, 1e30):
        with BERTScorer(tiny_bundle, idf=defaultdict(lambda weight=weight: weight)) as scorer:
            scores.append(np.stack(scorer.score(["the cat sat"], ["a dog sat on a mat"])))
    assert np.abs(scores[0] - scores[1]).max() <= 1e-6
