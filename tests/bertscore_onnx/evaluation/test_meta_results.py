"""An evaluation of metrics as tables."""

import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.eval_set import EvalSet, read_eval_set
from bertscore_onnx.evaluation.meta import meta_evaluate
from tests.bertscore_onnx.evaluation.judged import judged_wholes
from tests.support.eval_sets import write_eval_set


@pytest.fixture
def result(tmp_path):
    return meta_evaluate([read_eval_set(EvalSet(write_eval_set(tmp_path)), "he-en")], permutations=50)


def cells(table, name, header):
    """Return the row of a metric in the table that has this header."""
    lines = table.splitlines()
    start = next(at for at, line in enumerate(lines) if header in line)
    return next(line.split() for line in lines[start:] if line.startswith(name))


def test_a_table_has_signed_correlations_ties_and_the_p_of_each_test(result):
    table = result.table()
    [pair] = result.language_pairs
    [bleu] = [metric for metric in pair.metrics if metric.name == "BLEU-refB"]
    assert cells(table, "BLEU-refB", "by item")[:3] == ["BLEU-refB", "1", f"{bleu.segment['pearson'].value:+.3f}"]
    assert "Pairs of outputs of a segment: human scores tie 8 of 40" in table.splitlines()
    assert cells(table, "chrF-refB", "acc*_eq")[-1] == "1"
    for title in ("PERM-BOTH, segments", "PERM-BOTH, whole systems", "Williams, whole systems"):
        assert f"{title}: p that a metric is better than one further down" in table


def test_a_missing_value_is_a_dash_and_has_its_reason_once():
    table = meta_evaluate([judged_wholes([1, 2, 4], {"a": [1, 2, 3], "b": [1, 2, 3]})], permutations=5).table()
    assert cells(table, "a", "SPA")[-2:] == ["-", "0"]
    reason = "No spa of whole systems (a, b): only whole systems have human scores, and it takes segments"
    assert table.splitlines().count(reason) == 1
    assert "No Williams of whole systems (a and b): 3 systems, and the test needs 4" in table
    assert "Williams, whole systems: p" not in table


def test_means_come_with_several_language_pairs():
    pairs = [judged_wholes([1, 2, 4], {"a": [1, 2, 3]}, name) for name in ("x-y", "y-x")]
    table = meta_evaluate(pairs, permutations=5).table()
    assert cells(table, "a", "Means over language pairs")[:4] == ["a", "2", "1.000", "+0.982"]


def test_tsv_has_a_row_for_each_language_pair_and_metric_with_all_digits(result):
    header, *rows = [line.split("\t") for line in result.table("tsv").splitlines()]
    assert [row[:3] for row in rows] == [["he-en", "BLEU-refB", "1"], ["he-en", "chrF-refB", "1"]]
    values = dict(zip(header, rows[0], strict=True))
    [bleu, _] = result.language_pairs[0].metrics
    assert float(values["segment_pearson"]) == bleu.segment["pearson"].value
    assert float(values["system_spa"]) == bleu.system["spa"].value
    assert {"segment_epsilon", "segment_human_ties", "segment_metric_ties", "system_outliers"} <= values.keys()


def test_an_unknown_format_is_refused(result):
    with pytest.raises(InputError, match=r"no format 'html'. Choose one of text, tsv"):
        result.table("html")
