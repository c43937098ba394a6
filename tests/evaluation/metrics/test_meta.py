import itertools
import json
import re
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from bertscore_onnx.errors import InputError
from bertscore_onnx_evaluation.metrics.correlation import tie_calibrated_accuracy
from bertscore_onnx_evaluation.metrics.meta import meta_evaluate
from bertscore_onnx_evaluation.metrics.statistics import exchange_units, segment_sums
from tests.evaluation.judged import judged


def evaluate(*language_pairs, **options):
    return meta_evaluate(language_pairs, **{"permutations": 50, "sentinels": False, **options})


def metric_of(*language_pairs, name="m", **options):
    [metric] = [
        one
        for one in evaluate(*language_pairs, **options).language_pairs[0].metrics
        if one.name == name
    ]
    return metric


@pytest.fixture
def scores():
    """Judgements with two gaps, and scores by two metrics, of 6 systems × 40 segments."""
    rng = np.random.default_rng(3)
    human = rng.integers(-5, 1, (6, 40)).astype(float)
    metrics = {"m": human * 0.3 + rng.normal(size=(6, 40)), "other": rng.normal(size=(6, 40))}
    human[2, 7] = human[4, 30] = np.nan
    return human, metrics


@pytest.fixture
def full_scores(scores):
    human, metrics = scores
    return np.nan_to_num(human), metrics


def test_a_system_that_nobody_judged_is_left_out(full_scores):
    human, metrics = full_scores
    human[1] = np.nan
    [result] = evaluate(judged(human, metrics)).language_pairs
    assert result.systems == ("A", "C", "D", "E", "F")
    assert result.metrics[0].system.n == 5
    assert result.metrics[0].system["spa"].value is not None


def test_scores_of_systems_move_as_the_means_of_their_segments_do():
    """Against a plain bootstrap."""
    rng = np.random.default_rng(11)
    quality = np.array([[0.0], [0.3], [0.5], [0.9], [1.2], [1.5], [-1.0]])
    human = quality + rng.normal(size=(7, 60))
    metric = human + rng.normal(size=(7, 60)) + 0.5 * rng.normal(size=(7, 1))
    found = metric_of(judged(human, {"m": metric})).system["pearson"]
    values = []
    for _ in range(1000):
        drawn = rng.integers(60, size=60)
        means = human[:, drawn].mean(axis=1), metric[:, drawn].mean(axis=1)
        values.append(stats.pearsonr(*means).statistic)
    low, high = np.quantile(values, [0.025, 0.975])
    assert (found.low, found.high) == (pytest.approx(low, abs=0.01), pytest.approx(high, abs=0.01))


def test_every_two_metrics_are_tested_by_outputs_and_by_systems(full_scores):
    [result] = evaluate(judged(*full_scores)).language_pairs
    assert result.ranked_by == ("acc_eq", "spa")
    outputs, systems = result.tests["acc_eq"], result.tests["spa"]
    difference = outputs.differences["m", "other"]
    values = {metric.name: metric.segment["acc_eq"].value for metric in result.metrics}
    assert difference.delta == pytest.approx(values["m"] - values["other"])
    assert 1 / 51 <= difference.p == difference.p_holm < 0.05
    assert outputs.differences["other", "m"].delta == -difference.delta
    assert {
        metric.name: (metric.segment.ranks, metric.system.ranks) for metric in result.metrics
    } == {
        name: ({"acc_eq": outputs.ranks[name]}, {"spa": systems.ranks[name]})
        for name in ("m", "other")
    }


def difficulty_and_quality(seed=0, systems=8, segments=60):
    """Return human scores, the same difficulty of segments for every system, and scores that see
    quality with noise.
    """
    rng = np.random.default_rng(seed)
    difficulty, quality = rng.normal(0, 2, segments), rng.normal(0, 0.5, (systems, 1))
    human = difficulty + quality + rng.normal(size=(systems, segments))
    return (
        human,
        np.tile(difficulty, (systems, 1)),
        human - difficulty + rng.normal(size=human.shape),
    )


def test_a_metric_of_the_difficulty_of_segments_is_beside_no_metric_of_quality():
    human, difficulty, quality = difficulty_and_quality()
    noise = np.random.default_rng(1).normal(size=human.shape)
    metrics = {
        "means": difficulty,
        "noisy": difficulty + 0.001 * noise,
        "quality": quality,
        "noise": noise,
    }
    result = evaluate(judged(human, metrics), sentinels=True)
    [pair] = result.language_pairs
    best, *others = pair.metrics
    assert max(others, key=lambda one: one.segment["pearson"].value).segment["pearson"].value > 0.7
    assert (best.name, best.segment.ranks, best.system.ranks) == (
        "quality",
        {"acc_eq": 1},
        {"spa": 1},
    )
    assert all(one.segment.ranks["acc_eq"] > 1 for one in others)
    assert all(one.system.ranks.get("spa", 2) > 1 for one in others)
    assert {test.metric for test in pair.tests["acc_eq"].sentinels if test.p_holm < 0.05} == {
        "quality"
    }
    assert "sentinel-segment" in {one.name for one in pair.sentinels}
    assert result.table().startswith("quality agrees best on outputs of a segment (acc*_eq ")


def test_the_metrics_of_outputs_and_of_systems_are_both_named():
    rng = np.random.default_rng(3)
    quality = np.linspace(0, 2, 8)[:, None]
    human = quality + rng.normal(size=(8, 200))
    outputs = human + 0.3 * rng.normal(size=human.shape) - 0.99 * quality
    systems = quality + 3 * rng.normal(size=human.shape)
    table = (
        evaluate(judged(human, {"o": outputs, "s": systems}), permutations=200)
        .table()
        .replace("\n", " ")
    )
    assert re.match(
        r"o agrees best on outputs of a segment \(acc\*_eq \d\.\d+; significantly better than s\) "
        r"and s on systems \(SPA \d\.\d+; significantly better than o\)\. ",
        table,
    )


def test_few_systems_have_no_clause_of_their_own():
    human, _, quality = difficulty_and_quality(systems=4)
    table = evaluate(judged(human, {"m": quality, "n": -quality})).table().replace("\n", " ")
    assert table.startswith("m agrees best on outputs of a segment (acc*_eq ")
    assert " on systems" not in table.partition(" n ")[0]
    assert "4 systems: SPA has no rank and no test of fewer than 5" in table


@pytest.mark.parametrize("systems", [1, 8])
def test_the_wrong_way_round_is_said_and_mended(systems):
    human, _, quality = difficulty_and_quality(systems=systems)
    metrics = {
        "good one": quality,
        "worse": quality + 3 * np.random.default_rng(2).normal(size=human.shape),
    }
    plain, given = (
        judged(human, metrics),
        judged(human, {"good one": -quality, "worse": metrics["worse"]}),
    )
    words = (
        "good one orders outputs the wrong way round: if lower scores are better, give "
        "--lower-better 'good one'."
    )
    result = evaluate(given)
    assert words in result.table().replace("\n", " ")
    assert result.language_pairs[0].reversed == ("good one",)
    negative = replace(given.metrics["good one"], lower_is_better=True)
    mended = evaluate(replace(given, metrics={**given.metrics, "good one": negative})).to_dict()
    expected = evaluate(plain).to_dict()
    for record in (mended, expected):
        for metric in record["language_pairs"]["cs-en"]["metrics"].values():
            del metric["signature"]
    assert mended == expected
    assert evaluate(plain).language_pairs[0].reversed == ()


def test_random_numbers_and_the_difficulty_of_segments_are_no_metrics_the_wrong_way_round():
    found = []
    for seed in range(20):
        human, difficulty, _ = difficulty_and_quality(seed, segments=30)
        noise = np.random.default_rng([seed, 1]).normal(size=human.shape)
        found += (
            evaluate(judged(human, {"noise": noise, "easy": -difficulty}))
            .language_pairs[0]
            .reversed
        )
    assert len(found) <= 2


def test_the_order_of_systems_changes_no_bit(scores):
    human, metrics = scores
    texts = [[("word " * (row + column % 3), "a word") for column in range(40)] for row in range(6)]
    one = judged(human, metrics, texts=texts)
    rows = [3, 0, 5, 1, 4, 2]
    other = judged(
        human[rows],
        {name: metric[rows] for name, metric in metrics.items()},
        texts=[texts[row] for row in rows],
        systems=[one.systems[row] for row in rows],
    )
    assert evaluate(one, sentinels=True).to_json() == evaluate(other, sentinels=True).to_json()


def test_intervals_are_wider_where_documents_are_drawn(full_scores):
    human, metrics = full_scores
    human, metrics = (
        human.repeat(3, axis=1),
        {name: one.repeat(3, axis=1) for name, one in metrics.items()},
    )
    documents = tuple(f"d{segment // 3}" for segment in range(120))
    by_segment, by_document = (
        metric_of(judged(human, metrics, **fields)).segment["pearson"]
        for fields in ({}, {"documents": documents})
    )
    assert by_document.high - by_document.low > 1.3 * (by_segment.high - by_segment.low)
    assert by_document.low < by_document.value < by_document.high


def test_a_metric_gains_nothing_by_constant_scores():
    rng = np.random.default_rng(0)
    human = rng.normal(size=(8, 400))
    # useless on the other half
    half = np.where(np.arange(400) < 200, human, 0) + 3 * rng.normal(size=(8, 400))
    constant = np.where(np.arange(400) < 200, half, 1.0)
    metrics = {
        name: metric_of(judged(human, {"m": one}))
        for name, one in (("half", half), ("constant", constant))
    }
    by_item = {name: metric.segment["pearson_by_item"] for name, metric in metrics.items()}
    assert by_item["constant"].value <= by_item["half"].value + 0.03
    assert (
        by_item["constant"].zeros,
        by_item["constant"].groups,
        by_item["constant"].left_out,
    ) == (200, 400, 0)
    assert metrics["constant"].to_dict()["segment"]["zeros"] == {"pearson_by_item": 200}


def test_a_constant_metric_has_no_correlation_but_a_reason(full_scores):
    human, metrics = full_scores
    result = evaluate(judged(human, {**metrics, "flat": np.ones((6, 40))}))
    flat = result.language_pairs[0].metrics[-1]
    assert (flat.name, flat.system.ranks, flat.segment["pearson"].value) == ("flat", {}, None)
    assert flat.segment.to_dict()["reasons"]["pearson"] == "the metric's scores are constant"
    assert flat.system["spa"].reason == "the metric ties all systems in every segment"
    assert {
        one.segment.ranks["acc_eq"]
        for one in result.language_pairs[0].metrics
        if one.name != "flat"
    } == {1, 2}


def test_pairs_of_human_scores_that_differ_by_rounding_are_counted_and_no_ties(full_scores):
    human, metrics = full_scores
    human[0], human[1] = 0.3, 0.3
    human[0, :7] = 0.1 + 0.2
    result = evaluate(judged(human, metrics)).language_pairs[0]
    assert result.notes[0].startswith(
        "7 pairs of outputs with human scores that differ by rounding alone"
    )
    for metric in result.metrics:
        expected = tie_calibrated_accuracy(human, metrics[metric.name]).value
        assert metric.segment["acc_eq"].value == expected
    values = {metric.name: metric.segment["acc_eq"].value for metric in result.metrics}
    delta = result.tests["acc_eq"].differences["m", "other"].delta
    assert delta == pytest.approx(values["m"] - values["other"], abs=1e-12)


@pytest.mark.parametrize("value", [1.0, [0.1, 0.2, 0.7]])
def test_human_scores_that_tie_every_pair_give_no_value(full_scores, value):
    human, metrics = full_scores
    human[:] = np.resize(value, human.shape[1])
    result = evaluate(judged(human, metrics), sentinels=True)
    for metric in result.language_pairs[0].metrics:
        assert [metric.segment["acc_eq"].value, metric.system["spa"].value] == [None, None]
        assert (
            metric.segment["acc_eq"].reason
            == "the human scores tie every pair of outputs of a segment"
        )
    is_equal = value == 1.0
    assert result.table().startswith(
        "The human scores are all equal: nothing can be measured."
        if is_equal
        else "No metric is ranked: the human"
    )


def noisy(systems, segments, missing=0.0):
    """Return human scores, some of them missing, and two metrics."""
    rng = np.random.default_rng(6)
    human = np.arange(systems)[:, None] / 4 + rng.normal(size=(systems, segments))
    metrics = {name: human + rng.normal(size=human.shape) for name in ("one", "two")}
    return np.where(rng.random(human.shape) < missing, np.nan, human), metrics


@pytest.mark.parametrize(("number", "pairs"), [(1, 15), (19, 15), (20, 21), (60, 21)])
def test_a_system_that_was_seldom_judged_leaves_the_others_their_accuracy(number, pairs):
    human, metrics = noisy(7, 60)
    others = {name: scores[:6] for name, scores in metrics.items()}
    [expected] = evaluate(judged(human[:6], others)).language_pairs
    human[6, number:] = np.nan
    found = evaluate(judged(human, metrics))
    [result] = found.language_pairs
    spa = result.metrics[0].system["spa"]
    assert (spa.n, spa.left_out, spa.groups) == (pairs, 21 - pairs, 60 if pairs == 15 else number)
    note = (
        "SPA does not compare systems that are judged on fewer than 20 common segments: G with any "
        "other"
    )
    assert (note in result.notes) == (pairs == 15)
    heading = f"SPA of {pairs} pairs in {spa.groups} segments{' or more' * (number == 20)}\n"
    assert heading in found.table()
    if pairs == 15:
        values = [metric.system["spa"].value for metric in result.metrics]
        assert values == [metric.system["spa"].value for metric in expected.metrics]
        assert result.tests["spa"] == expected.tests["spa"]


def measures_of(result):
    """Return the measures that rank metrics of outputs of a segment and of systems, with where."""
    found = {("mean", name) for name, tests in result.mean_tests.items() if tests.ranks}
    for pair in result.language_pairs:
        ranking = [name for name, tests in pair.tests.items() if tests.ranks]
        found |= {(pair.language_pair, name) for name in ranking}
    return {key for key in found if key[1] != "pearson"}


@pytest.mark.parametrize("seed", range(30))
def test_more_data_never_removes_a_verdict(seed):
    rng = np.random.default_rng(seed)
    sets = []
    for _ in range(3):
        systems, segments = rng.integers(1, 8), rng.integers(15, 60)
        human, metrics = noisy(systems, segments)
        sets.append((np.where(rng.random(human.shape) < rng.random(), np.nan, human), metrics))
    shown = [np.isfinite(human) & (rng.random(human.shape) < 0.7) for human, _ in sets]
    before = set()
    for _ in range(8):
        pairs = []
        for name, (human, metrics), is_shown in zip("abc", sets, shown, strict=True):
            if is_shown.any():
                scores = np.where(is_shown, human, np.nan)
                pairs.append(judged(scores, metrics, language_pair=f"{name}-en"))
        after = set()
        if pairs:
            after = measures_of(evaluate(*pairs, permutations=20))
        assert before <= after
        before = after
        more = rng.choice(["outputs", "segment", "system", "pair"])
        place = rng.integers(3)
        human, is_shown = sets[place][0], shown[place]
        if more == "outputs":
            is_shown |= np.isfinite(human) & (rng.random(human.shape) < 0.2)
        elif more == "segment":
            is_shown[:, rng.integers(human.shape[1])] = True
        elif more == "system":
            is_shown[rng.integers(len(human))] = True
        else:
            is_shown[:] = True
        is_shown &= np.isfinite(human)


@pytest.mark.parametrize(
    ("systems", "segments", "single"), [(6, 15, False), (6, 40, True), (1, 40, False)]
)
def test_a_poor_language_pair_leaves_the_verdict_on_the_others(systems, segments, single):
    pairs = three_pairs()
    expected = evaluate(*pairs)
    human, metrics = noisy(systems, segments)
    if single:
        human = np.where(
            np.arange(segments) % systems == np.arange(systems)[:, None], human, np.nan
        )
    metrics = dict(zip("mn", metrics.values(), strict=True))
    found = evaluate(*pairs, judged(human, metrics, language_pair="xx-yy"))
    for name in ("acc_eq", "spa"):
        assert found.mean_tests[name] == expected.mean_tests[name]
        assert found.mean_pairs[name] == ("a-en", "b-en", "c-en")
    verdict = expected.table().replace("\n", " ").partition("  means")[0].removesuffix(".")
    words = found.table().replace("\n", " ")
    assert verdict.partition(",")[2] in words
    for form in ("latex", "tsv"):
        assert "SPA not of xx-yy: " in found.table(form)
    assert "acc*_eq and SPA not of xx-yy: " in words


def test_repeated_texts_are_named():
    human, metrics = noisy(3, 80)
    texts = []
    for system in range(3):
        texts.append(
            [(f"output {n % 20} of the system {system}", f"reference {n % 20}") for n in range(80)]
        )
    found = evaluate(judged(human, metrics, texts=texts))
    assert "60 of 80 rows repeat others" in found.table()


def test_pairs_of_outputs_in_fewer_than_20_segments_have_no_accuracy():
    human, metrics = noisy(2, 60)
    human[0, :30] = human[1, 42:] = np.nan
    result = evaluate(judged(human, metrics))
    [one, _] = result.language_pairs[0].metrics
    for name, reason in (
        ("acc_eq", "judged for two systems"),
        ("pearson_by_item", "with different human scores"),
    ):
        assert one.segment[name].value is None
        assert one.segment[name].reason.startswith(f"12 segments {reason}")
    assert one.segment["pearson"].low is not None
    assert {*result.language_pairs[0].tests} == {"pearson"}
    table = " ".join(result.table().split())
    assert re.match(r"\w+ agrees best on outputs \(r ", table)
    assert "No acc*_eq of segments (" in table
    assert "): 12 segments judged for two systems or more, and it takes 20" in table


def mixed(doubles, segments=100, seed=0):
    """Return human scores of two systems, of which one has few outputs; scores that see quality;
    and the difficulty.
    """
    human, difficulty, quality = difficulty_and_quality(seed, 2, segments)
    human[1, np.random.default_rng(seed).permutation(segments)[doubles:]] = np.nan
    return human, difficulty, quality


@pytest.mark.parametrize(
    ("doubles", "measures"),
    [
        (0, ["pearson"]),
        (19, ["pearson"]),
        (20, ["pearson", "acc_eq"]),
        (49, ["pearson", "acc_eq"]),
        (50, ["acc_eq"]),
    ],
)
def test_few_segments_with_two_outputs_leave_r_to_rank_outputs(doubles, measures):
    human, _, quality = mixed(doubles)
    noise = np.random.default_rng(1).normal(size=(2, *human.shape))
    metrics = {"m": quality + noise[0], "n": noise[1]}
    [result] = evaluate(judged(human, metrics)).language_pairs
    assert [name for name in result.ranked_by if name != "spa"] == measures
    assert all([*metric.segment.ranks] == measures for metric in result.metrics)
    assert all(result.tests[name].differences for name in measures)


@pytest.mark.parametrize("doubles", [20, 49])
def test_a_metric_of_segments_has_no_r_beside_acc_eq(doubles):
    human, difficulty, quality = mixed(doubles)
    noise = np.random.default_rng(1).normal(size=human.shape)
    result = evaluate(
        judged(human, {"same": difficulty, "m": quality, "n": quality + noise}), sentinels=True
    )
    [pair] = result.language_pairs
    assert {*pair.tests["pearson"].ranks} == {"m", "n"}
    assert {*pair.tests["acc_eq"].ranks} == {"m", "n", "same"}
    for metric in (*pair.metrics, *pair.sentinels):
        has_r = metric.name not in {"same", "sentinel-segment"}
        assert (metric.segment["pearson"].value is not None) == has_r
    table = result.table().replace("\n", " ")
    assert re.match(r"\w agrees best on outputs \(r ", table)
    assert "No r of segments (same): all outputs of a segment score alike" in table


def test_a_leader_by_r_that_is_worse_on_outputs_of_a_segment_is_contradicted():
    human, difficulty, quality = mixed(90, segments=200)
    noise = np.random.default_rng(1).normal(size=human.shape)
    metrics = {"easy": difficulty + 0.1 * noise, "quality": quality}
    result = evaluate(judged(human, metrics), permutations=200)
    table = result.table().replace("\n", " ")
    assert re.match(
        r"easy agrees best on outputs \(r [^)]*\) but quality on outputs of a segment "
        r"\(acc\*_eq \d\.\d+; significantly better than easy\)\. ",
        table,
    )
    assert "p of r above the diagonal, acc*_eq below, by exchanging " in table
    alone = evaluate(
        judged(human, {"easy": metrics["easy"], "easier": metrics["easy"] + 0.01 * noise})
    )
    assert ") but " not in alone.table().replace("\n", " ")


def test_a_mean_is_of_the_pairs_that_have_the_measure():
    rng = np.random.default_rng(2)
    pairs = []
    for name, doubles in (("a-b", 10), ("b-a", 40)):
        human, difficulty, quality = mixed(doubles)
        metrics = {"quality": quality, "easy": difficulty + 0.1 * rng.normal(size=human.shape)}
        pairs.append(judged(human, metrics, language_pair=name))
    result = evaluate(*pairs)
    assert [*result.mean_tests] == ["pearson", "acc_eq"]
    assert result.mean_pairs["acc_eq"] == ("b-a",)
    assert [mean.name for mean in result.means] == ["easy", "quality"]
    assert result.table().startswith("Over 2 language pairs, easy agrees best on outputs (r ")
    human, _, quality = mixed(60)
    shared = judged(human, {"easy": quality, "quality": quality**3}, language_pair="c-a")
    table = " ".join(evaluate(*pairs, shared).table().split())
    assert "r not of c-a: 2 systems, 60 segments with two outputs or more. " in table
    other = judged(human, {"easy": quality, "new": quality**3}, language_pair="c-a")
    assert "No mean of quality and new: " in " ".join(evaluate(*pairs, other).table().split())


def test_fewer_than_20_segments_give_no_verdict():
    human, metrics = noisy(8, 19)
    result = evaluate(judged(human, metrics), sentinels=True)
    [pair] = result.language_pairs
    for metric in pair.metrics:
        r = stats.pearsonr(human.ravel(), metrics[metric.name].ravel()).statistic
        assert metric.segment["pearson"].value == pytest.approx(r)
        assert [metric.system.ranks, metric.segment.ranks] == [{}] * 2
        assert metric.system["pearson"].value is not None
        assert [metric.system["spa"].value, metric.segment["acc_eq"].value] == [None, None]
        assert (
            metric.to_dict()["system"]["intervals"]
            == metric.to_dict()["segment"]["intervals"]
            == {}
        )
    assert pair.tests == {}
    assert pair.notes[0].startswith("19 segments: fewer than 20 give no intervals, ranks and tests")
    assert "19 segments: fewer than 20 give no intervals, ranks and tests" in result.table()
    with pytest.raises(InputError, match="nothing to draw"):
        result.figure()


@pytest.mark.parametrize(
    ("gold", "r"),
    [
        (lambda human: human, "+1"),
        (lambda human: 100 * human + 3, "+1"),
        (lambda human: -human, "-1"),
    ],
)
def test_human_scores_among_the_metrics_are_named(full_scores, gold, r):
    human, metrics = full_scores
    result = evaluate(judged(human, {**metrics, "mean_score": gold(human)}))
    note = (
        f"mean_score is the human scores themselves, or linear in them, and has no rank: r = {r} "
        "is by construction"
    )
    assert note in result.language_pairs[0].notes
    assert result.table().startswith("m agrees best on outputs of a segment")
    [found] = [one for one in result.language_pairs[0].metrics if one.name == "mean_score"]
    assert (found.segment.ranks, found.system.ranks) == ({}, {})
    assert {*result.language_pairs[0].tests["spa"].ranks} == {"m", "other"}
    assert not any("other" in line for line in result.language_pairs[0].notes)
    assert note in json.loads(result.to_json())["language_pairs"]["cs-en"]["notes"]
    assert note in result.table().replace("\n  ", " ")


def test_scores_of_any_size_give_the_same_test(full_scores):
    human, metrics = full_scores
    small = evaluate(judged(human, metrics)).language_pairs[0].tests
    metrics = {name: metric * 1e200 for name, metric in metrics.items()}
    large = evaluate(judged(human * 1e200, metrics)).language_pairs[0].tests
    for name in ("acc_eq", "spa"):
        assert large[name].differences["m", "other"].p == small[name].differences["m", "other"].p


def test_judged_segments_are_counted_and_differences_noted():
    human = [[1, 2, np.nan, 4], [1, np.nan, np.nan, 5], [3, 1, np.nan, 7]]
    [result] = evaluate(judged(human, {"m": np.arange(12.0).reshape(3, 4)})).language_pairs
    assert result.notes[0].startswith("systems are judged on different segments, 2 to 3 each: ")
    assert result.segments == 3


def three_pairs():
    names = ("a-en", "b-en", "c-en")
    found = [difficulty_and_quality(seed, systems=6, segments=30) for seed in (5, 6, 7)]
    rng = np.random.default_rng(9)
    return [
        judged(
            human,
            {"m": quality, "n": quality + 0.5 * rng.normal(size=human.shape)},
            language_pair=name,
        )
        for name, (human, _, quality) in zip(names, found, strict=True)
    ]


def test_means_over_language_pairs_have_p_and_the_first_line():
    result = evaluate(*three_pairs(), permutations=500)
    best, other = result.means
    for name, level in (("acc_eq", "segment"), ("spa", "system")):
        values = [
            {one.name: getattr(one, level)[name].value for one in pair.metrics}
            for pair in result.language_pairs
        ]
        assert best[name].value == pytest.approx(np.mean([each[best.name] for each in values]))
        assert best[name].low < best[name].value < best[name].high
        assert result.mean_tests[name].differences[best.name, other.name].p == pytest.approx(
            result.mean_tests[name].differences[other.name, best.name].p
        )
    values = [
        {one.name: one.segment["acc_eq"].value for one in pair.metrics}
        for pair in result.language_pairs
    ]
    delta = result.mean_tests["acc_eq"].differences["m", "n"].delta
    assert delta == pytest.approx(np.mean([each["m"] - each["n"] for each in values]))
    assert result.table().startswith(
        f"Over 3 language pairs, {best.name} agrees best on outputs of a segment (acc*_eq "
    )
    heading = "\np of acc*_eq above the diagonal, SPA below, by exchanging 90 segments"
    assert heading in result.table()


def test_p_of_a_mean_is_that_of_the_segments_of_all_pairs():
    pairs = three_pairs()
    tests = evaluate(*pairs, permutations=300, seed=1).mean_tests
    for name in ("acc_eq", "spa"):
        sums = [
            [
                segment_sums(one.human_segment, one.metrics[metric].segment, one.unit_numbers)[name]
                for metric in "mn"
            ]
            for one in pairs
        ]
        p = exchange_units(sums, permutations=300, seed=1)[0, 1]
        assert tests[name].differences["m", "n"].p == pytest.approx(p)


def test_names_of_numpy_are_written_as_texts(full_scores):
    human, metrics = full_scores
    names = [*map(np.str_, "ABCDEF")]
    metrics = {np.str_(name): scores for name, scores in metrics.items()}
    result = evaluate(judged(human, metrics, systems=names))
    record = json.loads(result.to_json())["language_pairs"]["cs-en"]
    assert (record["systems"], [*record["metrics"]]) == (names, ["m", "other"])


def test_json_has_the_form_that_is_documented(full_scores):
    record = json.loads(evaluate(judged(*full_scores)).to_json())
    pair = record["language_pairs"]["cs-en"]
    assert {"n", "spa", "pearson", "ranks"} <= pair["metrics"]["m"]["system"].keys()
    assert {"n", "acc_eq", "pearson", "ranks"} <= pair["metrics"]["m"]["segment"].keys()
    assert pair["ranked_by"] == ["acc_eq", "spa"]
    assert pair["segments"] == 40
    [test] = pair["tests"]["spa"]["pairs"]
    assert {*test} == {"first", "second", "delta", "p", "p_holm"}
    assert record["signature"].startswith(
        "bertscore-onnx|test:segments|permutations:50|seed:4|version:"
    )


@pytest.mark.parametrize(
    ("language_pairs", "message"),
    [
        ([], r"Give at least one"),
        ([judged([[1], [2]], {"m": [[1], [2]]})] * 2, r"and each once"),
        ([judged([[1], [2]], {})], r"no scores of a metric"),
        (
            [judged([[np.nan], [np.nan]], {"m": [[1], [2]]})],
            r"none of the 2 systems has a human score",
        ),
        (
            [judged([[1], [2]], {"m": [[1], [2], [3]]})],
            r"the scores by m have the shape \(3,\); expected \(2,\)",
        ),
    ],
)
def test_arguments_are_checked(language_pairs, message):
    with pytest.raises(InputError, match=message):
        evaluate(*language_pairs)


@pytest.fixture
def result():
    return evaluate(judged(*noisy(6, 30)), sentinels=True)


def cells(table, name, header):
    lines = table.splitlines()
    start = next(at for at, line in enumerate(lines) if header in line)
    return next(line.split() for line in lines[start:] if line.startswith(name))


@pytest.fixture(scope="module")
def three_metrics():
    human, _ = noisy(6, 80)
    rng = np.random.default_rng(5)
    scores = {
        name: human + rng.normal(0, noise, human.shape)
        for name, noise in (("x", 1), ("y_1", 1), ("z", 6))
    }
    texts = [[("word " * int(rng.integers(1, 9)), "a word") for _ in row] for row in human]
    return meta_evaluate([judged(human, scores, texts=texts)], permutations=300, sentinels=True)


def test_text_begins_with_the_verdict_and_fits_a_screen(three_metrics, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    table = three_metrics.table()
    [pair] = three_metrics.language_pairs
    best, second, last = (metric.name for metric in pair.metrics)
    value = pair.metrics[0].segment["acc_eq"].value
    start = (
        f"{best} agrees best on outputs of a segment (acc*_eq {value:.3f}; significantly better "
        f"than {last}; not significantly better than {second}) and "
    )
    assert table.replace("\n", " ").startswith(start)
    assert len(table.splitlines()) <= 35
    assert max(map(len, table.splitlines())) <= 80
    row = cells(table, last, "95 % interval")
    measures = pair.metrics[2].segment["acc_eq"], pair.metrics[2].system["spa"]
    expected = [
        [f"{one.value:.3f}", f"{one.low:.2f}", "to", f"{one.high:.2f}", "2"] for one in measures
    ]
    assert row == [last, *itertools.chain(*expected)]
    best = [max(pair.sentinels, key=value) for value in (by_outputs, by_systems)]
    names = [line.split()[0] for line in table.splitlines() if line.startswith("sentinel-")]
    assert names == [*dict.fromkeys(one.name for one in best)]


def test_the_matrix_has_outputs_above_and_systems_below_the_diagonal(three_metrics):
    [pair] = three_metrics.language_pairs
    names = [metric.name for metric in pair.metrics]
    lines = (
        three_metrics.table()
        .partition("p of acc*_eq above the diagonal, SPA below")[2]
        .splitlines()
    )
    rows = [
        [cell for cell in line.split() if cell not in names][1:]
        for line in lines
        if re.match("[123] ", line)
    ]
    of_outputs, of_systems = (pair.tests[name].differences for name in ("acc_eq", "spa"))
    for row, name in enumerate(names):
        of_row = [
            (of_systems if column < row else of_outputs)[name, other].p_holm
            for column, other in enumerate(names)
            if column != row
        ]
        for cell, p in zip(rows[row], of_row, strict=True):
            assert float(cell.strip("<=")) == pytest.approx(p, abs=0.0051)


@pytest.mark.parametrize("p", [0.0495, 0.04995, 0.0504])
def test_no_p_of_metrics_contradicts_the_sentence(three_metrics, p):
    [pair] = three_metrics.language_pairs
    [of_outputs, *_] = pair.tests.values()
    differences = {names: replace(each, p_holm=p) for names, each in of_outputs.differences.items()}
    tests = {"acc_eq": replace(of_outputs, differences=differences, smallest_p=0.0)}
    only = replace(pair, tests=tests, ranked_by=("acc_eq",))
    text = replace(three_metrics, language_pairs=(only,)).table()
    assert text.split().count(str(p)[1:]) == 3
    assert text.partition(")")[0].count("not significantly better than") == (p > 0.05)


def by_outputs(sentinel):
    return sentinel.segment["acc_eq"].value


def by_systems(sentinel):
    return sentinel.system["spa"].value or 0


def test_latex_has_the_best_values_in_bold(three_metrics):
    latex = three_metrics.table("latex")
    rows = [line.split(" & ") for line in latex.splitlines() if "&" in line]
    assert [row[0].strip() for row in rows[1:4]] == [
        metric.name.replace("_", r"\_") for metric in three_metrics.language_pairs[0].metrics
    ]
    value = three_metrics.language_pairs[0].metrics[0].segment["acc_eq"].value
    assert rows[1][1] == rf"$\mathbf{{{value:.3f}}}$"
    assert [sum("mathbf" in row[column] for row in rows) for column in (1, 4)] == [1, 1]
    first = three_metrics.language_pairs[0].metrics[0].segment["acc_eq"]
    assert rows[1][2] == f"{first.low:.2f} to {first.high:.2f}"
    rests_on = (
        r"acc$^{*}_{\mathrm{eq}}$ of 1,200 pairs in 80 segments; SPA of 15 pairs in 80 segments"
    )
    assert rf"cs-en: 6 systems, 80 segments; {rests_on}; the best values are bold." in latex
    assert "by exchanging 80 segments, two-sided" in latex
    legends = (
        r"acc$^{*}_{\mathrm{eq}}$: share of pairs",
        "SPA: soft pairwise accuracy",
        "reads no meaning",
    )
    for words in (r"\toprule", r"\bottomrule", "permutations:300", "Holm's correction", *legends):
        assert words in latex


@pytest.fixture(scope="module")
def equal_systems():
    """Return judgements of equal systems, of whose means a metric says nothing."""
    rng = np.random.default_rng(3)
    human = rng.normal(size=(6, 60))
    human -= human.mean(axis=1, keepdims=True)
    noise = rng.normal(0, 0.5, human.shape)
    quality = human + noise - noise.mean(axis=1, keepdims=True) + rng.normal(0, 0.3, (6, 1))
    same = np.tile(rng.normal(size=60), (6, 1))
    return [
        judged(human, {"good": quality, "same": same}, language_pair=name)
        for name in ("cs-en", "de-en")
    ]


@pytest.mark.parametrize("number", [1, 2])
def test_a_metric_no_better_than_random_numbers_is_not_crowned_by_either_measure(
    equal_systems, number
):
    first = meta_evaluate(equal_systems[:number]).table().replace("\n", " ").partition(" cs-en")[0]
    assert re.search(
        r"good agrees best on outputs of a segment \(acc\*_eq 0\.\d+; significantly better than "
        r"same\) and on systems "
        r"\(SPA 0\.\d+; not significantly better than sentinel-random, which reads no meaning\)\.",
        first,
    )


def test_every_format_has_the_verdicts_and_the_notes(equal_systems):
    result = meta_evaluate([*equal_systems[:1], replace(equal_systems[1], dropped=("7",))])
    first, *_ = result.table().replace("\n", " ").partition("  means")
    [caption] = result.figure().texts
    for text in (
        result.table("tsv"),
        result.table("latex").replace(r"acc$^{*}_{\mathrm{eq}}$", "acc*_eq"),
        result.table("markdown").replace("\\", ""),
        caption.get_text(),
    ):
        words = " ".join(text.split())
        assert first in words
        assert "1 segment left out, where a judged output has no score by some metric" in words
        assert result.signature in words.replace("$|$", "|")


def test_a_sentence_about_all_metrics_names_those_with_a_value():
    human, difficulty, quality = difficulty_and_quality()
    table = meta_evaluate([judged(human, {"good": quality, "same": difficulty})]).table()
    assert "\nSPA: significantly better than every sentinel: good\n" in table


def test_latex_has_the_means_over_language_pairs():
    result = evaluate(*three_pairs(), permutations=100)
    means, *pairs = result.table("latex").split("\n\n")
    assert len(pairs) == 3
    assert (
        "Agreement of metrics with human scores, means over 3 language pairs; the best values are "
        "bold." in means
    )
    rows = [line.strip(" \\").split(" & ") for line in means.splitlines() if "&" in line]
    for row, mean in zip(rows[1:], result.means, strict=True):
        assert [row[0], row[1].strip("$")[-6:].strip("\\mathbf{}")] == [
            mean.name,
            f"{mean['acc_eq'].value:.3f}",
        ]
        assert row[2] == f"{mean['acc_eq'].low:.2f} to {mean['acc_eq'].high:.2f}"
    assert "".join(row[1] for row in rows).count("mathbf") == 1
    assert "by exchanging 90 segments, two-sided" in means
    assert result.table("latex").count(r"\label{tab:metrics") == 4


def test_numbers_of_units_and_what_measures_rest_on_stand_beside_them():
    human, _, quality = mixed(45, segments=96)
    documents = tuple(f"d{segment // 3}" for segment in range(96))
    noise = np.random.default_rng(1).normal(size=(2, *human.shape))
    metrics = {"m": quality + noise[0], "n": quality + noise[1]}
    pair = judged(human, metrics, documents=documents)
    shared, _, quality = difficulty_and_quality(segments=30)
    metrics = {"m": quality, "n": quality + np.random.default_rng(3).normal(size=quality.shape)}
    other = judged(shared, metrics, language_pair="de-en")
    result = evaluate(pair, other)
    text = " ".join(result.table().split())
    for words in (
        "cs-en: 2 systems, 96 segments r of 141 outputs; acc*_eq of 45 pairs in 45 segments; SPA of 1 pair in "
        "45 segments metric",
        "de-en: 8 systems, 30 segments acc*_eq of 840 pairs in 30 segments; SPA of 28 pairs in "
        "30 segments metric",
        "p of r above the diagonal, acc*_eq below, by exchanging 32 documents, two-sided",
        "p of acc*_eq above the diagonal, by exchanging 32 documents and 30 segments, r below, by "
        "exchanging 32 documents, two-sided",
    ):
        assert words in text
    record = json.loads(result.to_json())
    units = {"documents": 32, "segments": 30}
    assert record["mean"]["units"] == {
        "acc_eq": units,
        "spa": {"segments": 30},
        "pearson": {"documents": 32},
    }
    found = {
        name: (each["units"], each["num_units"]) for name, each in record["language_pairs"].items()
    }
    assert found == {"cs-en": ("documents", 32), "de-en": ("segments", 30)}
    metric = record["language_pairs"]["de-en"]["metrics"]["m"]
    assert (
        metric["segment"]["n"],
        metric["segment"]["pairs"],
        metric["segment"]["groups"]["acc_eq"],
    ) == (
        240,
        {"acc_eq": 840},
        30,
    )
    assert (metric["system"]["n"], metric["system"]["pairs"], metric["system"]["groups"]) == (
        8,
        {"spa": 28},
        {"spa": 30},
    )
    values = result.table("tsv")
    assert "segment_acc_eq_n" in values.splitlines()[0]


def test_latex_without_ranks_explains_none():
    human, _, quality = difficulty_and_quality(segments=12)
    caption = (
        meta_evaluate([judged(human, {"m": quality})]).table("latex").partition(r"\caption{")[2]
    )
    assert caption.startswith(
        "Agreement of metrics with human scores, cs-en: 8 systems, 12 segments; the best values "
        "are bold. No metric is ranked: "
    )


def test_a_missing_value_has_its_reason_once():
    table = evaluate(judged(*noisy(1, 30))).table()
    reason = "No SPA of systems (two, one): a pair needs two systems"
    assert table.replace("\n  ", " ").count(reason) == 1


def test_tsv_has_a_row_for_each_language_pair_and_metric(result):
    header, *rows = [line.split("\t") for line in result.table("tsv").splitlines()]
    names = [metric.name for metric in result.language_pairs[0].metrics]
    assert [row[:3] for row in rows[:2]] == [["cs-en", name, "metrics"] for name in names]
    assert {row[2] for row in rows[2:]} == {"sentinels"}
    values = dict(zip(header, rows[0], strict=True))
    [best, _] = result.language_pairs[0].metrics
    assert float(values["segment_acc_eq"]) == best.segment["acc_eq"].value
    assert float(values["system_spa"]) == best.system["spa"].value
    assert (values["segment_acc_eq_rank"], values["system_spa_rank"]) == (
        str(best.segment.ranks["acc_eq"]),
        str(best.system.ranks["spa"]),
    )
    assert float(values["segment_pearson"]) == best.segment["pearson"].value


def test_an_unknown_format_is_refused(result):
    with pytest.raises(InputError, match=r"no format 'html'. Choose one of text, tsv, latex"):
        result.table("html")


def test_documents_too_few_for_a_significant_difference_are_named():
    human, difficulty, quality = difficulty_and_quality()
    documents = tuple(f"d{segment // 12}" for segment in range(60))
    metrics = {"a": quality, "b": difficulty, "c": -quality}
    [result] = evaluate(judged(human, metrics, documents=documents)).language_pairs
    assert (
        result.notes[-1]
        == "5 documents: no p is below 2/32 = 0.0625, after Holm 0.188: none is significant"
    )
    two = tuple(f"d{segment // 30}" for segment in range(60))
    [result] = evaluate(judged(human, metrics, documents=two)).language_pairs
    assert (
        result.notes[-1]
        == "2 documents: no p is below 2/4 = 0.5, after Holm 1: none is significant"
    )


def test_documents_weigh_by_their_effective_number():
    human, _, quality = difficulty_and_quality(segments=156)
    sizes = [40, 30, 20, *[3] * 22]
    documents = tuple(np.repeat([f"d{at}" for at in range(25)], sizes).tolist())
    [result] = evaluate(judged(human, {"m": quality}, documents=documents)).language_pairs
    effective = sum(sizes) ** 2 / sum(size**2 for size in sizes)
    words = (
        f"25 documents, which tell as much as {effective:.1f} of one size, are few: below 20, "
        "intervals and tests"
    )
    assert [note for note in result.notes if note.startswith(words)]
