"""A user's program, for a type checker: each call has the declared type, and each mistake is
reported.
"""

from collections.abc import Generator
from pathlib import Path
from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import bertscore_onnx
from bertscore_onnx import BERTScorer, EncodedTexts, Score, Scores, Signature, score
from bertscore_onnx.compat import bert_score
from bertscore_onnx.hub import pull
from bertscore_onnx_service import MicroBatcher
from bertscore_onnx_service.batcher.stats import BatcherStats

CANDIDATES = ["a cat"]
REFERENCES = ["the cat"]
SEVERAL = [["the cat", "a dog"]]


def score_once() -> str:
    precision, _, _ = score(CANDIDATES, REFERENCES, lang="en")
    assert_type(precision, NDArray[np.float32])
    scores, line = score(CANDIDATES, SEVERAL, "roberta-large", return_hash=True)
    assert_type(scores, Scores)
    score.clear()
    return f"{scores.mean().f1:.3f} {line.upper()}"


def score_often(scorer: BERTScorer) -> list[float]:
    assert_type(scorer.score(CANDIDATES, REFERENCES), Scores)
    assert_type(scorer.score(CANDIDATES, SEVERAL, return_hash=True), tuple[Scores, str])
    assert_type(scorer.encode(SEVERAL), EncodedTexts)
    assert_type(
        scorer.pairwise(CANDIDATES, scorer.encode(REFERENCES)).best_reference, NDArray[np.int64]
    )
    assert_type(scorer.stream([("a", "b")]), Generator[Score, None, None])
    assert_type(scorer.signature, Signature)
    with scorer.with_idf(True, REFERENCES) as weighted, scorer.with_rescaling("en") as rescaled:
        assert_type((weighted, rescaled), tuple[BERTScorer, BERTScorer])
    scorer.score("a cat", 3)  # type: ignore[call-overload]
    values: list[float] = scorer.score(CANDIDATES, REFERENCES).F.tolist()
    return values


def add_up(scorer: BERTScorer, pairs: list[tuple[str, str]]) -> float:
    total = 0.0
    for p, r, f in scorer.stream(zip(CANDIDATES, REFERENCES, strict=True)):
        total += p + r + f
    best = max(scorer.stream(pairs), key=lambda one: one.F)
    return total + best.f1 if best.best_reference else total


def score_as_before(scorer: bert_score.BERTScorer) -> list[float]:
    _, _, f1 = bert_score.score(CANDIDATES, REFERENCES, lang="en")
    values: list[float] = f1.cpu().detach().tolist()
    return values


def fetch() -> Path:
    return pull("org/model@v1")


def load(bundle: Path) -> BERTScorer:
    bertscore_onnx.nothing  # type: ignore[attr-defined]  # noqa: B018
    BERTScorer(bundle, long_text="cut")  # type: ignore[arg-type]
    return BERTScorer(
        bundle, 17, 64, 4, False, {7: 0.5}, device="cpu", long_text="window", max_length=128
    )


async def serve(batcher: MicroBatcher) -> Scores:
    assert_type(batcher.submit(CANDIDATES, SEVERAL).result(), Scores)
    assert_type(batcher.stats(), BatcherStats)
    return await batcher.score(CANDIDATES, REFERENCES)
