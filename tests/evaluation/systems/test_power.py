import numpy as np
import pytest
from scipy import stats

from bertscore_onnx_evaluation.systems.corpus_scores import SegmentMeans
from bertscore_onnx_evaluation.systems.paired_tests import paired_permutation
from bertscore_onnx_evaluation.systems.power import PowerCurve, student_quantile, tail_share
from tests.evaluation.simulations import SHAPES


@pytest.mark.parametrize("num_units", [6, 20, 100, 10_000])
@pytest.mark.parametrize("p", [0.025, 0.5, 0.8, 0.975])
def test_quantiles_are_those_of_student(p, num_units):
    assert student_quantile(p, num_units) == pytest.approx(stats.t.ppf(p, num_units - 1), rel=0.004)


@pytest.mark.parametrize("level", [0.05, 0.01])
@pytest.mark.parametrize("num_units", [20, 100, 1000])
def test_the_power_is_that_of_the_t_test(num_units, level):
    pilot = 10**6  # whose error is certain
    curve = PowerCurve(pilot**-0.5, pilot, pilot, 3.0, level)
    for difference in (0.1, 0.3, 0.6):
        critical = stats.t.ppf(1 - level / 2, num_units - 1)
        exact = stats.nct.sf(critical, num_units - 1, difference * num_units**0.5)
        assert curve.power(difference, num_units) == pytest.approx(exact, abs=0.006)


@pytest.mark.parametrize("num_units", [20, 1000])
def test_a_detectable_difference_has_the_power(num_units):
    curve = PowerCurve(0.3, num_units, num_units, 3.0)
    assert curve.power(curve.detectable()) == pytest.approx(0.8, abs=0.001)


def test_few_units_that_differ_have_no_plan():
    assert [round(tail_share(0.025, number), 4) for number in (20, 100, 10**6)] == [0.0159, 0.0231, 0.025]
    curve = PowerCurve(0.1, 1000, 19, 3.0)
    assert curve.detectable() is curve.needed(0.3) is None
    assert PowerCurve(0.1, 50, 50, 3.0).needed(1e-17) is None


@pytest.mark.parametrize("difference", [0.05, 0.2, 0.5, 9])
def test_one_unit_less_than_needed_has_too_little_power(difference):
    curve = PowerCurve(50**-0.5, 50, 50, 3.0)
    number = curve.needed(difference)
    assert curve.power(difference, number) >= 0.8
    assert number == 6 or curve.power(difference, number - 1) < 0.8


def test_units_that_differ_by_chance_alone_need_a_larger_difference():
    every, some = (PowerCurve(0.3, num_units, 20, 3.0).detectable() for num_units in (20, 1000))
    assert some > 1.02 * every


def test_equal_gains_everywhere_have_no_power_curve():
    assert paired_permutation([np.zeros(30), np.full(30, 0.1)], num_swaps=1).power_curves == (None,)
    assert paired_permutation([np.zeros(30), np.zeros(30)], num_swaps=1).power_curves == (None,)


def permutation_test(differences, seed, **draws):
    return paired_permutation(SegmentMeans([np.zeros(len(differences)), differences]), seed=seed, **draws)


def promised_and_found(shape, segments, trials, *, of_detectable=None, difference=None):
    """Plan on a pilot of so many segments, test on others; return the mean power promised, and the share found.

    The true difference is a share of the detectable one, tested on as many; or given, and tested on those needed. It
    stands in the segments that differ. Pilots without a plan are left out; of 1 in 100 or fewer nothing is returned.
    """
    promised, found = [], []
    for seed in range(trials):
        rng = np.random.default_rng([seed, segments])
        [curve] = permutation_test(shape(rng, segments), seed, num_swaps=1).power_curves
        if curve is None or not curve.is_known:
            continue
        if of_detectable is None:
            true, number = difference, curve.needed(difference)
            promised.append(0.8)
        else:
            true, number = of_detectable * curve.detectable(), segments
            promised.append(curve.power(true))
        other = shape(rng, number)
        differs = other != 0
        p = permutation_test(other + differs * true / shape.differing, seed, num_swaps=999).p[0]
        found.append(p < 0.05)
    return (np.mean(promised), np.mean(found)) if len(found) >= trials / 100 else (None, None)


def test_a_promised_power_holds():
    promised, found = promised_and_found(SHAPES["normal"], 50, 150, of_detectable=1)
    assert promised == pytest.approx(0.8, abs=0.001)
    assert found == pytest.approx(promised, abs=0.1)


@pytest.mark.calibration
@pytest.mark.parametrize("segments", [20, 100, 1000])
@pytest.mark.parametrize("of_detectable", [0.7, 1, 1.3])
def test_promised_power_holds_over_many_trials(segments, of_detectable, record_property):
    promised, found = promised_and_found(SHAPES["normal"], segments, 2000, of_detectable=of_detectable)
    record_property(f"{of_detectable} of it | {segments:,} segments", f"{found:.3f} ({promised:.3f})")
    assert found == pytest.approx(promised, abs=0.04)


FEW_DIFFER = [
    (100, "3 % differ"),
    (100, "10 % differ"),
    (1000, "0.5 % differ"),
    (1000, "3 % differ"),
    (300, "10 % differ"),
]


@pytest.mark.calibration
@pytest.mark.parametrize(("segments", "name"), FEW_DIFFER)
def test_promises_hold_where_few_differ(segments, name, record_property):
    _, found = promised_and_found(SHAPES[name], segments, 2000, of_detectable=1)
    record_property(f"{segments:,} segments, {name} | found", "none printed" if found is None else f"{found:.3f}")
    assert found is None or found == pytest.approx(0.8, abs=0.05)


@pytest.mark.calibration
@pytest.mark.parametrize("difference", [0.1, 0.2, 0.5])
@pytest.mark.parametrize("name", ["normal", "Laplace", "exponential", "30 % differ"])
def test_as_many_segments_as_needed_have_the_power(name, difference, record_property):
    _, found = promised_and_found(SHAPES[name], 100, 2000, difference=difference)
    record_property(f"{name} | {difference} deviations", f"{found:.3f}")
    assert found == pytest.approx(0.8, abs=0.04 if name == "normal" else 0.1)
