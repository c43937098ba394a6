"""DARR, the segment-level Kendall τ of WMT17 to WMT20: Mathur et al., "Results of the WMT20 Metrics Shared Task"."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.table import Column, Table, count, number
from bertscore_onnx_evaluation.metrics.correlation import Floats, judged_scores
from bertscore_onnx_evaluation.metrics.judged_systems import JudgedSystems, check_systems, human_by_name
from bertscore_onnx_evaluation.metrics.metric_pairs import (
    PAIR_COLUMNS,
    MetricDifference,
    SentinelTest,
    against_sentinels,
    by_kind,
    ends,
    metric_differences,
    notes_of_exchanges,
    notes_of_few,
    p_of_others,
    pairs_of,
    sentinel_lines,
)
from bertscore_onnx_evaluation.metrics.resampling import (
    UnitSums,
    enough_permutations,
    exchange_units,
    ratio,
    ratio_influences,
    share_interval,
    sum_by_unit,
)
from bertscore_onnx_evaluation.results import Result, language_pair_title, rows_by_language_pair, with_notes

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
    low: float | None = None
    """The lower end of the 95 % interval of τ over other segments (documents, if known); None of counts alone."""
    high: float | None = None
    """The upper end."""

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
    return Darr(*_counts(human, metric, threshold).sum(axis=1).tolist())


def _counts(human: Floats, metric: Floats, threshold: float) -> NDArray[np.int64]:
    """Count concordant, discordant and tied pairs in each segment, (3, segments)."""
    counts = np.zeros((3, human.shape[1]), dtype=np.int64)
    for system in range(len(human) - 1):
        human_delta = human[system] - human[system + 1 :]  # (later systems, segments)
        is_ranked = np.abs(human_delta) >= threshold
        agreement = np.sign(human_delta) * np.sign(metric[system] - metric[system + 1 :])
        outcomes = (agreement > 0, ~(agreement > 0), agreement == 0)
        counts += np.stack([(is_ranked & outcome).sum(axis=0) for outcome in outcomes])
    return counts


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
    differences: Mapping[tuple[str, str], MetricDifference]
    """In τ, by the names of two metrics, the better one first."""
    units: int
    """What intervals are of and tests exchange: segments with a ranked pair, or their documents, if known."""
    notes: tuple[str, ...] = ()
    """Warnings about the data."""
    sentinel_tests: tuple[SentinelTest, ...] = ()
    """Each metric against the best sentinel, if there are any."""

    def metric(self, name: str) -> dict[str, Any]:
        """Return a metric's τ and counts as JSON has them."""
        counts = self.metrics[name]
        interval = None if counts is None or counts.low is None else [counts.low, counts.high]
        reason = {"reason": self.reasons[name]} if name in self.reasons else {}
        return {**{key: getattr(counts, key, None) for key in _COUNTS}, "tau_interval": interval, **reason}


_COUNTS = ("tau", "pairs", "concordant", "discordant", "ties", "tau_without_ties")
_COLUMNS: tuple[Column, ...] = (
    ("metric", "metric", str),
    ("tau", "tau", number(4, signed=True)),
    ("95 %", "tau_interval", ends(4)),
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
                    **by_kind({name: pair.metric(name) for name in pair.metrics}),
                    "units": pair.units,
                    "pairs": pairs_of(pair.differences),
                    "notes": list(pair.notes),
                    "sentinel_tests": [asdict(test) for test in pair.sentinel_tests],
                }
                for pair in self.language_pairs
            },
        }

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        differences = {pair.language_pair: pair.differences for pair in self.language_pairs}
        for row in rows_by_language_pair(self.to_dict()):
            yield row | p_of_others(differences[row["lang_pair"]], row["metric"])

    def _blocks(self) -> Iterator[str]:
        for pair in self.language_pairs:
            title = language_pair_title(pair.language_pair, pair.systems, pair.human_systems)
            rows = [{"metric": name, **pair.metric(name)} for name in pair.metrics]
            yield "\n".join([title, with_notes(Table(_COLUMNS, rows).text(), pair.reasons), *pair.notes])
            if pair.differences:
                yield Table(PAIR_COLUMNS, pairs_of(pair.differences)).text()
        for of_pair in self.language_pairs:
            yield from sentinel_lines(f"{of_pair.language_pair}, tau", of_pair.sentinel_tests)
        yield (
            f"Pairs are outputs of one segment whose judgements differ by {self.threshold:g} or more.\n"
            "A tie of the metric counts as discordant. Intervals of 95 % are over other segments, or\n"
            "documents if they are known. p: by exchanging these as a whole, two-sided, after Holm."
        )


def darr_by_language_pair(
    language_pairs: Sequence[JudgedSystems],
    *,
    threshold: float = THRESHOLD,
    human_systems: Collection[str] | None = None,
    permutations: int = 1000,
    seed: int = 4,
) -> DarrResult:
    """Count how often metrics rank two outputs as their direct assessments do.

    Args:
        language_pairs: the systems of each, with the mean raw assessment of each output, from 0 to 100.
        threshold: points by which two assessments differ at least for the outputs to be ranked.
        human_systems: the systems that are human translations, which are left out; None to recognise their names.
        permutations: of the test of every two metrics; at least 30 for each pair of metrics.
        seed: of the permutations.

    Returns:
        Kendall's τ with its counts; a tie of the metric counts as discordant. Its 95 % interval is over other segments,
        or documents if they are known, and the test of every two metrics exchanges their counts in whole ones.

    Raises:
        InputError: the threshold is not above 0, no system has such a name, or only whole systems have human scores.
        MissingExtraError: scipy is not installed.
    """
    if not 0 < threshold < math.inf:
        raise InputError(f"The threshold is {threshold}; expected points of assessment above 0, such as {THRESHOLD}.")
    check_systems(language_pairs, human_systems or ())
    excluded = human_by_name(language_pairs) if human_systems is None else human_systems
    found = tuple(_of_language_pair(one, threshold, excluded, permutations, seed) for one in language_pairs)
    return DarrResult(threshold, found)


def _of_language_pair(
    judged: JudgedSystems, threshold: float, excluded: Collection[str], permutations: int, seed: int
) -> DarrOfLanguagePair:
    outputs, human, human_systems = judged.exclude_human_systems(excluded)
    found: dict[str, Darr | None] = {}
    reasons = {}
    sums: dict[str, UnitSums] = {}
    units = outputs.unit_numbers(np.ones(human.shape[1], dtype=bool))
    for name, metric in outputs.metrics.items():
        found[name], scores = None, outputs.segment_scores(metric)
        if len(outputs.systems) < 2:
            reasons[name] = f"ranks need two systems, and there are {len(outputs.systems)}"
        elif missing := outputs.unscored(scores):
            reasons[name] = missing
        else:
            counts = _counts(*judged_scores(human, scores), threshold)
            found[name] = Darr(*counts.sum(axis=1).tolist())
            if counts[:2].any():
                of_units = sum_by_unit(np.stack([counts[:2].sum(axis=0), counts[0] - counts[1]]), units)
                sums[name] = UnitSums(of_units[of_units[:, 0] > 0], ratio)
                found[name] = _with_interval(Darr(*counts.sum(axis=1).tolist()), sums[name].sums)
            else:
                reasons[name] = "no two outputs of a segment are far enough apart in the judgements"
    taus = {name: float(ratio(one.sums.sum(axis=0))) for name, one in sums.items()}
    drawn = enough_permutations(permutations, len(sums))
    p = exchange_units([*sums.values()], permutations=drawn, seed=seed)
    num_units = len(next(iter(sums.values())).sums) if sums else 0
    kind = "documents" if outputs.documents else "segments"
    return DarrOfLanguagePair(
        outputs.language_pair,
        outputs.systems,
        human_systems,
        found,
        reasons,
        metric_differences(taus, [*taus], p),
        num_units,
        (*notes_of_few(num_units, kind), *notes_of_exchanges(num_units, kind, len(sums))) if sums else (),
        against_sentinels("tau", taus, [*taus], p),
    )


def _with_interval(counts: Darr, sums: Floats) -> Darr:
    """Add the interval of τ, which is twice the share of concordant pairs, minus 1; sums are (units, 2)."""
    if len(sums) < 2:
        return counts
    low, high = share_interval(counts.concordant / counts.pairs, ratio_influences(sums) / 2, len(sums) - 1)
    return replace(counts, low=2 * low - 1, high=2 * high - 1)
