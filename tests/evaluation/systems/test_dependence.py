"""Rows that repeat others, and neighbours that are alike, come with a warning."""

import numpy as np
import pytest
from scipy import stats

from bertscore_onnx_evaluation import compare
from bertscore_onnx_evaluation.systems.dependence import alike_neighbours
from tests.evaluation.simulations import rate


def warned(scores, **options):
    return " ".join(compare(scores=scores, num_resamples=39, **options).warnings)


def test_rows_whose_texts_and_given_scores_repeat_are_counted():
    references = [f"the cat sat on mat {row} of the red house" for row in range(24)] * 8
    texts = {
        "a": [f"a cat {row}" for row in range(24)] * 8,
        "b": [f"the cat {row % 2}" for row in range(24)] * 8,
    }
    options = {"metrics": ["chrf"], "num_resamples": 39}
    [warning] = compare(texts, references, **options).warnings
    assert warning.startswith("168 of 192 rows repeat others")
    documents = [row % 24 for row in range(192)]
    assert compare(texts, references, documents=documents, **options).warnings == []
    different = dict.fromkeys("ab", np.random.default_rng(0).random(192))
    given = compare(texts, references, scores={"m": different}, **options).warnings
    assert not any("repeat" in warning for warning in given)


@pytest.mark.parametrize("seed", range(20))
def test_answers_and_labels_are_no_repeats(seed):
    rng = np.random.default_rng(seed)
    answers = [["yes", "no"], [f"label_of_class_{number}" for number in range(50)]][seed % 2]
    gold = rng.choice(answers, 120)
    systems = {}
    for name in ("a", "b"):
        is_right = rng.random(120) < 0.7
        systems[name] = np.where(is_right, gold, rng.choice(answers, 120)).tolist()
    found = compare(systems, gold.tolist(), metrics=["chrf"], num_resamples=39)
    assert not any("repeat" in warning for warning in found.warnings)


def neighbours(rng, segments, correlation):
    """Draw differences of documents of ten segments, each of which follows the one before."""
    drawn = rng.normal(size=(segments // 10, 10))
    for place in range(1, 10):
        drawn[:, place] = (
            correlation * drawn[:, place - 1] + (1 - correlation**2) ** 0.5 * drawn[:, place]
        )
    return drawn.ravel()


def test_neighbours_that_are_alike_are_named():
    values = neighbours(np.random.default_rng(2), 200, 0.7)
    scores = {"a": 0 * values, "b": values}
    ranks = stats.rankdata(values) - 100.5
    expected = (ranks[1:] * ranks[:-1]).sum() / (ranks**2).sum()
    assert f"Neighbouring segments are alike (autocorrelation {expected:.2f})" in warned(scores)
    assert warned(scores, documents=(np.arange(200) // 10).tolist()) == ""
    shuffled = np.random.default_rng(3).permutation(200)
    pandas = pytest.importorskip("pandas")
    shuffled_scores = {name: of[shuffled] for name, of in scores.items()}
    ids = pandas.DataFrame({"id": shuffled, **shuffled_scores})
    assert "Neighbouring" in warned(ids, systems=["a", "b"])
    assert warned(shuffled_scores) == ""


@pytest.mark.calibration
@pytest.mark.parametrize("segments", [30, 50, 200, 1000])
@pytest.mark.parametrize("number", [1, 6])
def test_neighbours_over_many_trials(segments, number, record_property):
    rates = []
    for correlation in (0, 0.3, 0.7):

        def is_named(seed, correlation=correlation):
            rng = np.random.default_rng([seed, segments])
            return bool(
                alike_neighbours([neighbours(rng, segments, correlation) for _ in range(number)])
            )

        rates.append(rate(is_named, 2000))
        row = f"{segments:,} segments, {number} difference{'s' * (number > 1)}"
        record_property(f"{row} | AR({correlation})", f"{rates[-1]:.3f}")
    assert rates[0] <= 0.05
    assert rates[2] >= 0.9
