"""BERTScore as a metric of mlflow: F of each prediction against its target, with mean, variance and
90th percentile.

    pip install mlflow 'bertscore-onnx[cpu]'
    python mlflow_metric.py BUNDLE TABLE.json

The table is JSON as pandas reads it, with the columns `prediction` and `target`; a target may be a
list of references.
"""

import sys

import mlflow
import pandas as pd
from mlflow.metrics import MetricValue, make_metric
from mlflow.models import EvaluationMetric

from bertscore_onnx import BERTScorer


def bertscore(scorer: BERTScorer) -> EvaluationMetric:
    """Return the metric, for `extra_metrics` of `mlflow.models.evaluate`."""

    def score(predictions: pd.Series, targets: pd.Series) -> MetricValue:
        return MetricValue(scores=scorer.score(predictions, targets).F.tolist())

    return make_metric(
        eval_fn=score,
        greater_is_better=True,
        name="bertscore_f",
        metric_metadata={"signature": str(scorer.signature)},
    )


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    bundle, table = sys.argv[1:]
    with BERTScorer(bundle) as scorer, mlflow.start_run():
        mlflow.set_tag("bertscore", scorer.signature)
        result = mlflow.models.evaluate(
            data=pd.read_json(table),
            predictions="prediction",
            targets="target",
            extra_metrics=[bertscore(scorer)],
        )
        print(result.metrics)
