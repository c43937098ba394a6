"""What one caller hands in, and how the scores of a batch come apart again."""

import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

import numpy as np

from bertscore_onnx.encoding.batching import plan_batches
from bertscore_onnx.errors import DeadlineError, EncodingError, InputTypeError
from bertscore_onnx.scores import Scores
from bertscore_onnx.scoring.inputs import Pairs, Texts

BYTES_PER_TOKEN = 3
"""Measured with BERT's and RoBERTa's tokenizers: 3 to 5 for English and German prose, 1 to 3 for Chinese."""

SPECIAL_TOKENS = 2

RUN_TOKENS = 1024
"""Padded tokens of a run of the model, about; what is padded within a run counts."""


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """Candidates and references that are answered together."""

    pairs: Pairs

    tokens: int
    """Of all texts, as estimated."""

    padded_tokens: int
    """The same with the padding that the scorer would add for this request alone."""

    seconds: float
    """How long the caller waits."""

    submitted: float = field(default_factory=time.monotonic)

    future: "Future[Scores]" = field(default_factory=Future)

    @property
    def deadline(self) -> float:
        """When the caller stops waiting, by `time.monotonic()`."""
        return self.submitted + self.seconds

    def deadline_error(self) -> DeadlineError:
        """Return the error of a request that came to its deadline."""
        return DeadlineError(
            f"There was no score within {self.seconds:g} s. Allow more time, or hand in less at once: the request has "
            f"{len(self.pairs.candidates)} candidates."
        )


def make_request(pairs: Pairs, seconds: float) -> Request:
    """Estimate the tokens of pairs that a caller waits for.

    Raises:
        InputTypeError: the texts are encoded already.
    """
    if not (isinstance(pairs.candidates, Texts) and isinstance(pairs.references, Texts)):
        raise InputTypeError("A batcher scores the texts of many callers together; hand in strings, not encoded texts.")
    texts = pairs.candidates.texts + pairs.references.texts
    lengths = np.array([estimate_tokens(text) for text in texts], dtype=np.int64)  # (texts,)
    padded = sum(len(run) * int(lengths[run[0]]) for run in plan_batches(lengths, RUN_TOKENS))
    return Request(pairs, int(lengths.sum()), padded, seconds)


def estimate_tokens(text: str) -> int:
    """Estimate the tokens of a text by its bytes.

    The true number would need the text tokenised here and again by the scorer. Only how many requests share a batch
    depends on it: the scorer caps its own runs by true counts.
    """
    return SPECIAL_TOKENS + len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN


def split_scores(scores: Scores, requests: Sequence[Request]) -> Iterator[Scores | EncodingError]:
    """Yield each request its part of a batch's scores, or an error where that is not finite."""
    end = 0
    for request in requests:
        start, end = end, end + len(request.pairs.candidates)
        precision, recall, f1 = (part[..., start:end].copy() for part in scores)  # a view would keep the whole batch
        if is_finite(part := Scores(precision, recall, f1, scores.best_reference[..., start:end].copy())):
            yield part
        else:
            yield EncodingError("The scorer gave undefined scores. Run `bertscore-onnx inspect` on its bundle.")


def is_finite(scores: Scores) -> bool:
    """Say whether every P, R and F is a number."""
    return all(np.isfinite(part).all() for part in scores)
