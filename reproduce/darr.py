"""DARR: whether metrics order two outputs of a segment as their direct assessments do, where these
clearly differ.

Mathur et al., "Results of the WMT20 Metrics Shared Task", section 4.2 and its tables of
segment-level τ; Zhang et al., "BERTScore", ICLR 2020, table 4, has the same of WMT18. Two outputs
are ranked if their raw assessments differ by 25 points of 100 or more, without human translations.
τ = (C − D) / (C + D), where a tie of the metric is discordant.

    python -m reproduce.darr WMT20 cs-en chrF TER

WMT20 holds `metrics-ad-seg-scores-cs-en.csv` and `METRIC.cs-en.seg.score` of the results of that
task. Expected, the first column as in its `RR-newstest2020-csen-seg-nohy-cor.csv`, the last without
the pairs that the metric ties:

newstest2020 cs-en
                           tau     pairs      ties   no ties
chrF                    0.0863     14018       169    0.0996
TER                    -0.0401     14018      1880    0.1086
"""

import argparse
import csv
import re
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from reproduce.tables import Floats, print_table

THRESHOLD = 25
HUMAN = re.compile(r"(human|translator|ref)[-_.]?[a-z]?(\.\d+)?", re.IGNORECASE)


def tau(human: Floats, metric: Floats) -> tuple[float, int, int, float]:
    """Return τ, the ranked pairs, those that the metric ties, and τ without these; scores are
    (systems, segments).
    """
    agreement = []
    for system in range(len(human) - 1):
        difference = human[system] - human[system + 1 :]  # (later systems, segments)
        signs = np.sign(difference) * np.sign(metric[system] - metric[system + 1 :])
        agreement.append(signs[np.abs(difference) >= THRESHOLD])
    signs = np.concatenate(agreement)
    decided = signs[signs != 0]
    return (
        float(np.mean(np.where(signs > 0, 1, -1))),
        len(signs),
        len(signs) - len(decided),
        float(decided.mean()),
    )


def read(
    folder: Path, language_pair: str, metric: str, reference: str | None = None
) -> tuple[str, Floats, Floats]:
    """Return the name of the test set, and raw assessments and a metric's scores of systems,
    (systems, segments).

    Of several references, scores are those with the first, or with the one that is named.
    """
    scores = {}
    lines = (
        (folder / f"{metric}.{language_pair}.seg.score").read_text(encoding="utf-8").splitlines()
    )
    rows = [line.split("\t")[2:] for line in lines]
    test_set, chosen = rows[0][0], reference or rows[0][1]
    if chosen not in (available := [*dict.fromkeys(row[1] for row in rows)]):
        raise SystemExit(
            f"{metric} has no scores with the reference {chosen!r}; it has {', '.join(available)}."
        )
    for _, of_reference, system, document, segment, score in rows:
        if of_reference == chosen and not HUMAN.fullmatch(system):
            scores[system, f"{document}::{segment}"] = float(score)
    with (folder / f"metrics-ad-seg-scores-{language_pair}.csv").open(encoding="utf-8") as file:
        human = {
            (row["SYS"], row["SEGID"]): float(row["RAW.SCR"])
            for row in csv.DictReader(file, delimiter=" ")
        }
    systems, segments = (sorted(set(names)) for names in zip(*scores, strict=True))
    cells = [[(system, segment) for segment in segments] for system in systems]
    matrices = [
        np.array([[side.get(cell, np.nan) for cell in row] for row in cells])
        for side in (human, scores)
    ]
    return test_set, matrices[0], matrices[1]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print τ of each metric."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduce.darr", description="DARR of metrics of WMT20."
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("language_pair")
    parser.add_argument("metrics", nargs="+")
    parser.add_argument(
        "--reference", help="such as newstest2020-2; by default the first in the file"
    )
    options = parser.parse_args(arguments)
    rows, title = {}, ""
    for metric in options.metrics:
        test_set, human, scores = read(
            options.folder, options.language_pair, metric, options.reference
        )
        value, pairs, ties, without = tau(human, scores)
        rows[metric] = (f"{value:.4f}", str(pairs), str(ties), f"{without:.4f}")
        title = f"{test_set} {options.language_pair}"
    return print_table(title, ("tau", "pairs", "ties", "no ties"), rows, __doc__)


if __name__ == "__main__":
    sys.exit(main())
