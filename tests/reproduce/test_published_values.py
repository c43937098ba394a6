"""The values of shared tasks and papers, from their own judgements, to the printed digits."""

import pytest

from bertscore_onnx_evaluation.metrics.correlation import (
    correlate,
    correlate_pairs,
    soft_pairwise_accuracy,
    tie_calibrated_accuracy,
)
from reproduce import wmt
from reproduce.eval_set import read_eval_set
from tests.support.metaeval import FOLDER, needs_metaeval

pytestmark = [pytest.mark.slow, needs_metaeval]


@pytest.fixture(scope="module")
def wmt23():
    """The systems of he-en with MQM and all metrics."""
    return read_eval_set(FOLDER / "wmt23", "he-en", gold="mqm", reference="refB")


@pytest.mark.parametrize(
    ("metric", "of_systems", "of_segments", "accuracy"),
    [("BERTscore", 0.895, 0.335, 0.515), ("BLEU", 0.769, 0.220, 0.442)],
)
def test_correlations_and_tie_calibrated_accuracy_of_wmt23(
    wmt23, metric, of_systems, of_segments, accuracy
):
    scores = wmt23.metrics[metric]
    systems = correlate_pairs(wmt23.human_system, scores.system)
    assert (round(systems.value, 3), systems.n) == (of_systems, 13)
    segments = correlate(wmt23.human_segment, scores.segment)
    assert (round(segments.value, 3), segments.n) == (of_segments, 13 * 820)
    tied = tie_calibrated_accuracy(wmt23.human_segment, scores.segment)
    assert (round(tied.value, 3), tied.n, tied.groups) == (accuracy, 78 * 820, 820)


SPA = {"BERTscore": 0.902, "BLEU": 0.832, "chrF": 0.805}


@pytest.mark.parametrize("metric", SPA)
def test_soft_pairwise_accuracy_of_wmt23(wmt23, metric):
    measure = soft_pairwise_accuracy(wmt23.human_segment, wmt23.metrics[metric].segment)
    assert (round(measure.value, 3), measure.n) == (SPA[metric], 78)


def test_meta_of_the_table_of_wmt23_has_the_values_of_the_task(
    wmt23, run_json, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr("sys.argv", ["wmt", str(FOLDER / "wmt23")])
    wmt.main()
    table = tmp_path / "judgements.tsv"
    table.write_text(capsys.readouterr().out, encoding="utf-8")
    result = run_json("meta", table, "--score", *SPA)["language_pairs"]["he-en"]
    for name in SPA:
        sides = wmt23.human_segment, wmt23.metrics[name].segment
        found = result["metrics"][name]
        assert found["segment"]["acc_eq"] == tie_calibrated_accuracy(*sides).value
        assert found["segment"]["pearson"] == correlate(*sides).value
        assert found["system"]["spa"] == soft_pairwise_accuracy(*sides).value
