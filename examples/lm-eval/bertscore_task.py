"""BERTScore as a metric of a task in lm-evaluation-harness; `bertscore_example.yaml` is the task.

    pip install lm-eval 'bertscore-onnx[cpu]'
    cd examples/lm-eval
    export BERTSCORE_BUNDLE=path/to/bundle
    lm-eval run --model dummy --tasks bertscore_example --include_path .

In your own task, name `process_results` and the metrics in the YAML as the example does.
"""

import functools
import os
from typing import Any

from bertscore_onnx import BERTScorer


@functools.cache
def load_scorer() -> BERTScorer:
    """Load the model once, when the first document is scored."""
    return BERTScorer(os.environ["BERTSCORE_BUNDLE"])


def process_results(doc: dict[str, Any], results: list[str]) -> dict[str, float]:
    """Score the model's output against the document's `reference`, a text or a list of texts."""
    [scores] = load_scorer().score(results, [doc["reference"]]).each()
    return {"bertscore_p": scores.P, "bertscore_r": scores.R, "bertscore_f": scores.F}
