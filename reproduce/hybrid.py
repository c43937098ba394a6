"""Hybrid systems: each segment's output is drawn from one of the real systems; how metrics
correlate, and select.

Graham and Liu, "Achieving Accurate Conclusions in Evaluation of Automatic Machine Translation
Metrics", NAACL 2016; Zhang et al., "BERTScore", ICLR 2020, section 5: Pearson's r over 10,000
hybrid systems of WMT18, and the selection of the best of 100 of them, 100,000 times: how often it
is the best by human scores (Hits@1), the mean reciprocal rank (MRR), and how much lower its human
score is (Diff). A metric's score is the mean over segments; that of corpus-BLEU is sacreBLEU's of
the texts of a hybrid system. "better" counts the other metrics that correlate significantly better
by Williams' test with n = 10,000, p < .05.

    python -m reproduce.hybrid WMT23 he-en mqm refB BERTscore BLEU chrF COMET XCOMET-Ensemble

WMT23 is a folder in the layout of mt-metrics-eval, as WMT18 is. Expected:

he-en mqm refB, 10000 hybrids, 100000 trials: BERTscore, BLEU, chrF, COMET, XCOMET-Ensemble,
                       corpus-BLEU
                       Pearson    better    Hits@1       MRR      Diff
BERTscore               0.3689         1    0.0716    0.1730    0.1613
BLEU                    0.2312         5    0.0253    0.0929    0.2120
chrF                    0.2712         3    0.0491    0.1271    0.1953
COMET                   0.3636         1    0.0734    0.1695    0.1627
XCOMET-Ensemble         0.4877         0    0.0825    0.2083    0.1327
corpus-BLEU             0.2670         3    0.0418    0.1187    0.1904
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sacrebleu import BLEU

from bertscore_onnx_evaluation import correlate_pairs
from reproduce.eval_set import read_eval_set
from reproduce.tables import Floats, number, print_table
from reproduce.williams import williams

NUM_HYBRIDS, NUM_CANDIDATES, NUM_TRIALS = 10_000, 100, 100_000
SEED = 4
Drawn = NDArray[np.int64]


def draw_hybrids(human: Floats, num_hybrids: int, seed: int) -> Drawn:
    """Return the system of each segment of each hybrid system, any of those judged on it; (hybrids,
    segments).
    """
    is_judged = ~np.isnan(human)
    judged_first = np.argsort(~is_judged, axis=0, kind="stable")  # (systems, segments)
    rng = np.random.default_rng(seed)
    drawn = rng.integers(is_judged.sum(axis=0), size=(num_hybrids, human.shape[1]), dtype=np.int32)
    return judged_first[drawn, np.arange(human.shape[1])]


def mean_scores(scores: Floats, hybrids: Drawn) -> Floats:
    """Average the scores of the outputs of each hybrid system, (hybrids,)."""
    segments = np.arange(scores.shape[1])
    return np.array([scores[systems, segments].mean() for systems in hybrids])


def corpus_bleu(
    outputs: Sequence[Sequence[str]], references: Sequence[str], hybrids: Drawn
) -> Floats:
    """Return sacreBLEU's corpus BLEU of each hybrid system, (hybrids,), from the counts of its
    segments.
    """
    bleu = BLEU(effective_order=True)
    counts = np.array(
        [
            [
                [*score.counts, *score.totals, score.sys_len, score.ref_len]
                for output, reference in zip(of_system, references, strict=True)
                for score in (bleu.sentence_score(output, [reference]),)
            ]
            for of_system in outputs
        ]
    )  # (systems, segments, counts)
    segments = np.arange(len(references))
    sums = [counts[systems, segments].sum(axis=0).tolist() for systems in hybrids]
    return np.array([BLEU.compute_bleu(one[:4], one[4:8], *one[8:]).score for one in sums])


def select(
    human: Floats, metrics: Mapping[str, Floats], candidates: int, trials: int, seed: int
) -> dict[str, Floats]:
    """Return Hits@1, MRR and Diff of the hybrid systems that each metric selects; scores are
    (hybrids,).
    """
    rng = np.random.default_rng(seed)
    found = {name: np.zeros(3) for name in metrics}
    for _ in range(trials):
        drawn = rng.choice(len(human), candidates, replace=False)
        of_drawn = human[drawn]
        for name, metric in metrics.items():
            chosen = of_drawn[metric[drawn].argmax()]
            rank = 1 + (of_drawn > chosen).sum()
            found[name] += (rank == 1, 1 / rank, of_drawn.max() - chosen)
    return {name: sums / trials for name, sums in found.items()}


def num_better(human: Floats, metrics: Mapping[str, Floats], name: str) -> int:
    """Count the metrics that correlate significantly better than one."""
    r = {one: correlate_pairs(human, scores).value or 0.0 for one, scores in metrics.items()}
    tests = [
        williams(r[other], r[name], correlate_pairs(scores, metrics[name]).value or 0.0, len(human))
        for other, scores in metrics.items()
        if other != name
    ]
    return sum(test.p is not None and test.p < 0.05 for test in tests)


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table of a language pair."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduce.hybrid", description="Metrics over hybrid systems."
    )
    parser.add_argument("folder", type=Path)
    for name in ("language_pair", "gold", "reference"):
        parser.add_argument(name)
    parser.add_argument("metrics", nargs="+")
    parser.add_argument("--hybrids", type=int, default=NUM_HYBRIDS)
    parser.add_argument("--trials", type=int, default=NUM_TRIALS)
    options = parser.parse_args(arguments)
    pair, gold, reference = options.language_pair, options.gold, options.reference
    names = [f"{name}-{reference}" for name in options.metrics]
    judged = read_eval_set(
        options.folder, pair, gold=gold, reference=reference, metrics=names, with_texts=True
    ).judged()
    human = judged.human_segment
    is_used = np.asarray(~np.isnan(human).all(axis=0))
    hybrids = draw_hybrids(human[:, is_used], options.hybrids, SEED)
    human_scores = mean_scores(human[:, is_used], hybrids)
    metrics = {
        name: mean_scores(scores.segment[:, is_used], hybrids)
        for name, scores in judged.metrics.items()
    }
    outputs = np.array(judged.candidates)[:, is_used].tolist()
    references = [one for (one,), used in zip(judged.references[0], is_used, strict=True) if used]
    metrics["corpus-BLEU"] = corpus_bleu(outputs, references, hybrids)
    selected = select(human_scores, metrics, NUM_CANDIDATES, options.trials, SEED)
    rows = {
        name: (
            number(correlate_pairs(human_scores, of_metric).value),
            str(num_better(human_scores, metrics, name)),
            *map(number, selected[name]),
        )
        for name, of_metric in metrics.items()
    }
    title = (
        f"{pair} {gold} {reference}, {options.hybrids} hybrids, {options.trials} trials: "
        f"{', '.join(metrics)}"
    )
    return print_table(title, ("Pearson", "better", "Hits@1", "MRR", "Diff"), rows, __doc__)


if __name__ == "__main__":
    sys.exit(main())
