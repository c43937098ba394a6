"""Several runs of a system: their means are compared, and an interval over other runs stands
beside.
"""

import re

import numpy as np
import pytest
from scipy import stats

from bertscore_onnx.errors import InputError
from bertscore_onnx_evaluation import SegmentMeans, compare, paired_permutation

pandas = pytest.importorskip("pandas")

NUM_RUNS, NUM_SEGMENTS = 5, 100
SYSTEMS = ("base", "other")


def draw(rng, share, segments=NUM_SEGMENTS, runs=NUM_RUNS):
    """Draw two equal systems, (systems, runs, segments), with a share of the variance of a score
    due to runs.
    """
    difficulty = rng.normal(size=segments)
    own = rng.normal(size=(2, 1, segments))
    return difficulty + (1 - share) ** 0.5 * own + share**0.5 * rng.normal(size=(2, runs, segments))


@pytest.fixture
def scores():
    return draw(np.random.default_rng(8), 0.5)


def long_table(scores, rng=None):
    rows = [
        (system, segment, run, float(scores[at, run, segment]))
        for at, system in enumerate(SYSTEMS)
        for run in range(scores.shape[1])
        for segment in range(scores.shape[2])
    ]
    if rng is not None:
        rng.shuffle(rows)
    columns = zip(*rows, strict=True)
    names = ("system", "segment", "run", "score")
    return pandas.DataFrame(dict(zip(names, columns, strict=True)))


def test_means_of_runs_are_compared(scores):
    means = paired_permutation(scores.mean(axis=1))
    for found in (paired_permutation(scores), paired_permutation(SegmentMeans([*scores]))):
        assert found.p.tolist() == means.p.tolist()
        assert found.interval[0] == pytest.approx(means.interval[0], abs=1e-12)


def test_every_form_of_runs_gives_the_same(scores):
    frame = long_table(scores, np.random.default_rng(1))
    wide = frame.pivot(index=["segment", "run"], columns="system", values="score").reset_index()
    expected = compare(scores=dict(zip(SYSTEMS, scores, strict=True))).to_dict()["systems"]
    assert expected[1]["metrics"]["score"]["runs"] == NUM_RUNS
    for form in (frame, wide, wide.sample(frac=1, random_state=2), long_table(scores)):
        assert compare(scores=form, systems=SYSTEMS).to_dict()["systems"] == expected
    tables = {
        name: [pandas.DataFrame({"score": run}) for run in scores[at]]
        for at, name in enumerate(SYSTEMS)
    }
    assert compare(scores=tables).to_dict()["systems"] == expected


@pytest.mark.parametrize("documents", [None, np.arange(NUM_SEGMENTS) // 4])
def test_trained_again_the_interval_grows_in_squares(scores, documents):
    shifted = scores[:, :3] + np.random.default_rng(1).normal(0, 0.2, (2, 3, 1))
    found = compare(
        scores=dict(zip(SYSTEMS, (shifted[0], shifted[1, :2]), strict=True)), documents=documents
    )
    system = found.metrics[0].systems[1]
    first, second = ([run.mean() for run in runs] for runs in (shifted[0], shifted[1, :2]))
    added = (
        stats.t.ppf(0.975, 2) ** 2 * np.var(first, ddof=1) / 3
        + stats.t.ppf(0.975, 1) ** 2 * np.var(second, ddof=1) / 2
    )
    low = system.delta - ((system.delta - system.delta_low) ** 2 + added) ** 0.5
    high = system.delta + ((system.delta_high - system.delta) ** 2 + added) ** 0.5
    assert (system.runs_low, system.runs_high) == pytest.approx((low, high), rel=1e-9)
    assert f"Trained again: other {low:+.4f} to {high:+.4f} (95 %" in " ".join(
        found.table().split()
    )


def drawn_runs(seed):
    rng = np.random.default_rng(seed)
    shift = rng.choice([0, 0.15, 0.4]) * np.array([[[0]], [[1]]])
    effects = rng.choice([0, 0.05, 0.3]) * rng.normal(size=(2, 4, 1))
    base, new = draw(rng, 0.5, 60, runs=4) / 3 + shift + effects
    return {"old": base[: rng.integers(2, 4)], "new": new}


END = r"[+-]?\d+\.\d+ to [+-]?\d+\.\d+"
HEADLINES = {
    (True, True): rf"significantly better than \w+ in these runs, and trained again \({END}\)\.",
    (True, False): rf"significantly better than \w+ in these runs; trained again not told apart "
    rf"\({END}\)\.",
    (False, False): rf"not significantly better than \w+, in these runs or trained again "
    rf"\({END}\)\.",
}


def test_a_star_needs_these_runs_and_those_trained_again():
    seen = set()
    for seed in range(40):
        lower = ["score"] * (seed % 2)
        found = compare(scores=drawn_runs(seed), num_resamples=199, lower_is_better=lower)
        system = found.metrics[0].systems[1]
        state = (system.p < 0.05, system.runs_low > 0 or system.runs_high < 0)
        headline = " ".join(found.table().split("\n\n")[0].split())
        assert re.fullmatch(rf"\w+ scores best: {HEADLINES[state]}", headline)
        assert ("*" in found.table("latex").split("tabular")[1]) == all(state)
        values = found.to_dict()["systems"][1]["metrics"]["score"]
        assert values["significant"] == all(state)
        seen.add(state)
    assert seen == set(HEADLINES)


def test_a_margin_holds_in_these_runs_and_trained_again():
    seen = set()
    for seed in range(40):
        sign = -1 if seed % 2 else 1
        scores = {name: sign * runs for name, runs in drawn_runs(seed).items()}
        direction = {"lower_is_better" if seed % 2 else "higher_is_better": ["score"]}
        found = compare(
            scores=scores, margin=0.5, score_range=(-3, 3), num_resamples=199, **direction
        )
        system = found.metrics[0].systems[1]
        again = system.runs_high if seed % 2 else -system.runs_low
        assert system.not_worse == (max(system.largest_loss, again) < 0.5)
        assert bool(found.regressions) != system.not_worse
        [note] = [note for note in found.notes if note.startswith("new: ")]
        if system.largest_loss < 0.5 <= again:
            assert note.endswith("worse (95 %), not less than 0.5000.") or "Equivalent" in note
        seen.add((system.largest_loss < 0.5, again < 0.5))
    assert len(seen) >= 3


def test_systems_may_have_other_numbers_of_runs(scores):
    found = compare(scores={"base": scores[0, :1], "other": scores[1]})
    assert [system.runs for system in found.metrics[0].systems] == [1, NUM_RUNS]
    assert found.metrics[0].systems[1].runs_low is None
    assert "|runs:1/5|" in found.metrics[0].signature
    assert " in these runs; trained again is not known (one run)." in " ".join(
        found.table().split()
    )


def test_texts_in_runs_are_scored_each(scorer):
    references = ["the cat sat on the mat", "the dog sat", "a house"] * 8
    runs = [["the cat sat", "a dog", "the house"] * 8, ["a cat", "the dog", "a red house"] * 8]
    base = ["the cat", "the dog sat", "a tree"] * 8
    found = compare(
        {"base": base, "new": runs}, references, scorer=scorer, metrics=["bertscore", "bleu"]
    )
    single = [compare({"base": base, "new": run}, references, scorer=scorer) for run in runs]
    expected = np.mean([one.metrics[0].systems[1].score for one in single])
    assert found.metrics[0].systems[1].score == pytest.approx(expected, abs=1e-7)
    assert [system.runs for system in found.metrics[1].systems] == [1, 2]
    assert found.candidates[1] == tuple(runs[0])


def without(table, is_left_out):
    return table[~table.apply(is_left_out, axis=1)]


def test_a_segment_without_runs_is_named_or_left_out(scores):
    table = without(
        long_table(scores), lambda row: row["segment"] == 7 and row["system"] == "other"
    )
    with pytest.raises(InputError, match="segment '7'"):
        compare(scores=table)
    found = compare(scores=table, missing="drop")
    assert found.dropped == ("7",)
    assert found.num_segments == NUM_SEGMENTS - 1


def test_a_segment_whose_text_a_run_lacks_is_left_out(scores):
    table = long_table(scores[:, :2])
    table["candidate"] = [f"text {score}" for score in table.pop("score")]
    table["reference"] = [f"text {segment}" for segment in table["segment"]]
    table = without(
        table, lambda row: (row["system"], row["segment"], row["run"]) == ("other", 7, 1)
    )
    assert compare(table, metrics=["chrf"], num_resamples=20, missing="drop").dropped == ("7",)


def test_a_missing_run_is_named_or_the_others_are_averaged(scores):
    def failed(row):
        return (row["system"], row["segment"], row["run"]) in {
            ("other", 7, 4),
            ("other", 7, 0),
            ("base", 9, 1),
        }

    table = without(long_table(scores), failed)
    with pytest.raises(InputError, match=r"run '4'|run '0'|run '1'"):
        compare(scores=table)
    with_gaps = scores.copy()
    with_gaps[1, [4, 0], 7] = with_gaps[0, 1, 9] = np.nan
    empty = long_table(with_gaps)
    expected = np.nanmean(with_gaps, axis=1)
    for form in (table, empty, without(empty, failed), dict(zip(SYSTEMS, with_gaps, strict=True))):
        found = compare(scores=form, missing="drop")
        assert found.dropped == ()
        np.testing.assert_allclose(found.metrics[0].segment_scores, expected, rtol=0, atol=1e-15)
        assert found.metrics[0].systems[1].delta == pytest.approx(
            expected[1].mean() - expected[0].mean()
        )
        assert [system.missing_runs for system in found.metrics[0].systems] == [1, 2]
        assert "Scores are means of 5 runs, and of fewer where 3 scores are missing." in " ".join(
            found.table().split()
        )


def test_a_run_that_occurs_twice_is_refused(scores):
    table = long_table(scores)
    table = pandas.concat([table, table[:1]])
    with pytest.raises(InputError, match="second row for segment '0' of base, 0"):
        compare(scores=table)


def rates(share, trials):
    """Return how often equal systems differ, and the coverage; by segments, and with all rows taken
    as independent.
    """
    found = []
    for seed in range(trials):
        scores = draw(np.random.default_rng([seed, round(100 * share)]), share)
        for form in (scores, scores.reshape(2, -1)):
            result = paired_permutation(form, num_swaps=999, seed=seed)
            low, high = result.interval[0]
            found.append((result.p[0] < 0.05, low <= 0 <= high))
    return np.mean(np.reshape(found, (trials, 2, 2)), axis=0)


@pytest.mark.slow
def test_equal_systems_seldom_differ_over_their_runs():
    (p, coverage), _ = rates(0.5, 150)
    assert p <= 0.1
    assert coverage >= 0.9


@pytest.mark.calibration
@pytest.mark.parametrize("share", [0, 0.5, 1])
def test_runs_over_many_trials(share, record_property):
    by_segment, by_row = rates(share, 2000)
    row = (
        f"{NUM_RUNS} runs of {NUM_SEGMENTS} segments, {100 * share:.0f} % of the variance due to "
        "runs"
    )
    for name, (p, coverage) in (("by segment", by_segment), ("rows as independent", by_row)):
        record_property(f"{row} | p < 0.05, {name}", f"{p:.3f}")
        record_property(f"{row} | coverage, {name}", f"{coverage:.3f}")
    assert by_segment[0] <= 0.055
    assert by_segment[1] >= 0.93


def retrained_rate(runs, effect, number):
    """Return how often the interval over other runs excludes 0 for equal systems with these numbers
    of runs.

    Effects of runs have so many standard errors of a run.
    """
    found = []
    for seed in range(number):
        rng = np.random.default_rng([seed, *runs, effect])
        drawn = draw(rng, 0.5, runs=max(runs)) + effect * NUM_SEGMENTS**-0.5 * rng.normal(
            size=(2, max(runs), 1)
        )
        systems = [drawn[0, : runs[0]], drawn[1, : runs[1]]]
        tested = paired_permutation(systems, num_swaps=999, seed=seed)
        low, high = tested.runs_interval[0]
        found.append(low > 0 or high < 0)
    return np.mean(found)


def test_equal_systems_trained_again_seldom_differ():
    assert retrained_rate((2, 5), 2, 100) <= 0.1


@pytest.mark.calibration
@pytest.mark.parametrize("effect", [0, 1, 2, 5])
@pytest.mark.parametrize("runs", [(2, 2), (3, 3), (5, 5), (2, 5), (3, 10)])
def test_runs_as_units_over_many_trials(runs, effect, record_property):
    found = retrained_rate(runs, effect, 2000)
    record_property(
        f"{runs[0]} and {runs[1]} runs | effects of {effect} standard errors", f"{found:.3f}"
    )
    assert found <= 0.055
