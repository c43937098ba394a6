import itertools

import numpy as np
import pytest
from scipy import stats
from threadpoolctl import threadpool_limits

from bertscore_onnx.errors import InputError
from bertscore_onnx_evaluation.metrics.correlation import (
    correlate,
    correlate_pairs,
    mean_by_system,
    pearson,
    soft_pairwise_accuracy,
    superiority,
    tie_calibrated_accuracy,
)
from tests.evaluation.judged import accuracies_at


@pytest.fixture
def scores():
    """Judgements with ties and gaps of 6 systems × 30 segments, and a metric's scores."""
    rng = np.random.default_rng(7)
    human = rng.integers(0, 6, (6, 30)).astype(np.float64)
    metric = (human + rng.normal(scale=3, size=human.shape)).round()
    human[rng.random(human.shape) < 0.2] = np.nan
    return human, metric


@pytest.mark.parametrize("by", ["all", "segment"])
def test_correlations_are_those_of_scipy(scores, by):
    groups = {"all": lambda side: side.reshape(1, -1), "segment": np.transpose}[by]
    pairs = [*zip(*map(groups, scores), strict=True)]
    expected = [
        stats.pearsonr(human[~np.isnan(human)], metric[~np.isnan(human)]).statistic
        for human, metric in pairs
    ]
    measure = correlate(*scores, by=by)
    assert measure.value == pytest.approx(np.mean(expected), abs=1e-12)
    assert (measure.n, measure.groups) == ((~np.isnan(scores[0])).sum(), len(expected))


def test_groups_without_a_value_are_left_out_and_counted():
    human = np.array([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0], [1.0, np.nan, np.nan]])
    measure = correlate(
        human.T, np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]).T, by="segment"
    )
    assert (measure.value, measure.n, measure.groups, measure.left_out) == (
        pytest.approx(1),
        3,
        1,
        2,
    )


NOBODY, VARIED = np.full((2, 3), np.nan), np.array([[1.0, 2.0, 4.0], [2.0, 5.0, 3.0]])
ONE_SEGMENT_EACH = np.tile([1.0, 2.0, 4.0], (2, 1))


@pytest.mark.parametrize(
    ("measure", "reason"),
    [
        (lambda: correlate_pairs(np.full(3, 0.1), np.arange(3)), "the human scores are constant"),
        (
            lambda: correlate_pairs(np.arange(3), np.array([0.1 + 0.2, 0.3, 0.3])),
            "the metric's scores are constant",
        ),
        (
            lambda: correlate_pairs(np.array([1, np.nan]), np.arange(2)),
            "1 judged, and a correlation needs two",
        ),
        (
            lambda: soft_pairwise_accuracy(np.ones((1, 3)), np.ones((1, 3))),
            "a pair needs two systems",
        ),
        (
            lambda: soft_pairwise_accuracy(NOBODY, np.ones((2, 3))),
            "no two systems are judged on 1 common segment",
        ),
        (
            lambda: soft_pairwise_accuracy(ONE_SEGMENT_EACH, VARIED),
            "the human scores tie all systems in every segment",
        ),
        (
            lambda: soft_pairwise_accuracy(VARIED, ONE_SEGMENT_EACH),
            "the metric ties all systems in every segment",
        ),
        (
            lambda: tie_calibrated_accuracy(ONE_SEGMENT_EACH, VARIED),
            "the human scores tie every pair of outputs of a segment",
        ),
    ],
)
def test_no_value_has_a_reason(measure, reason):
    assert (measure().value, measure().reason) == (None, reason)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_squares_neither_vanish_nor_overflow(scale):
    human, metric = np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 2.0])
    expected = stats.pearsonr(human, metric).statistic
    assert correlate_pairs(scale * human, metric).value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("human", "metric", "options", "message"),
    [
        (
            np.ones((2, 3)),
            np.ones((3, 2)),
            {},
            r"\(2, 3\) and metric scores of shape \(3, 2\); expected both as",
        ),
        (
            np.ones((1, 2)),
            np.array([[1, np.nan]]),
            {},
            "The metric gave no finite score at system 0, segment 1",
        ),
        (
            np.array([[1, np.inf]]),
            np.ones((1, 2)),
            {},
            "Annotators gave no finite score at system 0, segment 1",
        ),
        (
            np.ones((1, 2)),
            np.ones((1, 2)),
            {"by": "word"},
            "There is no grouping 'word'; expected one of all, segment",
        ),
    ],
)
def test_bad_input(human, metric, options, message):
    with pytest.raises(InputError, match=message):
        correlate(human, metric, **options)


@pytest.mark.parametrize(
    ("side", "measure"),
    [
        ("metric", tie_calibrated_accuracy),
        ("metric", soft_pairwise_accuracy),
        ("human", soft_pairwise_accuracy),
    ],
)
def test_scores_that_differ_by_rounding_are_tied(side, measure):
    rng = np.random.default_rng(3)
    rounded = {name: rng.integers(-9, 1, (6, 40)) / 10 for name in ("human", "metric")}
    noisy = {**rounded, side: rounded[side] + 1e-16 * rng.normal(size=(6, 40))}
    assert measure(**noisy).value == pytest.approx(measure(**rounded).value, abs=1e-12)


def test_human_scores_that_differ_by_rounding_are_no_ties():
    human = np.array([[0.1 + 0.2, 1.0], [0.3, 1.0]])
    metric = np.array([[2.0, 1.0], [1.0, 1.0]])
    assert tie_calibrated_accuracy(human, metric).value == 1
    assert tie_calibrated_accuracy(human, -metric).value == 0.5
    assert tie_calibrated_accuracy(human.round(9), metric).value is None


def test_superiority_counts_permutations_as_a_loop_does():
    scores = np.random.default_rng(1).integers(0, 4, (4, 9)).astype(np.float64)
    signs = 2 * np.rint(np.random.default_rng(4).random((200, 9), dtype=np.float32)) - 1
    scores[0, :4] = np.nan
    counts = superiority(scores, permutations=200).T
    for (i, j), found in zip(itertools.combinations(range(4), 2), counts, strict=True):
        difference = np.nan_to_num(scores[i] - scores[j])
        permuted = np.array([(sign * difference).sum() for sign in signs])
        delta = difference.sum()
        assert [*found] == [(permuted >= delta).sum(), (permuted <= delta).sum()]


@pytest.mark.parametrize("digits", [None, 0])
def test_spa_is_one_minus_the_mean_difference_of_p_in_both_orders(digits):
    rng = np.random.default_rng(5)
    human, metric = rng.normal(size=(2, 5, 30))
    human = human if digits is None else human.round(digits)
    people, machine = superiority(human) / 1000, superiority(metric) / 1000
    difference = np.abs(people - machine).mean()
    measure = soft_pairwise_accuracy(human, metric)
    assert (measure.value, measure.n) == (pytest.approx(1 - difference, abs=1e-12), 10)


def test_the_order_of_systems_changes_no_bit():
    rng = np.random.default_rng(8)
    human = rng.integers(-5, 1, (7, 50)).astype(np.float64)
    metric = rng.normal(size=human.shape)
    human[2, :9] = np.nan
    for _ in range(5):
        order = rng.permutation(7)
        for measure in (tie_calibrated_accuracy, soft_pairwise_accuracy):
            assert measure(human[order], metric[order]) == measure(human, metric)


def test_spa_compares_two_systems_on_the_segments_of_both():
    rng = np.random.default_rng(6)
    human, metric = rng.normal(size=(2, 4, 20))
    human[1, :5] = human[2, 5:] = human[0, 19] = np.nan
    measure = soft_pairwise_accuracy(human, metric, min_segments=5)
    p = np.abs(superiority(human) - superiority(np.where(human > -9, metric, np.nan))) / 1000
    compared = [0, 1, 2, 4, 5]  # but the second and the third
    assert measure.value == pytest.approx(1 - p[:, compared].mean())
    assert (measure.n, measure.groups, measure.left_out) == (5, 5, 1)


def test_soft_accuracy_needs_permutations():
    with pytest.raises(InputError, match="0 permutations"):
        soft_pairwise_accuracy(VARIED, VARIED, permutations=0)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("gaps", [0, 0.3])
def test_it_is_the_best_of_all_thresholds(seed, gaps):
    rng = np.random.default_rng(seed)
    human = rng.integers(0, 3, (5, 12)).astype(np.float64)
    metric = (human + rng.normal(scale=2, size=human.shape)).round(1)
    human[rng.random(human.shape) < gaps] = np.nan
    candidates = {0.0} | {
        abs(a - b) for column in metric.T for a, b in itertools.combinations(column, 2)
    }
    accuracies = {epsilon: accuracies_at(epsilon, human, metric).mean() for epsilon in candidates}

    result = tie_calibrated_accuracy(human, metric)

    assert result.value == pytest.approx(max(accuracies.values()), abs=1e-12)
    assert accuracies[result.epsilon] == pytest.approx(result.value, abs=1e-12)


@pytest.mark.parametrize(
    ("human", "metric", "value", "epsilon", "n"),
    [
        pytest.param(
            [[1, 1], [1, 2]], [[0, 0], [0.5, 1]], 1, 0.5, 2, id="a difference of epsilon is a tie"
        ),
        # At epsilon 1 the accuracy is one half again.
        pytest.param(
            [[1, 1], [2, 1]], [[1, 1], [1.5, 2]], 0.5, 0, 2, id="the smallest of equal thresholds"
        ),
        pytest.param(
            [[1], [2]], [[2], [1]], 0, 0, 1, id="a wrong order is wrong at every threshold"
        ),
        pytest.param(
            [[1, 1], [2, np.nan]],
            [[1, 5], [2, np.nan]],
            1,
            0,
            1,
            id="segments with one judged system",
        ),
        pytest.param([[1, np.nan], [np.nan, 1]], [[1, 1], [1, 1]], None, None, 0, id="no pairs"),
    ],
)
def test_known_thresholds(human, metric, value, epsilon, n):
    result = tie_calibrated_accuracy(np.array(human, dtype=float), np.array(metric, dtype=float))
    assert (result.value, result.epsilon, result.n, result.groups) == (value, epsilon, n, n)
    assert result.reason == ("no segment has two judged systems" if n == 0 else "")


def test_no_digit_depends_on_the_number_of_threads():
    human, metric = np.random.default_rng(0).normal(size=(2, 50_000))
    values = set()
    for threads in (1, 2):
        with threadpool_limits(threads, "blas"):
            values.add(float(pearson(human, metric)))
    assert len(values) == 1


@pytest.mark.parametrize("side", [0, 1])
def test_scores_whose_sums_would_overflow_are_refused(side):
    scores = [np.array([[1.0, 2.0], [3.0, 1.0]]), np.array([[1.0, 3.0], [2.0, 1.0]])]
    scores[side] = scores[side] * 1e307
    with pytest.raises(InputError, match=r"beyond ±1e\+300"):
        correlate(*scores)
    with pytest.raises(InputError, match="Scale the scores"):
        mean_by_system(scores[side])
