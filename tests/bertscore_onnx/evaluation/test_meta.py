"""Judging metrics by human scores of systems, from arrays to one result."""

import json

import numpy as np
import pytest
from scipy import stats

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.judged_systems import JudgedSystems
from bertscore_onnx.evaluation.meta import meta_evaluate
from bertscore_onnx.evaluation.metrics import MetricScores
from tests.support.metaeval import needs_metaeval, wmt19, wmt23


def judged(human, metrics, *, language_pair="he-en", **more):
    """Return systems with scores of segments; those of systems are their means."""
    human = np.array(human, dtype=np.float64)
    return JudgedSystems(
        language_pair,
        tuple("ABCDEFGH"[: len(human)]),
        np.nanmean(human, axis=1),
        human,
        {name: MetricScores(np.mean(scores, axis=1), np.array(scores, float)) for name, scores in metrics.items()},
        segments=tuple(str(number) for number in range(human.shape[1])),
        **more,
    )


def whole_systems(human, metrics, language_pair="he-en"):
    human = np.array(human, dtype=np.float64)
    scores = {name: MetricScores(np.array(row, dtype=np.float64), None) for name, row in metrics.items()}
    return JudgedSystems(language_pair, tuple("ABCDEFGH"[: len(human)]), human, None, scores)


def evaluate(*language_pairs, **options):
    return meta_evaluate(language_pairs, **{"permutations": 50, **options})


def metric_of(*language_pairs, name="m", **options):
    [metric] = [one for one in evaluate(*language_pairs, **options).language_pairs[0].metrics if one.name == name]
    return metric


@pytest.fixture
def scores():
    rng = np.random.default_rng(3)
    human = rng.integers(-5, 1, (6, 40)).astype(float)
    human[2, 7] = human[4, 30] = np.nan
    return human, {"m": human.round() * 0.3 + rng.normal(size=(6, 40)), "other": rng.normal(size=(6, 40))}


@pytest.fixture
def full_scores(scores):
    human, metrics = scores
    return np.nan_to_num(human), {name: np.nan_to_num(metric) for name, metric in metrics.items()}


def test_system_pearson_is_that_of_scipy(full_scores):
    human, metrics = full_scores
    system = metric_of(judged(human, metrics)).system
    assert system["pearson"].value == pytest.approx(stats.pearsonr(human.mean(1), metrics["m"].mean(1)).statistic)
    assert system.n == 6


def test_segment_correlations_are_those_of_scipy(full_scores):
    human, metrics = full_scores
    metric = metrics["m"]
    segment = metric_of(judged(human, metrics)).segment
    assert segment["pearson"].value == pytest.approx(stats.pearsonr(human.ravel(), metric.ravel()).statistic)
    by_item = [stats.pearsonr(*pair).statistic for pair in zip(human.T, metric.T, strict=True)]
    assert segment["pearson_by_item"].value == pytest.approx(np.mean(by_item))
    by_system = [stats.pearsonr(*pair).statistic for pair in zip(human, metric, strict=True)]
    assert segment["pearson_by_system"].value == pytest.approx(np.mean(by_system))
    for variant, measure in (("b", segment["kendall"]), ("c", segment["kendall_c"])):
        expected = stats.kendalltau(human.ravel(), metric.ravel(), variant=variant).statistic
        assert measure.value == pytest.approx(expected)


def test_outputs_that_nobody_judged_are_left_out(scores):
    human, metrics = scores
    metrics = {name: np.nan_to_num(metric) for name, metric in metrics.items()}
    segment = metric_of(judged(human, metrics)).segment
    is_judged = ~np.isnan(human)
    expected = stats.pearsonr(human[is_judged], metrics["m"][is_judged]).statistic
    assert (segment.n, segment["pearson"].value) == (238, pytest.approx(expected))


def test_a_system_that_nobody_judged_is_left_out(full_scores):
    human, metrics = full_scores
    human[1] = np.nan
    systems = JudgedSystems(
        "he-en",
        tuple("ABCDEF"),
        human.mean(axis=1),
        human,
        {name: MetricScores(metric.mean(1), metric) for name, metric in metrics.items()},
        segments=tuple(map(str, range(40))),
    )
    [result] = evaluate(systems).language_pairs
    assert result.systems == ("A", "C", "D", "E", "F")
    assert result.metrics[0].system.n == 5
    assert result.metrics[0].system["spa"].value is not None


def test_ties_are_counted_on_both_sides():
    systems = judged([[0, 0, -1], [0, -1, -1], [-5, -1, 0]], {"m": [[1, 2, 3], [1, 2, 3], [1, 5, 4]]})
    segment = metric_of(systems).segment
    assert (segment.pairs, segment.human_ties, segment.metric_ties) == (9, 3, 5)


def test_a_negative_correlation_keeps_its_sign():
    systems = judged([[-1, -2], [-3, -3], [-4, -6]], {"m": [[1, 2], [3, 3.5], [4, 6]]})
    metric = metric_of(systems)
    assert metric.system["pearson"].value < -0.9
    assert metric.segment["pearson"].value < -0.9
    assert metric.system["accuracy"].value == 0


def test_outliers_are_left_out_of_a_second_correlation_and_named():
    human = [0.1, 0.2, 0.15, 0.12, -3]
    metric = [5, 4.2, 4, 4.9, -10]
    system = metric_of(whole_systems(human, {"m": metric})).system
    assert system.outliers == ("E",)
    assert system["pearson"].value == pytest.approx(stats.pearsonr(human, metric).statistic)
    assert system["pearson_without_outliers"].value == pytest.approx(stats.pearsonr(human[:4], metric[:4]).statistic)


def test_metrics_that_do_not_differ_share_a_rank_and_the_best_comes_first():
    rng = np.random.default_rng(0)
    human = rng.normal(size=(8, 100))
    metrics = {
        "noise": rng.normal(size=(8, 100)),
        "good": human + rng.normal(size=(8, 100)) * 0.30,
        "too": human + rng.normal(size=(8, 100)) * 0.30,
    }
    [result] = evaluate(judged(human, metrics), permutations=200).language_pairs
    assert {metric.name: metric.rank for metric in result.metrics} == {"good": 1, "too": 1, "noise": 2}
    assert result.metrics[-1].name == "noise"


def test_every_two_metrics_are_tested_the_better_one_first(full_scores):
    [result] = evaluate(judged(*full_scores)).language_pairs
    [pair] = result.pairs
    assert (pair.first, pair.second) == ("m", "other")
    r = {metric.name: metric.segment["pearson"].value for metric in result.metrics}
    assert pair.segment.delta == pytest.approx(r["m"] - r["other"])
    assert pair.segment.p < 0.05 < pair.segment.p_reverse
    assert pair.segment.williams is None


def test_the_test_of_williams_is_that_of_the_correlations(full_scores):
    human, metrics = full_scores
    [result] = evaluate(judged(human, metrics)).language_pairs
    people, m, other = human.mean(1), metrics["m"].mean(1), metrics["other"].mean(1)
    r12, r13, r23 = (stats.pearsonr(*two).statistic for two in ((people, m), (people, other), (m, other)))
    n = 6
    k = 1 - r12**2 - r13**2 - r23**2 + 2 * r12 * r13 * r23
    t = (r12 - r13) * np.sqrt((n - 1) * (1 + r23))
    t /= np.sqrt(2 * k * (n - 1) / (n - 3) + ((r12 + r13) / 2) ** 2 * (1 - r23) ** 3)
    williams = result.pairs[0].system.williams
    assert (williams.t, williams.n) == (pytest.approx(t), 6)
    assert williams.p == pytest.approx(stats.t.sf(t, n - 3))


def test_williams_has_no_value_for_three_systems_and_says_why():
    [result] = evaluate(whole_systems([1, 2, 4], {"m": [1, 2, 3], "other": [3, 1, 2]})).language_pairs
    williams = result.pairs[0].system.williams
    assert (williams.p, williams.reason) == (None, "3 systems, and the test needs 4")


def test_a_constant_metric_has_no_correlation_no_rank_and_a_reason(full_scores):
    human, metrics = full_scores
    result = evaluate(judged(human, {**metrics, "flat": np.ones((6, 40))}))
    flat = result.language_pairs[0].metrics[-1]
    assert (flat.name, flat.rank, flat.segment["pearson"].value) == ("flat", None, None)
    assert flat.segment.to_dict()["reasons"]["pearson"] == "the metric's scores are constant"
    assert {metric.rank for metric in result.language_pairs[0].metrics[:2]} == {1, 2}


def test_people_who_tie_everything_leave_no_value_and_a_reason():
    metric = metric_of(judged([[1, 1], [1, 1]], {"m": [[1, 2], [3, 4]]}))
    record = metric.segment.to_dict()
    assert record["pearson"] is None
    assert record["reasons"]["pearson"] == "the human scores are constant"
    assert record["acc_eq"] == 1
    assert record["ties"] == {"pairs": 2, "human": 2, "metric": 0}


def test_one_system_has_no_pairs_and_says_so():
    metric = metric_of(judged([[1, 2, 3]], {"m": [[1, 2, 4]]}))
    assert metric.system.to_dict()["accuracy"] is None
    assert {"pearson", "accuracy", "spa"} <= metric.system.to_dict()["reasons"].keys()
    assert metric.segment["pearson"].value == pytest.approx(stats.pearsonr([1, 2, 3], [1, 2, 4]).statistic)


def test_scores_of_any_size_give_the_same_test(full_scores):
    human, metrics = full_scores
    small = evaluate(judged(human, metrics)).language_pairs[0].pairs[0].segment
    metrics = {name: metric * 1e200 for name, metric in metrics.items()}
    large = evaluate(judged(human * 1e200, metrics)).language_pairs[0].pairs[0].segment
    assert (large.p, large.p_reverse) == (small.p, small.p_reverse)


def test_systems_that_are_judged_on_different_segments_are_told_of():
    human = [[1, 2, np.nan, 4], [1, np.nan, 3, 5], [3, 1, 2, 7]]
    [result] = evaluate(judged(human, {"m": np.arange(12.0).reshape(3, 4)})).language_pairs
    assert result.notes[0].startswith("systems are judged on different segments, 3 to 4 each, of which 2 for all")


def test_segments_of_which_an_output_is_judged_are_counted():
    human = [[1, 2, np.nan, np.nan], [1, np.nan, np.nan, 5], [3, 1, np.nan, 7]]
    [result] = evaluate(judged(human, {"m": np.arange(12.0).reshape(3, 4)})).language_pairs
    assert result.segments == 3


def test_a_metric_without_scores_of_segments_has_no_rank_among_them(full_scores):
    human, metrics = full_scores
    systems = judged(human, metrics)
    whole = {**systems.metrics, "whole": MetricScores(human.mean(axis=1), None)}
    systems = JudgedSystems("he-en", systems.systems, systems.human_system, human, whole, segments=systems.segments)
    [result] = evaluate(systems).language_pairs
    last = result.metrics[-1]
    assert (last.name, last.segment, last.rank, last.system.rank) == ("whole", None, None, 1)
    assert result.notes == ("whole has no scores of segments, and so no rank among them",)


def test_the_mean_over_language_pairs_and_the_pooled_accuracy():
    first = whole_systems([1, 2, 4], {"m": [1, 2, 3]}, "a-b")
    second = whole_systems([1, 2, 3, 4], {"m": [4, 3, 2, 1]}, "b-a")
    [mean] = evaluate(first, second).means
    r = stats.pearsonr([1, 2, 4], [1, 2, 3]).statistic
    assert mean["system_pearson"].value == pytest.approx((r - 1) / 2)
    assert (mean["accuracy"].value, mean["accuracy"].n) == (pytest.approx(3 / 9), 9)
    assert (mean.language_pairs, mean["acc_eq"].value) == (2, None)


def test_a_metric_has_one_mean_under_the_names_of_two_references():
    def with_reference(language_pair, reference):
        one = whole_systems([1, 2, 4], {}, language_pair)
        metrics = {f"m-{reference}": MetricScores(np.array([1.0, 2, 3]), None, base_name="m")}
        return JudgedSystems(language_pair, one.systems, one.human_system, None, metrics)

    [mean] = evaluate(with_reference("a-b", "refA"), with_reference("b-a", "refB")).means
    assert (mean.name, mean.language_pairs) == ("m", 2)


def test_the_seed_decides_what_is_drawn(full_scores):
    def p(seed):
        return evaluate(judged(*full_scores), seed=seed, permutations=20).language_pairs[0].pairs[0].system.p

    assert p(1) == p(1)
    assert len({p(seed) for seed in range(8)}) > 1


def test_json_has_the_form_that_is_documented(full_scores):
    record = json.loads(evaluate(judged(*full_scores, gold="mqm", reference="refB")).to_json())
    pair = record["language_pairs"]["he-en"]
    assert {"n", "pearson", "accuracy", "spa"} <= pair["metrics"]["m"]["system"].keys()
    assert {"n", "pearson", "kendall", "acc_eq", "epsilon"} <= pair["metrics"]["m"]["segment"].keys()
    assert pair["metrics"]["m"]["rank"] == 1
    assert (pair["gold"], pair["reference"], pair["segments"]) == ("mqm", "refB", 40)
    assert pair["pairs"][0]["system"]["williams"]["n"] == 6
    assert record["signature"].startswith("bertscore-onnx|permutations:50|seed:4|version:")


def test_a_missing_score_is_told_by_metric_system_and_segment():
    with pytest.raises(InputError, match=r"he-en: m has no score for segment 1 of system B, which has a human score"):
        evaluate(judged([[1, 2], [3, 4]], {"m": [[1, 2], [3, np.nan]]}))


@pytest.mark.parametrize(
    ("language_pairs", "message"),
    [
        ([], r"Give at least one"),
        ([whole_systems([1, 2], {"m": [1, 2]})] * 2, r"and each once"),
        ([whole_systems([1, 2], {})], r"no scores of a metric"),
        ([whole_systems([np.nan, np.nan], {"m": [1, 2]})], r"none of the 2 systems has a human score"),
        ([whole_systems([1, 2], {"m": [1, 2, 3]})], r"the scores by m have the shape \(3,\); expected \(2,\)"),
    ],
)
def test_what_cannot_be_judged_is_told(language_pairs, message):
    with pytest.raises(InputError, match=message):
        evaluate(*language_pairs)


@pytest.mark.slow
@needs_metaeval
def test_wmt23_comes_out_as_published():
    [result] = meta_evaluate([wmt23()]).language_pairs
    values = {
        metric.name: tuple(
            round(measure.value, 3)
            for measure in (
                metric.system["pearson"],
                metric.segment["pearson"],
                metric.segment["acc_eq"],
                metric.system["spa"],
            )
        )
        for metric in result.metrics
    }
    assert values["BERTscore-refB"] == (0.895, 0.335, 0.515, 0.902)
    assert values["BLEU-refB"] == (0.769, 0.220, 0.442, 0.832)
    assert values["chrF-refB"][3] == 0.805
    assert (result.metrics[0].system.n, result.metrics[0].segment.n) == (13, 13 * 820)


@needs_metaeval
def test_wmt19_comes_out_as_published():
    systems = []
    for language_pair in ("deen", "fien", "ruen", "ende"):
        human, bleu = wmt19(language_pair)
        names = tuple(map(str, range(len(human))))
        systems.append(JudgedSystems(language_pair, names, human, None, {"BLEU": MetricScores(bleu, None)}))
    results = meta_evaluate(systems).language_pairs
    assert [round(one.metrics[0].system["pearson"].value, 3) for one in results] == [0.849, 0.982, 0.879, 0.921]
