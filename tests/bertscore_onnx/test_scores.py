import copy
import json
import pickle
import re
import sys

import numpy as np
import pytest

from bertscore_onnx.errors import MissingExtraError
from bertscore_onnx.scores import Score, Scores, best_of_references, join_scores


@pytest.fixture
def scores():
    """One layer and two candidates, with two references and with one."""
    pairs = Scores(
        np.float32([[0.9, 0.1, 0.5]]), np.float32([[0.2, 0.8, 0.5]]), np.float32([[0.3, 0.4, 0.5]])
    )
    return best_of_references(pairs, np.array([2, 1]))


def test_each_score_is_the_best_over_the_references_on_its_own(scores):
    precision, recall, f1 = scores
    assert precision[0].tolist() == pytest.approx([0.9, 0.5])
    assert recall[0].tolist() == pytest.approx([0.8, 0.5])
    assert f1[0].tolist() == pytest.approx([0.4, 0.5])
    assert scores.best_reference.tolist() == [[1, 0]]  # by F


@pytest.mark.parametrize(
    ("of_references", "best"),
    [([[0.5, 0.5]], [[0]]), ([[0.1, 0.2], [0.4, 0.3]], [[1], [0]])],
    ids=["equal", "layers"],
)
def test_the_first_best_reference_is_named_in_each_layer(of_references, best):
    scores = np.float32(of_references)
    assert (
        best_of_references(Scores(scores, scores, scores), np.array([2])).best_reference.tolist()
        == best
    )


@pytest.mark.parametrize(
    "clone", [copy.copy, copy.deepcopy, lambda scores: pickle.loads(pickle.dumps(scores))]
)
def test_copies_keep_the_best_reference(scores, clone):
    assert clone(scores).best_reference.tolist() == [[1, 0]]
    assert clone(Score(0.5, 0.25, 0.375, 3)).best_reference == 3


def test_scores_of_equal_arrays_are_equal(scores):
    same = copy.deepcopy(scores)
    assert same == scores
    assert not same != scores  # noqa: SIM202 -- the operator has a method of its own
    assert scores == tuple(same)
    assert tuple(same) == scores
    for position in range(6):
        arrays = copy.deepcopy([*scores, scores.best_reference, scores.truncated, scores.unknown])
        arrays[position][..., 0] = 0 if position < 4 else True
        assert Scores(*arrays) != scores
    for other in (scores.of_layer(0), [*scores], (*scores, 1), None, 0.5, "scores"):
        assert scores != other


def test_scores_have_names(scores):
    assert (
        (scores.precision, scores.recall, scores.f1)
        == (scores.P, scores.R, scores.F)
        == tuple(scores)
    )
    one = Score(0.5, 0.25, 0.375, 3)
    assert (one.precision, one.recall, one.f1) == (one.P, one.R, one.F) == (0.5, 0.25, 0.375)


def test_means_are_arithmetic_means_of_each_over_the_candidates(scores):
    means = scores.of_layer(0).mean()
    assert (means.precision, means.recall, means.f1) == means == pytest.approx((0.7, 0.65, 0.45))
    assert [type(mean) for mean in means] == [float] * 3
    assert scores.mean().f1.tolist() == pytest.approx([0.45])  # a layer


def test_a_dict_of_scores_is_json_with_the_names_of_files(scores):
    of_one_layer = scores.of_layer(0)
    found = json.loads(json.dumps(of_one_layer.to_dict()))
    assert list(found) == ["precision", "recall", "f1", "best_reference", "truncated", "unknown"]
    assert found == {name: getattr(of_one_layer, name).tolist() for name in found}


def test_a_frame_of_scores_has_a_row_for_each_candidate(scores):
    frame = scores.of_layer(0).to_pandas()
    assert frame.index.tolist() == [0, 1]
    assert frame.to_dict("list") == scores.of_layer(0).to_dict()
    assert (frame["f1"].dtype, frame["best_reference"].dtype, frame["truncated"].dtype) == (
        "float32",
        "int64",
        "bool",
    )


def test_a_frame_of_layers_has_a_row_for_each_layer_and_candidate():
    raw = np.float32([[0.1, 0.2], [0.6, 0.5]])
    frame = Scores(raw, raw, raw, np.int64([[0, 1], [1, 0]]), np.array([True, False])).to_pandas()
    assert frame.index.names == ["layer", "candidate"]
    assert frame.loc[(1, 0)].tolist() == pytest.approx([0.6, 0.6, 0.6, 1, True, 0])


@pytest.mark.parametrize("layers", [(), (2,)], ids=["one layer", "all layers"])
def test_a_frame_of_a_matrix_has_a_row_for_each_pair(layers):
    raw = np.arange(np.prod([*layers, 3, 4]), dtype=np.float32).reshape(*layers, 3, 4)
    best = np.zeros((*layers, 3), dtype=np.int64)
    frame = Scores(raw, raw, raw, best, np.zeros((3, 4), dtype=np.bool_)).to_pandas()
    assert frame.index.names == [*["layer"] * len(layers), "candidate", "reference"]
    assert list(frame) == ["precision", "recall", "f1", "truncated", "unknown"]
    assert frame["f1"].loc[(*(0 for _ in layers), 2, 3)] == 11


@pytest.mark.parametrize(
    ("package", "convert"), [("pandas", Scores.to_pandas), ("torch", Scores.to_torch)]
)
def test_a_missing_package_is_answered_with_what_to_do(scores, monkeypatch, package, convert):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=f"pip install {package}"):
        convert(scores)


@pytest.mark.parametrize(
    ("select", "shown"),
    [
        (lambda scores: scores.of_layer(0), "Scores(2, means: P 0.7000, R 0.6500, F 0.4500)"),
        (lambda scores: scores, "Scores(1 × 2, means: P 0.7000, R 0.6500, F 0.4500)"),
        (lambda scores: join_scores([], 1).of_layer(0), "Scores(0)"),
    ],
)
def test_scores_are_shown_by_their_means(scores, select, shown):
    chosen = select(scores)
    assert repr(chosen) == shown
    html = chosen._repr_html_()
    assert [f"<td>{mean}</td>" in html for mean in ("0.7000", "0.6500", "0.4500")] == [
        chosen.F.size > 0
    ] * 3
    heights = [float(height) for height in re.findall(r'<rect [^>]*height="([\d.]+)"', html)]
    values = len(np.unique(chosen.F))
    # one value is the mean, and needs no axis
    assert np.count_nonzero(heights) == (values if values > 1 else 0)


@pytest.mark.slow  # it imports PyTorch
def test_tensors_share_the_memory_of_the_arrays(scores):
    import torch

    of_one_layer = scores.of_layer(0)
    tensors = of_one_layer.to_torch()
    assert [tensor.dtype for tensor in tensors] == [torch.float32] * 3
    for tensor, array in zip(tensors, of_one_layer, strict=True):
        assert np.shares_memory(tensor.numpy(), array)
    means = torch.stack(tensors).mean(dim=1)
    assert means.tolist() == pytest.approx([0.7, 0.65, 0.45])


def test_no_candidates_and_no_windows_give_no_scores():
    nothing = np.zeros((1, 0), dtype=np.float32)
    of_none = best_of_references(Scores(nothing, nothing, nothing), np.zeros(0, dtype=np.int64))
    assert [array.size for array in of_none] == [0] * 3
    joined = join_scores([], 4)
    assert [array.shape for array in (*joined, joined.best_reference)] == [(4, 0)] * 4
    assert (joined.F.dtype, joined.best_reference.dtype) == (np.float32, np.int64)
