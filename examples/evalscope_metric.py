"""BERTScore in evalscope: its own metric `bert_score`, with the scores of a bundle and without
PyTorch.

    pip install evalscope 'bertscore-onnx[cpu]'
    python evalscope_metric.py BUNDLE "a candidate" "a reference"

evalscope has a copy of bert-score's code. Call `use(scorer)` once before `run_task`: benchmarks
with the metric `bert_score` then score with it, whichever model their settings name.
"""

import sys

from evalscope.metrics.nlp.metrics import BertScore

from bertscore_onnx import BERTScorer


def use(scorer: BERTScorer) -> None:
    """Let evalscope's metric score with a scorer."""

    def load(metric: BertScore, *_: object, **__: object) -> None:
        metric.scorer = scorer

    BertScore._init_once = load  # evalscope calls it before the first score


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    bundle, candidate, reference = sys.argv[1:]
    with BERTScorer(bundle) as scorer:
        use(scorer)
        print(BertScore().apply([candidate], [reference]))
