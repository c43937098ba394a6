"""One system alone: its score with an interval."""

import json

import numpy as np
import pytest
from scipy import stats

from bertscore_onnx.errors import InputError
from bertscore_onnx_evaluation import compare
from bertscore_onnx_evaluation.systems.corpus_scores import SegmentMeans
from bertscore_onnx_evaluation.systems.single import single_result
from tests.evaluation.simulations import errors

SCORES = np.random.default_rng(1).normal(0.8, 0.1, 60)
GRADES = np.array([1, 2, 3, 4, 5])
SHAPES = {
    "normal": (lambda rng, number: rng.normal(0, 1, number), 0),
    "BERTScore-like": (lambda rng, number: rng.beta(30, 4, number), 30 / 34),
    "grades": (lambda rng, number: rng.choice(GRADES, number, p=[0.03, 0.07, 0.2, 0.4, 0.3]), 3.87),
    "9 of 10 right": (lambda rng, number: (rng.random(number) < 0.9).astype(float), 0.9),
    "MQM": (lambda rng, number: errors(rng, (number,), 0.3), 0.3 * 3 * 2),
}
"""How scores are distributed, and their mean."""


def coverage(shape, number, trials, *, of_document=1):
    draw, mean = SHAPES[shape]
    held = 0
    for seed in range(trials):
        rng = np.random.default_rng([seed, number])
        metric = SegmentMeans([np.repeat(draw(rng, number), of_document)])
        if of_document > 1:
            metric = metric.by_document(np.repeat(np.arange(number), of_document))
        found = single_result("a", metric, num_swaps=1000, seed=seed)
        held += found.score_low is not None and found.score_low <= mean <= found.score_high
    return held / trials


def test_the_interval_is_about_students():
    [system] = compare(scores={"a": SCORES}).metrics[0].systems
    exact = stats.t.interval(0.95, 59, SCORES.mean(), stats.sem(SCORES))
    assert [system.score_low, system.score_high] == pytest.approx(exact, abs=0.002)
    assert coverage("normal", 30, 100) >= 0.88


@pytest.mark.calibration
@pytest.mark.parametrize("of_document", [1, 5])
@pytest.mark.parametrize("number", [30, 200])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_interval_holds_the_mean_over_many_trials(shape, number, of_document, record_property):
    rate = coverage(shape, number, 2000, of_document=of_document)
    unit = "documents" if of_document > 1 else "segments"
    record_property(f"{shape}, {unit} | {number}", f"{rate:.3f}")
    # of few skewed scores the largest may be missing
    assert rate >= (0.85 if shape == "MQM" else 0.93)


@pytest.mark.parametrize(("right", "total"), [(36, 40), (40, 40), (0, 30), (100, 200)])
def test_of_zeros_and_ones_the_interval_is_exact(right, total):
    found = compare(scores={"a": [1] * right + [0] * (total - right)})
    [system] = found.metrics[0].systems
    exact = stats.binomtest(right, total).proportion_ci(0.95)
    assert [system.score_low, system.score_high] == pytest.approx([exact.low, exact.high])
    assert "95 % intervals over segments: Clopper and Pearson's; " in found.table()
    documents = np.repeat(np.arange(total), 5).tolist()
    found = compare(scores={"a": [1] * 5 * right + [0] * 5 * (total - right)}, documents=documents)
    [of_documents] = found.metrics[0].systems
    assert "over documents: Clopper and Pearson's; " in found.legend
    assert [of_documents.score_low, of_documents.score_high] == pytest.approx(
        [exact.low, exact.high]
    )


def test_the_interval_of_bleu_is_about_sacrebleus():
    sacrebleu = pytest.importorskip("sacrebleu")
    rng = np.random.default_rng(2)
    words = [f"w{number}" for number in range(40)]
    references = [" ".join(rng.choice(words, 12)) for _ in range(100)]
    texts = [" ".join(word for word in text.split() if rng.random() < 0.9) for text in references]
    [system] = compare({"a": texts}, references, metrics=["bleu"]).metrics[0].systems
    oracle = sacrebleu.metrics.BLEU(references=[references]).corpus_score(
        texts, None, n_bootstrap=1000
    )
    assert system.score == oracle.score
    assert [system.score_low, system.score_high] == pytest.approx(
        [oracle._mean - oracle._ci, oracle._mean + oracle._ci], abs=1
    )


@pytest.mark.parametrize("scores", [[0.5] * 30, [0.1, 0.2, 0.3]])
def test_without_an_interval_there_is_a_dash(scores):
    table = compare(scores={"a": scores}).table()
    assert table.splitlines()[4].endswith(" -")


def test_documents_and_groups():
    options = {"documents": [number // 2 for number in range(60)], "by": ["x"] * 44 + ["y"] * 16}
    found = compare(scores={"a": SCORES}, **options)
    x, y = (group.systems[0] for group in found.metrics[0].groups)
    assert x.score_low < SCORES[:44].mean() < x.score_high
    assert y.score_low is None
    record = json.loads(found.to_json())
    assert record["systems"][0]["metrics"]["score"]["verdict"] is None
    assert record["methods"].startswith("We scored a by score. 95 % intervals over documents: ")


@pytest.mark.parametrize("output", ["to_html", "figure"])
def test_drawings_and_gates_are_about_two(output):
    found = compare(scores={"a": SCORES}, higher_is_better=["score"])
    with pytest.raises(InputError, match="a is the only system"):
        getattr(found, output)()
    with pytest.raises(InputError, match="a is the only system"):
        found.regressions  # noqa: B018
    with pytest.raises(InputError, match="A margin is about two systems, and a is alone"):
        compare(scores={"a": SCORES}, margin=0.1)
    assert found._repr_html_().startswith("<pre>")
