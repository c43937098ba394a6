"""BERTScore in uqlm: its black-box scorer `bert_score`, with the scores of a bundle, each text
encoded once.

    pip install uqlm 'pyarrow<22' 'bertscore-onnx[cpu]'
    python uqlm_scorer.py BUNDLE "a response" "a sampled response" ["another" ...]

On Python 3.12 and below, newer versions of pyarrow fail with uqlm's NumPy. In your own program:

    uqlm.scorers.shortform.black_box.BertScorer = lambda device: BundleScorer(scorer)
    uq = BlackBoxUQ(llm, scorers=["bert_score"])

uqlm itself imports PyTorch.
"""

import sys

from uqlm.black_box.bert import BertScorer

from bertscore_onnx import BERTScorer


class BundleScorer(BertScorer):
    """The mean F of a response against the responses sampled for the same prompt."""

    def __init__(self, scorer: BERTScorer) -> None:
        self.bert_scorer = scorer

    def _compute_score(self, response: str, candidates: list[str]) -> float:
        return float(self.bert_scorer.pairwise([response], candidates).F.mean())


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    bundle, response, *sampled = sys.argv[1:]
    with BERTScorer(bundle) as scorer:
        print(BundleScorer(scorer).evaluate([response], [sampled]))
