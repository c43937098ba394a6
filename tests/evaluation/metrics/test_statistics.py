"""Tests by exchanging units, and intervals, against plain loops and in simulations."""

import itertools

import numpy as np
import pytest
from scipy import stats

from bertscore_onnx_evaluation.metrics.correlation import (
    correlate,
    correlate_pairs,
    mean_by_system,
    soft_pairwise_accuracy,
    tie_calibrated_accuracy,
)
from bertscore_onnx_evaluation.metrics.ranks import clusters
from bertscore_onnx_evaluation.metrics.statistics import (
    exchange_units,
    interval,
    jackknife_error,
    segment_sums,
    system_sums,
)
from bertscore_onnx_evaluation.systems.paired_tests import effective_units, holm
from tests.evaluation.judged import accuracies_at
from tests.evaluation.simulations import JUDGEMENTS, judged_outputs, zipf_documents

MEASURES = ("acc_eq", "spa")


def sums_of(human, metrics, name, units=None):
    units = np.arange(human.shape[1]) if units is None else units
    return [segment_sums(human, metric, units)[name] for metric in metrics]


@pytest.mark.calibration
@pytest.mark.parametrize("judgements", JUDGEMENTS)
@pytest.mark.parametrize(("systems", "segments"), [(5, 20), (8, 50), (12, 100)])
def test_equal_metrics_seldom_differ_over_many_trials(
    systems, segments, judgements, record_property
):
    differ = dict.fromkeys(MEASURES, 0)
    for seed in range(2000):
        human, metrics = judged_outputs(
            np.random.default_rng([seed, systems]), systems, segments, judgements
        )
        statistics = [segment_sums(human, metric, np.arange(segments)) for metric in metrics]
        for name in MEASURES:
            p = exchange_units([[one[name] for one in statistics]], permutations=299, seed=seed)
            differ[name] += p[0, 1] < 0.05
    for name, number in differ.items():
        record_property(
            f"{systems} systems, {segments} segments, {judgements} | {name}", f"{number / 2000:.3f}"
        )
    assert max(differ.values()) / 2000 <= 0.055


@pytest.mark.calibration
def test_means_of_equal_metrics_over_three_sets_seldom_differ_over_many_trials(record_property):
    differ = dict.fromkeys(MEASURES, 0)
    shapes = (5, 30), (8, 50), (6, 20)
    for seed in range(2000):
        rng = np.random.default_rng([seed, 3])
        sets = [judged_outputs(rng, *shape, "MQM") for shape in shapes]
        for name in MEASURES:
            p = exchange_units([sums_of(*one, name) for one in sets], permutations=299, seed=seed)
            differ[name] += p[0, 1] < 0.05
    for name, number in differ.items():
        record_property(f"mean over three language pairs, MQM | {name}", f"{number / 2000:.3f}")
    assert max(differ.values()) / 2000 <= 0.055


@pytest.mark.calibration
def test_ten_equal_metrics_have_one_rank_over_many_trials(record_property):
    several = 0
    pairs = np.triu_indices(10, 1)
    for seed in range(500):
        human, metrics = judged_outputs(np.random.default_rng([seed, 10]), 8, 50, "MQM", number=10)
        sums = sums_of(human, metrics, "acc_eq")
        p = exchange_units([sums], permutations=1350, seed=seed)
        p[pairs] = p.T[pairs] = holm(p[pairs])
        several += clusters(np.array([one.value for one in sums]), p).max() > 1
    record_property("ten metrics, 500 sets: two ranks | acc_eq", f"{several / 500:.3f}")
    assert several / 500 <= 0.07


def test_p_is_the_share_of_as_large_differences_also_of_means_over_sets():
    rng = np.random.default_rng(1)
    human = rng.integers(0, 4, (4, 12)).astype(float)
    metrics = [human + rng.normal(scale=2, size=human.shape) for _ in range(3)]
    human[0, 2] = human[3, 5] = np.nan
    units = np.array([0, 0, 1, 2, 3, 3, 3, 4, 5, 6, 7, 7])
    other = rng.integers(0, 4, (3, 5)).astype(float), [rng.normal(size=(3, 5)) for _ in range(3)]

    def by_segment(human, metric):
        return accuracies_at(tie_calibrated_accuracy(human, metric).epsilon, human, metric)

    found = exchange_units(
        [sums_of(human, metrics, "acc_eq", units), sums_of(*other, "acc_eq")],
        permutations=50,
        seed=9,
    )
    alone = exchange_units([sums_of(human, metrics, "acc_eq", units)])
    ways = np.array([*itertools.product([1, -1], repeat=8 + 5)])
    accuracies = [
        [by_segment(*pair) for pair in zip([g] * 3, m, strict=True)]
        for g, m in ((human, metrics), other)
    ]
    for i, j in itertools.combinations(range(3), 2):
        first, second = (of_set[i] - of_set[j] for of_set in accuracies)
        deltas = [(np.mean(first * way[units]) + np.mean(second * way[8:])) / 2 for way in ways]
        expected = np.mean(np.abs(deltas) >= abs(first.mean() + second.mean()) / 2 - 1e-9)
        assert found[i, j] == found[j, i] == pytest.approx(expected)
        one_set = [
            np.mean(first * np.array(way)[units]) for way in itertools.product([1, -1], repeat=8)
        ]
        assert alone[i, j] == pytest.approx(np.mean(np.abs(one_set) >= abs(first.mean()) - 1e-9))
    assert np.array_equal(np.diag(found), np.ones(3))


def test_random_exchanges_count_the_observed_way_too():
    human, metrics = judged_outputs(np.random.default_rng(2), 5, 40, "grades")
    delta = np.subtract(*(one.sums[:, 1] for one in sums_of(human, metrics, "acc_eq")))
    signs = np.random.default_rng(3).choice([-1.0, 1.0], size=(99, 40))
    expected = ((np.abs(signs @ delta) >= abs(delta.sum()) - 1e-7).sum() + 1) / 100
    assert (
        exchange_units([sums_of(human, metrics, "acc_eq")], permutations=99, seed=3)[0, 1]
        == expected
    )


@pytest.mark.parametrize("name", MEASURES)
def test_scales_of_metrics_change_no_p(name):
    human, [one, other] = judged_outputs(np.random.default_rng(4), 6, 30, "MQM")
    p = exchange_units([sums_of(human, [one, other, 5 * one + 300], name)], permutations=99)
    assert p[0, 1] == p[2, 1] < p[0, 2] == 1


@pytest.mark.parametrize("gaps", [0, 0.1])
@pytest.mark.parametrize("left_out", [None, 7])
def test_statistics_of_sums_are_those_of_the_units_that_are_left(gaps, left_out):
    rng = np.random.default_rng(2)
    human = rng.integers(0, 5, (6, 60)) + np.linspace(0, 0.5, 6)[:, None]
    metric = human + rng.normal(size=human.shape)
    metric[:, 3] = 1
    human[:, 4] = 2
    is_unjudged = rng.random(human.shape) < gaps
    human[is_unjudged] = metric[is_unjudged] = np.nan
    units = np.arange(60) // 2
    sides = mean_by_system(human), mean_by_system(metric)
    sums = segment_sums(human, metric, units)
    of_systems = system_sums(sides, (human, metric), units)
    is_kept = np.arange(30) != left_out
    values = {name: float(one.statistic(is_kept @ one.sums)) for name, one in sums.items()}
    whole = float(of_systems.statistic(is_kept @ of_systems.sums))
    human, metric = human[:, is_kept[units]], metric[:, is_kept[units]]
    assert values["pearson"] == pytest.approx(correlate(human, metric).value)
    assert values["pearson_by_item"] == pytest.approx(correlate(human, metric, by="segment").value)
    # of the units that are left, another epsilon may be best
    slack = 1e-12 if left_out is None else 0.01  # sums of units are rounded in another order
    assert values["acc_eq"] == pytest.approx(
        tie_calibrated_accuracy(human, metric).value, abs=slack
    )
    assert values["spa"] == pytest.approx(soft_pairwise_accuracy(human, metric).value, abs=0.03)
    assert whole == pytest.approx(
        correlate_pairs(mean_by_system(human), mean_by_system(metric)).value
    )


@pytest.mark.parametrize("human_ties", [False, True])
def test_a_pair_of_systems_that_one_side_ties_counts_half(human_ties):
    scores = np.random.default_rng(5).normal(size=(2, 40))
    tied, other = (
        np.stack([scores[0], scores[0], scores[1]]),
        np.stack([scores[1], scores[0], scores[1] + 1]),
    )
    human, metric = (tied, other) if human_ties else (other, tied)
    value = segment_sums(human, metric, np.arange(40))["spa"].value
    assert value == pytest.approx(
        soft_pairwise_accuracy(human, metric, permutations=20_000).value, abs=0.02
    )


def covered(units, effective, truth):
    ends = interval(units.value, units, effective, is_r=False)
    return ends is not None and ends[0] <= truth <= ends[1]


@pytest.mark.calibration
@pytest.mark.parametrize("judgements", JUDGEMENTS)
@pytest.mark.parametrize(
    ("title", "sizes", "lowest"),
    [
        ("60 segments", np.ones(60, dtype=int), 0.93),
        ("20 segments", np.ones(20, dtype=int), 0.93),
        ("20 documents of 5", np.full(20, 5), 0.93),
        ("25 Zipf documents", zipf_documents(25), 0.92),
        ("50 Zipf documents", zipf_documents(50), 0.92),
    ],
)
def test_intervals_hold_other_sets_of_this_size_over_many_trials(
    title, sizes, lowest, judgements, record_property
):
    documents = np.repeat(np.arange(len(sizes)), sizes)
    quality = 0.4 * np.random.default_rng(len(sizes)).normal(size=8)
    found = {name: [] for name in MEASURES}
    for seed in range(2000):
        rng = np.random.default_rng([seed, 1])
        human, [metric] = judged_outputs(rng, 8, len(documents), judgements, 1, quality, documents)
        sums = segment_sums(human, metric, documents)
        for name in MEASURES:
            found[name].append(sums[name])
    effective = effective_units(sizes.astype(float))
    for name, each in found.items():
        truth = np.mean([one.value for one in each])
        rate = np.mean([covered(one, effective, truth) for one in each])
        record_property(f"{title}, {judgements} | {name}", f"{rate:.3f}")
        assert rate >= lowest


@pytest.mark.calibration
def test_quality_is_never_called_worse_than_difficulty_over_many_trials(record_property):
    """One metric sees the quality of outputs with noise, the other the difficulty of segments
    without.
    """
    wrong = 0
    for seed in range(200):
        rng = np.random.default_rng([seed, 2])
        human, _ = judged_outputs(rng, 8, 60, "MQM")
        difficulty = np.broadcast_to(human.mean(axis=0), human.shape)
        metrics = (
            human + rng.normal(0, 6, human.shape),
            difficulty + 0.001 * rng.normal(size=human.shape),
        )
        for name in MEASURES:
            sums = sums_of(human, metrics, name)
            is_worse = sums[0].value < sums[1].value
            wrong += is_worse and exchange_units([sums], permutations=199, seed=seed)[0, 1] < 0.05
    record_property(
        "quality with noise against the difficulty of segments, 200 sets | called worse",
        f"{wrong / 400:.3f}",
    )
    assert wrong == 0


def test_an_interval_of_r_needs_a_value_without_each_unit():
    scores = np.zeros((2, 5))
    scores[:, 0] = 0, 1
    assert interval(1.0, *sums_of(scores, [scores], "pearson"), 5, is_r=True) is None


def test_the_error_of_a_mean_is_that_of_a_sample():
    human, [metric, _] = judged_outputs(np.random.default_rng(6), 5, 40, "MQM")
    [units] = sums_of(human, [metric], "acc_eq")
    error, freedom = jackknife_error(units, 40, of_z=False)
    assert error == pytest.approx(stats.sem(units.sums[:, 1]), rel=1e-6)
    assert 1 <= freedom <= 39
    [certain] = sums_of(human, [human], "acc_eq")
    assert (certain.value, interval(1.0, certain, 40, is_r=False)) == (1, None)
