import tracemalloc

import numpy as np
import pytest
from scipy import stats

from bertscore_onnx.errors import InputError
from bertscore_onnx_evaluation import compare
from bertscore_onnx_evaluation.systems.corpus_scores import SegmentMeans, SummedStatistics
from bertscore_onnx_evaluation.systems.paired_tests import (
    bootstrap_counts,
    holm,
    paired_permutation,
    segment_outcomes,
)
from tests.evaluation.simulations import EQUAL_SYSTEMS, SHAPES, rate


@pytest.fixture
def scores():
    """Return three systems that share the difficulty of the segments, so that p is neither near 0
    nor 1.
    """
    rng = np.random.default_rng(4)
    return (
        rng.normal(0.9, 0.03, 120) + rng.normal(0, 0.01, (3, 120)) + [[0], [0.001], [-0.0004]]
    ).astype(np.float32)


@pytest.mark.parametrize("seed", [12345, 7])
def test_the_test_is_that_of_a_plain_loop(scores, seed):
    base, system = scores[0].astype(np.float64), scores[1].astype(np.float64)
    exceeding = 0
    for kept in np.random.default_rng(seed).integers(2, size=(10_000, 120), dtype=bool):
        swapped = np.where(kept, system, base).mean() - np.where(kept, base, system).mean()
        exceeding += abs(swapped) >= abs(system.mean() - base.mean())

    result = paired_permutation(scores, seed=seed)

    assert result.pairs.tolist() == [[0, 1], [0, 2]]
    assert result.p[0] == (exceeding + 1) / 10_001
    assert result.score[1] == pytest.approx(system.mean(), abs=1e-12)
    assert result.delta[0] == pytest.approx(system.mean() - base.mean(), abs=1e-12)
    assert 0.002 < result.p[0] < 0.9


def test_ties_do_not_depend_on_rounding():
    rng = np.random.default_rng(2)
    base = rng.integers(0, 10, 14) / 10
    system = base + rng.choice([-0.1, 0.1, 0.2], 14)
    orders = [np.random.default_rng(seed).permutation(14) for seed in range(5)]
    sums = 2 * np.random.default_rng(12345).integers(2, size=(10_000, 14), dtype=bool) - 1
    tenths = np.rint(10 * (system - base)).astype(int)
    for order in orders:
        reaching = (np.abs(sums @ tenths[order]) >= abs(tenths.sum())).sum()
        assert paired_permutation([base[order], system[order]]).p[0] == (reaching + 1) / 10_001


@pytest.mark.parametrize(
    ("gains", "p"),
    [
        ([1, 0, 0, 0], 1),
        ([0.1, 0.2, 0.3, 0.4], 0.125),
        ([1, 2, 3] + [0] * 997, 0.25),
        ([0] * 5, 1),
        ([3, -1, 0], 1),
    ],
)
def test_few_segments_that_differ_have_an_exact_p(gains, p):
    base = np.random.default_rng(0).random(len(gains))
    assert paired_permutation([base, base + gains]).p.tolist() == [p]
    statistics = np.stack([base, base + gains])[:, :, None]
    assert paired_permutation(
        SummedStatistics(statistics, lambda sums: float(sums[0]))
    ).p.tolist() == [p]


@pytest.mark.parametrize(
    ("won", "lost"), [(1, 0), (5, 0), (9, 2), (6, 6), (40, 20), (100, 0), (51, 49)]
)
def test_of_scores_of_0_and_1_it_is_mcnemars_test(won, lost):
    scores = np.zeros((2, 100))
    scores[1, :won], scores[0, won : won + lost] = 1, 1
    assert paired_permutation(scores).p[0] == pytest.approx(
        stats.binomtest(won, won + lost).pvalue, abs=1e-12
    )


@pytest.mark.parametrize("num_swaps", [1, 30])
def test_the_interval_of_scores_of_0_and_1_agrees_with_p(num_swaps):
    for number in range(1, 61):
        for won in range(number + 1):
            metric = np.zeros((2, 100))
            metric[1, :won], metric[0, won:number] = 1, 1
            result = paired_permutation(metric, num_swaps=num_swaps)
            [(low, high)], [p] = result.interval, result.p
            assert (low <= 0 <= high) == (p >= 0.05)
            # the smallest difference that there can be
            assert p >= 0.05 or min(abs(low), abs(high)) >= 0.01 - 1e-12


DIFFERENCES = {
    "normal": (SHAPES["normal"], 40, None),
    "skewed": (SHAPES["lognormal"], 25, None),
    "few grades": (SHAPES["0, 0.5 or 1"], 30, None),
    "7 segments": (SHAPES["normal"], 7, None),
    "13 segments": (SHAPES["exponential"], 13, None),
    "documents": (SHAPES["normal"], 210, np.arange(20).repeat(np.arange(1, 21))),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_the_interval_holds_the_differences_that_are_not_rejected(name):
    shape, segments, documents = DIFFERENCES[name]
    differences = shape(np.random.default_rng(5), segments) + 0.2

    def test(true_difference):
        metric = SegmentMeans([np.full(segments, true_difference), differences])
        return paired_permutation(metric if documents is None else metric.by_document(documents))

    [(low, high)] = test(0).interval
    assert low < high
    for inside, outside in ((low + 1e-6, low - 1e-6), (high - 1e-6, high + 1e-6)):
        assert test(outside).p[0] < 0.05 <= test(inside).p[0]


def test_intervals_and_p_agree():
    rng = np.random.default_rng(9)
    for seed in range(300):
        segments = int(rng.integers(6, 60))
        shape = SHAPES[[*SHAPES][seed % len(SHAPES)]]
        scores = [np.zeros(segments), shape(rng, segments) + rng.normal() * 2 / segments**0.5]
        result = paired_permutation(scores, num_swaps=2000, seed=seed)
        [(low, high)], [p] = result.interval, result.p
        assert (low > 0 or high < 0) <= (p < 0.05)
        assert (low < 0 < high) <= (p >= 0.05)
        values = [scores[1].min(), low, result.delta[0], high, scores[1].max()]
        # not a sign test, which knows no sizes
        if np.ptp(np.abs(scores[1][scores[1] != 0])) > 1e-9:
            assert np.diff(values).min() >= -1e-15


def test_a_few_exceptions_among_constant_differences_do_not_widen_the_interval():
    differences = np.array([0.3, 0.301] * 4 + [0.3, -0.2])
    result = paired_permutation([0 * differences, differences])
    assert result.p[0] < 0.05
    assert result.interval[0] == pytest.approx([0.13366, 0.30075], abs=1e-5)


@pytest.mark.parametrize("gains", [np.arange(1, 6), np.full(40, 0.3), np.zeros(40)])
def test_without_an_interval_there_is_none_in_any_form(gains):
    """Fewer than 6 segments have none, and those that all differ by the same: nothing is that
    certain.
    """
    scores = {"base": np.full(len(gains), 0.1), "new": 0.1 + gains}
    assert "interval" not in repr(paired_permutation([*scores.values()]))
    found = compare(scores=scores)
    new = found.to_dict()["systems"][1]["metrics"]["score"]
    assert new["delta_low"] is new["delta_high"] is None
    assert "95 % interval" not in new["verdict"]


AT_ONCE = 50
"""Pairs of systems that share their swaps and resamples, which takes far less time."""


def many_trials(differences, number, *, documents=None, true=0, **options):
    """Test differences, which are drawn by seed, (segments,); return p, and which intervals hold
    `true`.
    """
    p, holds = [], []
    for start in range(0, number, AT_ONCE):
        drawn = [differences(seed) for seed in range(start, min(start + AT_ONCE, number))]
        metric = SegmentMeans([0 * drawn[0], *drawn])
        metric = metric if documents is None else metric.by_document(documents)
        result = paired_permutation(metric, seed=start, **options)
        p.append(result.p)
        holds.append((result.interval[:, 0] <= true) & (result.interval[:, 1] >= true))
    return np.concatenate(p), np.concatenate(holds)


def trials(case, number, *, documents=True):
    """Return p of pairs of equally good systems, and how often the interval of their difference
    holds 0.
    """
    units = case.units if documents else None
    p, holds = many_trials(case.differences, number, documents=units, num_swaps=4999)
    return p, holds.mean()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["20 segments", "100 segments, 3 % differ", "20 documents of 10 segments"]
)
def test_equal_systems_seldom_differ(name):
    p, coverage = trials(EQUAL_SYSTEMS[name], 150)
    assert (p < 0.05).mean() <= 0.1
    assert coverage >= 0.87


@pytest.mark.calibration
@pytest.mark.parametrize("name", EQUAL_SYSTEMS)
def test_equal_systems_seldom_differ_over_many_trials(name, record_property):
    case = EQUAL_SYSTEMS[name]
    p, coverage = trials(case, 2000)
    record_property(f"{name} | compare", f"{(p < 0.05).mean():.3f}")
    assert (p < 0.05).mean() <= 0.055
    if case.differing == 1:
        assert stats.kstest(p, "uniform").pvalue > 0.05
        record_property(f"{name} | coverage", f"{coverage:.3f}")
        assert coverage >= 0.93


def shape_rates(name, segments, number, **options):
    """Return how often p is below .05, and the interval holds the mean of 0, for differences of a
    shape.
    """
    p, holds = many_trials(
        lambda seed: SHAPES[name](np.random.default_rng([seed, segments]), segments),
        number,
        **options,
    )
    return (p < 0.05).mean(), holds.mean()


EXCHANGEABLE = (
    "normal",
    "Student's t, 3 degrees",
    "two lognormal scores",
    "30 % differ",
    "3 % differ",
    "0 or 1",
    "0, 0.5 or 1",
    "counts of errors",
)


@pytest.mark.calibration
@pytest.mark.parametrize("segments", [8, 13, 20, 100, 1000])
@pytest.mark.parametrize("name", EXCHANGEABLE)
def test_differences_of_any_shape_keep_the_level(name, segments, record_property):
    p, _ = shape_rates(name, segments, 8000 if segments <= 20 else 2000)
    record_property(f"{name} | p < 0.05, {segments:,} segments", f"{p:.3f}")
    assert p <= 0.055


LOWEST_COVERAGE = {"exponential": 0.88, "lognormal": 0.83}
"""Of intervals of skewed differences of 10 segments; of others it is .935."""


@pytest.mark.calibration
@pytest.mark.parametrize("segments", [10, 20, 50, 200])
@pytest.mark.parametrize(
    "name",
    [
        "normal",
        "Student's t, 3 degrees",
        "two lognormal scores",
        "0, 0.5 or 1",
        *LOWEST_COVERAGE,
        "few exceptions",
    ],
)
def test_intervals_of_any_shape_hold(name, segments, record_property):
    _, coverage = shape_rates(name, segments, 2000, num_swaps=1999)
    record_property(f"{name} | coverage, {segments} segments", f"{coverage:.3f}")
    if name != "few exceptions":  # 2 of 20, or none of 10, may be seen
        assert coverage >= LOWEST_COVERAGE.get(name, 0.935)


WON_LOST = {
    "0.5 won, 0.02 lost": (0.5, 0.02, None),
    "0.3 won, 0.01 lost": (0.3, 0.01, None),
    "0.2 won, 0.05 lost": (0.2, 0.05, None),
    "0.3 won, 0.05 lost, by documents": (0.3, 0.05, 10),
}
"""The shares of segments that a system wins and loses, and the segments of a document; these differ
in the first.
"""


@pytest.mark.calibration
@pytest.mark.parametrize("segments", [50, 200, 1000])
@pytest.mark.parametrize("name", WON_LOST)
def test_intervals_of_systems_that_differ_hold_the_difference(name, segments, record_property):
    won, lost, of_document = WON_LOST[name]
    documents = None if of_document is None else np.arange(segments) // of_document

    def differences(seed):
        rng = np.random.default_rng([seed, segments])
        share = (
            won
            if documents is None
            else rng.beta(10 * won, 10 * (1 - won), documents[-1] + 1)[documents]
        )
        is_won = rng.random(segments) < share
        return np.where(is_won, 1.0, -1.0 * (rng.random(segments) < lost / (1 - won)))

    true = won - lost
    _, holds = many_trials(differences, 2000, documents=documents, true=true, num_swaps=1999)
    if documents is None or segments > 50:
        record_property(f"{name} | coverage, {segments:,} segments", f"{holds.mean():.3f}")
        assert holds.mean() >= 0.93


DOCUMENT_SIZES = {
    "Zipf": lambda rng, number: rng.permutation(np.ceil(100 / np.arange(1, number + 1))),
    "Pareto 1.5": lambda rng, number: np.ceil(1 + rng.pareto(1.5, size=number)),
    "lognormal 1.5": lambda rng, number: np.ceil(rng.lognormal(1, 1.5, size=number)),
    "1 to 50, better on long ones": lambda rng, number: rng.integers(1, 51, size=number),
}


def draw_documents(name, seed, number):
    """Draw the metric of two systems on documents with an intraclass correlation of .1."""
    rng = np.random.default_rng([seed, number])
    sizes = DOCUMENT_SIZES[name](rng, number).astype(int)
    documents = np.arange(number).repeat(sizes)
    effect = 0.1**0.5 * rng.normal(size=number)
    if "better" in name:
        possible = np.arange(1, 51)
        # less the mean of a segment's document
        effect += 0.02 * (sizes - (possible**2).sum() / possible.sum())
    differences = effect[documents] + 0.9**0.5 * rng.normal(size=len(documents))
    return SegmentMeans([0 * differences, differences]).by_document(documents)


@pytest.mark.calibration
@pytest.mark.parametrize("number", [8, 20, 50, 100])
@pytest.mark.parametrize("name", DOCUMENT_SIZES)
def test_documents_of_any_sizes_have_intervals_that_hold(name, number, record_property):
    def holds(seed):
        metric = draw_documents(name, seed, number)
        low, high = paired_permutation(metric, num_swaps=1999, seed=seed).interval[0]
        return low <= 0 <= high

    coverage = rate(holds, 2000)
    record_property(f"{name} | coverage, {number} documents", f"{coverage:.3f}")
    assert coverage >= (0.92 if "better" in name and number == 8 else 0.93)


@pytest.mark.calibration
@pytest.mark.parametrize("segments", [20, 100, 1000])
def test_equal_means_are_not_enough(segments, record_property):
    p, coverage = shape_rates("2 % fail", segments, 2000)
    of_t = rate(
        lambda seed: (
            _t_test(SHAPES["2 % fail"](np.random.default_rng([seed, segments]), segments)) < 0.05
        ),
        2000,
    )
    for column, value in (("compare", p), ("paired t-test", of_t), ("coverage", coverage)):
        record_property(f"2 % fail, {segments:,} segments | {column}", f"{value:.3f}")


def _t_test(differences):
    """Return p of the t-test of differences: 1 if all are 0, and 0 if all are another number."""
    if np.ptp(differences) == 0:
        return float(differences[0] == 0)
    return stats.ttest_1samp(differences, 0).pvalue


@pytest.mark.calibration
@pytest.mark.parametrize("number", [3, 5, 10])
def test_the_best_of_equal_systems_is_seldom_significant(number, record_property):
    def is_found(seed):
        scores = np.random.default_rng([seed, number]).normal(size=(number, 100))
        systems = {f"system {row}": of_system for row, of_system in enumerate(scores)}
        return "significantly better than" in compare(
            scores=systems, seed=seed, num_resamples=999
        ).to_dict()["headlines"]["score"].replace("not significantly", "")

    found = rate(is_found, 2000)
    record_property(
        f"{number} systems | a headline names one as significantly better", f"{found:.3f}"
    )
    assert found <= 0.055


def test_documents_that_are_ignored_make_equal_systems_differ():
    p, coverage = trials(EQUAL_SYSTEMS["20 documents of 10 segments"], 150, documents=False)
    assert (p < 0.05).mean() > 0.1
    assert coverage < 0.88


def test_all_pairs_are_compared_and_corrected(scores):
    result, baseline = paired_permutation(scores, all_pairs=True), paired_permutation(scores)
    assert result.pairs.tolist() == [[0, 1], [0, 2], [1, 2]]
    np.testing.assert_array_equal(result.p[:2], baseline.p)
    assert result.delta[2] == pytest.approx(result.score[2] - result.score[1])
    assert result.p_holm.min() == pytest.approx(min(3 * result.p.min(), 1))


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_swaps():
    scores = np.random.default_rng(0).random((10, 100_000))
    tracemalloc.start()
    try:
        result = paired_permutation(scores, num_swaps=1000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(result.p) == 9
    assert peak < 120e6  # the swaps as numbers would take 800 MB


@pytest.mark.parametrize(
    ("scores", "options", "message"),
    [
        ([[0.1, 0.2]], {}, "one system"),
        ([[], []], {}, r"shape \(2, 0\)"),
        ([["a"], ["b"]], {}, "no matrix"),
        ([[0.1, 0.2], [0.3, float("nan")]], {}, "System 1 has the score nan for segment 1"),
        ([[0.1], [0.2]], {"num_swaps": 0}, "at least one"),
        ([[0.1], [0.2]], {"seed": -1}, "seed is -1"),
    ],
)
def test_bad_input_is_refused(scores, options, message):
    with pytest.raises(InputError, match=message):
        paired_permutation(scores, **options)


@pytest.mark.parametrize("num_segments", [1, 37, 3001])
def test_counts_are_those_of_one_draw(num_segments):
    drawn = np.random.default_rng(5).choice(num_segments, size=(1000, num_segments), replace=True)
    whole = [np.bincount(row, minlength=num_segments) for row in drawn]
    blocks = [*bootstrap_counts(np.random.default_rng(5), num_segments, 1000)]
    assert len(blocks) == (3 if num_segments == 3001 else 1)
    np.testing.assert_array_equal(np.concatenate(blocks), whole)


@pytest.mark.parametrize(
    ("p", "adjusted"),
    [
        ([0.01, 0.04, 0.03, 0.005], [0.03, 0.06, 0.06, 0.02]),
        ([0.02, 0.02, 0.02], [0.06, 0.06, 0.06]),
        ([0.9, 0.7], [1, 1]),
        ([0.3], [0.3]),
        ([], []),
    ],
)
def test_known_corrections(p, adjusted):
    np.testing.assert_allclose(holm(p), adjusted, rtol=1e-12)


SCORES = [[1, 2, 3, 4], [1, 3, 3, 1], [2, 3, 4, 5]]


@pytest.mark.parametrize(
    ("options", "won", "lost", "tied"),
    [
        ({}, [0, 1, 4], [0, 1, 0], [4, 2, 0]),
        ({"lower_is_better": True}, [0, 1, 0], [0, 1, 4], [4, 2, 0]),
        ({"tolerance": 1}, [0, 0, 0], [0, 1, 0], [4, 3, 4]),
    ],
)
def test_segments_are_counted_against_the_baseline(options, won, lost, tied):
    assert segment_outcomes(np.array(SCORES), **options).tolist() == [won, lost, tied]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        *(
            (lambda p=p: holm(p), "from 0 to 1")
            for p in ([0.1, 1.2], [-0.1], [float("nan")], [[0.1]])
        ),
        *(
            (
                lambda of=of: SummedStatistics(of, lambda sums: float(sums[0])),
                "systems, segments, statistics",
            )
            for of in (np.ones((2, 3)), np.ones((2, 0, 3)), np.full((2, 3, 1), np.nan))
        ),
    ],
)
def test_arguments_are_checked(call, message):
    with pytest.raises(InputError, match=message):
        call()


def test_the_interval_of_bleu_is_about_that_of_a_bootstrap():
    """BLEU punishes texts that are too short, so that the lengths of other test sets change a
    difference too.
    """
    sacrebleu = pytest.importorskip("sacrebleu")
    rng = np.random.default_rng(4)
    references = [
        " ".join(f"w{word}" for word in rng.integers(60, size=rng.integers(3, 60)))
        for _ in range(200)
    ]
    systems = {"whole": references, "cut": [text.rsplit(" ", 1)[0] for text in references]}
    [found] = (
        compare(systems, references, metrics=["bleu"], num_resamples=2000).metrics[0].systems[1:]
    )
    metric = sacrebleu.metrics.BLEU(references=[references])
    statistics = np.array(metric._extract_corpus_statistics(systems["cut"], None))
    drawn = [statistics[rng.integers(200, size=200)].sum(axis=0).tolist() for _ in range(2000)]
    low, high = np.quantile(
        [metric._compute_score_from_stats(sums).score - 100 for sums in drawn], [0.025, 0.975]
    )
    assert [found.delta_low, found.delta_high] == pytest.approx([low, high], abs=0.2 * (high - low))
