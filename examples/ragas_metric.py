"""BERTScore as a metric of ragas: F of a response against its reference, or against the best of
several.

    pip install ragas 'langchain-community<0.4' 'bertscore-onnx[cpu]'
    python ragas_metric.py BUNDLE SAMPLES.json

ragas 0.4.3 fails with newer versions of langchain-community. The samples are a list of objects with
`response` and `reference`. In a ragas experiment, call `await metric.ascore(…)`.
"""

import asyncio
import json
import math
import sys
from pathlib import Path

from ragas.metrics import MetricResult, numeric_metric
from ragas.metrics.decorator import NumericMetricProtocol

from bertscore_onnx import BERTScorer


def bertscore(scorer: BERTScorer) -> NumericMetricProtocol:
    """Return the metric; it has no bounds, because rescaled scores have none."""

    @numeric_metric(name="bertscore_f", allowed_values=(-math.inf, math.inf))
    async def score(response: str, reference: str | list[str]) -> MetricResult:
        [scores] = (await asyncio.to_thread(scorer.score, [response], [reference])).each()
        return MetricResult(
            value=scores.F, reason=f"P {scores.P:.6f}, R {scores.R:.6f}, {scorer.signature}"
        )

    return score


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    bundle, samples = sys.argv[1:]
    with BERTScorer(bundle) as scorer:
        for result in bertscore(scorer).batch_score(
            json.loads(Path(samples).read_text(encoding="utf-8"))
        ):
            print(result.value, result.reason)
