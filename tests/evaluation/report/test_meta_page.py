"""The page of an evaluation of metrics, and its fragment for notebooks."""

import json
import re
from dataclasses import replace

import pytest

from bertscore_onnx_evaluation import meta_evaluate
from bertscore_onnx_evaluation.metrics.meta_results import bounded_p
from bertscore_onnx_evaluation.report.meta_page import SEGMENT, SYSTEM, headline
from tests.evaluation.judged import judged_wholes
from tests.support.html_tree import rows_of, section, text_of, tree_of

from .conftest import evaluation, language_pairs, many_metrics, sparse, with_marked


def tables_of(result):
    """Return the tables of the first language pair: systems, segments, scores, and matrices of p."""
    return [rows_of(one) for one in section(tree_of(result.to_html()), "pair-1").iter("table")]


def test_the_tables_have_every_measure_with_its_interval():
    result = evaluation()
    [pair] = result.language_pairs
    for table, level, measures in zip(tables_of(result), ("system", "segment"), (SYSTEM, SEGMENT), strict=False):
        for row, metric in zip(table[1:], pair.metrics, strict=True):
            agreement = getattr(metric, level)
            assert row[:2] == [metric.name, str(agreement.rank)]
            found = [agreement[one.key] for one in measures]
            sign = ["+" if one.write(1.0).startswith("+") else "" for one in measures]
            assert row[2 : 2 + len(found)] == [
                f"{one.value:{sign}.3f} {one.low:{sign}.3f} to {one.high:{sign}.3f}".replace("-", "−")
                for one, sign in zip(found, sign, strict=True)
            ]
            assert row[-1] == str(agreement.metric_ties)


def test_annotators_stand_above_the_metrics_and_sentinels_below():
    result = with_marked(evaluation())
    names = ["human-rater-2", "good", "fair", "sentinel-length", "sentinel-constant"]
    for table in tables_of(result)[:2]:
        assert [row[0] for row in table[1:]] == names
        assert [row[1] for row in table[1:]] == ["", "1", table[3][1], "", ""]
        assert table[5][2] == "–"
    chapter = section(tree_of(result.to_html()), "pair-1")
    charts = [one for one in chapter.iter("div") if one.get("class") == "chart intervals"]
    assert len(charts) == 3 + 4
    for chart in charts:
        strips = [one for one in chart.iter("div") if (one.get("class") or "").startswith("strip")]
        rows = [one for one in strips if "axis" not in one.get("class") and one.get("class") != "strip-name"]
        assert [one.get("class") for one in rows] == ["strip humans", *["strip metrics"] * 2, *["strip sentinels"] * 2]
        assert text_of(rows[4]) == "sentinel-constant the scores are constant"
        for row in rows[:4]:
            lines = {line.get("class"): line.get("x1") for line in row.iter("line")}
            assert lines["humans-line"] == rows_x(rows[0])
            assert lines["sentinels-line"] == rows_x(rows[3])
    unmarked = [rows_of(one) for one in section(tree_of(evaluation().to_html()), "pair-1").iter("table")]
    assert tables_of(result)[2] == unmarked[2]  # they have no scores of systems
    assert [row[0] for row in tables_of(result)[3][1:]] == ["1 human-rater-2", "2 good", "3 fair"]


def rows_x(row):
    """Return where the dot of a row is."""
    return next(row.iter("circle")).get("cx")


def test_systems_stand_by_their_human_scores_with_those_of_metrics():
    [pair] = evaluation().language_pairs
    _, _, table, *_ = tables_of(evaluation())
    assert table[0] == ["System", "Human", *(metric.name for metric in pair.metrics)]
    order = sorted(range(6), key=lambda at: -pair.human_scores[at])
    assert [row[0] for row in table[1:]] == [pair.systems[at] for at in order]
    for row, at in zip(table[1:], order, strict=True):
        scores = [pair.human_scores[at], *(pair.metric_scores[metric.name][at] for metric in pair.metrics)]
        assert [float(text.replace("−", "-")) for text in row[1:]] == pytest.approx(scores, abs=5e-5)
    drawings = [one for one in tree_of(evaluation().to_html()).iter("svg") if one.get("class") == "points"]
    assert len(drawings) == 2
    for drawing, metric in zip(drawings, pair.metrics, strict=True):
        dots = {one.find("title").text: (float(one.get("cx")), float(one.get("cy"))) for one in drawing.iter("circle")}
        assert sorted(dots, key=lambda name: dots[name][0]) == [pair.systems[at] for at in reversed(order)]
        by_metric = sorted(pair.systems, key=lambda name: pair.metric_scores[metric.name][pair.systems.index(name)])
        assert sorted(dots, key=lambda name: -dots[name][1]) == by_metric


def test_the_order_of_systems_does_not_matter():
    result = evaluation()
    [pair] = result.language_pairs
    order = [3, 0, 5, 1, 4, 2]
    mixed = replace(
        pair,
        systems=tuple(pair.systems[at] for at in order),
        human_scores=tuple(pair.human_scores[at] for at in order),
        metric_scores={name: tuple(scores[at] for at in order) for name, scores in pair.metric_scores.items()},
    )
    assert replace(result, language_pairs=(mixed,)).to_html() == result.to_html()


def test_p_stands_in_a_matrix_and_small_ones_are_shaded():
    result = many_metrics(8, 6)
    [pair] = result.language_pairs
    [matrix] = [
        one for one in section(tree_of(result.to_html()), "pair-1").iter("table") if one.get("class") == "matrix"
    ]
    names = ["human-rater-2", *(metric.name for metric in pair.metrics)]
    cells = [list(row)[1:] for row in list(matrix)[1]]
    p = {(one.first, one.second): one.segment.p_holm for one in pair.pairs}
    styles = set()
    for row, of_row in enumerate(cells):
        for column, cell in enumerate(of_row):
            if column <= row:
                assert text_of(cell) == ""
                continue
            value = p.get((names[row], names[column]))
            if row == 0:
                assert (text_of(cell), cell.get("class"), value) == ("–", None, None)
                continue
            assert text_of(cell) == bounded_p(value, 0).replace("<", "< ")
            styles.add(cell.get("class"))
            assert cell.get("class") == (
                "significant high" if value < 0.01 else "significant" if value < 0.05 else None
            )
    assert styles == {None, "significant", "significant high"}


def test_missing_values_have_their_reasons():
    result = sparse()
    page = section(tree_of(result.to_html()), "pair-1")
    text = text_of(page)
    assert "No pearson, kendall, kendall_c of segments (same): the metric’s scores are constant" in text
    reasons = {one.get("title") for one in page.iter("abbr")}
    assert "the metric's scores are constant" in reasons
    strips = [text_of(one) for one in page.iter("div") if one.get("class") == "strip metrics"]
    assert "same the metric’s scores are constant" in strips


def test_several_language_pairs_have_their_means_and_whole_systems_no_segments():
    result = language_pairs()
    page = tree_of(result.to_html())
    [table] = [rows_of(one) for one in section(page, "means").iter("table")]
    mean = {one.name: one for one in result.means}
    assert [row[0] for row in table[1:]] == [one.name for one in result.means]
    assert [one.kind for one in result.means] == ["metrics"] * 2 + ["sentinels"] * 2
    assert table[1][1].startswith(f"{mean[table[1][0]]['accuracy'].value:.3f}")
    assert "PERM-BOTH, 50 permutations, seed 4" in text_of(next(page.iter("header")))
    assert [text_of(one) for one in section(page, "pair-2").iter("h3")] == [
        "Whole systems",
        "Scores of whole systems",
        "Every two metrics",
        "Notes",
    ]


def test_draws_of_systems_and_segments_are_named_as_what_they_are():
    result = evaluation(test="boot-both")
    titles = [text_of(one) for one in tree_of(result.to_html()).iter("summary")][1:]
    by = "p by drawing systems and segments, two-sided, after Holm"
    assert titles[:5] == [
        *(f"Segments, {name}: {by}" for name in ("Pearson", "by item", "acc*_eq", "SPA")),
        f"Whole systems, Pearson: {by}",
    ]
    assert all(f"{title}\n" in result.table() for title in titles)
    head, method = (
        text_of(one)
        for one in (next(tree_of(result.to_html()).iter("header")), section(tree_of(result.to_html()), "method"))
    )
    assert "draws of systems and segments, seed 4" in head
    assert "over other systems and segments" in method


def test_the_headline_names_the_metrics_of_the_first_rank():
    alone, shared = evaluation(), many_metrics()
    r = alone.language_pairs[0].metrics[0].segment["pearson"].value
    assert (
        headline(alone.language_pairs[0])
        == f"good correlates best with the human scores of segments: Pearson's r {r:+.3f}."
    )
    assert re.match(
        r"metric-0-refA, metric-2-refA, metric-4-refA, metric-6-refA and others share the highest rank, metric-0-refA",
        headline(shared.language_pairs[0]),
    )
    below = (replace(one, rank=one.rank + 1) for one in alone.language_pairs[0].metrics)
    below_people = replace(alone.language_pairs[0], metrics=tuple(below))
    assert headline(below_people) == headline(alone.language_pairs[0])
    [pair] = meta_evaluate([judged_wholes([1, 2, 3], {"m": [3, 3, 3]})]).language_pairs
    assert headline(pair) == "No metric has a correlation with the human scores of whole systems."


def test_json_has_the_scores_of_systems():
    pair = json.loads(evaluation().to_json())["language_pairs"]["cs-en"]
    assert len(pair["human_scores"]) == len(pair["systems"]) == 6
    assert {name: len(scores) for name, scores in pair["metric_scores"].items()} == {"good": 6, "fair": 6}


def test_a_notebook_shows_the_main_measures():
    [pair] = evaluation().language_pairs
    [table] = tree_of(with_marked(evaluation())._repr_html_()).iter("table")
    rows = rows_of(table)
    assert [row[0] for row in rows] == [
        *("Metric", "cs-en", "human-rater-2", "good", "fair", "sentinel-length", "sentinel-constant")
    ]
    good = pair.metrics[0]
    measures = [good.segment["pearson"], good.segment["acc_eq"], good.system["pearson"]]
    measures += [good.system["accuracy"], good.system["spa"]]
    assert [float(text) for text in rows[3][3:]] == pytest.approx([one.value for one in measures], abs=5e-4)
    assert rows[3][1:2] == [str(good.rank)]
    drawn = [len([*row.iter("svg")]) for row in table.iter("tr")]
    assert drawn == [0, 0, 1, 1, 1, 1, 0]
