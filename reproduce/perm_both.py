"""PERM-BOTH, the test of the WMT metrics tasks: whether one metric's r with human scores is higher
than another's.

Deutsch, Dror and Roth, "A Statistical Analysis of Summarization Evaluation Metrics Using Resampling
Methods", TACL 2021, section 4.2; Freitag et al., "Results of WMT23 Metrics Shared Task", has the
ranks. Both metrics are standardised (z) and exchange their scores in each cell, output or whole
system, with probability 1/2; p is the share of permutations whose difference is as large. It is
one-sided, without a correction for several metrics, and treats the outputs of a segment as
independent: of two equal metrics it finds one better too often.

    python -m reproduce.perm_both WMT23 he-en mqm refB BERTscore BLEU chrF COMET XCOMET-Ensemble

WMT23 is a folder in the layout of mt-metrics-eval. The columns are r over outputs or systems, the
rank, and p of the metric against the next one. Expected:

he-en mqm refB, segments: XCOMET-Ensemble, COMET, BERTscore, chrF, BLEU
                       Pearson      rank         p
XCOMET-Ensemble          0.556         1     0.000
COMET                    0.401         2     0.000
BERTscore                0.335         3     0.000
chrF                     0.221         4     0.450
BLEU                     0.220         4         -

he-en mqm refB, systems: XCOMET-Ensemble, COMET, BERTscore, chrF, BLEU
                       Pearson      rank         p
XCOMET-Ensemble          0.950         1     0.304
COMET                    0.940         1     0.113
BERTscore                0.895         1     0.075
chrF                     0.776         2     0.436
BLEU                     0.769         2         -
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bertscore_onnx_evaluation import clusters, correlate
from reproduce.eval_set import read_eval_set
from reproduce.tables import Floats, number, print_table

ROUNDING = 1e-9
"""Differences of r that are no larger count as equal."""


def perm_both(
    human: Floats, metrics: Sequence[Floats], *, permutations: int = 1000, seed: int = 4
) -> Floats:
    """Return p that metric i correlates no better than metric j, (metrics, metrics); scores are
    (systems, segments).
    """
    is_judged = ~np.isnan(human)
    human, cells = (
        _standardised(human[is_judged]),
        [_standardised(metric[is_judged]) for metric in metrics],
    )
    r = [np.mean(human * metric) for metric in cells]
    counts = np.zeros((len(cells), len(cells)))
    rng = np.random.default_rng(seed)
    for _ in range(permutations):
        is_kept = (
            rng.random(is_judged.size, dtype=np.float32).reshape(is_judged.shape)[is_judged] > 0.5
        )
        for first in range(len(cells)):
            for second in range(first + 1, len(cells)):
                one = _standardised(np.where(is_kept, cells[first], cells[second]))
                other = _standardised(np.where(is_kept, cells[second], cells[first]))
                observed, permuted = (
                    r[first] - r[second],
                    np.mean(human * one) - np.mean(human * other),
                )
                counts[first, second] += permuted >= observed - ROUNDING
                counts[second, first] += permuted <= observed + ROUNDING
    np.fill_diagonal(counts, permutations)
    return counts / permutations


def _standardised(scores: Floats) -> Floats:
    return (scores - scores.mean()) / scores.std()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print r, ranks and p of segments and of systems."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduce.perm_both", description="Ranks as WMT23 has them."
    )
    parser.add_argument("folder", type=Path)
    for name in ("language_pair", "gold", "reference"):
        parser.add_argument(name)
    parser.add_argument("metrics", nargs="+")
    options = parser.parse_args(arguments)
    pair, gold, reference = options.language_pair, options.gold, options.reference
    metrics = [f"{name}-{reference}" for name in options.metrics]
    task = read_eval_set(options.folder, pair, gold=gold, reference=reference, metrics=metrics)
    is_judged = ~np.isnan(task.human_system)
    status = 0
    for level in ("segments", "systems"):
        human = task.human_segment if level == "segments" else task.human_system[:, None]
        human = human[is_judged]
        scores = {}
        for name, of_metric in task.metrics.items():
            of_level = of_metric.segment if level == "segments" else of_metric.system
            scores[name] = np.asarray(of_level)[is_judged].reshape(human.shape)
        names = sorted(scores, key=lambda name: -(correlate(human, scores[name]).value or 0.0))
        r = np.array([correlate(human, scores[name]).value for name in names])
        p = perm_both(human, [scores[name] for name in names])
        below = [number(value, 3) for value in np.diagonal(p, 1)] + ["-"]
        cells = zip(r, clusters(r, p), below, strict=True)
        rows = {
            name: (number(of, 3), str(rank), after)
            for name, (of, rank, after) in zip(names, cells, strict=True)
        }
        title = f"{pair} {gold} {reference}, {level}: {', '.join(names)}"
        status |= print_table(title, ("Pearson", "rank", "p"), rows, __doc__)
    return status


if __name__ == "__main__":
    sys.exit(main())
