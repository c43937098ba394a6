"""BERTScore as an evaluator of langsmith: F of a run's output against that of its example.

    pip install langsmith 'bertscore-onnx[cpu]'

Copy this file, and pass the evaluator to langsmith's `evaluate`:

    evaluator = bertscore(BERTScorer("path/to/bundle"))
    evaluate(my_system, data="my dataset", evaluators=[evaluator])
"""

from collections.abc import Callable
from typing import Any

from bertscore_onnx import BERTScorer


def bertscore(scorer: BERTScorer, key: str = "answer") -> Callable[..., dict[str, Any]]:
    """Return the evaluator; `key` names the text in the outputs of runs and examples.

    An example may have a list of references there; the best one counts.
    """

    def bertscore_f(outputs: dict[str, Any], reference_outputs: dict[str, Any]) -> dict[str, Any]:
        [scores] = scorer.score([outputs[key]], [reference_outputs[key]]).each()
        comment = f"P {scores.P:.6f}, R {scores.R:.6f}, {scorer.signature}"
        return {"key": "bertscore_f", "score": scores.F, "comment": comment}

    return bertscore_f
