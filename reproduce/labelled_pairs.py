"""How well scores separate paraphrases from other pairs of texts: area under the ROC curve, and
average precision.

Zhang et al., "BERTScore", ICLR 2020, section 6 and table 6: pairs of QQP, and those of PAWS (Zhang,
Baldridge and He, NAACL 2019), which share most words. Papers call either of the two areas "AUC".

    python -m reproduce.labelled_pairs PAWS/dev_and_test.tsv --model BUNDLE

The table has `sentence1`, the reference, `sentence2` and `label`, 0 or 1. chrF, BLEU (of single
sentences), or the metrics of `--metric` such as `chrf,word_order=2`, and, with a bundle, BERTScore
score the pairs; or else the columns are scores that the command names.
"""

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from bertscore_onnx import BERTScorer
from bertscore_onnx_evaluation import score_systems
from bertscore_onnx_evaluation.metric_scores import specified_metrics
from reproduce.tables import Floats, number, print_table


def roc_auc(labels: NDArray[np.int64], scores: Floats) -> float:
    """Return how often a positive pair has a higher score than a negative one, ties half: U /
    (n₊·n₋).
    """
    positive = int(labels.sum())
    ranks = rankdata(scores)[labels == 1].sum()
    return float((ranks - positive * (positive + 1) / 2) / (positive * (len(labels) - positive)))


def average_precision(labels: NDArray[np.int64], scores: Floats) -> float:
    """Return Σ (Rₖ − Rₖ₋₁)·Pₖ over the distinct scores from the highest down; equal ones come in
    together.
    """
    distinct, group = np.unique(-scores, return_inverse=True)
    hits = np.bincount(group, labels, len(distinct))
    taken = np.bincount(group, minlength=len(distinct)).cumsum()
    return float((hits / labels.sum() * hits.cumsum() / taken).sum())


def main(arguments: Sequence[str] | None = None) -> int:
    """Print both areas of each metric."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduce.labelled_pairs", description="AUC on pairs of texts."
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("columns", nargs="*")
    parser.add_argument("--metric", nargs="+", default=["bleu", "chrf"])
    parser.add_argument("--model")
    options = parser.parse_args(arguments)
    with options.file.open(encoding="utf-8", newline="") as file:
        table = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    labels = np.array([int(row["label"]) for row in table])
    scores = {name: np.array([float(row[name]) for row in table]) for name in options.columns}
    if not scores:
        references, candidates = (
            [row[name] for row in table] for name in ("sentence1", "sentence2")
        )
        metrics = specified_metrics(options.metric)
        if options.model:
            metrics["bertscore"] = {}
        scorer = BERTScorer(options.model) if options.model else None
        found = score_systems(metrics, [candidates], [references], scorer=scorer)
        scores = {name: np.asarray(metric.segment)[0] for name, metric in found.items()}
    rows = {
        name: (number(roc_auc(labels, metric)), number(average_precision(labels, metric)))
        for name, metric in scores.items()
    }
    return print_table(
        f"{options.file.name}: {labels.sum()} of {len(labels)} positive", ("ROC AUC", "AP"), rows
    )


if __name__ == "__main__":
    sys.exit(main())
