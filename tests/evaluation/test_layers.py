import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import pearsonr

from bertscore_onnx.errors import InputError
from bertscore_onnx_evaluation.layers import (
    intervals,
    layer_sums,
    loss_bounds,
    optimism,
    p_values,
    pairs_into_one_language,
    resampled_pearson,
    tail_share,
    tune_layers,
)
from tests.support.scores import WORDS

NUM_ROWS = 24
RNG = np.random.default_rng(0)
CANDIDATES = [" ".join(RNG.choice(WORDS.split(), size=6)) for _ in range(NUM_ROWS)]
REFERENCES = [" ".join(RNG.choice(WORDS.split(), size=6)) for _ in range(6)] * 4
HUMAN = RNG.normal(size=NUM_ROWS)
PAIRS = ["cs-en", "de-en", "cs-en"] * (NUM_ROWS // 3)


@pytest.fixture(scope="module")
def tuning(all_layers_scorer):
    return tune_layers(all_layers_scorer, CANDIDATES, REFERENCES, HUMAN, PAIRS)


def test_correlations_of_each_layer_are_means_of_those_of_scipy(all_layers_scorer, tuning):
    scores = np.stack(all_layers_scorer.score(CANDIDATES, REFERENCES)).astype(
        np.float64
    )  # (3, layers, rows)
    is_czech = np.array(PAIRS) == "cs-en"
    for layer, result in enumerate(tuning.layers):
        assert result.layer == layer
        for score, found in enumerate((result.precision, result.recall, result.f1)):
            each = [
                pearsonr(HUMAN[rows], scores[score, layer, rows]).statistic
                for rows in (is_czech, ~is_czech)
            ]
            assert [*found.language_pairs.values()] == pytest.approx(each, abs=1e-6)
            assert found.pearson == pytest.approx(np.mean(each), abs=1e-6)
            assert found.low < found.pearson < found.high


def test_the_best_layer_is_the_first_of_highest_correlation(tuning):
    f1 = [result.f1.pearson for result in tuning.layers]
    assert tuning.best_layer == f1.index(max(f1))
    assert tuning.layers[tuning.best_layer].p is None
    assert tuning.export_command.startswith("bertscore-onnx export --model FOLDER --name tiny-bert")
    assert tuning.export_command.endswith(f"--num-layers {tuning.best_layer}")
    others = [result for result in tuning.layers if result.layer != tuning.best_layer]
    assert all(0 < result.p <= 1 for result in others)
    assert tuning.not_worse == tuple(result.layer for result in others if result.p >= 0.05)


def test_the_same_seed_gives_the_same_and_another_another(all_layers_scorer, tuning):
    arguments = (all_layers_scorer, CANDIDATES, REFERENCES, HUMAN, PAIRS)
    assert tune_layers(*arguments) == tuning
    assert tune_layers(*arguments, seed=1).layers[0].f1.low != tuning.layers[0].f1.low


def test_a_layer_as_good_as_people_beats_all_others(all_layers_scorer):
    human = all_layers_scorer.score(CANDIDATES, REFERENCES).F[1]
    tuning = tune_layers(all_layers_scorer, CANDIDATES, REFERENCES, human)
    assert tuning.best_layer == 1
    assert tuning.layers[1].f1.pearson == pytest.approx(1)
    assert tuning.layers[0].p < 0.05
    assert 0 not in tuning.not_worse


def test_rows_without_judgements_and_tied_pairs_count_nowhere(all_layers_scorer, tuning):
    human, pairs = [*HUMAN, np.nan, np.nan, 1, 1], [*PAIRS, "cs-en", "fi-en", "ru-en", "ru-en"]
    found = tune_layers(
        all_layers_scorer, [*CANDIDATES, *"abef"], [*REFERENCES, *"cdgh"], human, pairs
    )
    assert found.layers == tuning.layers
    assert found.language_pairs == {"cs-en": 16, "de-en": 8, "fi-en": 0, "ru-en": 2}
    assert found.left_out == {
        "fi-en": "0 judged, and a correlation needs two",
        "ru-en": "the human scores are constant",
    }


def test_several_references_count_by_the_best(all_layers_scorer):
    references = [[one, "a dog ran"] for one in REFERENCES]
    scores = all_layers_scorer.score(CANDIDATES, references).F[2].astype(np.float64)
    tuning = tune_layers(all_layers_scorer, CANDIDATES, references, HUMAN)
    assert tuning.layers[2].f1.pearson == pytest.approx(pearsonr(HUMAN, scores).statistic, abs=1e-6)


def test_json_has_all_of_it_and_null_where_there_is_no_value(tuning):
    content = json.loads(tuning.to_json())
    assert content["best_layer"] == tuning.best_layer
    assert content["layers"][tuning.best_layer]["p"] is None
    assert content["layers"][0]["f1"]["pearson"] == tuning.layers[0].f1.pearson
    assert content["language_pairs"]["de-en"] == {"n": 8, "units": 2, "left_out": None}
    assert content["export"] == tuning.export_command


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"human": HUMAN[:3]}, r"human is \(3,\) long"),
        ({"references": REFERENCES[:3]}, "references is 3 long"),
        ({"language_pairs": ["cs-en"]}, "language_pairs is 1 long"),
        ({"human": [*HUMAN[:-1], np.inf]}, "human is infinite in row 23"),
        ({"human": np.full(NUM_ROWS, np.nan)}, "all: 0 judged, and a correlation needs two"),
        ({"human": np.ones(NUM_ROWS)}, "all: the human scores are constant"),
        ({"num_resamples": 0}, "num_resamples is 0"),
        ({"seed": -1}, "seed -1"),
        (
            {"candidates": ["a"], "references": ["b"], "human": [1.0]},
            "all: 1 judged, and a correlation needs two",
        ),
        ({"candidates": [], "references": [], "human": []}, "there are no rows"),
        (
            {"candidates": ["a cat"] * NUM_ROWS, "references": ["a cat"] * NUM_ROWS},
            "F is the same in all rows",
        ),
    ],
)
def test_rows_that_do_not_fit_are_refused(all_layers_scorer, changes, message):
    arguments = {"candidates": CANDIDATES, "references": REFERENCES, "human": HUMAN, **changes}
    with pytest.raises(InputError, match=message):
        tune_layers(all_layers_scorer, **arguments)


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1))
def test_p_is_that_of_a_loop_over_resamples(seed):
    rng = np.random.default_rng(seed)
    mean, resampled = rng.normal(size=4), rng.normal(size=(50, 4))
    mean[3] = np.nan
    found = p_values(mean, resampled)
    for layer in range(3):
        count = 0
        for one in resampled:
            leads = [one[j] - one[layer] - (mean[j] - mean[layer]) for j in range(3)]
            count += max(leads) >= max(mean[:3]) - mean[layer] - 1e-12
        assert found[layer] == (count + 1) / 51
    assert found[mean[:3].argmax()] == 1
    assert np.isnan(found[3])


def test_intervals_of_few_units_reach_further_out():
    assert [round(tail_share(0.025, number), 4) for number in (20, 100, 10**6)] == [
        0.0159,
        0.0231,
        0.025,
    ]


def equal_layers(rng, rows, rows_of_unit, num_layers=13, r=0.6):
    """Draw human scores, layers that correlate alike with them and share .9 of their noise, and
    each row's unit.
    """

    def noise(size):
        of_rows = rng.normal(size=(size, rows))
        if rows_of_unit == 1:
            return of_rows
        of_units = rng.normal(size=(size, rows // rows_of_unit)).repeat(rows_of_unit, axis=1)
        return (of_rows + of_units) / 2**0.5

    human = noise(1)[0]
    layers = r * human + (1 - r**2) ** 0.5 * (0.9**0.5 * noise(1) + 0.1**0.5 * noise(num_layers))
    return human, layers, np.arange(rows) // rows_of_unit


def rates_of_equal_layers(trials, rows, rows_of_unit, *, gap=0.0, num_resamples=500):
    """Return how often a best layer is called worse, its interval holds r, and the bound of another
    holds its loss.
    """
    rng = np.random.default_rng([rows, rows_of_unit])
    found = []
    for _ in range(trials):
        human, metrics, units = equal_layers(rng, rows, rows_of_unit)
        metrics[1] += gap * rng.normal(size=rows)
        mean = np.array([np.corrcoef(human, one)[0, 1] for one in metrics])
        resampled = resampled_pearson(layer_sums(human, metrics, units), rng, num_resamples)
        low, high = intervals(resampled[:, 0], units[-1] + 1)
        loss = 0.6 - 0.6 / (1 + gap**2) ** 0.5
        found.append(
            (
                p_values(mean, resampled)[0] < 0.05,
                low <= 0.6 <= high,
                loss_bounds(resampled, units[-1] + 1)[1] >= loss,
            )
        )
    return np.mean(found, axis=0)


@pytest.mark.parametrize(("rows", "rows_of_unit"), [(20, 1), (100, 1), (1000, 5)])
def test_a_best_layer_is_seldom_called_worse(rows, rows_of_unit):
    worse, covered, loss_covered = rates_of_equal_layers(
        60, rows, rows_of_unit, gap=0.3, num_resamples=200
    )
    assert worse <= 0.12
    assert covered >= 0.85
    assert loss_covered >= 0.85


@pytest.mark.calibration
@pytest.mark.parametrize(("rows", "rows_of_unit"), [(20, 1), (100, 1), (1000, 1), (1000, 5)])
def test_rates_of_equal_layers_over_many_trials(rows, rows_of_unit, record_property):
    worse, covered, _ = rates_of_equal_layers(2000, rows, rows_of_unit)
    name = f"`tune-layers`: {rows:,} rows" + (
        f" of {rows // rows_of_unit} references" if rows_of_unit > 1 else ""
    )
    record_property(f"{name} | coverage", f"{covered:.3f}")
    record_property(f"{name} | best layer called worse", f"{worse:.3f}")
    assert worse <= 0.055
    assert covered >= 0.93
    assert rates_of_equal_layers(2000, rows, rows_of_unit, gap=0.3)[2] >= 0.93


@pytest.mark.calibration
@pytest.mark.parametrize(
    ("rows", "rows_of_unit", "slope", "title"),
    [
        (100, 1, 0.0, "100 rows, equally good layers"),
        (1000, 5, 0.0, "1,000 rows of 200 references, equally good layers"),
        (1000, 5, 0.01, "1,000 rows of 200 references, r falls by .01 a layer"),
    ],
)
def test_rates_of_the_chosen_layer(rows, rows_of_unit, slope, title, record_property):
    rng = np.random.default_rng([rows, rows_of_unit])
    r = 0.6 - slope * np.abs(np.arange(13) - 6)
    chosen_fails, fixed_fails, gains, found = [], [], [], []
    for _ in range(500):
        human, noise, units = neighbouring_layers(rng, rows, rows_of_unit)
        metrics = r[:, None] * human + (1 - r[:, None] ** 2) ** 0.5 * noise
        mean = np.array([np.corrcoef(human, one)[0, 1] for one in metrics])
        resampled = resampled_pearson(layer_sums(human, metrics, units), rng, 300)
        best, bounds, loss = (
            mean.argmax(),
            loss_bounds(resampled, units[-1] + 1),
            r.max() - r + 1e-12,
        )
        chosen_fails.append(bounds[best] < loss[best] - 2e-12)
        fixed_fails.append(bounds[5] < loss[5] - 2e-12)
        gains.append(mean[best] - r[best])
        found.append(optimism(mean, resampled))
    record_property(f"{title} | of the best layer", f"{np.mean(chosen_fails):.3f}")
    record_property(f"{title} | of a layer named beforehand", f"{np.mean(fixed_fails):.3f}")
    record_property(f"{title} | gain from choosing", f"{np.mean(gains):.4f}")
    record_property(f"{title} | `optimism`", f"{np.mean(found):.4f}")
    assert np.mean(fixed_fails) <= 0.07


def neighbouring_layers(rng, rows, rows_of_unit, num_layers=13, r=0.95):
    """Draw human scores, the noise of layers, which correlates between neighbours, and each row's
    unit.
    """
    units = np.arange(rows) // rows_of_unit
    human, *noise = rng.normal(size=(num_layers + 1, rows))
    if rows_of_unit > 1:
        shared = rng.normal(size=(num_layers + 1, units[-1] + 1))[:, units]
        human, *noise = (np.stack([human, *noise]) + shared) / 2**0.5
    for layer in range(1, num_layers):
        noise[layer] = r * noise[layer - 1] + (1 - r**2) ** 0.5 * noise[layer]
    return human, np.stack(noise), units


def test_optimism_is_most_of_the_gain_of_the_best_equal_layer():
    rng = np.random.default_rng(3)
    gains, found = [], []
    for _ in range(60):
        human, metrics, units = equal_layers(rng, 100, 1)
        mean = np.array([np.corrcoef(human, one)[0, 1] for one in metrics])
        gains.append(mean.max() - 0.6)
        found.append(optimism(mean, resampled_pearson(layer_sums(human, metrics, units), rng, 200)))
    assert 0.4 * np.mean(gains) < np.mean(found) < 1.1 * np.mean(gains)


def test_rows_of_one_reference_or_unit_are_drawn_together(all_layers_scorer, tuning):
    arguments = (all_layers_scorer, CANDIDATES, REFERENCES, HUMAN, PAIRS)
    assert tuning.units == {"cs-en": 4, "de-en": 2}
    assert tune_layers(*arguments, units=REFERENCES).layers == tuning.layers
    by_row = tune_layers(*arguments, units=[str(row) for row in range(NUM_ROWS)])
    assert by_row.units == {"cs-en": 16, "de-en": 8}
    assert by_row.layers[0].f1.low != tuning.layers[0].f1.low
    assert by_row.layers[0].f1.pearson == tuning.layers[0].f1.pearson


@pytest.mark.parametrize("p", [0.0495, 0.04995, 0.0504])
def test_no_p_of_a_layer_contradicts_the_sentence(tuning, p):
    best = tuning.best
    layers = [replace(layer, p=None if layer is best else p) for layer in tuning.layers]
    text = " ".join(replace(tuning, layers=tuple(layers)).table().split())
    assert text.count(f" {str(p)[1:]} ") == len(layers) - 1
    assert (": not significantly better than" in text) == (p > 0.05)


@pytest.fixture
def judged():
    rng = np.random.default_rng(0)
    human = rng.normal(50, 20, size=40)
    return human, (human / 1000 + rng.normal(0.8, 0.02, size=(3, 40))).astype(np.float32)


@pytest.mark.parametrize(
    "units", [np.arange(40), np.array([0, 1, 2, 3, 3] * 8)], ids=["segments", "units"]
)
def test_resamples_have_the_correlations_of_scipy(judged, units):
    human, metrics = judged
    found = resampled_pearson(layer_sums(human, metrics, units), np.random.default_rng(7), 20)
    number = units.max() + 1
    for drawn, of_metrics in zip(
        np.random.default_rng(7).choice(number, size=(20, number)), found, strict=True
    ):
        rows = np.concatenate([np.flatnonzero(units == unit) for unit in drawn])
        expected = [
            pearsonr(human[rows], one[rows].astype(np.float64)).statistic for one in metrics
        ]
        assert of_metrics == pytest.approx(expected, abs=1e-12)


def test_a_resample_without_variance_has_no_value():
    human, metrics = np.array([1.0, 2.0]), np.float32([[0.5, 0.6], [0.7, 0.7]])
    found = resampled_pearson(layer_sums(human, metrics), np.random.default_rng(0), 200)
    is_constant = np.array(
        [len({*some}) == 1 for some in np.random.default_rng(0).choice(2, size=(200, 2))]
    )
    assert 0 < is_constant.sum() < 200
    assert np.isnan(found[is_constant]).all()
    assert found[~is_constant, 0] == pytest.approx(1)
    assert np.isnan(found[:, 1]).all()


def test_large_and_tiny_scores_do_not_lose_their_digits(judged):
    human, metrics = judged
    found = resampled_pearson(
        layer_sums(human * 1e9 + 1e12, metrics * 1e-6), np.random.default_rng(1), 10
    )
    assert found == pytest.approx(
        resampled_pearson(layer_sums(*judged), np.random.default_rng(1), 10), abs=1e-5
    )


@pytest.mark.parametrize(
    ("names", "chosen"),
    [
        (["cs-en", "en-ru", "de-en", "cs-en"], ["cs-en", "de-en"]),
        (["en-de", "en-cs", "en-ru"], ["en-de", "en-cs", "en-ru"]),
        (["cs-en", "en-cs"], ["cs-en", "en-cs"]),
        (["news", "talks"], ["news", "talks"]),
        (["all", "all"], ["all"]),
        ([], []),
    ],
)
def test_pairs_into_the_commonest_target_language_are_chosen(names, chosen):
    assert pairs_into_one_language(names) == chosen
