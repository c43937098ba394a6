"""BERTScore as a metric of deepeval: F of a test case's actual output against its expected output.

    pip install deepeval 'bertscore-onnx[cpu]'
    python deepeval_metric.py BUNDLE

In your own tests: `assert_test(test_case, [BERTScoreMetric(scorer, threshold=0.8)])`. Create one
scorer for all: deepeval copies a metric for each test case, and the copies share the scorer.
"""

import asyncio
import sys

from deepeval import evaluate
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase

from bertscore_onnx import BERTScorer


class BERTScoreMetric(BaseMetric):
    """F, with P and R in `score_breakdown`; no LLM is called."""

    __name__ = "BERTScore"

    def __init__(self, scorer: BERTScorer, threshold: float = 0.5) -> None:
        self.scorer = scorer
        self.threshold = threshold

    def measure(self, test_case: LLMTestCase, *args: object, **kwargs: object) -> float:
        """Score one test case."""
        [scores] = self.scorer.score([test_case.actual_output], [test_case.expected_output]).each()
        self.score, self.score_breakdown, self.reason = (
            scores.F,
            scores._asdict(),
            str(self.scorer.signature),
        )
        self.success = self.is_successful()
        return self.score

    async def a_measure(self, test_case: LLMTestCase, *args: object, **kwargs: object) -> float:
        """Score in a thread, so that other test cases can run."""
        return await asyncio.to_thread(self.measure, test_case)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    test_case = LLMTestCase(
        input="", actual_output="It is freezing today.", expected_output="It is cold today."
    )
    with BERTScorer(sys.argv[1]) as scorer:
        evaluate([test_case], [BERTScoreMetric(scorer, threshold=0.8)])
