"""Whether metrics detect errors: the three conditions of a challenge set, by linguistic category.

Hanna and Bojar, "A Fine-Grained Analysis of BERTScore", WMT 2021, section 4, on TQ-AutoTest
(Macketanz et al., 2018). y is the reference, y' another good translation, b a bad one: (i) the mean
of F(y, y'); (ii) the share of examples with F(y, y') > F(y, b) for every b; (iii) those with F(y,
b_i) > F(y, b_j) for every b_i listed before b_j. A tie is wrong.

    python -m reproduce.challenge_sets TQ/Auswahl_Test-Suite_De-En_Publish.txt --model BUNDLE

The first correct translation is the reference; categories of fewer than 5 examples are not shown,
and count in the whole. BLEU has no smoothing, as the paper's (36.2 % there). Expected of all
examples, in %:

Auswahl_Test-Suite_De-En_Publish.txt, all: 195, 163, 142 examples
                             i        ii       iii
BLEU                    28.560      36.2      23.2
sentence-BLEU           41.014      55.2      50.7
chrF                    62.263      64.4      62.0
chrF++                  61.888      62.6      60.6
"""

import argparse
import csv
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bertscore_onnx import BERTScorer
from bertscore_onnx_evaluation import score_systems
from reproduce.tables import Floats, print_table

MIN_EXAMPLES = 5
METRICS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "BLEU": {"bleu": {"smooth_method": "none"}},
    "sentence-BLEU": {"bleu": {}},
    "chrF": {"chrf": {}},
    "chrF++": {"chrf": {"word_order": 2}},
}


class Example(NamedTuple):
    """A reference, and the other translations of the same text."""

    category: str
    reference: str
    good: list[str]
    bad: list[str]


def read_examples(path: Path) -> list[Example]:
    """Return the examples of TQ-AutoTest that have a good translation."""
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
    found = []
    for row in rows:
        good, bad = (
            [
                text
                for name, text in zip(header, row, strict=False)
                if name.startswith(kind) and text.strip()
            ]
            for kind in ("Correct", "Incorrect")
        )
        if good:
            found.append(Example(row[header.index("Category")], good[0], good[1:], bad))
    return found


def outcomes(good: Sequence[Floats], bad: Sequence[Floats]) -> Floats:
    """Return the value of each condition for each example, (examples, 3): a mean, then 0 or 1; NaN
    without one.
    """
    found = np.full((len(good), 3), np.nan)
    for row, of_good, of_bad in zip(found, good, bad, strict=True):
        if len(of_good):
            row[0] = of_good.mean()
        if len(of_good) and len(of_bad):
            row[1] = of_good.min() > of_bad.max()
        if len(of_bad) > 1:
            row[2] = (np.diff(of_bad) < 0).all()
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the conditions of each metric over all examples, and by category."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduce.challenge_sets", description="Conditions i, ii and iii."
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--model")
    options = parser.parse_args(arguments)
    examples = read_examples(options.file)
    candidates = [text for one in examples for text in (*one.good, *one.bad)]
    references = [one.reference for one in examples for _ in (*one.good, *one.bad)]
    ends = np.cumsum([len(side) for one in examples for side in (one.good, one.bad)])[:-1]
    conditions = {}
    for name, metric in {
        **METRICS,
        **({"BERTScore": {"bertscore": {}}} if options.model else {}),
    }.items():
        scorer = BERTScorer(options.model) if name == "BERTScore" else None
        [scores] = score_systems(metric, [candidates], [references], scorer=scorer).values()
        sides = np.split(np.asarray(scores.segment)[0], ends)
        conditions[name] = outcomes(sides[::2], sides[1::2])
    status = 0
    categories = np.array([one.category for one in examples])
    for category in ("", *np.unique(categories)):
        chosen = (categories == category) | (category == "")
        counts = (~np.isnan(conditions["BLEU"][chosen])).sum(axis=0)
        shown = counts >= (MIN_EXAMPLES if category else 1)
        if shown.any():
            rows = {
                name: tuple(
                    f"{np.nanmean(values):.{1 + 2 * (at == 0)}f}" if shown[at] else "-"
                    for at, values in enumerate((of[chosen] * ([1, 100, 100])).T)
                )
                for name, of in conditions.items()
            }
            title = (
                f"{options.file.name}, {category or 'all'}: {', '.join(map(str, counts))} examples"
            )
            status |= print_table(title, ("i", "ii", "iii"), rows, __doc__)
    return status


if __name__ == "__main__":
    sys.exit(main())
