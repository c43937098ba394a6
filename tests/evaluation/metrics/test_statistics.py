"""Tests by exchanging units, and intervals, against plain loops and in simulations."""

import itertools
from functools import partial

import numpy as np
import pytest
from scipy import stats

from bertscore_onnx_evaluation import meta_evaluate
from bertscore_onnx_evaluation.metrics.correlation import (
    correlate,
    correlate_pairs,
    mean_by_system,
    pairwise_accuracy,
    soft_pairwise_accuracy,
    tie_calibrated_accuracy,
)
from bertscore_onnx_evaluation.metrics.ranks import compare_metrics
from bertscore_onnx_evaluation.metrics.statistics import (
    SegmentStatistics,
    SystemStatistics,
    bootstrap_error,
    exchange_systems,
    exchange_units,
    jackknife_error,
    permute_systems,
    resampled,
    student_interval,
)
from reproduce.williams import williams
from tests.evaluation.judged import judged
from tests.evaluation.simulations import correlated_scores, equal_metrics


def pearson_sums(human, metric, units):
    return SegmentStatistics(human, metric, units).sums()["pearson"]


def p_of(sums, permutations, seed, names):
    return exchange_units([sums[name] for name in names], permutations=permutations, seed=seed)


def rates_of_equal_metrics(trials, number, icc, permutations):
    """Return how often the first two differ significantly, and how often there is more than one rank."""
    found = []
    for seed in range(trials):
        human, metrics = equal_metrics(np.random.default_rng([seed, number]), number, icc)
        sums = {str(at): pearson_sums(human, metric, np.arange(100)) for at, metric in enumerate(metrics)}
        r = {name: of_units.value for name, of_units in sums.items()}
        compared = compare_metrics("pearson", r, partial(p_of, sums, permutations, seed))
        found.append((compared.differences["0", "1"].p < 0.05, max(compared.ranks.values()) > 1))
    return np.mean(found, axis=0)


@pytest.mark.calibration
@pytest.mark.parametrize("icc", [0, 0.3, 0.6])
def test_equal_metrics_seldom_differ_over_many_trials(icc, record_property):
    differ, _ = rates_of_equal_metrics(2000, 2, icc, 399)
    record_property(f"two metrics, {icc} shared | meta", f"{differ:.3f}")
    assert differ <= 0.055


@pytest.mark.calibration
@pytest.mark.parametrize(
    ("segments", "missing", "title"),
    [(20, 0, "20 segments of unequal spread"), (100, 0.3, "100 of unequal spread, 30 % not judged")],
)
def test_equal_metrics_seldom_differ_where_segments_spread_unequally(segments, missing, title, record_property):
    found = []
    for seed in range(2000):
        rng = np.random.default_rng([seed, segments])
        spread = np.exp(0.8 * rng.normal(size=segments))
        human, *noise = spread * rng.normal(size=(3, 8, segments))
        metrics = [human + 1.5 * one for one in noise]
        human[rng.random(human.shape) < missing] = np.nan
        sums = [pearson_sums(human, metric, np.arange(segments)) for metric in metrics]
        found.append(exchange_units(sums, permutations=299, seed=seed)[0, 1] < 0.05)
    record_property(f"two metrics, 8 systems, {title} | meta", f"{np.mean(found):.3f}")
    assert np.mean(found) <= 0.075


@pytest.mark.calibration
def test_ten_equal_metrics_have_one_rank_over_many_trials(record_property):
    _, ranks = rates_of_equal_metrics(2000, 10, 0.3, 1350)
    record_property("ten metrics, 0.3 shared: two ranks | meta", f"{ranks:.3f}")
    assert ranks <= 0.06


def test_p_of_segments_is_the_share_of_as_large_differences():
    rng = np.random.default_rng(1)
    human = rng.normal(size=(4, 19))
    metrics = [human + rng.normal(size=human.shape) for _ in range(3)]
    human[0, 2] = human[3, 5] = np.nan
    units = np.array([0, 0, 1, 2, 3, 3, 3, *range(4, 16)])
    is_judged = ~np.isnan(human)
    z = [(metric - metric[is_judged].mean()) / metric[is_judged].std() for metric in metrics]
    found = exchange_units([pearson_sums(human, metric, units) for metric in metrics], permutations=50, seed=9)
    is_kept = np.random.default_rng(9).choice([-1.0, 1.0], size=(50, 16))[:, units] > 0
    for i, j in itertools.combinations(range(3), 2):
        observed = abs(correlate(human, z[i]).value - correlate(human, z[j]).value)
        exchanged = [[np.where(kept, z[one], z[other]) for one, other in ((i, j), (j, i))] for kept in is_kept]
        differences = [abs(correlate(human, x).value - correlate(human, y).value) for x, y in exchanged]
        assert found[i, j] == found[j, i] == (sum(one >= observed - 1e-9 for one in differences) + 1) / 51
    assert np.array_equal(np.diag(found), np.ones(3))


SIZES = [8, 10, 13, 20, 40]
WHOLE_SYSTEMS = {
    "equal metrics": ((0.9, 0.9, 0.9), "normal", 0.055),
    "equal metrics, heavy tails": ((0.9, 0.9, 0.9), "heavy tails", 0.09),
    "r .95 against .8": ((0.95, 0.8, 0.76), "normal", 1),
}


@pytest.mark.calibration
@pytest.mark.parametrize("number", SIZES)
@pytest.mark.parametrize("column", WHOLE_SYSTEMS)
def test_rates_of_metrics_of_whole_systems_over_many_trials(number, column, record_property):
    correlations, noise, highest = WHOLE_SYSTEMS[column]
    found = []
    for seed in range(2000):
        human, one, other = correlated_scores(np.random.default_rng([seed, number]), number, correlations, noise)
        p = exchange_systems(human, np.stack([one, 3 * other + 7]), permutations=499, seed=seed)[0, 1]
        r = np.corrcoef([human, one, other])
        one_sided = williams(r[0, 1], r[0, 2], r[1, 2], number).p
        found.append((p < 0.05, 2 * min(one_sided, 1 - one_sided) < 0.05))
    rate, of_williams = np.mean(found, axis=0)
    record_property(f"{number} systems | {column}", f"{rate:.3f}")
    record_property(f"{number} systems | {column}: Williams", f"{of_williams:.3f}")
    assert rate <= highest


@pytest.mark.calibration
@pytest.mark.parametrize("number", SIZES)
def test_rates_against_random_numbers_over_many_trials(number, record_property):
    lowest = {0.9: 0.9, 0.7: 0, 0: 0}
    for r in lowest:
        found = []
        for seed in range(2000):
            human, metric, _ = correlated_scores(np.random.default_rng([seed, number]), number, (r, 0, 0))
            found.append(permute_systems(human, metric[None], permutations=499, seed=seed)[0] < 0.05)
        record_property(f"{number} systems | r {r:g}", f"{np.mean(found):.3f}")
        assert np.mean(found) >= lowest[r]
    assert np.mean(found) <= 0.06


def test_scales_and_signs_of_metrics_change_no_p():
    human, one, other = correlated_scores(np.random.default_rng(7), 9, (0.8, 0.5, 0.3))
    metrics = np.stack([one, other, 5 * one + 3, -one, human])
    p = exchange_systems(human, metrics)
    assert p[0, 1] == p[2, 1] < p[0, 2] == 1
    assert p[0, 3] == p[2, 3] < 0.05
    assert p[0, 4] == 2 / 2**9  # the human scores themselves
    assert p == pytest.approx(exchange_systems(7 - 2 * human, -metrics))


def test_permutations_of_many_systems_are_random_and_of_the_seed():
    human, metric = np.random.default_rng(1).normal(size=(2, 12))
    metric += human
    [p] = permute_systems(human, metric[None], permutations=2000, seed=1)
    assert p == permute_systems(human, metric[None], permutations=2000, seed=1)[0]
    assert p == pytest.approx(stats.pearsonr(human, metric).pvalue, abs=0.02)


@pytest.mark.parametrize("gaps", [0, 0.1])
@pytest.mark.parametrize("is_resampled", [False, True])
def test_statistics_of_sums_are_those_of_all_scores(gaps, is_resampled):
    rng = np.random.default_rng(2)
    human = rng.integers(0, 5, (6, 60)) + np.linspace(0, 0.5, 6)[:, None]
    metric = human + rng.normal(size=human.shape)
    metric[:, 3] = 1
    human[:, 4] = 2
    is_left_out = rng.random(human.shape) < gaps
    human[is_left_out] = metric[is_left_out] = np.nan
    units, kept = np.arange(60) // 2, np.arange(6) < 5
    drawn = rng.integers(30, size=30) if is_resampled else np.arange(30)
    sides = mean_by_system(human), mean_by_system(metric)
    by_level = (
        SegmentStatistics(human, metric, units).sums(),
        SystemStatistics(sides, (human, metric), units, kept).sums(),
    )
    counts = np.bincount(drawn, minlength=30)
    values, wholes = (
        {name: float(one.statistic(counts @ one.sums)) for name, one in sums.items()} for sums in by_level
    )
    segments = np.concatenate([np.flatnonzero(units == unit) for unit in drawn])
    human, metric = human[:, segments], metric[:, segments]
    assert values["pearson"] == pytest.approx(correlate(human, metric).value)
    assert values["pearson_by_item"] == pytest.approx(correlate(human, metric, by="segment").value)
    assert values["pearson_by_system"] == pytest.approx(correlate(human, metric, by="system").value)
    assert values["acc_eq"] == pytest.approx(tie_calibrated_accuracy(human, metric).value, abs=0.01 * is_resampled)
    for name in ("kendall_b", "kendall_c"):
        expected = correlate(human, metric, coefficient=name).value
        assert values[name.removesuffix("_b")] == pytest.approx(expected, abs=0.03)
    assert values["spa"] == pytest.approx(soft_pairwise_accuracy(human, metric).value, abs=0.03)
    sides = mean_by_system(human), mean_by_system(metric)
    without_outliers = correlate_pairs(*(one[kept] for one in sides)).value
    assert wholes["pearson"] == pytest.approx(correlate_pairs(*sides).value)
    assert wholes["pearson_without_outliers"] == pytest.approx(without_outliers)
    assert wholes["accuracy"] == pairwise_accuracy([sides]).value


@pytest.mark.parametrize("name", ["pearson_by_item", "pearson_by_system", "kendall", "acc_eq", "spa"])
def test_equal_metrics_seldom_differ_by_other_statistics(name):
    found = []
    for seed in range(80):
        human, metrics = equal_metrics(np.random.default_rng(seed), 2, 0.6, systems=6, segments=40)
        sums = [SegmentStatistics(human, metric, np.arange(40)).sums()[name] for metric in metrics]
        found.append(exchange_units(sums, permutations=199, seed=seed)[0, 1] < 0.05)
    assert np.mean(found) <= 0.13


def outputs(rng, segments):
    human = rng.normal(size=(8, segments)) + np.linspace(0, 0.3, 8)[:, None] + rng.normal(size=segments)
    return human, human + 1.5 * rng.normal(size=human.shape) + rng.normal(size=segments)


def uneven_outputs(rng, segments):
    """Draw outputs that spread more in some segments than in others, with noise of heavy tails."""
    spread = np.exp(0.8 * rng.normal(size=segments))
    human = spread * rng.normal(size=(8, segments)) + np.linspace(0, 0.3, 8)[:, None]
    noise = spread * rng.standard_t(5, size=human.shape)
    return human, human + noise + 0.5 * rng.normal(size=segments)


def by_jackknife(units, seed=0):
    return student_interval(units.value, *jackknife_error(units), of_z=True)


def by_bootstrap(units, seed=0):
    [values] = resampled([units], np.random.default_rng(seed), 300)
    return student_interval(units.value, *bootstrap_error(values, len(units.sums)))


def coverage(trials, names=("pearson", "pearson_by_item", "pearson_by_system", "kendall", "acc_eq"), drawn=outputs):
    """Return how often intervals of 60 segments hold the values of 10,000 others, by name."""

    def values(sums):
        return {name: float(sums[name].statistic(sums[name].sums.sum(axis=0))) for name in names}

    truth = values(SegmentStatistics(*drawn(np.random.default_rng(0), 10_000), np.arange(10_000)).sums())
    held = []
    for seed in range(1, trials + 1):
        sums = SegmentStatistics(*drawn(np.random.default_rng(seed), 60), np.arange(60)).sums()
        ends = {
            name: (by_jackknife if name.startswith("pearson") else by_bootstrap)(sums[name], seed) for name in names
        }
        held.append([low <= truth[name] <= high for name, (low, high) in ends.items()])
    return dict(zip(names, np.mean(held, axis=0), strict=True))


@pytest.mark.calibration
def test_intervals_hold_other_segments_over_many_trials(record_property):
    found = coverage(2000)
    lowest = min(found[name] for name in ("pearson", "pearson_by_item", "pearson_by_system", "kendall"))
    record_property("`meta`: r and τ of 60 segments | coverage", f"{lowest:.3f}")
    record_property("`meta`: acc*_eq of 60 segments | coverage", f"{found['acc_eq']:.3f}")
    assert lowest >= 0.93


@pytest.mark.calibration
def test_intervals_of_r_hold_where_segments_spread_unequally(record_property):
    found = coverage(2000, ("pearson", "pearson_by_item", "pearson_by_system"), uneven_outputs)
    record_property("`meta`: r of 60 segments of unequal spread | coverage", f"{min(found.values()):.3f}")
    assert min(found.values()) >= 0.93


def system_intervals(trials, num_systems, segments):
    """Return values and intervals of the agreement on the same systems by other segments, (trials, measures, 3)."""
    rng = np.random.default_rng([num_systems, segments])
    quality = 0.3 * rng.normal(size=num_systems)
    qualities = quality, quality + 0.1 * rng.normal(size=num_systems)
    rows = []
    for _ in range(trials):
        difficulty, shared = 0.7 * rng.normal(size=segments), 0.5 * rng.normal(size=(num_systems, segments))
        human, metric = (one[:, None] + difficulty + shared + 0.8 * rng.normal(size=shared.shape) for one in qualities)
        outputs = judged(human, {"m": metric}, systems=[*map(str, range(num_systems))])
        result = meta_evaluate([outputs], sentinels=False, permutations=100)
        measures = result.language_pairs[0].metrics[0].system
        rows.append(
            [(one.value, one.low, one.high) for one in map(measures.__getitem__, ("pearson", "accuracy", "spa"))]
        )
    return np.array(rows)


def system_coverage(trials, num_systems, segments):
    """Return how often the intervals of r, accuracy and SPA of systems hold the mean of their values, (measures,)."""
    value, low, high = np.moveaxis(system_intervals(trials, num_systems, segments), 2, 0)
    mean = value.mean(axis=0)
    return ((low <= mean) & (mean <= high)).mean(axis=0)


@pytest.mark.calibration
@pytest.mark.parametrize(("num_systems", "segments"), [(8, 60), (30, 60), (30, 300)])
def test_intervals_of_systems_hold_those_of_other_segments_over_many_trials(record_property, num_systems, segments):
    lowest = system_coverage(1000, num_systems, segments).min()
    row = f"`meta`: r, accuracy and SPA of {num_systems} systems, {segments} segments"
    record_property(f"{row} | coverage", f"{lowest:.3f}")
    assert lowest >= 0.93


def test_an_interval_of_r_needs_a_value_without_each_unit():
    scores = np.zeros((2, 5))
    scores[:, 0] = 0, 1
    assert np.isnan(jackknife_error(pearson_sums(scores, scores, np.arange(5)))).all()
