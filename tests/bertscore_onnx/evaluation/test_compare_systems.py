"""Comparing systems, from Python."""

import json
import shutil
from itertools import chain

import numpy as np
import pytest
from sacrebleu.metrics import BLEU, TER
from sacrebleu.significance import PairedTest

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import InputError, InputTypeError
from bertscore_onnx.evaluation import compare
from bertscore_onnx.evaluation.baselines import compute_baseline, write_baseline
from bertscore_onnx.evaluation.percentiles import percentile
from tests.support.scores import WORDS

SEGMENTS = 40


def sentences(seed):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS.split(), rng.integers(3, 9))) for _ in range(SEGMENTS)]


REFERENCES = sentences(0)
SYSTEMS = {
    "base": sentences(1),
    "closer": [text if row % 3 else REFERENCES[row] for row, text in enumerate(sentences(2))],
    "closest": [text if row % 2 else REFERENCES[row] for row, text in enumerate(sentences(3))],
}


@pytest.fixture(scope="module")
def comparison(tiny_bundle):
    with BERTScorer(tiny_bundle, device="cpu") as scorer:
        return compare(SYSTEMS, REFERENCES, scorer=scorer, metrics=["bertscore", "bleu", "ter"], num_resamples=200)


def metric_of(comparison, name):
    [metric] = [metric for metric in comparison.metrics if metric.name == name]
    return metric


def test_the_score_of_a_system_is_the_mean_of_its_segments_scored_alone(comparison, scorer):
    metric = metric_of(comparison, "bertscore")
    for row, (name, texts) in enumerate(SYSTEMS.items()):
        alone = scorer.score(texts, REFERENCES).F.astype(np.float64)
        np.testing.assert_allclose(metric.segment_scores[row], alone, atol=1e-6)
        assert metric.systems[row].name == name
        assert metric.systems[row].score == pytest.approx(alone.mean(), abs=1e-6)


def test_of_several_references_the_best_counts(scorer):
    several = [[one, other] for one, other in zip(REFERENCES, sentences(9), strict=True)]
    [metric] = compare(SYSTEMS, several, scorer=scorer).metrics
    np.testing.assert_allclose(metric.segment_scores[1], scorer.score(SYSTEMS["closer"], several).F, atol=1e-6)


def test_idf_weights_are_those_of_the_references_counted_once(tiny_bundle):
    with BERTScorer(tiny_bundle, device="cpu", idf=True) as weighted:
        [metric] = compare(SYSTEMS, REFERENCES, scorer=weighted).metrics
        np.testing.assert_allclose(
            metric.segment_scores[2], weighted.score(SYSTEMS["closest"], REFERENCES).F, atol=1e-6
        )
        with weighted.with_idf(True, REFERENCES) as fixed:
            assert metric.signature.startswith(str(fixed.signature))


@pytest.mark.parametrize("test", ["bs", "ar"])
def test_scores_intervals_and_p_of_bleu_and_ter_are_those_of_sacrebleu(test, monkeypatch):
    monkeypatch.setenv("SACREBLEU_SEED", "7")
    paired = PairedTest([*SYSTEMS.items()], {"BLEU": BLEU(), "TER": TER()}, [REFERENCES], test, 300, 1000)
    _, expected = paired()
    ours = compare(SYSTEMS, REFERENCES, metrics=["bleu", "ter"], test=test, num_resamples=300, seed=7)
    for metric, theirs in ((metric_of(ours, "bleu"), expected["BLEU"]), (metric_of(ours, "ter"), expected["TER"])):
        for system, their in zip(metric.systems, theirs, strict=True):
            assert (system.score, system.mean, system.ci) == pytest.approx(
                (their.score, their.mean, their.ci), rel=1e-6
            )
            assert system.p == (None if their.p_value is None else pytest.approx(their.p_value, abs=1e-12))


def test_metrics_share_their_resamples_and_keep_their_order(comparison, scorer):
    [alone] = compare(SYSTEMS, REFERENCES, scorer=scorer, num_resamples=200).metrics
    assert [metric.name for metric in comparison.metrics] == ["bertscore", "bleu", "ter"]
    assert alone.systems == metric_of(comparison, "bertscore").systems


def test_a_lower_error_rate_wins(comparison):
    base, _, closest = metric_of(comparison, "ter").systems
    assert closest.score < base.score
    assert closest.delta < 0
    assert closest.wins > 0.9
    assert closest.won > closest.lost


def test_the_outcomes_of_a_system_are_all_segments(comparison):
    for system in metric_of(comparison, "bertscore").systems[1:]:
        assert system.won + system.lost + system.tied == SEGMENTS


def test_json_has_null_where_the_baseline_has_no_value(comparison):
    record = json.loads(comparison.to_json())
    assert [system["name"] for system in record["systems"]] == list(SYSTEMS)
    base, closer, _ = (system["metrics"]["bleu"] for system in record["systems"])
    assert [base[key] for key in ("delta", "p", "wins", "won")] == [None] * 4
    assert closer["delta"] == pytest.approx(closer["score"] - base["score"])
    assert 0 < closer["p"] <= 1
    for part in ("test:bs", "resamples:200", "seed:12345"):
        assert part in record["signature"]
        assert all(part in signature for signature in record["signatures"].values())


def test_json_names_the_segments_that_differ_most(comparison, scorer):
    record = json.loads(comparison.to_json())
    gains = [one for one in record["segments"] if one["system"] == "closest" and one["delta"] > 0]
    delta = scorer.score(SYSTEMS["closest"], REFERENCES).F - scorer.score(SYSTEMS["base"], REFERENCES).F
    assert gains[0]["segment"] == delta.argmax() + 1
    assert [one["delta"] for one in gains] == pytest.approx(np.sort(delta)[::-1][: len(gains)], abs=1e-6)
    assert gains[0]["candidates"]["closest"] == SYSTEMS["closest"][delta.argmax()]
    assert gains[0]["references"] == [REFERENCES[delta.argmax()]]


def test_a_segment_with_the_texts_of_another_is_no_further_example():
    texts = {"base": ["a b c d"] * 3 + ["x"], "other": ["e f g h"] * 3 + ["a b c d"]}
    comparison = compare(texts, [*["e f g h"] * 3, "a b c e"], metrics=["chrf"], num_resamples=1)
    assert [example.segment for example in comparison.examples] == [0, 3]


def test_every_example_has_its_matches(comparison):
    for example in comparison.examples:
        baseline, other = example.matches
        assert pytest.approx(example.delta, abs=1e-5) == other.score.F - baseline.score.F


def test_all_pairs_are_tested_with_holms_correction():
    [metric] = compare(SYSTEMS, REFERENCES, metrics=["bleu"], all_pairs=True, num_resamples=100).metrics
    assert [(pair.baseline, pair.system) for pair in metric.pairs] == [
        ("base", "closer"),
        ("base", "closest"),
        ("closer", "closest"),
    ]
    assert all(pair.p <= pair.p_holm <= 1 for pair in metric.pairs)


def test_options_reach_the_class_of_sacrebleu():
    [metric] = compare(SYSTEMS, REFERENCES, metrics={"bleu": {"tokenize": "char"}}, num_resamples=10).metrics
    assert "tok:char" in metric.signature
    assert metric.systems[0].score == pytest.approx(
        BLEU(tokenize="char").corpus_score(SYSTEMS["base"], [REFERENCES]).score
    )


def test_a_table_of_tsv_has_a_row_for_each_metric_and_system(comparison):
    header, *rows = [line.split("\t") for line in comparison.table("tsv").splitlines()]
    assert {len(row) for row in rows} == {len(header)}
    assert [row[:2] for row in rows] == [[one.name, name] for one in comparison.metrics for name in SYSTEMS]
    score = float(rows[1][header.index("score")])
    assert score == comparison.metrics[0].systems[1].score


def test_a_name_does_not_end_a_column_or_a_row_of_tsv():
    table = compare({"a\tb\nc": ["x y"], "d": ["x"]}, ["x y"], metrics=["bleu"], num_resamples=1).table("tsv")
    assert [line.split("\t")[1] for line in table.split("\n")] == ["system", "a b c", "d"]


def test_a_table_of_text_marks_what_is_significant(comparison):
    lines = comparison.table().splitlines()
    for system in metric_of(comparison, "bertscore").systems[1:]:
        line = next(line for line in lines if line.startswith(f"{system.name} "))
        assert ("*" in line) == (system.p < 0.05)


def test_a_table_of_latex_escapes_names():
    table = compare({"a_b": ["x y"], "50%": ["x"]}, ["x y"], metrics=["bleu"], num_resamples=1).table("latex")
    assert r"a\_b" in table
    assert r"50\%" in table
    assert table.count(r"\\") == 3


def test_equal_systems_do_not_differ(scorer):
    comparison = compare({"one": REFERENCES, "two": REFERENCES}, REFERENCES, scorer=scorer)
    two = comparison.metrics[0].systems[1]
    assert (two.delta, two.wins, two.won, two.lost, two.tied) == (0, 0, 0, 0, SEGMENTS)
    assert "*" not in comparison.table()
    assert not comparison.examples


def test_one_segment_is_compared(scorer):
    comparison = compare({"one": ["a cat"], "two": ["a dog"]}, ["a cat"], scorer=scorer, num_resamples=10)
    assert json.loads(comparison.to_json())["num_segments"] == 1


@pytest.mark.parametrize(
    ("systems", "references", "message"),
    [
        ({"base": ["a"]}, ["a"], "There is one system, base; expected a baseline"),
        ({}, ["a"], "There is no system"),
        ({"base": ["a", "b"], "other": ["a"]}, ["a", "b"], "The system other has 1 texts, .* line 2 has no partner"),
        ({"base": ["a"], "other": []}, ["a"], "The system other has 0 texts, .* line 1 has no partner"),
        ({"base": [], "other": []}, [], "There are no references"),
        ({"base": ["a"], "other": ["b"]}, [[]], r"references\[0\] is empty"),
    ],
)
def test_texts_that_do_not_belong_together_are_refused(systems, references, message):
    with pytest.raises(InputError, match=message):
        compare(systems, references, metrics=["bleu"])


@pytest.mark.parametrize(
    ("systems", "references"),
    [([["a"], ["b"]], ["a"]), ({"base": ["a"], "other": [1]}, ["a"]), ({"base": ["a"], "other": ["b"]}, "a")],
)
def test_what_is_no_text_is_refused(systems, references):
    with pytest.raises(InputTypeError):
        compare(systems, references, metrics=["bleu"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": ["bluu"]}, "There is no metric 'bluu' here. Did you mean bleu"),
        ({"metrics": []}, "There are no metrics"),
        ({}, "bertscore needs a scorer"),
        ({"metrics": {"bleu": {"smoth": 1}}}, "sacreBLEU does not take these options"),
        ({"metrics": ["bleu"], "test": "t"}, "There is no test 't'"),
        ({"metrics": ["bleu"], "num_resamples": 0}, "0 resamples"),
        ({"metrics": ["bleu"], "num_examples": -1}, "num_examples is -1"),
        ({"metrics": ["bleu"], "seed": -1}, "seed is -1"),
    ],
)
def test_options_out_of_range_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        compare(SYSTEMS, REFERENCES, **options)


def test_an_unknown_metric_is_refused_before_anything_is_scored(scorer):
    def texts():
        yield from SYSTEMS["base"]

    scored = []

    class Watched(list):
        def __iter__(self):
            scored.append(1)
            return super().__iter__()

    with pytest.raises(InputError, match="no metric"):
        compare({"base": texts(), "other": REFERENCES}, Watched(REFERENCES), scorer=scorer, metrics=["bertscore", "x"])
    assert len(scored) <= 1


def test_where_unrelated_pairs_were_measured_a_score_is_placed_among_them(tiny_bundle, tmp_path):
    bundle = tmp_path / "bundle"
    shutil.copytree(tiny_bundle, bundle)
    with BERTScorer(bundle, device="cpu") as scorer:
        write_baseline(bundle, compute_baseline(scorer, sentences(5) * 3, num_pairs=50), "en")
    with BERTScorer(bundle, device="cpu") as scorer:
        comparison = compare(SYSTEMS, REFERENCES, scorer=scorer, metrics=["bertscore", "bleu"], num_resamples=10)
    bertscore, bleu = comparison.metrics
    np.testing.assert_array_equal(bertscore.unrelated, scorer.unrelated_scores())
    expected = [float(percentile(system.score, bertscore.unrelated)) for system in bertscore.systems]
    assert [system.percentile for system in bertscore.systems] == pytest.approx(expected)
    assert {system.percentile for system in bleu.systems} == {None}
    assert f"{expected[1]:.1f}%" in comparison.table()


def test_one_name_instead_of_a_list_of_metrics_is_told():
    with pytest.raises(InputTypeError, match=r"such as \['bleu'\]"):
        compare(SYSTEMS, REFERENCES, metrics="bleu")


@pytest.mark.parametrize("options", [{"num_resamples": 0}, {"seed": -1}])
def test_draws_that_cannot_be_made_are_told_before_anything_is_scored(options):
    def unread():
        raise AssertionError("the references were read")
        yield

    with pytest.raises(InputError):
        compare(SYSTEMS, unread(), metrics=["bleu"], **options)


def test_texts_may_come_from_iterators(scorer):
    once = compare(
        {name: iter(texts) for name, texts in SYSTEMS.items()}, chain(REFERENCES), scorer=scorer, num_resamples=10
    )
    assert once.candidates[1] == tuple(SYSTEMS["closer"])
