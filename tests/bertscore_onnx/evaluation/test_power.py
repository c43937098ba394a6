"""The approximation of Student's t, the power of the permutation test, and tests of non-inferiority."""

import numpy as np
import pytest
from scipy import stats

from bertscore_onnx.evaluation.compare_systems import metric_result
from bertscore_onnx.evaluation.metrics import MetricScores
from bertscore_onnx.evaluation.power import (
    detectable_difference,
    needed_units,
    power_of,
    student_quantile,
    tail_share,
)
from bertscore_onnx.evaluation.significance import SegmentMeans, paired_permutation


@pytest.mark.parametrize("num_units", [6, 20, 100, 10_000])
@pytest.mark.parametrize("p", [0.025, 0.5, 0.8, 0.975])
def test_quantiles_are_those_of_student(p, num_units):
    assert student_quantile(p, num_units) == pytest.approx(stats.t.ppf(p, num_units - 1), rel=0.004)


@pytest.mark.parametrize("num_units", [20, 100, 1000])
def test_the_power_is_that_of_the_t_test(num_units):
    pilot = 10**6  # whose error is certain
    for difference in (0.1, 0.3, 0.6):
        exact = stats.nct.sf(stats.t.ppf(0.975, num_units - 1), num_units - 1, difference * num_units**0.5)
        assert power_of(difference, pilot**-0.5, pilot, num_units) == pytest.approx(exact, abs=0.003)


@pytest.mark.parametrize("num_units", [6, 20, 1000])
def test_a_detectable_difference_has_the_power(num_units):
    assert power_of(detectable_difference(0.3, num_units), 0.3, num_units) == pytest.approx(0.8)


def test_few_units_have_wider_intervals_and_no_power():
    assert [round(tail_share(0.025, number), 4) for number in (20, 100, 10**6)] == [0.0159, 0.0231, 0.025]
    assert power_of(1, 0.001, 5) == 0
    assert detectable_difference(0.1, 5) is detectable_difference(0, 100) is None
    assert needed_units(0, 0.1, 100) is needed_units(0.1, 0, 100) is None


@pytest.mark.parametrize("difference", [0.05, 0.2, 0.5, 9])
def test_one_unit_less_than_needed_has_too_little_power(difference):
    number = needed_units(difference, 1 / 50**0.5, 50)
    assert power_of(difference, 50**-0.5, 50, number) >= 0.8
    assert number == 6 or power_of(difference, 50**-0.5, 50, number - 1) < 0.8


SHAPES = {
    "even": lambda rng, number: rng.normal(size=number),
    "long tails": lambda rng, number: rng.laplace(size=number) / 2**0.5,
    "skewed": lambda rng, number: rng.exponential(size=number) - 1,
    "a third differs": lambda rng, number: rng.normal(size=number) * 3**0.5 * (rng.random(number) < 1 / 3),
}
"""Differences with a mean of 0 and a deviation of 1."""


def permutation_test(differences, seed, **draws):
    return paired_permutation(SegmentMeans([np.zeros(len(differences)), differences]), seed=seed, **draws)


def promised_and_found(shape, segments, trials, *, of_detectable=None, difference=None):
    """Plan on a pilot of so many segments, test on others; return the mean power promised, and the share found.

    The true difference is a share of the detectable one, tested on as many; or given, and tested on those needed.
    """
    promised, found = [], []
    for seed in range(trials):
        rng = np.random.default_rng([seed, segments])
        error = float(permutation_test(shape(rng, segments), seed, num_swaps=1, num_resamples=500).error[0])
        if of_detectable is None:
            true, number = difference, needed_units(difference, error, segments)
            promised.append(0.8)
        else:
            true, number = of_detectable * detectable_difference(error, segments), segments
            promised.append(power_of(true, error, segments))
        p = permutation_test(true + shape(rng, number), seed, num_swaps=999, num_resamples=1).p[0]
        found.append(p < 0.05)
    return np.mean(promised), np.mean(found)


def test_a_promised_power_holds():
    promised, found = promised_and_found(SHAPES["even"], 50, 150, of_detectable=1)
    assert promised == pytest.approx(0.8)
    assert found == pytest.approx(promised, abs=0.1)


@pytest.mark.calibration
@pytest.mark.parametrize("segments", [20, 100, 1000])
@pytest.mark.parametrize("of_detectable", [0.7, 1, 1.3])
def test_promised_power_holds_over_many_trials(segments, of_detectable, record_property):
    promised, found = promised_and_found(SHAPES["even"], segments, 2000, of_detectable=of_detectable)
    record_property(f"{of_detectable} of it | {segments:,} segments", f"{found:.3f} ({promised:.3f})")
    assert found == pytest.approx(promised, abs=0.04)


@pytest.mark.calibration
@pytest.mark.parametrize("difference", [0.1, 0.2, 0.5])
@pytest.mark.parametrize("name", SHAPES)
def test_as_many_segments_as_needed_have_the_power(name, difference, record_property):
    _, found = promised_and_found(SHAPES[name], 100, 2000, difference=difference)
    record_property(f"{name} | {difference} deviations", f"{found:.3f}")
    assert found == pytest.approx(0.8, abs=0.04 if name == "even" else 0.1)


def rates_at_the_margin(shape, segments, trials):
    """Return how often a system that is worse by the margin is found not worse, or equivalent."""
    found = []
    for seed in range(trials):
        differences = shape(np.random.default_rng([segments, seed]), segments) - 0.5
        scores = np.stack([np.zeros(segments), differences])
        result = permutation_test(differences, seed, num_swaps=1, num_resamples=1000)
        metric = MetricScores(None, scores, "simulated")
        system = metric_result("bleu", metric, result, ("a", "b"), "", False, segments, 0.5).systems[1]
        found.append((system.not_worse, system.equivalent))
    return np.mean(found, axis=0)


def test_a_system_worse_by_the_margin_is_seldom_found_not_worse():
    assert rates_at_the_margin(SHAPES["even"], 20, 150).max() <= 0.1


@pytest.mark.calibration
@pytest.mark.parametrize("segments", [20, 100, 1000])
def test_errors_at_the_margin_over_many_trials(segments, record_property):
    not_worse, equivalent = rates_at_the_margin(SHAPES["even"], segments, 2000)
    record_property(f"not worse, though worse by the margin | {segments:,} segments", f"{not_worse:.3f}")
    record_property(f"equivalent, though worse by the margin | {segments:,} segments", f"{equivalent:.3f}")
    assert not_worse <= 0.035
    assert equivalent <= 0.055
