"""What BERTScore cannot see: how often a reference that was made wrong scores higher than a real
output.

Karpinska et al., "DEMETR", EMNLP 2022, and Hanna and Bojar, WMT21, test metrics with such edits.
Each edit is applied to every English reference that it can change: "not" put in or taken out, a
number times ten, a name of another reference in place of one, the parts around the first comma
exchanged, and the first half of the words alone.

    python -m reproduce.blind_spots TABLE --model BUNDLE

TABLE is TSV, without quoting, or CSV, with the columns `reference` and `candidate`, the output of a
real system. For each edit there are the number of references, and by metric the mean score of the
edited references against the originals, that of the outputs, and the share of references whose edit
scores higher than the output, with its 95 % interval (Clopper and Pearson).
"""

import argparse
import csv
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
from scipy.stats import binomtest

from bertscore_onnx import BERTScorer
from bertscore_onnx_evaluation import score_systems
from reproduce.tables import Floats, print_table

Edit = Callable[[str], str | None]
"""Returns a text made wrong; None where there is nothing to edit."""

VERBS = "is|are|was|were|will|would|can|could|should|must|may|might|has|have|had|does|did|do"
BERTSCORE = {"F": "bertscore", "P": "bertscore,value=P", "R": "bertscore,value=R"}


def negation(text: str) -> str | None:
    """Take out the first "not"; else put one behind the first auxiliary verb."""
    if re.search(r"\bnot\b", text):
        return re.sub(r" ?\bnot\b", "", text, count=1)
    return _changed(re.sub(rf"\b({VERBS})\b(?!n?['’]t)", r"\1 not", text, count=1), text)


def number(text: str) -> str | None:
    """Multiply the first number by ten that is no year."""

    def ten_times(match: re.Match[str]) -> str:
        return f"{10 * Decimal(match[0].replace(',', '')):{',' if ',' in match[0] else ''}f}"

    numbers = r"(?<![\d.,])(?!(?:1[5-9]|20)\d\d\b)\d+(,\d{3})*(\.\d+)?"
    return _changed(re.sub(numbers, ten_times, text, count=1), text)


def names(text: str) -> list[str]:
    """Return capitalised words within sentences; of several in a row the last, usually the
    surname.
    """
    return re.findall(r"(?<=[\w,] )(?:[A-Z]\w+ )*([A-Z]\w{2,})\b(?! [A-Z])", text)


def name(text: str, others: Iterable[str]) -> str | None:
    """Put the first of the other names that the text has not in place of its first name."""
    own, other = names(text), next((other for other in others if other not in text), None)
    return re.sub(rf"\b{own[0]}\b", other, text) if own and other else None


def order(text: str) -> str | None:
    """Exchange the parts before and after the first comma, each of three words or more."""
    match = re.fullmatch(r"(.+?), (.+?)([.!?\"”']*)", text)
    if not match or min(len(part.split()) for part in match.groups()[:2]) < 3:
        return None
    return _changed(
        f"{match[2][0].upper()}{match[2][1:]}, {match[1][0].lower()}{match[1][1:]}{match[3]}", text
    )


def half(text: str) -> str | None:
    """Keep the first half of the words."""
    words = text.split()
    return " ".join(words[: len(words) // 2]) if len(words) > 3 else None


def edits_of(references: Sequence[str]) -> dict[str, list[str | None]]:
    """Return by kind of edit every reference made wrong; None where it has nothing to edit."""
    own = [names(text) for text in references]
    edits: Mapping[str, Edit] = {
        "negation": negation,
        "number": number,
        "order": order,
        "half": half,
    }
    edited = {kind: [edit(text) for text in references] for kind, edit in edits.items()}
    edited["name"] = [
        name(text, chain.from_iterable([*own[at + 1 :], *own[:at]]))
        for at, text in enumerate(references)
    ]
    return edited


def _changed(edited: str, text: str) -> str | None:
    return edited if edited != text else None


def share(edits: Floats, outputs: Floats) -> str:
    """Return how often edits score higher than outputs, and the 95 % interval."""
    test = binomtest(int(np.sum(edits > outputs)), len(outputs))
    low, high = test.proportion_ci(method="exact")
    return f"{test.statistic:.2f} ({low:.2f}-{high:.2f})"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table for each edit."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduce.blind_spots", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--model", required=True)
    options = parser.parse_args(arguments)
    is_tsv = options.file.suffix == ".tsv"
    with options.file.open(encoding="utf-8", newline="") as file:
        table = [
            *(
                csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
                if is_tsv
                else csv.DictReader(file)
            )
        ]
    references, outputs = (
        [row[column].strip() for row in table] for column in ("reference", "candidate")
    )
    with BERTScorer(options.model) as plain, plain.with_idf(True, references) as weighted:
        for kind, edited in edits_of(references).items():
            rows = [
                at
                for at, text in enumerate(edited)
                if text is not None and outputs[at] != references[at]
            ]
            if not rows:
                print(f"{kind}: no reference to edit\n")
                continue
            systems = [[texts[at] or "" for at in rows] for texts in (edited, outputs)]
            score = partial(
                score_systems, candidates=systems, references=[[references[at] for at in rows]] * 2
            )
            scores = score([*BERTSCORE.values(), "chrf"], scorer=plain)
            by_name = {f"BERTScore {value}": scores[metric] for value, metric in BERTSCORE.items()}
            by_name |= {
                "BERTScore F, idf": score(["bertscore"], scorer=weighted)["bertscore"],
                "chrF": scores["chrf"],
            }
            cells = {}
            for title, metric in by_name.items():
                of_edits, of_outputs = np.asarray(metric.segment)
                cells[title] = (
                    f"{of_edits.mean():.3f}",
                    f"{of_outputs.mean():.3f}",
                    f"  {share(of_edits, of_outputs)}",
                )
            print_table(
                f"{kind}, {len(rows)} references", ("edits", "outputs", "  edits above"), cells
            )
            print()
    return 0


if __name__ == "__main__":
    sys.exit(main())
