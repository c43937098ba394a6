"""Results that a page must hold: comparisons, evaluations of metrics and of layers."""

from dataclasses import replace
from functools import cache
from itertools import combinations

import numpy as np
import pytest

from bertscore_onnx_evaluation import compare, meta_evaluate
from bertscore_onnx_evaluation.layers import LayerCorrelation, LayerResult, LayerTuning
from bertscore_onnx_evaluation.metrics.meta_results import Difference, MetricPair
from tests.evaluation.judged import judged, judged_wholes
from tests.support.comparisons import comparison_of, metric_result, random_comparison
from tests.support.token_similarity import stated_similarity

EVIL = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>&\x00\x1b[31m",
    "نظام الترجمة",
    "x" * 300 + " 👩‍👩‍👧‍👦 \u202etxt {{ 7 * 7 }}",
]


def evil():
    """Return a comparison whose names and texts try to break out of the page."""
    scores = np.random.default_rng(0).random((4, 30))
    metrics = [metric_result(name, EVIL, scores, all_pairs=True, signature=EVIL[0]) for name in ("bertscore", "ter")]
    references = [[f"</style></title>{EVIL[1]} \ud800 {'longword' * 3000}", "", "drei", "vier"]] * 30
    return comparison_of(metrics, [[name] * 30 for name in EVIL], references)


def constant():
    """Return a comparison of two systems that always score the same."""
    metrics = [metric_result("bertscore", ["a", "b"], [[0.9] * 5] * 2), metric_result("ter", ["a", "b"], [[0] * 5] * 2)]
    return comparison_of(metrics, [["x"] * 5] * 2, [["r"]] * 5)


def one_segment():
    """Return a comparison on one segment of empty texts."""
    return comparison_of([metric_result("bertscore", ["a", "b"], [[0.5], [0.7]])], [["x"], [""]], [[""]])


def matches():
    """Return a comparison whose examples have tokens, of all similarities."""
    tokens = [f"word{row}" for row in range(12)]
    similarity = stated_similarity(tokens, tokens, np.diag(np.linspace(-0.2, 1, 12)))
    metrics = [metric_result("bertscore", ["base", "new"], [[0.5, 0.5], [0.6, 0.4]])]
    known = {(row, segment): similarity for row in range(2) for segment in range(2)}
    return comparison_of(metrics, [[" ".join(tokens)] * 2] * 2, [[" ".join(tokens)]] * 2, matches=known)


def groups():
    """Return a comparison of seven systems by all pairs, in three groups, one of them small."""
    rng = np.random.default_rng(7)
    shared = rng.normal(size=100)
    scores = {f"a-system-{row}": shared + 0.1 * (row * 3 % 7) + rng.normal(0, 0.5, 100) for row in range(7)}
    return compare(scores=scores, all_pairs=True, num_resamples=500, by=["news"] * 50 + ["talks"] * 40 + ["web"] * 10)


CASES = {
    "two": lambda: random_comparison(2, metrics=["bertscore"]),
    "three": lambda: random_comparison(3),
    "twenty": lambda: random_comparison(20, 100, ["bertscore", "bleu", "chrf", "ter"], all_pairs=True),
    "swaps": lambda: random_comparison(3, test="sacrebleu-ar"),
    "matches": matches,
    "evil": evil,
    "constant": constant,
    "one-segment": one_segment,
    "groups": groups,
}


# Evaluations of metrics.


@cache
def evaluation(names=("good", "fair"), language_pair="cs-en", systems=None, seed=3, test="segments"):
    """Return an evaluation of metrics of 6 systems × 40 segments; each agrees less than the one before."""
    rng = np.random.default_rng(seed)
    human = rng.integers(-5, 1, (6, 40)).astype(float)
    metrics = {name: human + rng.normal(0, 2 + 3 * row, human.shape) for row, name in enumerate(names)}
    human[:, 3], metrics[names[-1]][:, 7] = (
        -2,
        1,
    )  # human scores are constant in one segment, those of a metric in another
    pair = judged(human, metrics, language_pair=language_pair, systems=systems)
    return meta_evaluate([pair], permutations=50, test=test, sentinels=False)


def with_marked(result, humans=("human-rater-2",), sentinels=("sentinel-length", "sentinel-constant")):
    """Add annotators above the metrics, and sentinels below: the second has no value at all."""
    [pair] = result.language_pairs
    best, of = (
        replace(metric, rank=None, system=replace(metric.system, rank=None), segment=replace(metric.segment, rank=None))
        for metric in (pair.metrics[0], pair.metrics[-1])
    )
    nothing = {
        level: replace(
            getattr(of, level),
            measures={
                name: replace(one, value=None, low=None, high=None, epsilon=None, reason="the scores are constant")
                for name, one in getattr(of, level).measures.items()
            },
        )
        for level in ("system", "segment")
    }
    pair = replace(
        pair,
        humans=tuple(replace(best, name=name) for name in humans),
        sentinels=(replace(of, name=sentinels[0]), replace(of, name=sentinels[1], **nothing)),
    )
    return replace(result, language_pairs=(pair,))


def many_metrics(num_metrics=20, num_systems=30):
    """Return an evaluation of many metrics of many systems, with annotators and sentinels."""
    result = evaluation()
    [pair] = result.language_pairs
    rng = np.random.default_rng(0)
    human = np.linspace(-4, -1, num_systems) + rng.normal(0, 0.1, num_systems)
    names = [f"metric-{row}-refA" for row in range(num_metrics)]
    pair = replace(
        pair,
        systems=tuple(f"{'Very-Long-' if row % 7 == 0 else ''}System-Name-{row}" for row in range(num_systems)),
        metrics=tuple(replace(pair.metrics[row % 2], name=name) for row, name in enumerate(names)),
        pairs=tuple(
            MetricPair(one, other, None, Difference(0.1, p, p_holm=p))
            for (one, other), p in zip(
                combinations(names, 2), (rng.random(num_metrics * (num_metrics - 1) // 2) ** 4).tolist(), strict=True
            )
        ),
        smallest_p=0.0,
        human_scores=tuple(human.tolist()),
        metric_scores={name: tuple((human * 10 + rng.normal(0, 3, num_systems)).tolist()) for name in names},
    )
    return with_marked(replace(result, language_pairs=(pair,)))


def language_pairs():
    """Return an evaluation of two language pairs, in one of which only whole systems were judged."""
    rng = np.random.default_rng(5)
    human = rng.normal(size=(5, 30))
    pairs = [
        judged(human, {name: human + rng.normal(size=human.shape) for name in ("a", "b")}, language_pair="cs-en"),
        judged_wholes([1, 2, 3, 4, 9], {"a": [1, 2, 4, 3, 7], "b": [3, 1, 2, 5, 4]}, language_pair="de-en"),
    ]
    return meta_evaluate(pairs, permutations=50, test="perm-both")


def sparse():
    """Return an evaluation in which most values are missing: one system, and a metric that is constant."""
    rng = np.random.default_rng(2)
    return meta_evaluate([judged(rng.normal(size=(1, 30)), {"m": rng.normal(size=(1, 30)), "same": np.ones((1, 30))})])


META = {
    "meta": evaluation,
    "meta-marked": lambda: with_marked(evaluation()),
    "meta-many": many_metrics,
    "meta-pairs": language_pairs,
    "meta-sparse": sparse,
    "meta-evil": lambda: with_marked(
        evaluation(tuple(EVIL[:3]), language_pair=EVIL[0], systems=(*EVIL, "{{ 7 * 7 }}", "F")),
        humans=(EVIL[1],),
        sentinels=(EVIL[3], EVIL[0]),
    ),
}


# Evaluations of layers.


def tuning(labels=tuple(range(7)), missing=(), pairs=("cs-en", "de-en", "fi-en"), has_resamples=True):
    """Return correlations that rise and fall from layer to layer; the last language pair has no judgements."""
    rng = np.random.default_rng(1)
    r = 0.5 + 0.15 * np.sin(3 * np.arange(len(labels)) / len(labels)) + rng.normal(0, 0.01, len(labels))
    r[list(missing)] = np.nan
    best, half = int(np.nanargmax(r)), 0.03

    def correlation(value):
        if np.isnan(value):
            return LayerCorrelation(None, None, None, {pairs[0]: None, pairs[1]: 0.3})
        low, high = (float(value - half), float(value + half)) if has_resamples else (None, None)
        return LayerCorrelation(float(value), low, high, {pairs[0]: float(value - 0.01), pairs[1]: float(value + 0.01)})

    def layer(row):
        loss = float(r[best] - r[row])
        has_value, is_tested = not np.isnan(loss), has_resamples and row != best
        return LayerResult(
            labels[row],
            correlation(r[row] - 0.02),
            correlation(r[row] - 0.04),
            correlation(r[row]),
            max(0.001, 0.6 - 12 * loss) if has_value and is_tested else None,
            loss if has_value else None,
            loss + 0.01 if has_value and has_resamples else None,
        )

    return LayerTuning(
        "bertscore-onnx|model:tiny|version:0.1.0",
        1000,
        12345,
        dict(zip(pairs, (560, 1400, 1), strict=True)),
        dict(zip(pairs, (112, 280, 1), strict=True)),
        {pairs[2]: "there is one judgement"},
        tuple(map(layer, range(len(labels)))),
        labels[best],
        float(r[best]),
        0.0012 if has_resamples else None,
        "bertscore-onnx export --model FOLDER --name tiny --num-layers 4",
    )


LAYERS = {
    "layers": tuning,
    "layers-many": lambda: tuning(
        (*range(25), *(f"{row} by code-bert-score" for row in range(25)), "1+3 by layers=1+3")
    ),
    "layers-missing": lambda: tuning(missing=[0, 3], has_resamples=False),
    "layers-evil": lambda: tuning((0, 1, *(f"{row} by {EVIL[0]}" for row in range(3))), pairs=EVIL[:3]),
}

RESULTS = {**CASES, **META, **LAYERS}


@pytest.fixture(scope="session", params=RESULTS)
def any_result(request):
    return RESULTS[request.param]()


@pytest.fixture(scope="session")
def any_page(any_result):
    return any_result.to_html()


@pytest.fixture(scope="session")
def comparison():
    return random_comparison(3)
