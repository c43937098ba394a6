"""BERTScore as an assertion of promptfoo: passes if F of the output against the variable
`reference` is high enough.

    npm install promptfoo
    pip install 'bertscore-onnx[cpu]'
    export BERTSCORE_BUNDLE=path/to/bundle
    npx promptfoo eval --config examples/promptfoo/promptfooconfig.yaml

promptfoo starts Python for each assertion, so each loads the model; PROMPTFOO_PYTHON names another
Python.
"""

import os
from typing import Any

from bertscore_onnx import BERTScorer


def get_assert(output: str, context: dict[str, Any]) -> dict[str, Any]:
    """Score the output; `threshold` comes from the assertion's `config`."""
    threshold = context["config"]["threshold"]
    with BERTScorer(os.environ["BERTSCORE_BUNDLE"]) as scorer:
        [scores] = scorer.score([output], [context["vars"]["reference"]]).each()
    return {
        "pass": threshold <= scores.F,
        "score": scores.F,
        "reason": (
            f"BERTScore P {scores.P:.4f}, R {scores.R:.4f}, F {scores.F:.4f}, {scorer.signature}"
        ),
        "namedScores": scores._asdict(),
    }
