"""Measures what a bundle in reduced precision, or another device, costs in accuracy.

    python benchmarks/studies/precision_cost.py REFERENCE OTHER... --judgements FILE [--limit N] [--json]

REFERENCE and OTHER are bundles, each as BUNDLE or BUNDLE@DEVICE; REFERENCE is usually one in fp32 on the CPU. FILE is a
table of human judgements, tab-separated, gzipped or not, with the columns lang_pair, reference, candidate and
human_score, such as the WMT16 segment-level ones. Segments translated into English are scored by every bundle. For each
it prints how far F moves from the reference's, Pearson's correlation with the reference's F, and that with the human
scores, averaged over the language pairs; the loss is what this falls short of the reference's.
"""

import argparse
import csv
import gzip
import json
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx import BERTScorer

Scores = dict[str, NDArray[np.float32]]
"""Language pair to the F of its segments."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one bundle costs against the reference."""

    bundle: str
    precision: str
    provider: str
    segments: int
    largest_difference: float
    mean_difference: float
    """Of |ΔF|, as is the largest."""

    pearson_with_reference: float
    pearson_with_humans: float
    loss: float
    """By how much `pearson_with_humans` is below the reference's."""


@dataclass(frozen=True, slots=True)
class Segments:
    """The judged segments of one language pair."""

    candidates: list[str]
    references: list[str]
    human: NDArray[np.float64]


def main() -> None:
    """Measure and print."""
    arguments = _arguments()
    segments = read_judgements(arguments.judgements, arguments.limit)
    costs, reference = [], None
    for bundle in (arguments.reference, *arguments.others):
        scores, precision, provider = score_all(bundle, segments)
        reference = reference or scores
        costs.append(compare(bundle, precision, provider, segments, scores, reference))
        if not arguments.json:
            print(describe(costs[-1]), flush=True)
    if arguments.json:
        print(json.dumps([asdict(cost) for cost in costs]))


def read_judgements(path: Path, limit: int | None) -> dict[str, Segments]:
    """Read the segments into English, at most `limit` of each language pair."""
    opened = gzip.open if path.suffix == ".gz" else open
    rows: dict[str, list[tuple[str, str, float]]] = defaultdict(list)
    with opened(path, "rt", encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            if row["lang_pair"].endswith("-en"):
                rows[row["lang_pair"]].append((row["candidate"], row["reference"], float(row["human_score"])))
    return {
        pair: Segments([row[0] for row in kept], [row[1] for row in kept], np.array([row[2] for row in kept]))
        for pair, kept in ((pair, found[:limit]) for pair, found in rows.items())
    }


def score_all(bundle: str, segments: dict[str, Segments]) -> tuple[Scores, str, str]:
    """Score every segment; return F, the bundle's precision and the execution provider."""
    path, _, device = bundle.partition("@")
    with BERTScorer(path, device=device or "cpu") as scorer:
        scores = {pair: scorer.score(part.candidates, part.references).F for pair, part in segments.items()}
        return scores, scorer.manifest.precision, scorer.provider


def compare(
    bundle: str, precision: str, provider: str, segments: dict[str, Segments], scores: Scores, reference: Scores
) -> Cost:
    """Return what a bundle's scores cost against the reference's."""
    computed, expected = np.concatenate([*scores.values()]), np.concatenate([*reference.values()])
    difference = np.abs(computed - expected)
    with_humans = _mean_pearson(scores, segments)
    return Cost(
        bundle,
        precision,
        provider,
        len(computed),
        float(difference.max()),
        float(difference.mean()),
        float(np.corrcoef(computed, expected)[0, 1]),
        with_humans,
        _mean_pearson(reference, segments) - with_humans,
    )


def describe(cost: Cost) -> str:
    """Return one line for a reader."""
    return (
        f"{cost.bundle} ({cost.precision}, {cost.provider}), {cost.segments} segments: |ΔF| at most "
        f"{cost.largest_difference:.1e}, {cost.mean_difference:.1e} on average; Pearson "
        f"{cost.pearson_with_reference:.5f} with the reference, {cost.pearson_with_humans:.4f} with humans "
        f"(loss {cost.loss:+.4f})"
    )


def _mean_pearson(scores: Scores, segments: dict[str, Segments]) -> float:
    return float(np.mean([np.corrcoef(scores[pair], part.human)[0, 1] for pair, part in segments.items()]))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("reference", metavar="REFERENCE", help="a bundle, as BUNDLE or BUNDLE@DEVICE")
    parser.add_argument("others", metavar="OTHER", nargs="+", help="bundles to compare with it")
    parser.add_argument("--judgements", metavar="FILE", type=Path, required=True, help="the table of human scores")
    parser.add_argument("--limit", metavar="N", type=int, help="only the first N segments of each language pair")
    parser.add_argument("--json", action="store_true", help="print a JSON array")
    return parser.parse_args()


if __name__ == "__main__":
    main()
