import numpy as np
import pytest

from bertscore_onnx_evaluation import compare
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
    metrics = [
        metric_result(name, EVIL, scores, all_pairs=True, signature=EVIL[0])
        for name in ("bertscore", "ter")
    ]
    references = [
        [f"</style></title>{EVIL[1]} \ud800 {'longword' * 3000}", "", "drei", "vier"]
    ] * 30
    return comparison_of(metrics, [[name] * 30 for name in EVIL], references)


def constant():
    metrics = [
        metric_result("bertscore", ["a", "b"], [[0.9] * 5] * 2),
        metric_result("ter", ["a", "b"], [[0] * 5] * 2),
    ]
    return comparison_of(metrics, [["x"] * 5] * 2, [["r"]] * 5)


def one_segment():
    return comparison_of(
        [metric_result("bertscore", ["a", "b"], [[0.5], [0.7]])], [["x"], [""]], [[""]]
    )


def matches():
    tokens = [f"word{row}" for row in range(12)]
    similarity = stated_similarity(tokens, tokens, np.diag(np.linspace(-0.2, 1, 12)))
    metrics = [metric_result("bertscore", ["base", "new"], [[0.5, 0.5], [0.6, 0.4]])]
    known = {(row, segment): similarity for row in range(2) for segment in range(2)}
    return comparison_of(
        metrics, [[" ".join(tokens)] * 2] * 2, [[" ".join(tokens)]] * 2, matches=known
    )


def groups():
    rng = np.random.default_rng(7)
    shared = rng.normal(size=100)
    scores = {
        f"a-system-{row}": shared + 0.1 * (row * 3 % 7) + rng.normal(0, 0.5, 100)
        for row in range(7)
    }
    return compare(
        scores=scores,
        all_pairs=True,
        num_resamples=500,
        by=["news"] * 50 + ["talks"] * 40 + ["web"] * 10,
    )


CASES = {
    "two": lambda: random_comparison(2, metrics=["bertscore"]),
    "three": lambda: random_comparison(3),
    "twenty": lambda: random_comparison(
        20, 100, ["bertscore", "bleu", "chrf", "ter"], all_pairs=True
    ),
    "matches": matches,
    "evil": evil,
    "constant": constant,
    "one-segment": one_segment,
    "groups": groups,
}


@pytest.fixture(scope="session", params=CASES)
def any_result(request):
    return CASES[request.param]()


@pytest.fixture(scope="session")
def any_page(any_result):
    return any_result.to_html()


@pytest.fixture(scope="session")
def comparison():
    return random_comparison(3)
