"""DARR by language pair, from rows of direct assessments."""

import json
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.correlation import Floats, judged_scores
from bertscore_onnx.evaluation.judged_systems import (
    JudgedSystems,
    Machines,
    MetricScores,
    check_systems,
    machines,
    people_by_name,
)
from bertscore_onnx.evaluation.tables import (
    MISSING,
    TableFormat,
    format_signed,
    is_tsv,
    language_pair_title,
    missing_note,
    rows_by_language_pair,
    tabulated,
    to_tsv,
    with_notes,
)

# DARR, the segment-level Kendall τ of WMT17 to WMT20: Mathur et al., "Results of the WMT20 Metrics Shared Task".


THRESHOLD = 25
"""Points of direct assessment, of 100, by which two outputs differ at least for people to have ranked them."""


@dataclass(frozen=True, slots=True)
class Darr:
    """How a metric orders the pairs of outputs that people clearly told apart."""

    concordant: int
    """Pairs that the metric orders as people do."""
    discordant: int
    """The others, those that the metric ties among them."""
    ties: int
    """Pairs to which the metric gives equal scores."""

    @property
    def pairs(self) -> int:
        """All pairs that people told apart."""
        return self.concordant + self.discordant

    @property
    def tau(self) -> float | None:
        """τ = (C − D) / (C + D) in [-1, 1], where a tie is discordant; None where people told no pair apart."""
        return (self.concordant - self.discordant) / self.pairs if self.pairs else None

    @property
    def tau_without_ties(self) -> float | None:
        """The same over the pairs that the metric does not tie; None where there are none."""
        decided = self.pairs - self.ties
        return (self.concordant - self.discordant + self.ties) / decided if decided else None

    @property
    def reason(self) -> str:
        """Why `tau` has no value; empty where it has one."""
        return "" if self.pairs else "no two outputs of a segment are far enough apart in the judgements"


def darr(human: Floats, metric: Floats, *, threshold: float = THRESHOLD) -> Darr:
    """Turn direct assessments into rankings of pairs, and count how often a metric ranks them so.

    Args:
        human: mean raw direct assessment of each output, 0 to 100, (systems, segments), NaN where nobody judged.
            People's own translations are not to be among the systems.
        metric: (systems, segments), finite where people judged; the higher, the better.
        threshold: pairs of one segment are ranked where their assessments differ by at least this much.

    Raises:
        InputError: shapes differ, a score is missing or infinite, or the threshold is not above 0.
    """
    human, metric = judged_scores(human, metric)
    if not threshold > 0:
        raise InputError(f"The threshold is {threshold}; expected points of assessment above 0, such as {THRESHOLD}.")
    concordant = discordant = ties = 0
    for system in range(len(human) - 1):
        human_delta = human[system] - human[system + 1 :]  # (later systems, segments)
        is_ranked = np.abs(human_delta) >= threshold
        metric_delta = (metric[system] - metric[system + 1 :])[is_ranked]
        agreement = np.sign(human_delta[is_ranked]) * np.sign(metric_delta)
        concordant += int((agreement > 0).sum())
        discordant += int((agreement <= 0).sum())
        ties += int((agreement == 0).sum())
    return Darr(concordant, discordant, ties)


@dataclass(frozen=True, slots=True)
class DarrOfMetric:
    """How one metric ranks the pairs of outputs of a language pair."""

    metric: str
    counts: Darr | None
    """None where judged outputs have no score."""

    reason: str
    """Why τ has no value; empty where it has one."""


@dataclass(frozen=True, slots=True)
class DarrOfLanguagePair:
    """All metrics on one language pair."""

    language_pair: str
    systems: tuple[str, ...]
    people: tuple[str, ...]
    """The systems that were left out because they are people."""

    metrics: tuple[DarrOfMetric, ...]


@dataclass(frozen=True, slots=True)
class DarrResult:
    """What `darr_by_language_pair` found."""

    threshold: float
    language_pairs: tuple[DarrOfLanguagePair, ...]

    def table(self, table_format: TableFormat = "text") -> str:
        """Write a table to read, or with "tsv" one with all digits; without a line end after its last line.

        Raises:
            InputError: there is no such format.
            MissingExtraError: tabulate is not installed.
        """
        return darr_table(self, table_format)

    def to_json(self) -> str:
        """Return it as JSON; what is missing is null, with a reason."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False)

    def to_dict(self) -> dict[str, Any]:
        """Return what `to_json` writes."""
        return {
            "threshold": self.threshold,
            "language_pairs": {
                pair.language_pair: {
                    "systems": list(pair.systems),
                    "human_systems": list(pair.people),
                    "metrics": {one.metric: _as_dict(one) for one in pair.metrics},
                }
                for pair in self.language_pairs
            },
        }


def darr_by_language_pair(
    language_pairs: Sequence[JudgedSystems],
    *,
    threshold: float = THRESHOLD,
    people: Collection[str] | None = None,
) -> DarrResult:
    """Count how often metrics rank two outputs as their direct assessments do.

    Args:
        language_pairs: the systems of each, with the mean raw assessment of each output, from 0 to 100.
        threshold: points by which two assessments differ at least for the outputs to have a rank.
        people: the systems that are people, which have no place here; None to know them by their names.

    Returns:
        Kendall's τ with its counts; a tie of the metric counts as discordant.

    Raises:
        InputError: the threshold is not above 0, there is no system of such a name, or people judged whole systems.
    """
    if not 0 < threshold < math.inf:
        raise InputError(f"The threshold is {threshold}; expected points of assessment above 0, such as {THRESHOLD}.")
    check_systems(language_pairs, people or ())
    left_out = people_by_name(language_pairs) if people is None else people
    return DarrResult(threshold, tuple(_of_language_pair(one, threshold, left_out) for one in language_pairs))


def _of_language_pair(judged: JudgedSystems, threshold: float, people: Collection[str]) -> DarrOfLanguagePair:
    outputs = machines(judged, people)
    metrics = tuple(_of_metric(outputs, name, metric, threshold) for name, metric in judged.metrics.items())
    return DarrOfLanguagePair(outputs.language_pair, outputs.systems, outputs.people, metrics)


def _of_metric(outputs: Machines, name: str, metric: MetricScores, threshold: float) -> DarrOfMetric:
    if len(outputs.systems) < 2:
        return DarrOfMetric(name, None, f"ranks need two systems, and there are {len(outputs.systems)}")
    scores = outputs.scores(metric)
    if missing := outputs.missing(scores):
        return DarrOfMetric(name, None, missing)
    counts = darr(outputs.human, scores, threshold=threshold)
    return DarrOfMetric(name, counts, counts.reason)


def _as_dict(result: DarrOfMetric) -> dict[str, Any]:
    counts = result.counts
    names = ("tau", "pairs", "concordant", "discordant", "ties", "tau_without_ties")
    values = {name: None if counts is None else getattr(counts, name) for name in names}
    return {**values, **({"reason": result.reason} if result.reason else {})}


def darr_table(result: "DarrResult", table_format: TableFormat) -> str:
    """Write a table for each language pair, or one for all as TSV."""
    if is_tsv(table_format):
        return to_tsv(rows_by_language_pair(result.to_dict()))
    header = ["metric", "tau", "pairs", "concordant", "discordant", "ties", "tau without ties"]
    blocks = [
        with_notes(
            f"{language_pair_title(pair.language_pair, pair.systems, pair.people)}\n"
            + tabulated([_darr_row(one) for one in pair.metrics], header),
            [missing_note(one.metric, one.reason) for one in pair.metrics],
        )
        for pair in result.language_pairs
    ]
    points = f"Pairs are outputs of one segment whose judgements differ by {result.threshold:g} or more."
    return "\n\n".join([*blocks, f"{points}\nA tie of the metric counts as discordant."])


def _darr_row(one: "DarrOfMetric") -> list[str]:
    counts = one.counts
    if counts is None:
        return [one.metric, *[MISSING] * 6]
    numbers = (counts.pairs, counts.concordant, counts.discordant, counts.ties)
    return [
        one.metric,
        format_signed(counts.tau),
        *(f"{number:,}" for number in numbers),
        format_signed(counts.tau_without_ties),
    ]
