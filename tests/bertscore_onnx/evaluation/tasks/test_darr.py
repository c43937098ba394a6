"""DARR by language pair."""

import json

import numpy as np
import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.relative_ranking import darr_by_language_pair
from tests.bertscore_onnx.evaluation.tasks.systems import judged
from tests.support.metaeval import needs_metaeval, wmt20


def only(result):
    [language_pair] = result.language_pairs
    [counts] = language_pair.metrics.values()
    return counts


def test_pairs_are_counted_where_people_differ_by_the_threshold():
    human = [[90, 90, 50], [60, 70, 75]]  # 30, 20 and -25 points apart
    assert only(darr_by_language_pair([judged(human, {"m": [[1, 0, 0], [0, 1, 1]]})])).concordant == 2


def test_a_tie_of_the_metric_is_discordant_and_counted():
    result = darr_by_language_pair([judged([[90, 90], [60, 60]], {"m": [[1, 0], [0, 0]]})])
    assert result.to_dict()["language_pairs"]["cs-en"]["metrics"]["m"] == {
        "tau": 0.0,
        "pairs": 2,
        "concordant": 1,
        "discordant": 1,
        "ties": 1,
        "tau_without_ties": 1.0,
    }


@pytest.mark.parametrize("name", ["Human-A.0", "HUMAN", "ref", "refB", "ref-A", "translator-A.0", "Reference"])
def test_people_are_left_out_by_their_names(name):
    human = [[90], [60], [10]]
    result = darr_by_language_pair([judged(human, {"m": [[3], [2], [1]]}, systems=["A", name, "B"])])
    assert result.language_pairs[0].human_systems == (name,)
    assert only(result).pairs == 1


@pytest.mark.parametrize("name", ["refined", "Humanly-1.0", "Online-A.0", "translatotron.5", "preref"])
def test_machines_stay(name):
    result = darr_by_language_pair([judged([[90], [60]], {"m": [[3], [2]]}, systems=["A", name])])
    assert result.language_pairs[0].human_systems == ()


def test_people_that_the_set_knows_are_left_out():
    result = darr_by_language_pair([judged([[90], [60], [30]], {"m": [[3], [2], [1]]}, human_systems=frozenset("B"))])
    assert result.language_pairs[0].human_systems == ("B",)


def test_people_may_be_named_instead():
    systems = judged([[90], [60], [30]], {"m": [[3], [2], [1]]}, systems=["refA", "B", "C"])
    assert darr_by_language_pair([systems], human_systems=["B"]).language_pairs[0].human_systems == ("B",)
    assert darr_by_language_pair([systems], human_systems=[]).language_pairs[0].human_systems == ()


def test_a_name_that_no_system_has_is_an_error_with_the_nearest():
    with pytest.raises(InputError, match=r"no system called 'Onlin-A'. Did you mean 'Online-A'"):
        darr_by_language_pair([judged([[1], [2]], {}, systems=["Online-A", "B"])], human_systems=["Onlin-A"])


@pytest.mark.parametrize(
    ("human", "scores", "reason"),
    [
        ([[90]], [[1]], "ranks need two systems, and there are 1"),
        ([[90], [80]], [[1], [2]], "no two outputs of a segment are far enough apart"),
        ([[np.nan], [np.nan]], [[1], [2]], "no two outputs of a segment are far enough apart"),
        ([[90], [60]], [[1], [np.nan]], "1 of 2 judged outputs have no score, such as that of 'B' for segment '1'"),
        ([[90], [60]], [[np.inf], [1]], "1 of 2 judged outputs have no score, such as that of 'A' for segment '1'"),
    ],
)
def test_no_value_has_a_reason(human, scores, reason):
    result = darr_by_language_pair([judged(human, {"m": scores})])
    of_json = json.loads(json.dumps(result.to_dict(), allow_nan=False))["language_pairs"]["cs-en"]["metrics"]["m"]
    assert of_json["tau"] is None
    assert reason in of_json["reason"]


def test_a_metric_without_scores_leaves_the_others():
    result = darr_by_language_pair([judged([[90], [60]], {"a": [[1], [np.nan]], "b": [[2], [1]]})])
    assert [counts and counts.tau for counts in result.language_pairs[0].metrics.values()] == [None, 1.0]


@needs_metaeval
@pytest.mark.parametrize(("metric", "tau"), [("chrF", 0.0863), ("TER", -0.0401)])
def test_wmt20(metric, tau):
    human, scores = wmt20(metric)
    systems = [f"system-{number}" for number in range(len(human))]
    counts = only(darr_by_language_pair([judged(human, {metric: scores}, systems=systems)]))
    assert (round(counts.tau, 4), counts.pairs) == (tau, 14_018)
