"""DARR: of arrays, and by language pair."""

import itertools
import json

import numpy as np
import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.relative_ranking import darr, darr_by_language_pair
from tests.bertscore_onnx.evaluation.judged import judged


def test_it_counts_as_a_loop_does():
    rng = np.random.default_rng(3)
    human, metric = rng.integers(0, 100, (7, 40)).astype(np.float64), rng.integers(0, 9, (7, 40)).astype(np.float64)
    human[rng.random(human.shape) < 0.3] = np.nan
    counts = {1: 0, 0: 0, -1: 0}
    for g, m in zip(human.T, metric.T, strict=True):
        for i, j in itertools.combinations(range(7), 2):
            if abs(g[i] - g[j]) >= 25:
                counts[int(np.sign((g[i] - g[j]) * (m[i] - m[j])))] += 1

    result = darr(human, metric)

    assert (result.concordant, result.discordant, result.ties) == (counts[1], counts[-1] + counts[0], counts[0])
    assert result.tau == (counts[1] - counts[-1] - counts[0]) / sum(counts.values())
    assert result.tau_without_ties == (counts[1] - counts[-1]) / (counts[1] + counts[-1])


@pytest.mark.parametrize(
    ("human", "metric", "pairs", "tau", "tau_without_ties"),
    [
        pytest.param([[0, 0], [25, 24.9]], [[0, 0], [1, 1]], 1, 1, 1, id="a difference of 25 is a pair"),
        pytest.param([[0], [24]], [[0], [0]], 0, None, None, id="no pairs have no value"),
        pytest.param([[0], [90]], [[0], [0]], 1, -1, None, id="ties are discordant"),
    ],
)
def test_known_ranks(human, metric, pairs, tau, tau_without_ties):
    result = darr(np.array(human, dtype=float), np.array(metric, dtype=float))
    assert (result.pairs, result.tau, result.tau_without_ties) == (pairs, tau, tau_without_ties)


@pytest.mark.parametrize("name", ["Human-A.0", "HUMAN", "ref", "refB", "ref-A", "translator-A.0", "Reference"])
@pytest.mark.parametrize("machine", ["refined", "Humanly-1.0", "Online-A.0", "translatotron.5", "preref"])
def test_people_are_left_out_by_their_names(name, machine):
    systems = judged([[90], [60], [10]], {"m": [[3], [2], [1]]}, systems=["A", name, machine])
    [result] = darr_by_language_pair([systems]).language_pairs
    assert (result.human_systems, result.metrics["m"].pairs) == ((name,), 1)


@pytest.mark.parametrize(
    ("named", "left_out"), [(None, ("A", "refC")), (["B"], ("B",)), ([], ())], ids=["as known", "named", "nobody"]
)
def test_people_are_those_of_the_set_unless_they_are_named(named, left_out):
    systems = judged(
        [[90], [60], [30]], {"m": [[3], [2], [1]]}, systems=["A", "B", "refC"], human_systems=frozenset("A")
    )
    [result] = darr_by_language_pair([systems], human_systems=named).language_pairs
    assert result.human_systems == left_out


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


def test_missing_metrics_are_left_out_and_ties_are_discordant():
    metrics = {"a": [[1, 1], [np.nan, 1]], "b": [[1, 0], [0, 0]]}
    found = darr_by_language_pair([judged([[90, 90], [60, 60]], metrics)]).to_dict()
    of_metrics = found["language_pairs"]["cs-en"]["metrics"]
    counts = {"pairs": 2, "concordant": 1, "discordant": 1, "ties": 1}
    assert of_metrics["b"] == {"tau": 0.0, **counts, "tau_without_ties": 1.0}
    assert of_metrics["a"]["tau"] is None
