import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import stats

from bertscore_onnx.errors import InputError
from bertscore_onnx_evaluation.metric_scores import MetricScores
from bertscore_onnx_evaluation.metrics.correlation import correlate, tie_calibrated_accuracy
from bertscore_onnx_evaluation.metrics.meta import meta_evaluate
from bertscore_onnx_evaluation.metrics.statistics import (
    SegmentStatistics,
    bootstrap_error,
    resampled_both,
    student_interval,
    system_sums,
)
from tests.evaluation.judged import judged, judged_wholes


def outputs(rng, systems=6, segments=30, liking=0.5):
    """Draw human scores and two equally good metrics, which like some systems more than others."""
    quality, difficulty = rng.normal(size=(systems, 1)), rng.normal(size=segments)
    human = quality + difficulty + 1.5 * rng.normal(size=(systems, segments))
    shared = rng.normal(size=(systems, segments))
    metrics = [
        0.6 * quality
        + liking * rng.normal(size=(systems, 1))
        + 0.5 * difficulty
        + 0.5 * shared
        + 0.3 * (human - quality - difficulty)
        + rng.normal(size=(systems, segments))
        for _ in range(2)
    ]
    return human, metrics


def statistics(human, metric):
    units, systems = np.arange(human.shape[1]), (human.mean(axis=1), metric.mean(axis=1))
    return SegmentStatistics(human, metric, units), partial(system_sums, systems, (human, metric), units)


def test_drawn_systems_and_segments_have_the_correlations_of_scipy():
    human, [metric, _] = outputs(np.random.default_rng(0))
    segments, systems = statistics(human, metric)

    def sums(weights):
        of_segments = segments.sums(weights)
        return [of_segments["pearson"], of_segments["pearson_by_item"], systems(weights)]

    found = resampled_both(sums, 6, 30, np.random.default_rng(7), 20)
    rng = np.random.default_rng(7)
    drawn_systems = [rng.choice(6, size=(20, 6), replace=True), rng.choice(30, size=(20, 30), replace=True)]
    for row, of_systems, of_segments in zip(found, *drawn_systems, strict=True):
        one, other = (side[of_systems][:, of_segments] for side in (human, metric))
        expected = [
            stats.pearsonr(one.ravel(), other.ravel()).statistic,
            np.mean([stats.pearsonr(*pair).statistic for pair in zip(one.T, other.T, strict=True)]),
            stats.pearsonr(one.mean(axis=1), other.mean(axis=1)).statistic,
        ]
        assert row == pytest.approx(expected, abs=1e-10)


def test_a_system_that_is_drawn_twice_is_no_pair_with_itself():
    human, [metric, _] = outputs(np.random.default_rng(1))
    segments, _ = statistics(human, metric)
    weights = np.array([2.0, 0, 1, 1, 0, 2])
    one = segments.sums(weights)["acc_eq"]
    epsilon = tie_calibrated_accuracy(human, metric).epsilon
    right = total = 0.0
    for a, b in itertools.combinations(range(6), 2):
        weight = weights[a] * weights[b]
        total += weight
        delta = metric[a] - metric[b]
        right += weight * np.mean((np.abs(delta) > epsilon) & (delta * (human[a] - human[b]) > 0))
    assert float(one.statistic(one.sums.sum(axis=0))) == pytest.approx(right / total)


def test_intervals_are_of_students_t_about_the_value():
    human, [one, other] = outputs(np.random.default_rng(2), systems=8)
    found = meta_evaluate([judged(human, {"one": one, "other": other})], test="boot-both", sentinels=False)
    by_segments = meta_evaluate([judged(human, {"one": one, "other": other})], sentinels=False)
    for wide, narrow in zip(found.language_pairs[0].metrics, by_segments.language_pairs[0].metrics, strict=True):
        for level in ("system", "segment"):
            for name, measure in getattr(wide, level).measures.items():
                fixed = getattr(narrow, level)[name]
                assert measure.value == fixed.value
                assert measure.low <= measure.value <= measure.high
        assert wide.system["pearson"].low < narrow.system["pearson"].low
    assert found.language_pairs[0].tests["acc_eq"].differences["one", "other"].p_holm <= 1
    resamples = np.random.default_rng(0).normal(3.0, 0.5, 100_000)
    expected = stats.t(7).ppf(0.975) * 0.5 * (8 / 7) ** 0.5
    assert student_interval(3.0, *bootstrap_error(resamples, 8)) == pytest.approx(
        (3 - expected, 3 + expected), abs=0.03
    )


def test_whole_systems_are_drawn_alone():
    human = np.arange(9.0)
    metric = human + np.random.default_rng(0).normal(size=9)
    one = judged_wholes(human[:8], {"m": metric[:8], "n": -metric[:8]})
    [result] = meta_evaluate([one], test="boot-both", sentinels=False).language_pairs
    good, bad = result.metrics
    assert (good.name, good.system["pearson"].low > 0, bad.system["pearson"].high < 0) == ("m", True, True)
    assert result.tests["system_pearson"].differences["m", "n"].p < 0.05
    [untested] = meta_evaluate([one], sentinels=False).language_pairs
    assert (untested.tests["system_pearson"].differences, untested.metrics[0].system.rank) == ({}, None)


def test_few_systems_are_refused_and_equal_metrics_have_p_1():
    human, [one, other] = outputs(np.random.default_rng(4), systems=4)
    with pytest.raises(InputError, match=r"there are 4 systems, and a test that draws systems needs 5 or more"):
        meta_evaluate([judged(human, {"one": one, "other": other})], test="boot-both")
    human, [one, _] = outputs(np.random.default_rng(4), systems=5)
    same = judged(human, {"one": one, "same": one})
    [result] = meta_evaluate([same], test="boot-both", sentinels=False).language_pairs
    assert [of.differences["one", "same"].p for of in result.tests.values()] == [1, 1]


@pytest.mark.filterwarnings("error")
def test_draws_without_a_value_are_left_out():
    """Draws of one system alone have no correlation."""
    human, metrics = np.random.default_rng(0).normal(size=(2, 5, 20))
    [result] = meta_evaluate([judged(human, {"m": metrics})], test="boot-both", sentinels=False).language_pairs
    measure = result.metrics[0].system["pearson"]
    assert -1 <= measure.low <= measure.value <= measure.high <= 1


def test_a_metric_without_scores_of_segments_has_no_interval():
    human, [one, other] = outputs(np.random.default_rng(4))
    judgements = judged(human, {"one": one, "other": other})
    whole = MetricScores(other.mean(axis=1), None)
    judgements = replace(judgements, metrics={**judgements.metrics, "whole": whole})
    [result] = meta_evaluate([judgements], test="boot-both", sentinels=False).language_pairs
    metrics = {metric.name: metric for metric in result.metrics}
    assert metrics["whole"].system["pearson"].value == metrics["other"].system["pearson"].value
    assert metrics["whole"].system["pearson"].low is None
    assert metrics["one"].system["pearson"].low is not None


def rates_over_other_systems(trials, systems, liking):
    """Return by statistic how often intervals hold the value over all systems, and how often equal metrics differ."""
    names = ("pearson", "pearson_by_item", "acc_eq")
    truth = []
    for seed in range(min(trials, 20)):
        human, [metric, _] = outputs(np.random.default_rng([1, seed]), 100, 60, liking)
        measures = (correlate(human, metric), correlate(human, metric, by="segment"))
        r = stats.pearsonr(human.mean(axis=1), metric.mean(axis=1)).statistic
        truth.append([r, *(one.value for one in measures), tie_calibrated_accuracy(human, metric).value])
    truth = np.mean(truth, axis=0)
    covered, differ = [], []
    for seed in range(trials):
        human, [one, other] = outputs(np.random.default_rng([2, seed]), systems, 60, liking)
        judgements = judged(human, {"one": one, "other": other}, systems=map(str, range(systems)))
        result = meta_evaluate([judgements], permutations=1, test="boot-both", sentinels=False).language_pairs[0]
        metric = next(metric for metric in result.metrics if metric.name == "one")
        measures = [metric.system["pearson"], *(metric.segment[name] for name in names)]
        covered.append([one.low <= value <= one.high for one, value in zip(measures, truth, strict=True)])
        differ.append([of.differences["one", "other"].p < 0.05 for of in result.tests.values()])
    return np.mean(covered, axis=0), np.mean(differ, axis=0)


@pytest.mark.calibration
@pytest.mark.parametrize(("systems", "liking"), [(6, 0.8), (8, 0.8), (15, 0.8), (12, 2.0)])
def test_rates_over_other_systems_over_many_trials(systems, liking, record_property):
    covered, differ = rates_over_other_systems(200, systems, liking)
    title = f"{systems} systems, likings {liking:g}"
    record_property(f"{title} | lowest coverage", f"{covered.min():.3f}")
    record_property(f"{title} | highest share of p < 0.05", f"{differ.max():.3f}")
    assert covered.min() >= 0.92
    assert differ.max() <= 0.05 + 2 * (0.05 * 0.95 / 200) ** 0.5
