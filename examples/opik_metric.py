"""BERTScore in opik: its own metric `BERTScore`, with the scores of a bundle and without PyTorch.

    pip install opik 'bertscore-onnx[cpu]'
    python opik_metric.py BUNDLE "a candidate" "a reference"

Pass the metric in `scoring_metrics` of `opik.evaluate`; a task returns `output`, and the item has
the `reference`.
"""

import sys

from opik.evaluation.metrics import BERTScore

from bertscore_onnx import BERTScorer


def bertscore(scorer: BERTScorer) -> BERTScore:
    """Return the metric, which gives F, with P and R in its metadata."""
    return BERTScore(scorer_fn=scorer.score, name="bertscore_f", track=False)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    bundle, candidate, reference = sys.argv[1:]
    with BERTScorer(bundle) as scorer:
        print(bertscore(scorer).score(output=candidate, reference=reference))
