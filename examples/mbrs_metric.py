"""BERTScore as a metric of mbrs, for minimum Bayes risk decoding: the candidate most similar to all
the others.

    pip install mbrs 'setuptools<81' 'bertscore-onnx[cpu]'
    python mbrs_metric.py BUNDLE HYPOTHESES.txt    # one per line; prints the best

mbrs 0.1.8 imports pkg_resources, which newer versions of setuptools lack, and PyTorch.
Every text is encoded once, and all pairs of texts are matched in one call.
"""

import sys
from dataclasses import dataclass
from pathlib import Path

from mbrs.decoders import DecoderMBR
from mbrs.metrics import Metric, register
from torch import Tensor, from_numpy

from bertscore_onnx import BERTScorer


@register("bertscore_onnx")
class MetricBERTScoreONNX(Metric):
    """F of BERTScore."""

    @dataclass
    class Config(Metric.Config):
        """The path of a bundle, or the name of its model."""

        bundle: str

    def __init__(self, cfg: Config) -> None:
        super().__init__(cfg)
        self.scorer = BERTScorer(cfg.bundle)

    def score(self, hypothesis: str, reference: str, source: str | None = None) -> float:
        """Return the score of one hypothesis."""
        return self.scores([hypothesis], [reference]).item()

    def scores(
        self, hypotheses: list[str], references: list[str], sources: list[str] | None = None
    ) -> Tensor:
        """Return the score of each hypothesis with its reference, (hypotheses,)."""
        return from_numpy(self.scorer.score(hypotheses, references).F)

    def pairwise_scores(
        self, hypotheses: list[str], references: list[str], source: str | None = None
    ) -> Tensor:
        """Return the score of every hypothesis with every reference, (hypotheses, references)."""
        return from_numpy(self.scorer.pairwise(hypotheses, references).F)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    metric = MetricBERTScoreONNX(MetricBERTScoreONNX.Config(bundle=sys.argv[1]))
    hypotheses = Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()
    best = DecoderMBR(DecoderMBR.Config(), metric).decode(hypotheses, references=hypotheses)
    print(best.sentence[0])
