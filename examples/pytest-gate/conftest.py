"""The fixture `assert_no_drop`: fails a test if a system's texts score significantly lower than
before.

Copy this file beside your tests. It needs pytest, `bertscore-onnx[cpu]` and the path of a bundle in
BERTSCORE_BUNDLE.

    UPDATE_BASELINE=1 pytest    # stores the current scores in `baseline/`, one file per name
    pytest                      # fails if the mean F dropped by more than `allowed`, with p < .05

Commit the folder `baseline`. The test is a one-sided paired permutation test, on the same sentences
in the same order.
"""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from bertscore_onnx import BERTScorer

BASELINE = Path(__file__).parent / "baseline"
PERMUTATIONS = 9999
MIN_PAIRS = 5  # fewer pairs cannot reach p < .05


@pytest.fixture(scope="session")
def scorer() -> Iterator[BERTScorer]:
    """One scorer for all tests."""
    with BERTScorer(os.environ["BERTSCORE_BUNDLE"]) as scorer:
        yield scorer


@pytest.fixture
def assert_no_drop(scorer: BERTScorer) -> Callable[..., None]:
    """Return the check; `allowed` is the accepted drop of the mean F: more than 1e-5, since
    machines differ by that.
    """

    def check(
        name: str, candidates: list[str], references: list[str | list[str]], allowed: float = 0.001
    ) -> None:
        __tracebackhide__ = True  # so that a failure points to the test
        now = {
            "signature": str(scorer.signature),
            "F": scorer.score(candidates, references).F.tolist(),
        }
        file = BASELINE / f"{name}.json"
        if os.environ.get("UPDATE_BASELINE"):
            file.parent.mkdir(exist_ok=True)
            file.write_text(json.dumps(now, indent=1), encoding="utf-8")
            return
        assert file.exists(), f"{file} is missing: store it with UPDATE_BASELINE=1."
        before = json.loads(file.read_text(encoding="utf-8"))
        assert before["signature"] == now["signature"], (
            "The stored scores come from another scorer: UPDATE_BASELINE=1."
        )
        assert len(before["F"]) == len(now["F"]) >= MIN_PAIRS, (
            f"{len(before['F'])} scores stored, {len(now['F'])} now."
        )
        drops = np.subtract(before["F"], now["F"])
        p = p_of_mean_above_zero(drops - allowed)
        assert p >= 0.05, (
            f"The mean F of {name} dropped by {drops.mean():.6f}, more than {allowed} (p = "
            f"{p:.4f})."
        )

    return check


def p_of_mean_above_zero(differences: np.ndarray) -> float:
    """Return the p-value: how often the differences with random signs have a mean at least as
    high.
    """
    random = np.random.default_rng(0)
    means = [
        (random.choice([-1, 1], len(differences)) * differences).mean() for _ in range(PERMUTATIONS)
    ]
    return (1 + np.sum(means >= differences.mean())) / (1 + PERMUTATIONS)
