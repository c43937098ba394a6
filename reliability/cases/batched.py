"""Many clients hand requests of mixed lengths to one batcher: none is lost, none gets another's scores."""

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx import BERTScorer
from bertscore_onnx.serving import MicroBatcher
from harness.results import Figure
from harness.texts import synthetic_pairs
from reliability.bounds import at_most, none_of
from reliability.settings import Settings

TOLERANCE = 1e-5
DISTINCT = 150
"""Different requests; clients draw from them."""

LONGEST = 4
"""Pairs in a request."""

Request = tuple[list[str], list[str]]
Values = NDArray[np.float32]


def measure(settings: Settings) -> list[Figure]:
    """Compare every answer with the scores that its request gets alone."""
    requests = _requests()
    with BERTScorer(settings.minilm, device="cpu") as scorer:
        alone = [_values(scorer.score(*request)) for request in requests]
        with MicroBatcher(scorer, deadline=600) as batcher:

            def ask(number: int) -> Values | None:
                try:
                    return _values(batcher.submit(*requests[number]).result())
                except Exception:
                    return None

            draw = random.Random(1)  # noqa: S311 -- nothing secret
            asked = draw.choices(range(len(requests)), k=settings.sizes.requests)
            with ThreadPoolExecutor(settings.sizes.clients) as clients:
                answers = list(clients.map(ask, asked))
            stats = batcher.stats()
    return [
        none_of(f"of {len(asked):,} requests, lost", sum(answer is None for answer in answers)),
        none_of("answers that are another request's", _swapped(asked, answers, alone)),
        at_most("largest difference from the solo score", _difference(asked, answers, alone), "", TOLERANCE),
        none_of("requests that the counts do not account for", abs(stats.submitted - stats.completed)),
    ]


def _requests() -> list[Request]:
    draw = random.Random(0)  # noqa: S311 -- nothing secret
    pairs = iter(zip(*synthetic_pairs(DISTINCT * LONGEST), strict=True))
    groups = [list(islice(pairs, draw.randint(1, LONGEST))) for _ in range(DISTINCT)]
    return [([cand for cand, _ in group], [ref for _, ref in group]) for group in groups]


def _values(scores: Sequence[Values]) -> Values:
    return np.stack(list(scores))  # (3, pairs)


def _difference(asked: list[int], answers: list[Values | None], alone: list[Values]) -> float:
    differences = [_distance(answer, alone[number]) for number, answer in zip(asked, answers, strict=True)]
    return max(differences, default=0.0)


def _swapped(asked: list[int], answers: list[Values | None], alone: list[Values]) -> int:
    """Count the answers that are not near their own solo scores, but near another request's."""
    return sum(
        any(_distance(answer, other) <= TOLERANCE for other in alone)
        for number, answer in zip(asked, answers, strict=True)
        if answer is not None and _distance(answer, alone[number]) > TOLERANCE
    )


def _distance(one: Values | None, other: Values) -> float:
    """Return the largest difference; 0 for an answer that was lost, which is counted as such."""
    if one is None:
        return 0.0
    return float(np.abs(one - other).max()) if one.shape == other.shape else float("inf")
