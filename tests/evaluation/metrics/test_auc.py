"""ROC AUC and average precision, against scipy and a plain loop."""

import json

import numpy as np
import pytest
from scipy import stats

from bertscore_onnx.errors import InputError
from bertscore_onnx_evaluation.metrics.auc import auc_of_labels, average_precision, roc_auc
from tests.evaluation.simulations import labelled_pairs, units_of


@pytest.fixture
def labelled():
    """Labels and scores with many ties."""
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 200)
    return labels, (labels + rng.normal(scale=2, size=200)).round()


def test_roc_auc(labelled):
    labels, scores = labelled
    positive, negative = scores[labels == 1], scores[labels == 0]
    expected = stats.mannwhitneyu(positive, negative).statistic / (len(positive) * len(negative))
    assert roc_auc(labels, scores).value == pytest.approx(expected, abs=1e-12)


def test_average_precision(labelled):
    labels, scores = labelled
    expected, recall = 0.0, 0.0
    for threshold in sorted(set(scores), reverse=True):
        taken = labels[scores >= threshold]
        expected += (taken.sum() / labels.sum() - recall) * taken.mean()
        recall = taken.sum() / labels.sum()
    assert average_precision(labels, scores).value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("scores", "roc", "ap"), [([1, 2, 3, 4], 1, 1), ([4, 3, 2, 1], 0, 5 / 12), ([1] * 4, 0.5, 0.5)]
)
def test_known_orders(scores, roc, ap):
    labels = np.array([0, 0, 1, 1])
    assert roc_auc(labels, np.array(scores)).value == roc
    assert average_precision(labels, np.array(scores)).value == pytest.approx(ap, abs=1e-15)


@pytest.mark.parametrize(
    ("labels", "scores", "message"),
    [
        ([0, 1], [1], r"Labels of shape \(2,\) and scores of shape \(1,\)"),
        ([0, 2], [1, 1], r"Label 2 at 1 \(counted from 0\); expected 0 or 1"),
        ([0, 1], [1, np.nan], r"Score nan at 1 \(counted from 0\)"),
    ],
)
def test_bad_input(labels, scores, message):
    for measure in (roc_auc, average_precision):
        with pytest.raises(InputError, match=message):
            measure(np.array(labels), np.array(scores))


@pytest.mark.parametrize(
    ("labels", "scores", "values", "reason"),
    [
        ([1, 1], [1, 2], (None, 1.0), "of 2 pairs 2 are positive"),
        ([0, 0], [1, 2], (None, None), "of 2 pairs 0 are positive"),
        ([0, 1], [1, np.nan], (None, None), "1 of 2 pairs have no score"),
        ([0, 1], [1, np.inf], (None, None), "1 of 2 pairs have no score"),
    ],
)
def test_no_value_has_a_reason(labels, scores, values, reason):
    result = auc_of_labels(np.array(labels), {"m": np.array(scores, dtype=float)})
    of_json = json.loads(json.dumps(result.to_dict(), allow_nan=False))["metrics"]["m"]
    assert (of_json["roc_auc"], of_json["average_precision"]) == values
    assert reason in of_json["reason"]


def delong(labels, one, other):
    """Return the variance of the first area, and two-sided p of the difference, by DeLong's placements."""
    placements = []
    for scores in (one, other):
        wins = (np.sign(scores[labels == 1][:, None] - scores[labels == 0]) + 1) / 2
        placements.append((wins.mean(axis=1), wins.mean(axis=0)))

    def variance(sides):
        return sum(side.var(ddof=1) / len(side) for side in sides)

    differences = [first - second for first, second in zip(*placements, strict=True)]
    z = differences[0].mean() / np.sqrt(variance(differences))
    return variance(placements[0]), 2 * stats.norm.sf(abs(z))


def bootstrap(measure, labels, scores, units=None):
    """Return the ends of a plain percentile bootstrap of units."""
    rng, rows, values = np.random.default_rng(0), np.arange(len(labels)), []
    of_units = [rows[units == unit] for unit in np.unique(units)] if units is not None else rows[:, None]
    for _ in range(1000):
        drawn = np.concatenate([of_units[unit] for unit in rng.integers(len(of_units), size=len(of_units))])
        values.append(measure(labels[drawn], scores[drawn]).value)
    return np.quantile(values, [0.025, 0.975])


@pytest.mark.parametrize("rounded", [False, True])
def test_the_interval_of_the_area_has_the_variance_of_delong(rounded):
    rng = np.random.default_rng(1)
    labels, (one, other) = labelled_pairs(rng, np.arange(1500), 0.4, rounded)
    area = auc_of_labels(labels, {"one": one}).roc_auc["one"]
    # Wilson's ends are where the value is as many standard errors away as the quantile.
    scale = area.low * (1 - area.low) / (area.value * (1 - area.value))
    found = ((area.value - area.low) / 1.96) ** 2 / scale
    assert found == pytest.approx(delong(labels, one, other)[0], rel=0.02)


@pytest.mark.parametrize("seed", range(3))
def test_p_of_areas_is_about_that_of_delong(seed):
    rng = np.random.default_rng(seed)
    labels, (one, other) = labelled_pairs(rng, np.arange(400), 0.4)
    other = other - 0.15 * labels
    [difference] = auc_of_labels(labels, {"one": one, "other": other}).differences["roc_auc"].values()
    assert difference.p == pytest.approx(delong(labels, one, other)[1], abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 5])
@pytest.mark.parametrize(("name", "measure"), [("roc_auc", roc_auc), ("average_precision", average_precision)])
def test_intervals_are_about_those_of_a_bootstrap_of_units(name, measure, most):
    rng = np.random.default_rng(2)
    units = units_of(rng, 300, most)
    labels, (scores, _) = labelled_pairs(rng, units, 0.3, rounded=True)
    result = auc_of_labels(labels, {"m": scores}, units=list(map(str, units)))
    found = getattr(result, name)["m"]
    assert [found.low, found.high] == pytest.approx(bootstrap(measure, labels, scores, units), abs=0.02)


def test_repeated_rows_of_a_unit_change_nothing():
    rng = np.random.default_rng(3)
    labels, scores = labelled_pairs(rng, np.arange(50), 0.5)
    once = auc_of_labels(labels, {"a": scores[0], "b": scores[1]})
    units = [str(row) for row in np.arange(50).repeat(4)]
    again = auc_of_labels(labels.repeat(4), {"a": scores[0].repeat(4), "b": scores[1].repeat(4)}, units=units)
    as_rows = auc_of_labels(labels.repeat(4), {"a": scores[0].repeat(4), "b": scores[1].repeat(4)})
    for measure in ("roc_auc", "average_precision"):
        ends = [getattr(result, measure)["a"].low for result in (once, again, as_rows)]
        assert ends[0] == pytest.approx(ends[1])
        assert ends[2] > ends[0]
        p = [result.differences[measure].popitem()[1].p for result in (once, again, as_rows)]
        assert p[0] == pytest.approx(p[1], abs=0.06)
        assert p[2] < p[0]


def test_the_order_of_rows_changes_nothing():
    rng = np.random.default_rng(4)
    units = units_of(rng, 40, 3)
    labels, scores = labelled_pairs(rng, units, 0.5)
    names, order = np.array([*map(str, units)]), rng.permutation(len(labels))
    for has_units in (False, True):
        results = [
            auc_of_labels(
                labels[rows],
                {"a": scores[0, rows], "b": scores[1, rows]},
                units=names[rows].tolist() if has_units else None,
            )
            for rows in (np.arange(len(labels)), order)
        ]
        assert results[0].to_json() == results[1].to_json()


def test_few_units_are_exchanged_in_all_ways():
    labels, one, other = np.array([0, 0, 1, 1, 1]), np.array([1, 2, 3, 4, 5.0]), np.array([3, 1, 2, 5, 4.0])
    result = auc_of_labels(labels, {"one": one, "other": other})
    kept = (np.arange(32)[:, None] >> np.arange(5)) & 1 == 1
    areas = [[roc_auc(labels, np.where(row, *pair)).value for pair in ((one, other), (other, one))] for row in kept]
    deltas = np.abs(np.subtract(*np.array(areas).T))
    [difference] = result.differences["roc_auc"].values()
    assert difference.p == np.mean(deltas >= difference.delta - 1e-9)
    assert "5 units: no p is below 2/32 = 0.0625" in result.notes[-1]


def test_equal_scores_have_p_one_and_a_constant_one_an_interval():
    labels = np.arange(30) % 2
    result = auc_of_labels(labels, {"a": labels * 1.0, "b": labels * 2.0, "constant": np.ones(30)})
    assert result.differences["roc_auc"]["a", "b"].p == 1
    assert result.roc_auc["a"].value == result.roc_auc["a"].high == 1
    assert 0.5 < result.roc_auc["a"].low < 0.9
    assert result.roc_auc["constant"].low < 0.5 < result.roc_auc["constant"].high


def test_there_are_as_many_units_and_scores_as_labels():
    for message, scores, units in (("3 rows and 2 units", [1, 2, 3], ["a", "b"]), ("scores: 2 of m", [1, 2], None)):
        with pytest.raises(InputError, match=message):
            auc_of_labels(np.array([0, 1, 1]), {"m": np.array(scores, float)}, units=units)


def rates(trials, number, most, share, rounded):
    """Return how often equal metrics differ, and intervals hold the truth, by measure."""
    labels, (scores, _) = labelled_pairs(np.random.default_rng(0), np.arange(200_000), share, rounded)
    truth = {"roc_auc": roc_auc(labels, scores).value, "average_precision": average_precision(labels, scores).value}
    found = []
    for seed in range(1, trials + 1):
        rng = np.random.default_rng([seed, number, most])
        units = units_of(rng, number, most)
        labels, (one, other) = labelled_pairs(rng, units, share, rounded)
        result = auc_of_labels(labels, {"a": one, "b": other}, units=list(map(str, units)), permutations=299, seed=seed)
        for name, value in truth.items():
            measure, [difference] = getattr(result, name)["a"], result.differences[name].values()
            found.append((difference.p < 0.05, measure.low <= value <= measure.high))
    return np.mean(np.reshape(found, (trials, 2, 2)), axis=0)  # (measures, 2)


def test_equal_metrics_seldom_differ_and_intervals_hold_the_truth():
    differ, held = rates(60, 60, 1, 0.3, False).T
    assert differ.max() <= 0.15
    assert held.min() >= 0.85


@pytest.mark.calibration
@pytest.mark.parametrize(
    ("number", "most", "share", "rounded", "title"),
    [
        (60, 1, 0.5, False, "60 pairs"),
        (300, 1, 0.5, False, "300 pairs"),
        (60, 1, 0.2, True, "60 pairs, 20 % positive, with ties"),
        (300, 1, 0.1, True, "300 pairs, 10 % positive, with ties"),
        (60, 5, 0.5, False, "60 references of 1 to 5 pairs"),
    ],
)
def test_rates_of_areas_over_many_trials(number, most, share, rounded, title, record_property):
    differ, held = rates(2000, number, most, share, rounded).T
    for at, measure in enumerate(("ROC AUC", "average precision")):
        record_property(f"{measure}: {title} | equal metrics differ", f"{differ[at]:.3f}")
        record_property(f"{measure}: {title} | coverage", f"{held[at]:.3f}")
    assert differ.max() <= 0.06
    assert held.min() >= 0.92
