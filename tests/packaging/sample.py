"""What a user may write: type-checked and run against the installed wheel, with the path of a bundle."""

import sys
from collections.abc import Iterator
from concurrent.futures import Future
from typing import assert_type

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx import BertScoreOnnxError, BERTScorer, EncodedTexts, Score, Scores, Signature, score
from bertscore_onnx.errors import InputError
from bertscore_onnx.serving import BatcherStats, MicroBatcher

CANDIDATES = ["It is freezing today."]
REFERENCES = ["It is cold today."]


def score_every_way(bundle: str) -> float:
    """Return the F of one pair."""
    with BERTScorer(bundle, idf=False) as scorer:
        scores = assert_type(scorer.score(CANDIDATES, REFERENCES), Scores)
        P, R, F = scores
        assert_type(F, NDArray[np.float32])
        both = assert_type(scorer.score(CANDIDATES, [REFERENCES], return_hash=True), tuple[Scores, str])
        streamed = assert_type(scorer.stream(zip(CANDIDATES, REFERENCES, strict=True)), Iterator[Score])
        encoded = assert_type(scorer.encode(REFERENCES), EncodedTexts)
        assert_type(scorer.pairwise(CANDIDATES, encoded), Scores)
        assert_type(scorer.signature, Signature)
        assert both[1] == str(scorer.signature)
        assert len(list(streamed)) == len(P) == len(R) == 1
        with MicroBatcher(scorer) as batcher:
            future = assert_type(batcher.submit(CANDIDATES, REFERENCES), Future[Scores])
            assert np.allclose(future.result().F, F, atol=1e-5)
            assert_type(batcher.stats(), BatcherStats)
        return float(F[0])


def refuses_what_is_no_text(bundle: str) -> bool:
    """Say whether a number is refused, by an error of the library's."""
    try:
        score([1], REFERENCES, bundle)  # type: ignore[list-item]
    except BertScoreOnnxError as error:
        return isinstance(error, InputError)
    return False


if __name__ == "__main__":
    assert refuses_what_is_no_text(sys.argv[1])
    print(score_every_way(sys.argv[1]))
