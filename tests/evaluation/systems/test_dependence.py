"""Rows that repeat others, and neighbours that are alike, come with a warning."""

import numpy as np
import pytest
from scipy import stats

from bertscore_onnx_evaluation import compare
from bertscore_onnx_evaluation.systems.dependence import alike_neighbours
from tests.evaluation.simulations import rate


def warned(scores, **options):
    return " ".join(compare(scores=scores, num_resamples=39, **options).warnings)


def drawn(kind, rng, segments):
    base = rng.normal(0.85, 0.05, segments)
    return {
        "fine": np.stack([base, base + rng.normal(0, 0.03, segments)]),
        "the same": np.stack([base, base]),
        "0 or 1": rng.integers(2, size=(2, segments)).astype(float),
        "grades": rng.integers(1, 6, size=(2, segments)).astype(float),
        "the same, 0 to 100": np.tile(rng.integers(0, 101, segments), (2, 1)).astype(float),
        "four digits": np.stack([base, base + rng.normal(0, 0.03, segments)]).round(4),
        "many zeros": np.stack([base, base + 0.01]) * (rng.random(segments) < 0.4),
    }[kind]


KINDS = ("fine", "the same", "0 or 1", "grades", "the same, 0 to 100", "four digits", "many zeros")


@pytest.mark.parametrize("segments", [30, 300, 2000])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_that_are_equal_by_chance_are_not_called_repeats(kind, segments):
    for seed in range(5):
        scores = drawn(kind, np.random.default_rng([seed, segments]), segments)
        assert "repeat" not in warned(dict(zip("ab", scores, strict=True)))


@pytest.mark.parametrize("times", [2, 5, 8])
@pytest.mark.parametrize("kind", ["fine", "the same"])
def test_repeated_rows_are_counted_in_any_order(kind, times):
    rng = np.random.default_rng(times)
    scores = np.repeat(drawn(kind, rng, 48), times, axis=1)
    for order in (np.arange(48 * times), rng.permutation(48 * times)):
        repeated = dict(zip("ab", scores[:, order], strict=True))
        assert f"{48 * times} rows, 48 different: the others repeat them" in warned(repeated)
        documents = (np.arange(48 * times) // times)[order].tolist()
        assert warned(repeated, documents=documents) == ""


def test_repeated_texts_are_counted_by_references_and_all_outputs():
    references = [f"the cat sat on mat {row}" for row in range(24)] * 8
    texts = {
        "a": [f"a cat {row}" for row in range(24)] * 8,
        "b": [f"the cat {row % 2}" for row in range(24)] * 8,
    }
    options = {"metrics": ["chrf"], "num_resamples": 39}
    [warning] = compare(texts, references, **options).warnings
    assert warning.startswith("192 rows, 24 different: the others repeat them")
    texts["b"] = [f"the cat {row}" for row in range(192)]
    assert not any("repeat" in one for one in compare(texts, references, **options).warnings)


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
    ids = {"id": shuffled, **{name: of[shuffled] for name, of in scores.items()}}
    assert "Neighbouring" in warned(ids, systems=["a", "b"])
    assert warned({name: of[shuffled] for name, of in scores.items()}) == ""


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
