"""Comparing systems by scores that were computed elsewhere."""

import numpy as np
import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx_evaluation import (
    SegmentMeans,
    approximate_randomization,
    compare,
    paired_bootstrap,
    paired_permutation,
)

NAMES = ("base", "other", "third")


@pytest.fixture
def matrix():
    """Scores of three systems for 60 segments."""
    chance = np.random.default_rng(3)
    return chance.normal(0.7, 0.1, 60) + chance.normal([[0.0], [0.02], [-0.01]], 0.05, (3, 60))


@pytest.fixture
def columns(matrix):
    return dict(zip(NAMES, matrix.tolist(), strict=True))


def test_they_are_tested_as_a_matrix_is(matrix, columns):
    found = compare(scores=columns)
    expected = paired_permutation(matrix)
    [metric] = found.metrics
    assert (found.systems, metric.name, found.num_segments, found.examples) == (NAMES, "score", 60, ())
    assert [system.score for system in metric.systems] == pytest.approx(matrix.mean(axis=1), abs=1e-12)
    assert [system.p for system in metric.systems[1:]] == expected.p.tolist()
    for shown in (found.to_html(), found.table(), found.to_json()):
        assert "third" in shown


def test_a_data_frame_has_a_column_for_each_system(columns):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(columns)
    expected = compare(scores={"COMET": columns, "MQM": columns}, lower_is_better=["MQM"])
    found = compare(scores={"COMET": frame, "MQM": frame}, systems=NAMES, lower_is_better={"MQM"})
    assert found.to_dict()["systems"] == expected.to_dict()["systems"]
    single = compare(scores=frame, systems=NAMES)
    assert single.to_dict()["systems"] == compare(scores=columns).to_dict()["systems"]
    comet, mqm = expected.metrics
    assert (comet.ranked, mqm.ranked) == (comet.ranked, comet.ranked[::-1])
    assert [system.won for system in comet.systems] == [system.lost for system in mqm.systems]


def test_the_systems_are_taken_by_their_names(columns):
    texts = {"third": ["a"] * 60, "base": ["b"] * 60}
    found = compare(texts, ["c"] * 60, scores={"COMET": columns})
    assert found.systems == ("third", "base")
    assert found.metrics[0].systems[1].score == pytest.approx(np.mean(columns["base"]), abs=1e-12)
    assert {example.system for example in found.examples} == {"base"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda columns: columns | {"other": columns["other"][:-1]}, "60 for base, 59 for other, 60 for third"),
        (lambda columns: columns | {"other": []}, "0 for other"),
        (
            lambda columns: {"a": columns, "b": {"base": [1.0], "other": [2.0], "third": [3.0]}},
            r"scores\['b'\] has 1 row",
        ),
        (lambda columns: {"a": columns, "b": {"base": [1.0]}}, "has scores of a, and none of b"),
    ],
)
def test_scores_that_do_not_fit_are_refused(columns, change, message):
    with pytest.raises(InputError, match=message):
        compare(scores=change(columns))


def test_a_metric_is_either_given_or_computed(columns):
    texts = {name: ["a cat"] * 60 for name in NAMES}
    assert compare(scores={"BLEU": columns}).metrics[0].signature.startswith("BLEU|scores:given|")
    with pytest.raises(InputError, match="'BLEU' is computed here too"):
        compare(texts, ["a cat"] * 60, scores={"BLEU": columns}, metrics=["bleu"])


def test_other_objects_are_refused(matrix, columns):
    with pytest.raises(InputError, match="no scores of 'ter'"):
        compare(scores=columns, lower_is_better=["ter"])
    with pytest.raises(InputError, match="has 3 values and scores has 60 rows"):
        compare({"base": ["a"] * 3, "other": ["b"] * 3}, ["c"] * 3, scores=columns)


def test_the_best_system_is_named(columns):
    text = compare(scores=columns, all_pairs=True).table()
    assert "\nother scores best: significantly better than " in text
    assert compare(scores=columns).to_dict()["headlines"]["score"].endswith("not tested against third.")
    lines = [line.split()[0] for line in text.splitlines()[2:5]]
    assert lines == ["other", "base", "third"]


@pytest.mark.parametrize("test", [paired_bootstrap, paired_permutation, approximate_randomization])
def test_more_systems_than_segments_are_refused_unless_meant(matrix, test):
    with pytest.raises(InputError, match="There are 60 systems, and scores of 3 segments each"):
        test(matrix.T)
    assert len(test(SegmentMeans(matrix.T)).p) == 59
