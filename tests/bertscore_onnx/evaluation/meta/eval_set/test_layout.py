"""What is in a folder in mt-metrics-eval's layout, by name."""

import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.eval_set import EvalSet
from tests.support.eval_sets import write, write_eval_set


@pytest.fixture
def eval_set(tmp_path):
    write_eval_set(tmp_path)
    write(tmp_path, "human-scores/en-de.da.raw.seg.score", "A\t1\n")
    write(tmp_path, "human-scores/en-de.mqm.sys.score", "A\t1\n")
    return EvalSet(tmp_path)


def test_lists_what_is_there(eval_set):
    assert eval_set.language_pairs == ["en-de", "he-en"]
    assert eval_set.golds("en-de") == ["da.raw", "mqm"]
    assert eval_set.references("he-en") == ["refA", "refB"]
    assert eval_set.metrics("he-en") == ["BLEU-refB", "chrF-refB"]
    assert eval_set.metrics("en-de") == []


def test_a_gold_that_is_not_there_is_told_with_those_that_are(eval_set):
    with pytest.raises(InputError, match=r"has no gold of en-de called 'da'; it has da.raw, mqm"):
        eval_set.gold("en-de", "da")


def test_one_of_several_golds_must_be_named(eval_set):
    with pytest.raises(InputError, match=r"has 2 kinds of judgements of en-de: da.raw, mqm. Name one as `gold`"):
        eval_set.gold("en-de", None)


def test_a_metric_that_is_not_there_is_told_with_the_nearest(eval_set):
    with pytest.raises(InputError, match=r"called 'BLUE-refB'; .* Did you mean 'BLEU-refB'\?"):
        eval_set.chosen_metrics("he-en", ["BLUE-refB"], "refB")


def test_a_language_pair_that_is_not_there_is_told_with_those_that_are(eval_set):
    with pytest.raises(InputError, match=r"called 'en-he'; it has en-de, he-en"):
        eval_set.golds("en-he")


def test_a_reference_that_is_not_there_is_told_with_those_that_are(eval_set):
    with pytest.raises(InputError, match=r"has no reference of he-en called 'refC'; it has refA, refB"):
        eval_set.reference("he-en", "refC")


def test_one_of_several_references_must_be_named_where_metrics_have_none(tmp_path):
    write_eval_set(tmp_path)
    for file in (tmp_path / "metric-scores/he-en").iterdir():
        file.unlink()
    with pytest.raises(InputError, match=r"has 2 references of he-en: refA, refB. Name one as `reference`"):
        EvalSet(tmp_path).reference("he-en", None)


@pytest.mark.parametrize(
    ("name", "references"), [("src", set()), ("all", {"refA", "refB"}), ("refA.refB", {"refA", "refB"})]
)
def test_a_name_may_stand_for_none_or_several_references(eval_set, name, references):
    assert eval_set.references_in("he-en", eval_set.reference("he-en", name)) == references


def test_a_folder_without_judgements_is_no_set(tmp_path):
    with pytest.raises(InputError, match=r"has no judgements; expected a folder in the layout of mt-metrics-eval"):
        EvalSet(tmp_path)
