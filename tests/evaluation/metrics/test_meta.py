"""Judging metrics by human scores of systems, from arrays to one result, and the result as tables."""

import itertools
import json
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from bertscore_onnx.errors import InputError
from bertscore_onnx_evaluation.metric_scores import MetricScores
from bertscore_onnx_evaluation.metrics.eval_set import read_eval_set
from bertscore_onnx_evaluation.metrics.meta import meta_evaluate
from tests.evaluation.judged import judged, judged_wholes
from tests.support.eval_sets import write_eval_set


def evaluate(*language_pairs, **options):
    return meta_evaluate(language_pairs, **{"permutations": 50, "sentinels": False, **options})


def metric_of(*language_pairs, name="m", **options):
    [metric] = [one for one in evaluate(*language_pairs, **options).language_pairs[0].metrics if one.name == name]
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


def test_correlations_are_those_of_scipy(full_scores):
    human, metrics = full_scores
    metric = metrics["m"]
    found = metric_of(judged(human, metrics))
    assert found.system["pearson"].value == pytest.approx(stats.pearsonr(human.mean(1), metric.mean(1)).statistic)
    assert found.system.n == 6
    assert found.segment["pearson"].value == pytest.approx(stats.pearsonr(human.ravel(), metric.ravel()).statistic)
    for name, one, other in (("pearson_by_item", human.T, metric.T), ("pearson_by_system", human, metric)):
        each = [stats.pearsonr(*pair).statistic for pair in zip(one, other, strict=True)]
        assert found.segment[name].value == pytest.approx(np.mean(each))
    for variant, name in (("b", "kendall"), ("c", "kendall_c")):
        expected = stats.kendalltau(human.ravel(), metric.ravel(), variant=variant).statistic
        assert found.segment[name].value == pytest.approx(expected)


def test_a_system_that_nobody_judged_is_left_out(full_scores):
    human, metrics = full_scores
    human[1] = np.nan
    [result] = evaluate(judged(human, metrics)).language_pairs
    assert result.systems == ("A", "C", "D", "E", "F")
    assert result.metrics[0].system.n == 5
    assert result.metrics[0].system["spa"].value is not None


def test_outliers_are_left_out_of_a_second_correlation():
    human = [0.1, 0.2, 0.15, 0.12, -3]
    metric = [5, 4.2, 4, 4.9, -10]
    system = metric_of(judged_wholes(human, {"m": metric})).system
    assert system.outliers == ("E",)
    assert system["pearson"].value == pytest.approx(stats.pearsonr(human, metric).statistic)
    assert system["pearson_without_outliers"].value == pytest.approx(stats.pearsonr(human[:4], metric[:4]).statistic)


def test_intervals_of_systems_are_of_all_that_were_judged():
    """Against a plain bootstrap: two further systems were judged as wholes only, and their scores stay."""
    rng = np.random.default_rng(11)
    quality = np.array([0.0, 0.3, 0.5, 0.9, 1.2, 2.5, -1.0])
    human = quality[:, None] + rng.normal(size=(7, 60))
    metric = human + rng.normal(size=(7, 60))
    one = judged(human, {"m": metric})
    wholes = one.human_system
    human[5:] = np.nan
    found = metric_of(replace(one, human_segment=human, human_system=wholes)).system["pearson_without_outliers"]
    rows, values = [*range(7)], []
    for _ in range(1000):
        drawn = rng.integers(60, size=60)
        sides = [
            np.append(side[:5, drawn].mean(axis=1), whole[5:])
            for side, whole in ((human, wholes), (metric, metric.mean(axis=1)))
        ]
        values.append(stats.pearsonr(*(side[rows] for side in sides)).statistic)
    low, high = np.quantile(values, [0.025, 0.975])
    assert (found.low, found.high) == (pytest.approx(low, abs=0.03), pytest.approx(high, abs=0.03))


def test_every_two_metrics_are_tested_the_better_one_first(full_scores):
    [result] = evaluate(judged(*full_scores)).language_pairs
    [pair] = result.pairs
    assert (pair.first, pair.second) == ("m", "other")
    r = {metric.name: metric.segment["pearson"].value for metric in result.metrics}
    assert pair.segment.delta == pytest.approx(r["m"] - r["other"])
    assert 1 / 51 <= pair.segment.p == pair.segment.p_holm < 0.05
    assert {*pair.tests} == {"pearson_by_item", "acc_eq", "spa"}


def test_an_unknown_test_is_refused(full_scores):
    with pytest.raises(InputError, match="no test 'cells'"):
        evaluate(judged(*full_scores), test="cells")


def test_intervals_are_wider_where_documents_are_drawn(full_scores):
    human, metrics = full_scores
    human, metrics = (human.repeat(3, axis=1), {name: one.repeat(3, axis=1) for name, one in metrics.items()})
    documents = tuple(f"d{segment // 3}" for segment in range(120))
    by_segment, by_document = (
        metric_of(judged(human, metrics, **fields)).segment["pearson"] for fields in ({}, {"documents": documents})
    )
    assert by_document.high - by_document.low > 1.3 * (by_segment.high - by_segment.low)
    assert by_document.low < by_document.value < by_document.high


def test_a_metric_gains_nothing_by_constant_scores():
    rng = np.random.default_rng(0)
    human = rng.normal(size=(8, 400))
    half = np.where(np.arange(400) < 200, human, 0) + 3 * rng.normal(size=(8, 400))  # useless on the other half
    constant = np.where(np.arange(400) < 200, half, 1.0)
    metrics = {name: metric_of(judged(human, {"m": one})) for name, one in (("half", half), ("constant", constant))}
    by_item = {name: metric.segment["pearson_by_item"] for name, metric in metrics.items()}
    assert by_item["constant"].value <= by_item["half"].value + 0.03
    assert (by_item["constant"].zeros, by_item["constant"].groups, by_item["constant"].left_out) == (200, 400, 0)
    assert metrics["constant"].to_dict()["segment"]["zeros"] == {"pearson_by_item": 200}


def test_a_constant_metric_has_no_correlation_but_a_reason(full_scores):
    human, metrics = full_scores
    result = evaluate(judged(human, {**metrics, "flat": np.ones((6, 40))}))
    flat = result.language_pairs[0].metrics[-1]
    assert (flat.name, flat.rank, flat.segment["pearson"].value) == ("flat", None, None)
    assert flat.segment.to_dict()["reasons"]["pearson"] == "the metric's scores are constant"
    assert {metric.rank for metric in result.language_pairs[0].metrics[:2]} == {1, 2}


def noisy(systems, segments, missing=0.0):
    """Return human scores, some of them missing, and two metrics."""
    rng = np.random.default_rng(6)
    human = np.arange(systems)[:, None] / 4 + rng.normal(size=(systems, segments))
    metrics = {name: human + rng.normal(size=human.shape) for name in ("one", "two")}
    return np.where(rng.random(human.shape) < missing, np.nan, human), metrics


def test_nothing_is_computed_from_fewer_than_20_segments_that_all_systems_share():
    human, metrics = noisy(8, 60, missing=0.2)
    shared = int((~np.isnan(human)).all(axis=0).sum())
    result = evaluate(judged(human, metrics), sentinels=True)
    [one, *_] = result.language_pairs[0].metrics
    assert 0 < shared < 20
    spa = one.to_dict()["system"]
    assert (spa["spa"], spa["intervals"].get("spa")) == (None, None)
    assert spa["reasons"]["spa"].startswith(f"{shared} segment")
    assert f"{shared} segment" in result.table()
    assert {*result.language_pairs[0].pairs[0].tests} == {"pearson_by_item", "acc_eq"}
    assert "spa" not in {test.statistic for test in result.language_pairs[0].sentinel_tests}
    assert one.segment["acc_eq"].low is not None


def test_pairs_of_outputs_in_fewer_than_20_segments_have_no_accuracy():
    human, metrics = noisy(2, 60)
    human[0, :30] = human[1, 42:] = np.nan
    result = evaluate(judged(human, metrics))
    [one, _] = result.language_pairs[0].metrics
    for name, reason in (("acc_eq", "judged for two systems"), ("pearson_by_item", "with different human scores")):
        assert one.segment[name].value is None
        assert one.segment[name].reason.startswith(f"12 segments {reason}")
    assert one.segment["pearson"].low is not None
    assert result.language_pairs[0].pairs[0].tests == {}


@pytest.mark.parametrize("test", ["segments", "boot-both"])
def test_fewer_than_20_segments_give_no_verdict(test):
    human, metrics = noisy(8, 19)
    result = evaluate(judged(human, metrics), test=test, sentinels=True)
    [pair] = result.language_pairs
    for metric in pair.metrics:
        r = stats.pearsonr(human.ravel(), metrics[metric.name].ravel()).statistic
        assert metric.segment["pearson"].value == pytest.approx(r)
        assert [metric.rank, metric.system.rank, metric.segment.rank] == [None] * 3
        assert metric.system["pearson"].value is not None
        assert [metric.system["spa"].value, metric.segment["acc_eq"].value] == [None, None]
        assert metric.to_dict()["system"]["intervals"] == metric.to_dict()["segment"]["intervals"] == {}
    assert (pair.pairs[0].segment, pair.pairs[0].tests) == (None, {})
    assert (pair.pairs[0].system, pair.sentinel_tests) == (None, ())
    assert pair.notes[0].startswith("19 segments: fewer than 20 give no intervals, ranks and tests")
    assert "19 segments: fewer than 20 give no intervals, ranks and tests" in result.table()


def test_20_segments_have_every_value():
    [result] = evaluate(judged(*noisy(5, 20))).language_pairs
    assert all(metric.segment.to_dict()["reasons"] == {} for metric in result.metrics)
    assert all(metric.system["spa"].low is not None for metric in result.metrics)
    assert {*result.pairs[0].tests} == {"pearson_by_item", "acc_eq", "spa"}


@pytest.mark.parametrize(
    ("gold", "r"), [(lambda human: human, "+1"), (lambda human: 100 * human + 3, "+1"), (lambda human: -human, "-1")]
)
def test_human_scores_among_the_metrics_are_named(full_scores, gold, r):
    human, metrics = full_scores
    result = evaluate(judged(human, {**metrics, "mean_score": gold(human)}))
    note = f"mean_score is the human scores themselves, or linear in them: r = {r} is by construction"
    assert note in result.language_pairs[0].notes
    assert not any("other" in line for line in result.language_pairs[0].notes)
    assert note in json.loads(result.to_json())["language_pairs"]["cs-en"]["notes"]
    assert note in result.table().replace("\n  ", " ")
    wholes = judged_wholes(human.mean(axis=1), {"mean_score": gold(human.mean(axis=1))})
    assert note in evaluate(wholes).language_pairs[0].notes


def test_a_metric_with_the_name_of_the_human_scores_is_named(full_scores):
    human, metrics = full_scores
    [note] = evaluate(judged(human, {"mqm": metrics["m"]}, gold="mqm")).language_pairs[0].notes
    assert note.startswith("mqm has the name of the human scores")


def test_ties_are_counted_on_both_sides():
    systems = judged([[0, 0, -1], [0, -1, -1], [-5, -1, 0]], {"m": [[1, 2, 3], [1, 2, 3], [1, 5, 4]]})
    assert metric_of(systems).segment.to_dict()["ties"] == {"pairs": 9, "human": 3, "metric": 5}
    all_tied = metric_of(judged(np.ones((2, 20)), {"m": [range(20), range(20, 40)]})).segment.to_dict()
    assert all_tied["ties"] == {"pairs": 20, "human": 20, "metric": 0}
    assert (all_tied["pearson"], all_tied["acc_eq"]) == (None, 1)
    assert all_tied["reasons"]["pearson"] == "the human scores are constant"


def test_one_system_has_no_pairs_and_a_reason():
    metric = metric_of(judged([[1, 2, 3]], {"m": [[1, 2, 4]]}))
    assert metric.system.to_dict()["accuracy"] is None
    assert {"pearson", "accuracy", "spa"} <= metric.system.to_dict()["reasons"].keys()
    assert metric.segment["pearson"].value == pytest.approx(stats.pearsonr([1, 2, 3], [1, 2, 4]).statistic)


def test_scores_of_any_size_give_the_same_test(full_scores):
    human, metrics = full_scores
    small = evaluate(judged(human, metrics)).language_pairs[0].pairs[0].segment
    metrics = {name: metric * 1e200 for name, metric in metrics.items()}
    large = evaluate(judged(human * 1e200, metrics)).language_pairs[0].pairs[0].segment
    assert (large.p, large.p_holm) == (small.p, small.p_holm)


def test_judged_segments_are_counted_and_differences_noted():
    human = [[1, 2, np.nan, 4], [1, np.nan, np.nan, 5], [3, 1, np.nan, 7]]
    [result] = evaluate(judged(human, {"m": np.arange(12.0).reshape(3, 4)})).language_pairs
    assert result.notes[0].startswith("systems are judged on different segments, 2 to 3 each, of which 2 for all")
    assert result.segments == 3


def test_a_metric_without_segment_scores_has_no_segment_rank(full_scores):
    systems = judged(*full_scores)
    whole = MetricScores(systems.human_system, None)
    [result] = evaluate(replace(systems, metrics={**systems.metrics, "whole": whole})).language_pairs
    last = result.metrics[-1]
    assert (last.name, last.segment, last.rank, last.system.rank) == ("whole", None, None, 1)
    assert result.notes[0] == "whole has no scores of segments, and so no rank among them"


def test_the_mean_over_language_pairs_and_the_pooled_accuracy():
    first = judged_wholes([1, 2, 4], {"m": [1, 2, 3]}, "a-b")
    second = judged_wholes([1, 2, 3, 4], {"m": [4, 3, 2, 1]}, "b-a")
    result = evaluate(first, second)
    [mean] = result.means
    assert cells(result.table(), "m ", "Means over language pairs")[:3] == ["m", "2", "0.333"]
    r = stats.pearsonr([1, 2, 4], [1, 2, 3]).statistic
    assert mean["system_pearson"].value == pytest.approx((r - 1) / 2)
    assert (mean["accuracy"].value, mean["accuracy"].n) == (pytest.approx(3 / 9), 9)
    assert (mean.language_pairs, mean["acc_eq"].value) == (2, None)


def test_a_metric_of_two_references_has_one_mean():
    scores = MetricScores(np.array([1.0, 2, 3]), None, base_name="m")
    pairs = [
        replace(judged_wholes([1, 2, 4], {}, language_pair), metrics={f"m-{reference}": scores})
        for language_pair, reference in (("a-b", "refA"), ("b-a", "refB"))
    ]
    [mean] = evaluate(*pairs).means
    assert (mean.name, mean.language_pairs) == ("m", 2)


def test_names_of_numpy_are_written_as_texts(full_scores):
    human, metrics = full_scores
    names = [*map(np.str_, "ABCDEF")]
    metrics = {np.str_(name): scores for name, scores in metrics.items()}
    result = evaluate(judged(human, metrics, systems=names, gold=np.str_("mqm")))
    record = json.loads(result.to_json())["language_pairs"]["cs-en"]
    assert (record["systems"], [*record["metrics"]]) == (names, ["m", "other"])


def test_draws_depend_on_the_seed(full_scores):
    def low(seed):
        return evaluate(judged(*full_scores), seed=seed).language_pairs[0].metrics[0].segment["acc_eq"].low

    assert low(1) == low(1) != low(2)


def test_json_has_the_form_that_is_documented(full_scores):
    record = json.loads(evaluate(judged(*full_scores, gold="mqm", reference="refB")).to_json())
    pair = record["language_pairs"]["cs-en"]
    assert {"n", "pearson", "accuracy", "spa"} <= pair["metrics"]["m"]["system"].keys()
    assert {"n", "pearson", "kendall", "acc_eq", "epsilon"} <= pair["metrics"]["m"]["segment"].keys()
    assert pair["metrics"]["m"]["rank"] == 1
    assert (pair["gold"], pair["reference"], pair["segments"]) == ("mqm", "refB", 40)
    assert {*pair["pairs"][0]["system"]} == {"delta", "p", "p_holm"}
    assert record["signature"].startswith("bertscore-onnx|test:segments|permutations:50|seed:4|version:")


@pytest.mark.parametrize(
    ("language_pairs", "message"),
    [
        ([], r"Give at least one"),
        ([judged_wholes([1, 2], {"m": [1, 2]})] * 2, r"and each once"),
        ([judged_wholes([1, 2], {})], r"no scores of a metric"),
        ([judged_wholes([np.nan, np.nan], {"m": [1, 2]})], r"none of the 2 systems has a human score"),
        ([judged_wholes([1, 2], {"m": [1, 2, 3]})], r"the scores by m have the shape \(3,\); expected \(2,\)"),
    ],
)
def test_arguments_are_checked(language_pairs, message):
    with pytest.raises(InputError, match=message):
        evaluate(*language_pairs)


@pytest.fixture
def result(tmp_path):
    return meta_evaluate([read_eval_set(write_eval_set(tmp_path, copies=5), "he-en")], permutations=50)


def cells(table, name, header):
    """Return the row of a metric in the table that has this header."""
    lines = table.splitlines()
    start = next(at for at, line in enumerate(lines) if header in line)
    return next(line.split() for line in lines[start:] if line.startswith(name))


def test_a_table_has_correlations_ties_and_the_p_of_each_test(result):
    table = result.table("full")
    [pair] = result.language_pairs
    [bleu] = [metric for metric in pair.metrics if metric.name == "BLEU-refB"]
    assert cells(table, "BLEU-refB", "by item")[:3] == ["BLEU-refB", "1", f"{bleu.segment['pearson'].value:+.3f}"]
    assert "Pairs of outputs of a segment: human scores tie 40 of 200" in table.splitlines()
    assert cells(table, "chrF-refB", "acc*_eq")[-1] == "5"
    exchanged = [f"Segments, {name}: p by exchanging segments, two-sided" for name in ("Pearson", "acc*_eq", "SPA")]
    for title in (*exchanged, "Whole systems, Pearson: p by exchanging systems, two-sided"):
        assert title in table


@pytest.fixture(scope="module")
def three_metrics():
    human, _ = noisy(6, 80)
    rng = np.random.default_rng(5)
    scores = {name: human + rng.normal(0, noise, human.shape) for name, noise in (("x", 1), ("y_1", 1), ("z", 6))}
    texts = [[("word " * int(rng.integers(1, 9)), "a word") for _ in row] for row in human]
    return meta_evaluate([judged(human, scores, texts=texts)], permutations=300, sentinels=True)


def test_text_begins_with_the_verdict_and_fits_a_screen(three_metrics, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    table = three_metrics.table()
    [pair] = three_metrics.language_pairs
    best, second, last = (metric.name for metric in pair.metrics)
    r = pair.metrics[0].segment["pearson"].value
    start = f"{best} agrees best with human scores (r {r:+.3f} over all outputs): tied with {second};"
    assert table.replace("\n", " ").startswith(f"{start} significantly better than {last}.")
    assert len(table.splitlines()) <= 35
    assert max(map(len, table.splitlines())) <= 80
    values = [last, "2", r_of(pair.metrics[2].segment["pearson"]), r_of(pair.metrics[2].segment["pearson_by_item"])]
    row = cells(table, last, "by item")
    assert [row[0], row[1], row[2], row[-4]] == values
    sentinels = [metric.segment["pearson"].value for metric in pair.sentinels]
    assert [line for line in table.splitlines() if line.startswith("sentinel-")] == [
        line for line in table.splitlines() if f"{max(sentinels):+.3f}" in line
    ]
    assert three_metrics.table("full").startswith(table.split("\n\n")[0])


def r_of(measure):
    return f"{measure.value:+.3f}"


def test_latex_has_the_best_values_in_bold(three_metrics):
    latex = three_metrics.table("latex")
    rows = [line.split(" & ") for line in latex.splitlines() if "&" in line]
    assert [row[0].strip() for row in rows[1:4]] == [
        metric.name.replace("_", r"\_") for metric in three_metrics.language_pairs[0].metrics
    ]
    assert rows[1][2] == rf"$\mathbf{{{r_of(three_metrics.language_pairs[0].metrics[0].segment['pearson'])}}}$"
    assert [sum("mathbf" in row[column] for row in rows) for column in range(2, 7)] == [1] * 5
    for words in (r"\toprule", r"\bottomrule", "300 permutations", "Holm's correction", r"acc$^{*}_{\mathrm{eq}}$"):
        assert words in latex


def test_a_missing_value_is_a_dash_and_has_its_reason_once():
    wholes = judged_wholes([1, 2, 4], {"a": [1, 2, 3], "b": [1, 2, 3]})
    table = meta_evaluate([wholes], permutations=5).table("full")
    assert cells(table, "a", "SPA")[-2:] == ["-", "0"]
    reason = "No spa of whole systems (a, b): only whole systems have human scores, and it takes segments"
    assert table.replace("\n  ", " ").count(reason) == 1


def test_tsv_has_a_row_for_each_language_pair_and_metric(result):
    header, *rows = [line.split("\t") for line in result.table("tsv").splitlines()]
    assert [row[:4] for row in rows[:2]] == [
        ["he-en", "BLEU-refB", "metrics", "1"],
        ["he-en", "chrF-refB", "metrics", "2"],
    ]
    assert {row[2] for row in rows[2:]} == {"sentinels"}
    values = dict(zip(header, rows[0], strict=True))
    [bleu, _] = result.language_pairs[0].metrics
    assert float(values["segment_pearson"]) == bleu.segment["pearson"].value
    assert float(values["system_spa"]) == bleu.system["spa"].value
    assert {"segment_epsilon", "segment_human_ties", "segment_metric_ties", "system_outliers"} <= values.keys()


def test_an_unknown_format_is_refused(result):
    with pytest.raises(InputError, match=r"no format 'html'. Choose one of text, full, tsv, latex"):
        result.table("html")


def test_whole_systems_are_exchanged_in_all_ways():
    human, one, other = np.random.default_rng(5).normal(size=(3, 7))
    one, other = human + 0.3 * one, human + other
    [pair] = meta_evaluate([judged_wholes(human, {"a": one, "b": other})]).language_pairs[0].pairs
    z = [stats.zscore(scores) for scores in (one, other)]
    statistics = []  # Hotelling's, but for a constant
    for kept in itertools.product([True, False], repeat=7):
        matrix = np.corrcoef([human, *(np.where(kept, *sides) for sides in (z, z[::-1]))])
        delta = abs(matrix[0, 1] - matrix[0, 2])
        statistics.append(delta * np.sqrt((1 + matrix[1, 2]) / np.linalg.det(matrix)))
    assert pair.system.p == np.mean(np.array(statistics) >= statistics[0] - 1e-9)


@pytest.mark.parametrize(
    ("number", "notes"),
    [(8, []), (5, ["5 systems: no p is below 2/32 = 0.0625, after Holm 0.188: none is significant"])],
)
def test_systems_too_few_for_a_significant_difference_are_named(number, notes):
    human, *scores = np.random.default_rng(6).normal(size=(4, number))
    wholes = judged_wholes(human, dict(zip("abc", scores, strict=True)))
    assert [*meta_evaluate([wholes]).language_pairs[0].notes] == notes
