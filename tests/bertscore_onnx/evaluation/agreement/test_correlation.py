"""Correlation with human scores: against scipy, flat and grouped, and where there is no value."""

import numpy as np
import pytest
from scipy import stats

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.correlation import average, correlate, correlate_pairs, outliers, system_means

ORACLES = {
    "pearson": stats.pearsonr,
    "spearman": stats.spearmanr,
    "kendall_b": stats.kendalltau,
    "kendall_c": lambda human, metric: stats.kendalltau(human, metric, variant="c"),
}


@pytest.fixture
def scores():
    """Judgements with ties and gaps of 6 systems × 30 segments, and a metric's scores."""
    rng = np.random.default_rng(7)
    human = rng.integers(0, 6, (6, 30)).astype(np.float64)
    metric = (human + rng.normal(scale=3, size=human.shape)).round()
    human[rng.random(human.shape) < 0.2] = np.nan
    return human, metric


@pytest.mark.parametrize("coefficient", ORACLES)
def test_all_judged_pairs_at_once(scores, coefficient):
    human, metric = scores
    is_judged = ~np.isnan(human)
    measure = correlate(human, metric, coefficient=coefficient)
    assert measure.value == pytest.approx(
        ORACLES[coefficient](human[is_judged], metric[is_judged]).statistic, abs=1e-12
    )
    assert measure.n == is_judged.sum()


@pytest.mark.parametrize("by", ["segment", "system"])
@pytest.mark.parametrize("coefficient", ORACLES)
def test_the_mean_of_groups(scores, coefficient, by):
    human, metric = (matrix.T if by == "segment" else matrix for matrix in scores)
    expected = [
        ORACLES[coefficient](row[~np.isnan(row)], other[~np.isnan(row)]).statistic
        for row, other in zip(human, metric, strict=True)
    ]
    measure = correlate(*scores, coefficient=coefficient, by=by)
    assert measure.value == pytest.approx(np.mean(expected), abs=1e-12)
    assert measure.groups == len(expected)


def test_groups_without_a_value_are_left_out_and_counted():
    human = np.array([[1.0, 2.0, 3.0], [5.0, 5.0, 5.0], [1.0, np.nan, np.nan]])
    measure = correlate(human, np.array([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0]]), by="system")
    assert (measure.value, measure.n, measure.groups, measure.left_out) == (pytest.approx(1), 3, 1, 2)


@pytest.mark.parametrize(
    ("human", "metric", "reason"),
    [
        ([0.1, 0.1, 0.1], [1, 2, 3], "the human scores are constant"),
        ([1, 2, 3], [0.1, 0.1, 0.1], "the metric's scores are constant"),
        ([1, np.nan, np.nan], [1, 2, 3], "1 judged, and a correlation needs two"),
    ],
)
def test_no_value_says_why(human, metric, reason):
    measure = correlate_pairs(np.array(human), np.array(metric))
    assert (measure.value, measure.reason) == (None, reason)


@pytest.mark.parametrize("scale", [1e-200, 1e200])
def test_squares_neither_vanish_nor_overflow(scale):
    human, metric = np.array([1.0, 2.0, 4.0]), np.array([1.0, 3.0, 2.0])
    expected = stats.pearsonr(human, metric).statistic
    assert correlate_pairs(scale * human, metric).value == pytest.approx(expected, abs=1e-12)


def test_a_mean_of_nothing_says_why():
    nothing = correlate_pairs(np.ones(3), np.arange(3.0))
    assert average([nothing, nothing]).reason == "no group has a value: the human scores are constant"


def test_language_pairs_have_the_same_weight():
    small = correlate_pairs(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
    large = correlate_pairs(np.array([0.0, 0.0, 1.0, 1.0]), np.array([0.0, 1.0, 0.0, 1.0]))
    assert average([small, large]).value == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("human", "metric", "options", "message"),
    [
        (np.ones((2, 3)), np.ones((3, 2)), {}, r"\(2, 3\) and metric scores of shape \(3, 2\); expected both as"),
        (np.ones((1, 2)), np.array([[1, np.nan]]), {}, "The metric gave no finite score at system 0, segment 1"),
        (np.array([[1, np.inf]]), np.ones((1, 2)), {}, "People gave no finite score at system 0, segment 1"),
        (np.ones((1, 2)), np.ones((1, 2)), {"by": "word"}, "There is no grouping 'word'; expected one of all, segment"),
        (
            np.ones((1, 2)),
            np.ones((1, 2)),
            {"coefficient": "r"},
            "There is no coefficient 'r'; expected one of",
        ),
    ],
)
def test_bad_input(human, metric, options, message):
    with pytest.raises(InputError, match=message):
        correlate(human, metric, **options)


def test_system_means_are_of_judged_segments():
    assert system_means(np.array([[1.0, np.nan, 3.0], [4.0, 5.0, 6.0]])).tolist() == [2, 5]


def test_a_system_without_judgements_has_no_mean():
    with pytest.raises(InputError, match=r"System 1 .* has no judged segment"):
        system_means(np.array([[1.0], [np.nan]]))


def test_outliers_are_far_from_the_median():
    scores = np.array([0.0, 1.0, 2.0, 3.0, 4.0, 2 + 2.49 * 1.4826, 2 + 10.0])
    distance = np.abs(scores - np.median(scores))
    expected = distance / stats.median_abs_deviation(scores, scale="normal") > 2.5
    assert outliers(scores).tolist() == expected.tolist()
    assert outliers(scores).tolist() == [False] * 6 + [True]


def test_without_a_scale_nothing_is_an_outlier():
    assert not outliers(np.array([1.0, 1.0, 1.0, 9.0])).any()
