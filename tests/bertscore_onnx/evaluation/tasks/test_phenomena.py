"""The conditions of texts that are scored with several metrics."""

import json

import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.challenge_sets import PhenomenonExample, phenomena_of_texts
from tests.support.metaeval import needs_metaeval, tq_autotest

pytest.importorskip("sacrebleu")

EXAMPLES = [
    PhenomenonExample("negation", "the cat is not here", ["the cat is not there"], ["the cat is here", "a dog"]),
    PhenomenonExample("negation", "he never sleeps", ["he does not sleep"], ["he never eats"]),
    PhenomenonExample("number", "two red cats", [], ["two red dogs", "ten blue dogs"]),
    PhenomenonExample("number", "three cats", ["three cats"], []),
    PhenomenonExample("number", "four cats"),
]


def test_conditions_are_asked_of_the_examples_that_have_what_they_need():
    [metric] = phenomena_of_texts(EXAMPLES, metrics=["chrf"], min_examples=1).metrics
    conditions = metric.conditions
    assert [condition.n for condition in (conditions.i, conditions.ii, conditions.iii)] == [3, 2, 2]
    assert conditions.iii.right == 2
    assert conditions.i.categories["number"] == (100.0, 1)


def test_progress_is_shown_where_it_is_asked_for(tiny_bundle, capsys):
    with BERTScorer(tiny_bundle, device="cpu") as scorer:
        phenomena_of_texts(EXAMPLES, scorer=scorer)
        assert capsys.readouterr().err == ""
        phenomena_of_texts(EXAMPLES, scorer=scorer, verbose=True)
    assert "100%" in capsys.readouterr().err


def test_scores_are_those_of_sacrebleu():
    from sacrebleu.metrics import CHRF

    [metric] = phenomena_of_texts(EXAMPLES[:1], metrics=["chrf"], options={"chrf": {"word_order": 2}}).metrics
    expected = CHRF(word_order=2).sentence_score(EXAMPLES[0].good[0], [EXAMPLES[0].reference]).score
    assert metric.conditions.i.value == pytest.approx(expected, abs=1e-9)
    assert "nw:2" in metric.signature


def test_fewer_errors_are_better_and_shown_as_they_are():
    example = PhenomenonExample("x", "the cat sat", ["the cat sat down"], ["a dog"])
    [metric] = phenomena_of_texts([example], metrics=["ter"], min_examples=1).metrics
    assert metric.conditions.ii.right == 1
    assert metric.conditions.i.value == pytest.approx(100 / 3)
    assert metric.conditions.i.categories["x"][0] == pytest.approx(100 / 3)


def test_bertscore_is_that_of_the_scorer(tiny_bundle):
    with BERTScorer(tiny_bundle, device="cpu") as scorer:
        result = phenomena_of_texts(EXAMPLES, scorer=scorer)
        expected = scorer.score(
            ["the cat is not there", "he does not sleep", "three cats"],
            ["the cat is not here", "he never sleeps", "three cats"],
        ).F
    assert result.metrics[0].conditions.i.value == pytest.approx(float(expected.mean(dtype=float)), abs=1e-6)
    assert result.metrics[0].signature == str(scorer.signature)


def test_each_of_several_good_translations_has_to_beat_the_bad_ones():
    close, far = "the cat is not there", "felines are absent"
    right = PhenomenonExample("x", "the cat is not here", [close], ["the cat is here somewhere else"])
    wrong = PhenomenonExample("x", "the cat is not here", [close, far], ["the cat is here somewhere else"])
    [metric] = phenomena_of_texts([right, wrong], metrics=["chrf"]).metrics
    assert (metric.conditions.ii.right, metric.conditions.ii.n) == (1, 2)


def test_references_may_be_several():
    example = PhenomenonExample("x", ["no", "the cat"], ["the cat"], ["a dog"])
    [metric] = phenomena_of_texts([example], metrics=["chrf"]).metrics
    assert metric.conditions.i.value == 100


def test_json_has_shares_and_reasons():
    result = phenomena_of_texts(EXAMPLES[3:], metrics=["chrf"], min_examples=1).to_dict()
    chrf = json.loads(json.dumps(result, allow_nan=False))["metrics"]["chrf"]
    assert chrf["conditions"]["i"] == {"mean": 100.0, "n": 1}
    assert chrf["conditions"]["ii"]["share"] is None
    assert chrf["conditions"]["ii"]["reason"]
    assert chrf["categories"] == {"number": {"i": {"mean": 100.0, "n": 1}}}


@pytest.mark.parametrize(
    ("metrics", "options", "message"),
    [
        (["blue"], {}, "no metric 'blue' here. Did you mean bleu"),
        (["bleu", "bleu"], {}, "'bleu' is there 2 times"),
        (["bertscore"], {}, "needs a scorer"),
        (["bleu"], {"chrf": {}}, "options for 'chrf'"),
    ],
)
def test_metrics_are_checked(metrics, options, message):
    with pytest.raises(InputError, match=message):
        phenomena_of_texts(EXAMPLES, metrics=metrics, options=options)


def test_a_scorer_of_all_layers_is_refused(all_layers_bundle):
    with (
        BERTScorer(all_layers_bundle, all_layers=True, device="cpu") as scorer,
        pytest.raises(InputError, match="the scores of one layer"),
    ):
        phenomena_of_texts(EXAMPLES, scorer=scorer)


def test_there_is_to_be_something_to_score():
    with pytest.raises(InputError, match="1 examples, and no good or bad translation"):
        phenomena_of_texts(EXAMPLES[4:], metrics=["bleu"])


@needs_metaeval
@pytest.mark.parametrize(
    ("metric", "options", "right"),
    [
        ("bleu", {"smooth_method": "none"}, 59),
        ("bleu", {}, round(0.552 * 163)),
        ("chrf", {}, round(0.644 * 163)),
        ("chrf", {"word_order": 2}, round(0.626 * 163)),
    ],
)
def test_tq_autotest(metric, options, right):
    examples = [
        PhenomenonExample(one.category, one.good[0], one.good[1:], one.bad) for one in tq_autotest() if one.good
    ]
    [result] = phenomena_of_texts(examples, metrics=[metric], options={metric: options}).metrics
    assert (result.conditions.ii.right, result.conditions.ii.n) == (right, 163)
