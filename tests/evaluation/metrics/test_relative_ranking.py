"""DARR: of arrays, and by language pair."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx_evaluation.metrics.relative_ranking import darr, darr_by_language_pair
from tests.evaluation.judged import judged
from tests.evaluation.simulations import rank_judgements


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
    with pytest.raises(InputError, match=r"no system called 'Onlin-A'; there are .* Did you mean 'Online-A'"):
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
    assert counts.items() <= of_metrics["b"].items()
    assert (of_metrics["b"]["tau"], of_metrics["b"]["tau_without_ties"]) == (0.0, 1.0)
    assert of_metrics["a"]["tau"] is None


def test_the_interval_of_tau_is_about_that_of_a_bootstrap_of_segments():
    rng = np.random.default_rng(5)
    human, [metric, _] = rank_judgements(rng, 300)
    [result] = darr_by_language_pair([judged(human, {"m": metric})]).language_pairs
    taus = [darr(human[:, drawn], metric[:, drawn]).tau for drawn in rng.integers(300, size=(1000, 300))]
    found = result.metrics["m"]
    assert [found.low, found.high] == pytest.approx(np.quantile(taus, [0.025, 0.975]), abs=0.015)


def test_p_is_the_share_of_exchanges_of_segments_with_as_large_a_difference():
    rng = np.random.default_rng(6)
    human, metrics = rank_judgements(rng, 10)
    human[:, 0] = np.nan  # without a ranked pair
    [result] = darr_by_language_pair([judged(human, {"a": metrics[0], "b": metrics[1]})]).language_pairs
    by_segment = [[darr(human[:, [at]], metric[:, [at]]) for at in range(10)] for metric in metrics]
    one, other = (np.array([counts.concordant - counts.discordant for counts in row]) for row in by_segment)
    ranked = [counts.pairs > 0 for counts in by_segment[0]]
    differences = (one - other)[ranked]
    sums = [abs(np.dot(signs, differences)) for signs in itertools.product([1, -1], repeat=len(differences))]
    [difference] = result.differences.values()
    assert difference.p == np.mean(np.array(sums) >= abs(differences.sum()))
    assert result.units == sum(ranked)


def test_documents_are_exchanged_and_drawn_as_a_whole():
    human, metrics = rank_judgements(np.random.default_rng(7), 30)
    documents = tuple(str(number // 3) for number in range(30))
    one = judged(human, dict(zip("ab", metrics, strict=True)))
    [by_segment] = darr_by_language_pair([one]).language_pairs
    [by_document] = darr_by_language_pair([replace(one, documents=documents)]).language_pairs
    assert by_segment.units > by_document.units == 10
    assert by_segment.metrics["a"].low != by_document.metrics["a"].low
    assert "10 documents are few" in by_document.notes[0]


def rates(trials, segments):
    """Return how often equal metrics differ, and intervals of τ hold the truth."""
    human, [metric, _] = rank_judgements(np.random.default_rng(0), 50_000)
    truth = darr(human, metric).tau
    found = []
    for seed in range(1, trials + 1):
        human, metrics = rank_judgements(np.random.default_rng([seed, segments]), segments)
        one = judged(human, dict(zip("ab", metrics, strict=True)))
        [result] = darr_by_language_pair([one], permutations=299, seed=seed).language_pairs
        [difference], measure = result.differences.values(), result.metrics["a"]
        found.append((difference.p < 0.05, measure.low <= truth <= measure.high))
    return np.mean(found, axis=0)


def test_equal_metrics_seldom_differ_and_intervals_hold_the_truth():
    differ, held = rates(60, 60)
    assert differ <= 0.15
    assert held >= 0.85


@pytest.mark.calibration
@pytest.mark.parametrize("segments", [60, 300])
def test_rates_over_many_trials(segments, record_property):
    differ, held = rates(2000, segments)
    record_property(f"DARR: {segments} segments | equal metrics differ", f"{differ:.3f}")
    record_property(f"DARR: {segments} segments | coverage", f"{held:.3f}")
    assert differ <= 0.06
    assert held >= 0.92
