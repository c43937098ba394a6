"""BERTScore as a script with JSON on standard input and output, as agentevals runs its custom
evaluators.

    pip install 'bertscore-onnx[cpu]'
    python agentevals_evaluator.py < INPUT.json

In agentevals' configuration it is an evaluator of the type `code` with the `path` of this file, and
`config` names the model: `{"model": "path/to/bundle"}`. The score is the mean of F over all
responses, from 0 to 1.
"""

import json
import sys

from bertscore_onnx import score

if __name__ == "__main__":
    request = json.load(sys.stdin)
    responses = [turn["final_response"] or "" for turn in request["invocations"]]
    expected = [turn["final_response"] or "" for turn in request["expected_invocations"]]
    scores = score(responses, expected, model_type=request["config"]["model"])
    each = scores.F.clip(0, 1)
    json.dump({"score": float(each.mean()), "per_invocation_scores": each.tolist()}, sys.stdout)
