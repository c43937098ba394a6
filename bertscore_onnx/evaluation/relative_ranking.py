"""DARR, the segment-level Kendall τ of WMT17 to WMT20: Mathur et al., "Results of the WMT20 Metrics Shared Task"."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.correlation import Floats, judged_scores
from bertscore_onnx.evaluation.judged_systems import JudgedSystems, check_systems, human_by_name
from bertscore_onnx.evaluation.tables import (
    Column,
    Result,
    Table,
    count,
    language_pair_title,
    number,
    rows_by_language_pair,
    with_notes,
)

THRESHOLD = 25
"""Points of direct assessment, of 100, by which two outputs differ at least to be ranked."""


@dataclass(frozen=True, slots=True)
class Darr:
    """Counts of a metric's agreement with annotators on the pairs of outputs that they clearly ranked."""

    concordant: int
    """Pairs that the metric orders as annotators do."""
    discordant: int
    """The others, those that the metric ties among them."""
    ties: int
    """Pairs to which the metric gives equal scores."""

    @property
    def pairs(self) -> int:
        """All ranked pairs."""
        return self.concordant + self.discordant

    @property
    def tau(self) -> float | None:
        """τ = (C − D) / (C + D) in [-1, 1], where a tie is discordant; None without a ranked pair."""
        return (self.concordant - self.discordant) / self.pairs if self.pairs else None

    @property
    def tau_without_ties(self) -> float | None:
        """The same over the pairs that the metric does not tie; None if there are none."""
        decided = self.pairs - self.ties
        return (self.concordant - self.discordant + self.ties) / decided if decided else None


def darr(human: Floats, metric: Floats, *, threshold: float = THRESHOLD) -> Darr:
    """Turn direct assessments into rankings of pairs, and count how often a metric ranks them so.

    Args:
        human: mean raw direct assessment of each output, 0 to 100, (systems, segments), NaN where nobody judged.
            Human translations are not to be among the systems.
        metric: (systems, segments), finite where annotators judged; the higher, the better.
        threshold: pairs of one segment are ranked if their assessments differ by at least this much.

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
class DarrOfLanguagePair:
    """All metrics on one language pair."""

    language_pair: str
    systems: tuple[str, ...]
    human_systems: tuple[str, ...]
    """The systems that were left out because they are human translations."""
    metrics: Mapping[str, Darr | None]
    """By metric; None if judged outputs have no score."""
    reasons: Mapping[str, str]
    """Why τ has no value, by metric."""


_COUNTS = ("tau", "pairs", "concordant", "discordant", "ties", "tau_without_ties")
_COLUMNS: tuple[Column, ...] = (
    ("metric", "metric", str),
    ("tau", "tau", number(4, signed=True)),
    *((name, name, count) for name in _COUNTS[1:5]),
    ("tau without ties", "tau_without_ties", number(4, signed=True)),
)


@dataclass(frozen=True, slots=True)
class DarrResult(Result):
    """Every metric on every language pair."""

    threshold: float
    language_pairs: tuple[DarrOfLanguagePair, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return what `to_json` writes; a missing value is None, with a reason."""
        return {
            "threshold": self.threshold,
            "language_pairs": {
                pair.language_pair: {
                    "systems": list(pair.systems),
                    "human_systems": list(pair.human_systems),
                    "metrics": {
                        name: {key: getattr(counts, key, None) for key in _COUNTS}
                        | ({"reason": pair.reasons[name]} if name in pair.reasons else {})
                        for name, counts in pair.metrics.items()
                    },
                }
                for pair in self.language_pairs
            },
        }

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        return rows_by_language_pair(self.to_dict())

    def _blocks(self) -> Iterator[str]:
        rows = [*self._rows()]
        for pair in self.language_pairs:
            title = language_pair_title(pair.language_pair, pair.systems, pair.human_systems)
            table = Table(_COLUMNS, [row for row in rows if row["lang_pair"] == pair.language_pair])
            yield with_notes(f"{title}\n{table.text()}", pair.reasons)
        yield (
            f"Pairs are outputs of one segment whose judgements differ by {self.threshold:g} or more.\n"
            "A tie of the metric counts as discordant."
        )


def darr_by_language_pair(
    language_pairs: Sequence[JudgedSystems],
    *,
    threshold: float = THRESHOLD,
    human_systems: Collection[str] | None = None,
) -> DarrResult:
    """Count how often metrics rank two outputs as their direct assessments do.

    Args:
        language_pairs: the systems of each, with the mean raw assessment of each output, from 0 to 100.
        threshold: points by which two assessments differ at least for the outputs to be ranked.
        human_systems: the systems that are human translations, which are left out; None to recognise their names.

    Returns:
        Kendall's τ with its counts; a tie of the metric counts as discordant.

    Raises:
        InputError: the threshold is not above 0, no system has such a name, or only whole systems have human scores.
    """
    if not 0 < threshold < math.inf:
        raise InputError(f"The threshold is {threshold}; expected points of assessment above 0, such as {THRESHOLD}.")
    check_systems(language_pairs, human_systems or ())
    excluded = human_by_name(language_pairs) if human_systems is None else human_systems
    return DarrResult(threshold, tuple(_of_language_pair(one, threshold, excluded) for one in language_pairs))


def _of_language_pair(judged: JudgedSystems, threshold: float, excluded: Collection[str]) -> DarrOfLanguagePair:
    outputs, human, human_systems = judged.exclude_human_systems(excluded)
    found: dict[str, Darr | None] = {}
    reasons = {}
    for name, metric in outputs.metrics.items():
        found[name], scores = None, outputs.segment_scores(metric)
        if len(outputs.systems) < 2:
            reasons[name] = f"ranks need two systems, and there are {len(outputs.systems)}"
        elif missing := outputs.unscored(scores):
            reasons[name] = missing
        else:
            found[name] = counts = darr(human, scores, threshold=threshold)
            if not counts.pairs:
                reasons[name] = "no two outputs of a segment are far enough apart in the judgements"
    return DarrOfLanguagePair(outputs.language_pair, outputs.systems, human_systems, found, reasons)
