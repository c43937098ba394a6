"""Pearson's r over whole systems, with and without outliers, and Williams' test of the best metric
against the others.

Ma et al., "Results of the WMT19 Metrics Shared Task", tables of system-level correlations; Mathur,
Baldwin and Cohn, "Tangled up in BLEU", ACL 2020, section 3.1, for outliers; Graham and Baldwin,
EMNLP 2014, for the test. BERTScore's table 1 has the same of WMT18.

    python -m reproduce.systems WMT19/DA-newstest2019-deen-sys-nohy-scores.csv BLEU chrF YiSi-1

The columns are r over all systems, r without outliers, and the one-sided p of the best metric
against this one. Expected:

DA-newstest2019-deen-sys-nohy-scores.csv, 16 systems, 1 outliers: BLEU, chrF, YiSi-1
                           all   inliers         p
BLEU                     0.849     0.770     0.014
chrF                     0.917     0.862     0.065
YiSi-1                   0.949     0.914      best

DA-newstest2019-fien-sys-nohy-scores.csv, 12 systems, 0 outliers: BLEU, chrF, YiSi-1
                           all   inliers         p
BLEU                     0.982     0.982     0.105
chrF                     0.992     0.992      best
YiSi-1                   0.989     0.989     0.293

DA-newstest2019-ruen-sys-nohy-scores.csv, 14 systems, 1 outliers: BLEU, chrF, YiSi-1
                           all   inliers         p
BLEU                     0.879     0.830     0.003
chrF                     0.945     0.876     0.012
YiSi-1                   0.979     0.947      best

DA-newstest2019-ende-sys-nohy-scores.csv, 22 systems, 2 outliers: BLEU, chrF, YiSi-1
                           all   inliers         p
BLEU                     0.921     0.419     0.000
chrF                     0.979     0.881     0.010
YiSi-1                   0.991     0.917      best
"""

import argparse
import csv
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx_evaluation import correlate_pairs
from reproduce.tables import Floats, print_table
from reproduce.williams import williams

FAR = 2.5
"""Robust z above which a system is an outlier."""


def outliers(scores: Floats) -> NDArray[np.bool_]:
    """Return which systems are far from the others: |x − median| / (1.4826·MAD) > 2.5; none where
    MAD is 0.
    """
    distance = np.abs(scores - np.median(scores))
    scale = 1.4826 * np.median(distance)
    return (scale > 0) & (distance > FAR * scale)


def pearson(human: Floats, metric: Floats) -> float:
    """Return Pearson's r of two rows of scores."""
    return correlate_pairs(human, metric).value or 0.0


def main(arguments: Sequence[str] | None = None) -> int:
    """Print r of each metric."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduce.systems", description="Metrics of WMT19 over systems."
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("metrics", nargs="+")
    options = parser.parse_args(arguments)
    with options.file.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file, delimiter=" "))
    human, *scores = (
        np.array([float(row[name]) for row in rows]) for name in ("HUMAN", *options.metrics)
    )
    r = [pearson(human, metric) for metric in scores]
    best, kept = int(np.argmax(r)), ~outliers(human)
    cells = {}
    for name, metric, value in zip(options.metrics, scores, r, strict=True):
        p = "best"
        if metric is not scores[best]:
            p = f"{williams(r[best], value, pearson(scores[best], metric), len(human)).p:.3f}"
        cells[name] = (f"{value:.3f}", f"{pearson(human[kept], metric[kept]):.3f}", p)
    number = f"{len(human)} systems, {int((~kept).sum())} outliers"
    title = f"{options.file.name}, {number}: {', '.join(options.metrics)}"
    return print_table(title, ("all", "inliers", "p"), cells, __doc__)


if __name__ == "__main__":
    sys.exit(main())
