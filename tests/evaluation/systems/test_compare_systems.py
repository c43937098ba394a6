import json
from dataclasses import replace

import numpy as np
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import InputError
from bertscore_onnx_evaluation import compare
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
        return compare(
            SYSTEMS,
            REFERENCES,
            scorer=scorer,
            metrics=["bertscore", "bleu", "ter"],
            num_resamples=200,
        )


def metric_of(comparison, name):
    [metric] = [metric for metric in comparison.metrics if metric.name == name]
    return metric


def test_idf_weights_are_those_of_the_references_counted_once(tiny_bundle):
    with BERTScorer(tiny_bundle, device="cpu", idf=True) as weighted:
        [metric] = compare(SYSTEMS, REFERENCES, scorer=weighted).metrics
        np.testing.assert_allclose(
            metric.segment_scores[2], weighted.score(SYSTEMS["closest"], REFERENCES).F, atol=1e-6
        )
        with weighted.with_idf(True, REFERENCES) as fixed:
            assert metric.signature.startswith(str(fixed.signature))


def test_metrics_share_their_swaps_and_keep_their_order(comparison, scorer):
    [alone] = compare(SYSTEMS, REFERENCES, scorer=scorer, num_resamples=200).metrics
    assert [metric.name for metric in comparison.metrics] == ["bertscore", "bleu", "ter"]
    assert alone.systems == metric_of(comparison, "bertscore").systems


def test_json_has_null_where_the_baseline_has_no_value(comparison):
    record = json.loads(comparison.to_json())
    assert [system["name"] for system in record["systems"]] == list(SYSTEMS)
    base, closer, _ = (system["metrics"]["bleu"] for system in record["systems"])
    assert [base[key] for key in ("delta", "p", "won")] == [None] * 3
    assert closer["delta"] == pytest.approx(closer["score"] - base["score"])
    assert 0 < closer["p"] <= 1
    for part in ("test:permutation", "resamples:200", "seed:12345"):
        assert part in record["signature"]
        assert all(part in signature for signature in record["signatures"].values())


def test_json_names_the_segments_that_differ_most(comparison, scorer):
    record = json.loads(comparison.to_json())
    gains = [one for one in record["segments"] if one["system"] == "closest" and one["delta"] > 0]
    delta = (
        scorer.score(SYSTEMS["closest"], REFERENCES).F - scorer.score(SYSTEMS["base"], REFERENCES).F
    )
    assert gains[0]["segment"] == delta.argmax() + 1
    assert [one["delta"] for one in gains] == pytest.approx(
        np.sort(delta)[::-1][: len(gains)], abs=1e-6
    )
    assert gains[0]["candidates"]["closest"] == SYSTEMS["closest"][delta.argmax()]
    assert gains[0]["references"] == [REFERENCES[delta.argmax()]]


def test_an_equal_score_is_no_example_and_equal_texts_are_one():
    texts = {"base": ["a b c d"] * 3 + ["x", "y"], "other": ["e f g h"] * 3 + ["a b c d", "y"]}
    references = [*["e f g h"] * 3, "a b c e", "y z"]
    comparison = compare(texts, references, metrics=["chrf"], num_resamples=1)
    assert [example.segment for example in comparison.examples] == [0, 3]


def test_every_example_has_its_matches(comparison):
    for example in comparison.examples:
        baseline, other = example.matches
        assert pytest.approx(example.delta, abs=1e-5) == other.score.F - baseline.score.F


def test_a_table_of_tsv_has_a_row_for_each_metric_and_system(comparison):
    header, *rows = [line.split("\t") for line in comparison.table("tsv").splitlines()]
    assert {len(row) for row in rows} == {len(header)}
    assert [row[:2] for row in rows] == [
        [one.name, name] for one in comparison.metrics for name in SYSTEMS
    ]
    score = float(rows[1][header.index("score")])
    assert score == comparison.metrics[0].systems[1].score


@pytest.mark.parametrize("size", [1e149, 1e155, 1e200])
def test_scores_are_in_range_or_refused(size):
    scores = {"a": [size, 2 * size, 3 * size] * 7, "b": [1.1 * size, 2.2 * size, 2.9 * size] * 7}
    if size < 1e150:
        assert json.loads(compare(scores=scores).to_json())["num_segments"] == 21
    else:
        with pytest.raises(InputError, match="beyond"):
            compare(scores=scores)


def test_a_table_of_latex_or_tsv_escapes_names():
    table = compare(
        {"a_b": ["x y"], "50%": ["x"]}, ["x y"], metrics=["bleu"], num_resamples=1
    ).table("latex")
    assert r"a\_b" in table
    assert r"50\%" in table
    assert table.count(r"\\") == 3
    table = compare(
        {"a\tb\nc": ["x y"], "d": ["x"]}, ["x y"], metrics=["bleu"], num_resamples=1
    ).table("tsv")
    assert [line.split("\t")[1] for line in table.split("\n")] == ["system", "a b c", "d"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": ["bleu", "bluu"]}, "no metric 'bluu' here. Did you mean 'bleu'"),
        ({"metrics": []}, "no metrics"),
        ({"context_sentences": -1}, "context_sentences is -1; expected an integer of 0 or more"),
        (
            {"metrics": ["bleu"], "context_sentences": 2},
            "context_sentences has no effect without the metric bertscore",
        ),
        ({"metrics": ["bleu"], "num_resamples": 0}, "0 swaps"),
        ({"metrics": ["bleu"], "num_examples": -1}, "num_examples is -1"),
        ({"metrics": ["bleu"], "seed": -1}, "seed is -1"),
    ],
)
def test_bad_options_are_refused_before_any_text_is_read(options, message):
    def unread():
        raise AssertionError("the references were read")
        yield

    with pytest.raises(InputError, match=message):
        compare(SYSTEMS, unread(), **options)


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        (["bertscore"], "bertscore needs a scorer"),
        ({"bertscore": {"word_order": 2}}, "no other options; it was given word_order"),
        (["bertscore,value=Q"], "value P, R or F, .* was given value=Q"),
        (
            {"bleu": {"smoth": 1}},
            "does not take the option 'smoth' for BLEU. Its options are lowercase, force, tokenize",
        ),
        (
            {"chrf": {"word_order": -1}},
            "word_order of CHRF is -1; expected a whole number from 0 to 100",
        ),
        ({"chrf": {"beta": 0.5}}, "beta of CHRF is 0.5; expected a whole number"),
        (
            {"bleu": {"smooth_value": "x"}},
            "smooth_value of BLEU is 'x'; expected a number from 0 to 100",
        ),
        ({"ter": {"normalized": "yes"}}, "normalized of TER is 'yes'; expected true or false"),
        ({"bleu": {"tokenize": 13}}, "tokenize of BLEU is 13; expected a name"),
        ({"bleu": {"tokenize": "nope"}}, "'nope'. Its tokenizers are none, zh, 13a"),
    ],
)
def test_options_that_a_metric_does_not_take_are_refused(metrics, message):
    with pytest.raises(InputError, match=message):
        compare(SYSTEMS, REFERENCES, metrics=metrics)


def test_a_scorer_of_all_layers_is_refused(all_layers_scorer):
    with pytest.raises(InputError, match="scored by one layer"):
        compare(SYSTEMS, REFERENCES, scorer=all_layers_scorer)


def test_texts_may_come_from_iterators_and_be_one_segment():
    once = compare(
        {"one": iter(["a cat"]), "two": iter(["a dog"])},
        iter(["a cat"]),
        metrics=["chrf"],
        num_resamples=9,
    )
    assert (once.candidates, once.references) == ((("a cat",), ("a dog",)), (("a cat",),))


def test_documents_are_the_units_of_tests_and_intervals():
    names = [f"news-{segment // 3}" for segment in range(SEGMENTS)]
    by_segment = compare(SYSTEMS, REFERENCES, metrics=["bleu"], num_resamples=100)
    by_document = compare(SYSTEMS, REFERENCES, metrics=["bleu"], num_resamples=100, documents=names)
    number = len({*names})
    assert by_document.num_documents == number
    assert f"|documents:{number}|" in by_document.signature
    assert all(f"|documents:{number}|" in metric.signature for metric in by_document.metrics)
    for plain, grouped in zip(by_segment.metrics, by_document.metrics, strict=True):
        assert [one.score for one in grouped.systems] == pytest.approx(
            [one.score for one in plain.systems]
        )
        assert grouped.systems[1].delta_low != plain.systems[1].delta_low
    with pytest.raises(InputError, match="documents has 2 values"):
        compare(SYSTEMS, REFERENCES, metrics=["bleu"], documents=["a", "b"])
    with pytest.raises(InputError, match="one document"):
        compare(SYSTEMS, REFERENCES, metrics=["bleu"], documents=["a"] * SEGMENTS)


@pytest.mark.parametrize(
    ("margin", "metrics"), [(0, ["ter"]), (float("nan"), ["ter"]), (1, ["ter", "bleu"])]
)
def test_a_margin_is_above_0_and_of_one_metric(margin, metrics):
    with pytest.raises(InputError, match="margin"):
        compare(SYSTEMS, REFERENCES, metrics=metrics, margin=margin)


@pytest.mark.parametrize(
    ("precisions", "is_warned"), [(("int8", "fp32"), True), (("int8", "int8"), False)]
)
@pytest.mark.parametrize("is_file", [False, True])
def test_a_mean_in_int8_is_not_compared_with_another_without_a_warning(
    scorer, run, tmp_path, precisions, is_warned, is_file
):
    scores = {}
    for name, precision in zip(("base", "closer"), precisions, strict=True):
        scores[name] = scorer.score(SYSTEMS[name], REFERENCES)
        scores[name].signature = replace(scores[name].signature, precision=precision)
    if is_file:
        pyarrow = pytest.importorskip("pyarrow", reason="needs the extra parquet")
        parquet = pytest.importorskip("pyarrow.parquet")
        for name, scored in scores.items():
            signature = {"bertscore_onnx.signature": str(scored.signature)}
            table = pyarrow.table({"score": scored.F}).replace_schema_metadata(signature)
            parquet.write_table(table, tmp_path / f"{name}.parquet")
        files = (tmp_path / f"{name}.parquet" for name in scores)
        said = run("compare", "--scores", *files, "--resamples", 100).stdout
    else:
        said = str(compare(scores=scores, num_resamples=100))
    assert ("Scores in fp32 and int8 are compared." in " ".join(said.split())) == is_warned
