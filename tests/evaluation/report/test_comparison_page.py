import re

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx_evaluation import compare
from bertscore_onnx_evaluation.report.comparison_page import report_html
from bertscore_onnx_evaluation.systems.verdicts import rank
from tests.support.comparisons import comparison_of, metric_result, random_comparison
from tests.support.html_tree import rows_of, section, text_of, tree_of
from tests.support.token_similarity import stated_similarity

from .conftest import EVIL, evil, groups


def test_names_and_texts_are_shown_and_not_obeyed():
    content = report_html(evil())
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\ud800-\udfff]", content)
    assert "7 * 7" in content
    page = tree_of(content)
    names = [
        text_of(one) for one in page.iter("bdi") if not text_of(one).replace(",", "").isdigit()
    ]
    assert {EVIL[0], "\"><img src=x onerror='alert(1)'>&␀␛[31m", EVIL[2], EVIL[3]} == {*names}
    articles = [*page.iter("article")]
    assert len(articles) == 18
    assert all(
        one.get("dir") == "auto"
        for article in articles
        for one in article.iter("p")
        if not one.get("class")
    )
    assert " … (22,058 more characters)" in text_of(section(page, "segments"))


def test_the_table_has_every_number(tiny_bundle):
    references = [
        "the cat sat on the mat",
        "a dog ran",
        "the red house",
        "it is blue",
        "the tree and the house",
    ]
    systems = {
        "base": ["a dog"] * 5,
        "better": [*references[:4], "the tree"],
        "other": ["the cat"] * 5,
    }
    with BERTScorer(tiny_bundle, device="cpu") as scorer:
        found = compare(
            systems, references, scorer=scorer, metrics=["bertscore", "ter"], num_resamples=100
        )
    page = tree_of(found.to_html())
    for number, metric in enumerate(found.metrics, start=1):
        digits = 4 if metric.name == "bertscore" else 2
        chapter = section(page, f"metric-{number}")
        header, *rows = rows_of(next(chapter.iter("table")))
        assert header == [
            "System",
            "Score",
            "Δ",
            "Δ 95 %",
            "p",
            "p Holm",
            "Won",
            "Lost",
            "Tied",
            "Differ",
        ]
        ranked = [metric.systems[place] for place in metric.ranked]
        assert [row[0].removesuffix(" baseline") for row in rows] == [one.name for one in ranked]
        for row, one in zip(rows, ranked, strict=True):
            assert row[1] == f"{one.score:.{digits}f}"
            if one.delta is None:
                assert row[2:] == [""] * 8
                continue
            delta = f"{one.delta:+.{digits}f}".replace("-", "−")
            counts = [str(value) for value in (one.won, one.lost, one.tied, one.differing)]
            # no difference of five segments is rejected
            assert one.delta_low is one.delta_high is None
            p_values = [f"{p:.4f}".removeprefix("0") for p in (one.p, one.p_holm)]
            assert row[2:] == [delta, "", *p_values, *counts]
        assert metric.signature in text_of(section(page, "method"))
    assert text_of(next(page.iter("h1"))) == "Which of 3 systems is best?"
    assert "BERTScore F1: better scores best: " in text_of(next(page.iter("header")))
    assert "paired permutation test, all swaps" in text_of(next(page.iter("header")))
    titles = [
        one.get("title") for one in section(page, "segments").iter("span") if one.get("title")
    ]
    assert any(re.fullmatch(r"house → house: 1\.000", title) for title in titles)


def test_systems_stand_in_one_order_in_a_section(comparison):
    page = tree_of(report_html(comparison))
    for number, metric in enumerate(comparison.metrics, 1):
        chapter = section(page, f"metric-{number}")
        ranked = [metric.systems[place].name for place in metric.ranked]
        others = [name for name in ranked if name != "base"]
        assert [row[0].split()[0] for row in rows_of(next(chapter.iter("table")))[1:]] == ranked
        names = [text_of(one) for one in chapter.iter("div") if one.get("class") == "strip-name"]
        assert names[:6] == [*ranked, *ranked]
        assert [text_of(one) for one in chapter.iter("h3")][2:] == others
    overview = next(one for one in page.iter("section"))
    first = comparison.metrics[0]
    names = [row[0] for row in rows_of(next(overview.iter("table")))[1:]]
    assert names == [first.systems[place].name for place in first.ranked]


def test_ranks_the_matrix_and_groups_are_on_the_page():
    found = groups()
    metric = found.metrics[0]
    scores, matrix, by_group = [
        rows_of(one) for one in section(tree_of(found.to_html()), "metric-1").iter("table")
    ]
    ranked = [metric.systems[place] for place in metric.ranked]
    assert [row[1] for row in scores[1:]] == [rank(one) for one in ranked]
    marks = {("▲", "▼"), ("▼", "▲"), ("≈", "≈")}
    assert {
        (matrix[row][column], matrix[column][row])
        for row in range(1, 8)
        for column in range(1, 8)
        if row != column
    } <= marks
    assert matrix[1].count("▲") == 7 - ranked[0].rank_high
    *by_size, mean = [row[:2] for row in by_group[1::7]]
    assert by_size == [["news", "50"], ["talks", "40"], ["web", "10"]]
    assert mean == ["mean of the groups", "100"]
    assert {*by_group[-8][5:]} == {""}


def test_the_overview_has_a_cell_for_each_system_and_metric(comparison):
    overview = next(one for one in tree_of(report_html(comparison)).iter("section"))
    rows = rows_of(next(overview.iter("table")))
    assert rows[0] == ["System", "BERTScore F1", "BLEU", "TER lower is better"]
    ter = comparison.metrics[2].systems[2]
    [row] = [row for row in rows if row[0] == ter.name]
    assert row[3] == f"▼ +{ter.delta:.2f}"  # a higher TER is worse
    page = tree_of(report_html(random_comparison(2, metrics=["bleu"])))
    assert "At a glance" not in text_of(page)  # one metric needs no overview
    assert text_of(next(page.iter("h1"))) == "Is system-1 better than base?"


def test_many_comparisons_and_few_segments_come_with_a_warning():
    def report(*sizes, **options):
        return tree_of(report_html(random_comparison(*sizes, **options)))

    several = text_of(report(3, metrics=["bertscore", "bleu"]))
    assert "This page makes 4 comparisons." in several
    assert "p is not corrected for the 2 metrics" in several
    assert "comparisons" not in text_of(report(2, metrics=["bertscore"]))
    few = text_of(next(report(20, 19, ["ter"], all_pairs=True).iter("header")))
    assert "Tested on 19 segments only." in few
    assert (
        "With 200 swaps no p can be below 0.05 after Holm’s correction for 190 tests. Draw 3,800 or"
        in few
    )
    enough = text_of(next(report(3, 40, all_pairs=True).iter("header")))
    assert "Tested on" not in enough


def test_of_many_systems_only_the_best_are_drawn():
    content = report_html(random_comparison(20, 3000, ["bertscore", "bleu", "chrf", "ter"]))
    assert len(content.encode()) < 1_500_000
    page = tree_of(content)
    for name in ("metric-1", "metric-4"):
        chapter = section(page, name)
        drawn = [text_of(one) for one in chapter.iter("h3")][2:]
        assert {*drawn} == {f"system-{row}" for row in range(14, 20)}
        assert "Drawn for the 6 systems that BERTScore F1 scores best, of 19." in text_of(chapter)
        assert len(rows_of(next(chapter.iter("table")))) == 21
    assert "Shown for 6 of 19 systems." in text_of(section(page, "segments"))


def test_the_largest_gains_and_losses_stand_side_by_side():
    scores = np.full((2, 40), 0.5)
    scores[1, 6], scores[1, 20] = 0.9, 0.25
    texts = [[f"{name} {segment}" for segment in range(40)] for name in ("base", "new")]
    references = [[f"reference {segment}"] for segment in range(40)]
    found = comparison_of(
        [metric_result("bertscore", ["base", "new"], scores)], texts, references, num_examples=1
    )
    articles = [
        text_of(one) for one in section(tree_of(report_html(found)), "segments").iter("article")
    ]
    assert articles == [
        "Line 7 +0.4000 Reference reference 6 base 0.5000 base 6 new 0.9000 new 6",
        "Line 21 −0.2500 Reference reference 20 base 0.5000 base 20 new 0.2500 new 20",
    ]


@pytest.mark.parametrize(("tokens", "shown"), [(150, True), (151, False)])
def test_matches_of_very_many_tokens_are_left_out_and_counted(tokens, shown):
    similarity = stated_similarity(["cat"] * tokens, ["dog"] * 150, np.full((tokens, 150), 0.5))
    metric = metric_result("bertscore", ["base", "new"], [[0.5], [0.6]])
    found = comparison_of(
        [metric], [["cat"], ["cat"]], [["dog"]], matches={(row, 0): similarity for row in range(2)}
    )
    segments = section(tree_of(report_html(found)), "segments")
    assert any(one.get("title") == "cat → dog: 0.500" for one in segments.iter("span")) == shown
    assert ("Its 301 tokens and those of the reference are too many" in text_of(segments)) != shown


def test_the_table_has_the_systems_under_each_metric(comparison):
    page = tree_of(comparison._repr_html_())
    [table] = page.iter("table")
    rows = rows_of(table)
    bertscore, bleu, ter = (
        [metric.systems[place].name for place in metric.ranked] for metric in comparison.metrics
    )
    assert [row[0] for row in rows] == [
        *("System", "BERTScore F1", *bertscore, "BLEU", *bleu, "TER, lower is better", *ter)
    ]
    system = comparison.metrics[0].systems[2]
    score, _, delta, interval, p, p_holm, verdict = rows[2 + bertscore.index("system-2")][1:]
    assert score == f"{system.score:.4f}"
    assert (delta, f"0{p}") == (f"{system.delta:+.4f}", f"{system.p:.4f}")
    assert f"0{p_holm}" == f"{system.p_holm:.4f}"
    assert (interval, verdict) == (
        f"{system.delta_low:+.4f} to {system.delta_high:+.4f}",
        "▲ better",
    )
    assert (
        "paired permutation test, 200 swaps, seed 12345, two-sided, after Holm's correction for 2"
        in text_of(page)
    )
    assert repr(comparison) == (
        "Comparison(systems=('base', 'system-1', 'system-2'), metrics=('bertscore', 'bleu', "
        "'ter'), segments=40)"
    )
