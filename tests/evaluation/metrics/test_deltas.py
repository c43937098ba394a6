"""How often people agree with the sign of a difference, by its size."""

import itertools
import json
import math
from contextlib import nullcontext
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies
from scipy import optimize, stats

from bertscore_onnx.errors import InputError
from bertscore_onnx_evaluation import Deltas, JudgedSystems, MetricScores, compare, fit_deltas
from bertscore_onnx_evaluation.metrics.deltas import IsotonicStep
from tests.evaluation.judged import judged, judged_wholes
from tests.support.fake_scorer import FakeScorer

SLOPE = 1.5
"""Of the simulated curves: people agree in 80 of 100 pairs at a difference of log(4) / 1.5 = 0.92."""


def systems(language_pair, human, metric, name="comet", signature=""):
    """Return systems of a language pair with human scores and those of one metric, (systems,)."""
    names = tuple(f"system {place}" for place in range(len(human)))
    scores = MetricScores(np.array(metric, float), None, signature)
    return JudgedSystems(language_pair, names, np.array(human, float), None, {name: scores})


def simulated(seed, sizes, *, spread=0.0, slope=SLOPE):
    """Draw systems of language pairs, whose slopes vary by `spread` on the log scale, so that the curve is known.

    The human score of a system is slope · score + noise by Gumbel. The difference of two such noises is logistic, so
    the probability that people agree with a difference Δ is exactly 1 / (1 + exp(-slope · |Δ|)), also between systems
    that share a third one.
    """
    rng = np.random.default_rng([seed, *sizes])
    found = []
    for place, size in enumerate(sizes):
        metric = rng.normal(size=size) * np.exp(rng.normal(0, 0.4))
        own_slope = slope * np.exp(rng.normal(0, spread))
        found.append(systems(f"pair {place}", own_slope * metric + rng.gumbel(size=size), metric))
    return found


def pairs_by_loops(language_pairs):
    """Return |Δ|, the agreement and the two systems of every pair."""
    return [
        (abs(x - y), 0.5 if g == h else float((g > h) == (x > y)), (place, first), (place, second))
        for place, one in enumerate(language_pairs)
        for (first, (g, x)), (second, (h, y)) in itertools.combinations(
            enumerate(zip(one.human_system, one.metrics["comet"].system, strict=True)), 2
        )
        if x != y and not np.isnan(g) and not np.isnan(h)
    ]


def slope_by_search(pairs, median):
    """Return the slope of maximum likelihood, with a tie at the median, by a search."""

    def loss(slope):
        data = [(delta, agreed) for delta, agreed, *_ in pairs] + [(median, 0.5)]
        return sum(
            agreed * np.logaddexp(0, -slope * delta) + (1 - agreed) * np.logaddexp(0, slope * delta)
            for delta, agreed in data
        )

    return optimize.minimize_scalar(loss, bracket=(0, 1), tol=1e-14).x


@pytest.mark.parametrize("sizes", [[9], [6, 5], [4, 5, 3, 4, 6]])
def test_curve_and_interval_are_those_of_plain_loops(sizes):
    language_pairs = simulated(1, sizes)
    language_pairs[0].human_system[0] = language_pairs[0].human_system[1]  # a tie
    pairs = pairs_by_loops(language_pairs)
    median = float(np.median([pair[0] for pair in pairs]))
    slope = slope_by_search(pairs, median)

    def units(pair):
        return {pair[2][0]} if len(sizes) >= 4 else {pair[2], pair[3]}

    all_units = set().union(*map(units, pairs))
    left = [slope_by_search([pair for pair in pairs if unit not in units(pair)], median) for unit in all_units]
    n, moved = len(left), np.array([slope - one for one in left])
    kurtosis = n * (moved**4).sum() / (moved**2).sum() ** 2
    freedom = np.clip(2 * n / (kurtosis - (n - 3) / (n - 1)), 1, n - 1)
    half = stats.t.ppf(0.975, freedom) * math.sqrt((n - 1) / n * (moved**2).sum())
    [curve] = fit_deltas(language_pairs).curves
    assert (curve.pairs, curve.human_ties) == (len(pairs), 1)
    assert curve.units == ("language pairs" if len(sizes) >= 4 else "systems")
    found = [curve.slope, curve.slope_low, curve.slope_high]
    assert found == pytest.approx([slope, slope - half, slope + half], rel=1e-5)
    deltas = curve.deltas(0.8)
    assert [deltas["logistic"], deltas["low"]] == pytest.approx([math.log(4) / one for one in (found[0], found[2])])
    for delta in (0.3, -0.3):
        agreement = curve.agreement(delta)
        shares = [agreement.share, agreement.low, agreement.high]
        assert shares == pytest.approx([1 / (1 + math.exp(-0.3 * one)) for one in found])


def test_steps_are_those_of_the_formula_of_isotonic_regression():
    language_pairs = simulated(2, [8, 7])
    pairs = sorted(pair[:2] for pair in pairs_by_loops(language_pairs))
    agreed = [agreed for _, agreed in pairs]
    expected = [
        max(min(np.mean(agreed[start:end]) for end in range(at + 1, len(agreed) + 1)) for start in range(at + 1))
        for at in range(len(agreed))
    ]
    [curve] = fit_deltas(language_pairs).curves
    assert [step.agreement for step in curve.steps for _ in range(step.pairs)] == pytest.approx(expected)
    assert curve.steps[0].delta == pytest.approx(pairs[0][0])
    first = next(delta for (delta, _), share in zip(pairs, expected, strict=True) if share >= 0.8)
    assert curve.deltas(0.8)["isotonic"] == pytest.approx(first)


def test_the_order_of_systems_segments_and_language_pairs_changes_nothing():
    rng = np.random.default_rng(3)
    grades = rng.integers(0, 3, size=(2, 5, 7, 30)) / 3  # with ties, also of differences
    sets = [judged(grades[0, at], {"m": grades[1, at]}, language_pair=f"pair {at}") for at in range(5)]
    rows, columns = rng.permutation(7), rng.permutation(30)
    shuffled = [
        judged(
            grades[0, at][rows][:, columns],
            {"m": grades[1, at][rows][:, columns]},
            language_pair=f"pair {at}",
            systems=[f"{row}" for row in rows],
        )
        for at in rng.permutation(5)
    ]
    [expected], [found] = fit_deltas(sets).curves, fit_deltas(shuffled).curves
    assert expected.human_ties > 0
    assert expected.metric_ties > 0
    assert (found.pairs, found.human_ties, found.metric_ties) == (
        expected.pairs,
        expected.human_ties,
        expected.metric_ties,
    )
    assert [found.slope, found.slope_low, found.slope_high] == pytest.approx(
        [expected.slope, expected.slope_low, expected.slope_high]
    )
    assert [step.pairs for step in found.steps] == [step.pairs for step in expected.steps]
    assert [step.delta for step in found.steps] == pytest.approx([step.delta for step in expected.steps])


def test_ties_of_people_count_half_and_those_of_a_metric_are_left_out():
    [curve] = fit_deltas([judged_wholes([1, 1, 2], {"m": [3, 4, 4]})]).curves
    assert (curve.pairs, curve.human_ties, curve.metric_ties) == (2, 1, 1)
    assert curve.steps == (IsotonicStep(1.0, 0.75, 2),)


def test_systems_without_human_scores_are_left_out():
    with_none = judged_wholes([1, np.nan, 2, 3], {"m": [3, np.nan, 4, 4.5]})
    assert fit_deltas([with_none]) == fit_deltas([judged_wholes([1, 2, 3], {"m": [3, 4, 4.5]})])


@pytest.mark.parametrize(
    ("human", "metric", "share"),
    [
        (range(8), range(8), 1.0),  # people always agree
        (range(8), range(0, -8, -1), 0.0),  # never
        ([0, 1, 2, 3], [0, 1e-300, 1, 1e300], 1.0),
        ([0, 1, 2, 3], [0, 1e300, 1, 1e-300], None),
        ([0, 1], [0, 1e-299], 1.0),
        ([1, 1, 1], [1, 2, 3], 0.5),
    ],
)
def test_a_curve_is_finite_whatever_the_scores_are(human, metric, share):
    deltas = fit_deltas([judged_wholes(human, {"m": metric})])
    [curve] = deltas.curves
    assert all(map(math.isfinite, (curve.slope, curve.slope_low, curve.slope_high, curve.largest)))
    assert share is None or curve.steps[-1].agreement == share
    assert json.loads(deltas.to_json())["curves"][0]["pairs"] == curve.pairs
    assert deltas.table()
    assert (curve.deltas(0.9)["logistic"] is not None) == (curve.slope > 0)


@given(seed=strategies.integers(0, 2**32 - 1))
def test_agreement_is_within_its_interval_whatever_the_scales_are(seed):
    rng = np.random.default_rng(seed)

    def scores(size):
        kinds = (
            rng.normal(size=size) * 10.0 ** rng.integers(-290, 290, size),
            rng.integers(0, 3, size),
            np.zeros(size),
        )
        return kinds[rng.integers(3)]

    sizes = rng.integers(1, 8, size=rng.integers(1, 7))
    sets = [systems(f"{place}", scores(size), scores(size)) for place, size in enumerate(sizes)]
    try:
        deltas = fit_deltas(sets)
    except InputError:
        assert not pairs_by_loops(sets) or max(pair[0] for pair in pairs_by_loops(sets)) < 1e-270
        return
    assert deltas.table()
    assert json.loads(deltas.to_json())
    for delta in (1e-300, 1.0, 1e300):
        agreement = deltas.curves[0].agreement(delta)
        assert 0 <= agreement.low <= agreement.share <= agreement.high <= 1


def test_metrics_are_joined_over_language_pairs_by_name_and_signature():
    sets = [systems("a", [1, 2, 3], [1, 2, 3]), systems("b", [1, 2], [1, 2]), systems("c", [1, 2], [1, 2], "chrF")]
    first, second = fit_deltas(sets).curves
    assert [(one.name, one.signature, one.pairs) for one in (first, second)] == [
        ("comet", "comet|scores:given", 4),
        ("chrF", "chrF|scores:given", 1),
    ]
    assert [one.language_pair for one in first.sets] == ["a", "b"]
    other = systems("b", [1, 2], [1, 2], signature="nrefs:2|case:mixed")
    assert [one.pairs for one in fit_deltas([sets[0], other]).curves] == [3, 1]


def test_refuses_sets_without_two_systems_that_differ():
    with pytest.raises(InputError, match="different scores"):
        fit_deltas([systems("a", [1, 2], [3, 3]), systems("b", [1], [1]), systems("c", [1, 2], [0, 1e-320])])
    with pytest.raises(InputError, match="each once"):
        fit_deltas([systems("a", [1, 2], [3, 4])] * 2)


# The file, and comparisons that read it.


@pytest.fixture
def deltas():
    """Return curves of BERTScore as the fake scorer computes it, and of given scores."""
    curve = fit_deltas(simulated(4, [7] * 10)).curves[0]
    return Deltas((replace(curve, name="bertscore", signature=str(FakeScorer().signature)), curve))


def test_a_file_holds_all_of_it(deltas, tmp_path):
    file = tmp_path / "deltas.json"
    file.write_text(deltas.to_json(), encoding="utf-8")
    assert Deltas.read(file) == deltas
    assert deltas.table("tsv").splitlines()[0] == "metric\tpairs\tagreement\tlogistic\tlow\thigh\tisotonic"


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[1]",
        '{"curves": 1}',
        '{"curves": []}',
        '{"curves": [{"name": "a"}]}',
        b"\xff",
        "pairs:0",
        "largest:-1",
        "slope:1e999",
    ],
)
def test_other_files_are_refused(deltas, tmp_path, content):
    if isinstance(content, str) and ":" in content and content[0] != "{":
        key, _, value = content.partition(":")
        record = json.loads(deltas.to_json())
        record["curves"][0][key] = "@"
        content = json.dumps(record).replace('"@"', value)
    file = tmp_path / "deltas.json"
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError, match=r"deltas\.json does not hold"):
        Deltas.read(file)
    with pytest.raises(InputError, match="Cannot read"):
        Deltas.read(tmp_path / "none.json")


def other_signature(**fields):
    return str(replace(FakeScorer().signature, **fields))


@pytest.mark.parametrize(
    "fields",
    [
        {"layer": 2},
        {"precision": "int8"},
        {"matching": "code-bert-score"},
        {"idf": "references"},
        {"rescale": "en"},
        {"model": "another"},
    ],
    ids=str,
)
def test_other_settings_are_refused_with_both_signatures(deltas, fields):
    signature = other_signature(**fields)
    with pytest.raises(InputError) as refused:
        deltas.find({"bertscore": signature})
    assert signature in str(refused.value)
    assert str(FakeScorer().signature) in str(refused.value)
    assert f"(other: {next(iter(fields))})" in str(refused.value)
    with pytest.raises(InputError):  # that another metric has a curve does not hide it
        deltas.find({"bertscore": signature, "comet": "comet|scores:given"})


def test_another_version_or_export_or_a_negated_error_rate_has_the_same_curve(deltas):
    assert deltas.find({"bertscore": other_signature(version="99", bundle="other")}) == {"bertscore": deltas.curves[0]}
    ter = replace(deltas.curves[0], signature="nrefs:1|case:lc|tok:tercom|version:2.5|negative:yes")
    assert Deltas((ter,)).find({"ter": "nrefs:1|case:lc|tok:tercom|version:2.6"}) == {"ter": ter}
    with pytest.raises(InputError, match="nrefs:2"):
        Deltas((ter,)).find({"ter": "nrefs:2|case:lc|tok:tercom|version:2.6"})


def test_a_metric_without_a_curve_is_passed_over_beside_one_that_has_it(deltas):
    signatures = {"bertscore": other_signature(), "judge": "judge|scores:given"}
    assert deltas.find(signatures) == {"bertscore": deltas.curves[0]}
    with pytest.raises(InputError, match=r"comet\|scores:given.+ judge\|scores:given"):
        deltas.find({"judge": "judge|scores:given"})


SCORES = np.random.default_rng(5).normal(size=(3, 60)) + np.array([[0], [0.4], [30]])
SYSTEMS = dict(zip(("base", "near", "far"), SCORES, strict=True))


def compared(deltas, **options):
    return compare(scores={"comet": SYSTEMS}, deltas=deltas, num_resamples=200, **options)


def test_a_comparison_has_the_agreement_with_each_difference(deltas):
    curve = deltas.curves[1]
    result = compared(deltas)
    base, near, far = result.metrics[0].systems
    assert base.agreement is None
    assert near.agreement == curve.agreement(near.delta)
    assert near.agreement.low < near.agreement.share < near.agreement.high
    share, low, high = (round(100 * one) for one in (near.agreement.share, near.agreement.low, near.agreement.high))
    sentence = f"People agree with the sign of such a difference in {share} of 100 pairs of systems ({low} to {high})"
    assert f"{sentence}." in " ".join(result.table().split())
    record = json.loads(result.to_json())["systems"][1]["metrics"]["comet"]
    assert record["agreement"]["share"] == near.agreement.share
    assert f"{sentence}." in record["verdict"]
    assert f"{sentence}." in result.to_html()
    assert far.agreement.is_beyond
    assert "or more: it is larger than any that was measured" in " ".join(result.table().split())
    assert result.table("latex") == compared(None).table("latex")
    assert result.table("tsv") == compared(None).table("tsv")


def test_few_pairs_are_named_beside_the_agreement(deltas):
    few = Deltas((replace(deltas.curves[1], pairs=78),))
    assert "This was measured on 78 pairs of systems only." in " ".join(compared(few).table().split())
    assert few.warnings == ["Fewer than 200 pairs of systems say little about others: comet (78)."]
    assert deltas.warnings == []


def test_equal_systems_have_no_agreement(deltas):
    result = compare(scores={"comet": {"a": SCORES[0], "b": SCORES[0]}}, deltas=deltas, num_resamples=200)
    assert result.metrics[0].systems[1].agreement is None


def test_agreement_does_not_depend_on_the_order_of_systems_or_on_the_direction(deltas):
    straight, turned = compared(deltas), compared(deltas, baseline="near", lower_is_better=["comet"])
    near, base = straight.metrics[0].systems[1], turned.metrics[0].systems[1]
    assert base.name == "base"
    assert near.agreement.share == pytest.approx(base.agreement.share)


def test_other_settings_are_refused_before_texts_are_scored(deltas):
    class Unread(FakeScorer):
        def with_fixed_weights(self, references):
            return nullcontext(self)  # which cannot score a stream

    texts = {"a": ["x y"], "b": ["x z"]}
    with pytest.raises(InputError, match="model:other"):
        compare(texts, ["x y"], scorer=Unread("other"), metrics=["bleu", "bertscore"], deltas=deltas)


# Simulated, and real systems.


def coverage(sizes, trials, *, spread=0.0, slope=SLOPE):
    """Return how often the interval of the 80 % point holds it, and how often one that takes pairs for independent.

    With a spread the point is that of curves of many language pairs.
    """
    truth = slope
    if spread:
        many = (fit_deltas(simulated(seed, [10] * 100, spread=spread, slope=slope)).curves[0] for seed in range(40))
        truth = np.mean([curve.slope for curve in many])
    point = math.log(4) / truth
    held = []
    for seed in range(trials):
        language_pairs = simulated(seed, sizes, spread=spread, slope=slope)
        curve = fit_deltas(language_pairs).curves[0]
        found = curve.deltas(0.8)
        delta = np.concatenate(
            [
                np.abs(np.subtract.outer(scores, scores))[np.triu_indices(len(scores), 1)]
                for scores in (one.metrics["comet"].system for one in language_pairs)
            ]
        )
        shares = 1 / (1 + np.exp(-curve.slope * delta))
        half = 1.96 / (shares * (1 - shares) * delta**2).sum() ** 0.5
        held.append((found["low"] <= point <= (found["high"] or math.inf), abs(curve.slope - truth) <= half))
    return np.mean(held, axis=0)


def test_intervals_hold_where_pairs_share_systems():
    ours, independent = coverage([7] * 10, 60)
    assert ours >= 0.9
    assert independent < 0.9


SIMULATED = {
    "10 language pairs of 7 systems, 210 pairs": ([7] * 10, {}),
    "20 language pairs of 5 systems, 200 pairs": ([5] * 20, {}),
    "4 language pairs of 11 systems, 220 pairs": ([11] * 4, {}),
    "1 language pair of 21 systems, 210 pairs": ([21], {}),
    "8 language pairs of 4 to 11 systems, 216 pairs": ([*range(4, 12)], {}),
    "10 language pairs of 7 systems, 210 pairs, a weak metric": ([7] * 10, {"slope": 0.5}),
    "10 language pairs of 7 systems, 210 pairs, unlike slopes": ([7] * 10, {"spread": 0.4}),
    "22 language pairs of 10 systems, 990 pairs": ([10] * 22, {}),
    "5 language pairs of 20 systems, 950 pairs": ([20] * 5, {}),
    "15 language pairs of 4 to 18 systems, 965 pairs": ([*range(4, 19)], {}),
    "22 language pairs of 10 systems, 990 pairs, unlike slopes": ([10] * 22, {"spread": 0.4}),
}


@pytest.mark.calibration
@pytest.mark.parametrize("name", SIMULATED)
def test_coverage_of_the_difference_of_80_percent_agreement(name, record_property):
    sizes, options = SIMULATED[name]
    assert f"{sum(size * (size - 1) // 2 for size in sizes)} pairs" in name
    ours, independent = coverage(sizes, 1000, **options)
    record_property(f"{name} | coverage", f"{ours:.3f}")
    record_property(f"{name} | coverage, pairs as independent", f"{independent:.3f}")
    assert ours >= 0.92
