"""What a comparison finds of each system, in numbers and in words: the same on a terminal, in JSON and in a report."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.evaluation.power import SIGNIFICANT
from bertscore_onnx.evaluation.tables import count, plural

TITLES = {"bertscore": "BERTScore F1", "bleu": "BLEU", "chrf": "chrF", "ter": "TER"}
"""The names for readers of the metrics that are computed here."""

DIGITS = {"bertscore": 4, "bleu": 2, "chrf": 2, "ter": 2}
"""After the point; given scores have 4 if none is above 10, else 2."""


@dataclass(frozen=True, slots=True)
class PlannedPower:
    """The power of the test for one true difference that was asked for."""

    difference: float
    power: float
    """The share of tests that would find it, with as many segments, or documents, as there are."""

    needed: int | None
    """The number of segments, or documents, that would find it with a power of 80 %."""


@dataclass(frozen=True, slots=True)
class SystemResult:
    """One system under one metric."""

    name: str

    score: float
    """The score of the whole corpus."""

    mean: float
    """The mean of the resamples."""

    ci: float
    """Half the width of the 95 % interval about that mean."""

    delta: float | None = None
    """The score minus the baseline's; None for the baseline itself, as are the next fields."""

    delta_low: float | None = None
    """The low end of the 95 % interval of the difference."""

    delta_high: float | None = None
    """The high end."""

    p: float | None = None
    """The p-value of the difference, two-sided."""

    wins: float | None = None
    """The share of resamples in which the system is better than the baseline."""

    won: int | None = None
    """Segments on which the system is better."""

    lost: int | None = None
    """Segments on which the baseline is better."""

    tied: int | None = None
    """Segments on which neither is."""

    detectable: float | None = None
    """The smallest difference from the baseline that this many segments show with a power of 80 %."""

    needed: int | None = None
    """The number of segments, or of documents, that would show the observed difference with a power of 80 %."""

    not_worse: bool | None = None
    """Whether it is not worse than the baseline by the margin or more, at a level of 2.5 %; None without a margin."""

    equivalent: bool | None = None
    """Whether the two differ by less than the margin, at a level of 5 %; None without a margin."""

    power: tuple[PlannedPower, ...] = ()
    """The power for each difference that was asked for."""

    above_unrelated: float | None = None
    """The share of segments that score higher than 99 % of unrelated pairs, where these were measured."""


@dataclass(frozen=True, slots=True)
class PairResult:
    """Two systems under one metric, with `all_pairs`."""

    baseline: str
    system: str
    delta: float

    delta_low: float
    """The low end of the 95 % interval of the difference."""

    delta_high: float
    p: float

    p_holm: float
    """p, corrected for all pairs under this metric (Holm)."""

    wins: float


@dataclass(frozen=True, slots=True, eq=False)
class MetricResult:
    """All systems under one metric."""

    name: str
    """`bertscore`, `bleu`, `chrf` or `ter`, or the name of the metric whose scores were given."""

    signature: str
    """The signature of its scores."""

    lower_is_better: bool

    systems: tuple[SystemResult, ...]
    """The baseline first."""

    pairs: tuple[PairResult, ...]
    """Every pair of systems if all were tested; else none."""

    segment_scores: NDArray[np.float64]
    """(systems, segments)."""

    unrelated: NDArray[np.float64] | None = None
    """Scores of unrelated pairs with the same model in ascending order, as evenly spaced quantiles, if they are
    known."""

    margin: float | None = None
    """The difference from which on a system counts as worse, if one was given."""

    @property
    def digits(self) -> int:
        """The number of decimals of its scores."""
        return DIGITS.get(self.name, 4 if np.abs(self.segment_scores).max() <= 10 else 2)

    @property
    def title(self) -> str:
        """The name for readers."""
        return TITLES.get(self.name, self.name)

    @property
    def ranked(self) -> tuple[int, ...]:
        """The positions of the systems by their scores, the best first; of equal ones the first."""
        scores = [system.score if self.lower_is_better else -system.score for system in self.systems]
        return tuple(sorted(range(len(scores)), key=scores.__getitem__))


# Numbers, with a true minus sign.


def score(value: float, metric: MetricResult) -> str:
    """Return a score of this metric, or the half-width of an interval of them."""
    return fixed(value, metric.digits)


def signed(value: float, metric: MetricResult) -> str:
    """Return a difference of two scores, with its sign unless it is rounded to zero."""
    text = score(value, metric)
    return f"+{text}" if value > 0 and text.strip("0.") else text


def fixed(value: float, decimals: int) -> str:
    """Return a number with this many decimals, and no sign if it is rounded to zero."""
    text = f"{value:.{decimals}f}"
    if not text.strip("-0."):
        return text.lstrip("-")
    return text.replace("-", "\N{MINUS SIGN}")


def p_value(p: float) -> str:
    """Return a p-value with four decimals, or a bound where they are all zero."""
    return "< 0.0001" if p < 0.00005 else f"{p:.4f}"


def equals(p: float) -> str:
    """Return a p-value as it stands in a sentence, after "p"."""
    text = p_value(p)
    return text if text.startswith("<") else f"= {text}"


# Verdicts.

Outcome = Literal["better", "worse", "unclear", "same"]
"""Of a system against the baseline; `unclear` if luck may explain the difference."""

LABELS: dict[Outcome, str] = {"better": "better", "worse": "worse", "unclear": "unclear", "same": "no difference"}
SYMBOLS: dict[Outcome, str] = {"better": "▲", "worse": "▼", "unclear": "≈", "same": "="}


class Verdict(NamedTuple):
    """One system against the baseline."""

    name: Outcome
    sentence: str
    """The sentence after the system's name; it contains the baseline's name."""
    segments: str
    """On how many segments the system is better."""

    @property
    def label(self) -> str:
        """The verdict in two words."""
        return LABELS[self.name]

    @property
    def symbol(self) -> str:
        """The verdict in one character."""
        return SYMBOLS[self.name]


def verdict(metric: MetricResult, system: SystemResult, baseline: str) -> Verdict | None:
    """Put the comparison of a system with the baseline, as it is to be shown, into words; None for the baseline.

    If all pairs were compared, p after Holm's correction decides.
    """
    if system.delta is None or system.p is None or system.delta_low is None or system.delta_high is None:
        return None
    segments = _segments(system)
    if system.delta == 0:
        return Verdict("same", f"has the same score as {baseline}.", segments)
    corrected = corrected_p(metric, system)
    p = f"p {equals(system.p)}"
    if corrected is not None:
        p += f" ({p_value(corrected)} with Holm’s correction)"
    found = verdict_of(metric, system.delta, system.p if corrected is None else corrected)
    low, high = (signed(bound, metric) for bound in (system.delta_low, system.delta_high))
    size = f"{signed(system.delta, metric)}, 95 % interval {low} to {high}, {p}"
    sentence = f"does not differ significantly from {baseline}" if found == "unclear" else f"is {found} than {baseline}"
    return Verdict(found, f"{sentence}: {size}.{_within_margin(metric, system, baseline)}", segments)


def headline(metric: MetricResult) -> str:
    """Return a sentence with the system that scores best, and those that it is significantly better than."""
    first, *others = (metric.systems[row].name for row in metric.ranked)
    tests = {(pair.baseline, pair.system): verdict_of(metric, pair.delta, pair.p_holm) for pair in metric.pairs}
    if not tests:
        baseline = metric.systems[0].name
        tests = {
            (baseline, one.name): verdict_of(metric, one.delta, one.p)
            for one in metric.systems
            if one.delta is not None and one.p is not None
        }
    better = [one for one in others if tests.get((one, first)) == "better" or tests.get((first, one)) == "worse"]
    undecided = [one for one in others if ((one, first) in tests or (first, one) in tests) and one not in better]
    untested = [one for one in others if one not in better and one not in undecided]
    found = {
        "significantly better than": better,
        "not significantly better than": undecided,
        "not tested against": untested,
    }
    return f"{first} scores best: {'; '.join(f'{words} {_and(names)}' for words, names in found.items() if names)}."


def _and(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _within_margin(metric: MetricResult, system: SystemResult, baseline: str) -> str:
    if metric.margin is None:
        return ""
    margin = score(metric.margin, metric)
    if system.equivalent:
        return f" The two are equivalent within {margin}."
    if system.not_worse:
        return f" It is not worse than {baseline} by {margin} or more."
    return f" Whether it is worse than {baseline} by {margin} or more remains open."


def verdict_of(metric: MetricResult, delta: float, p: float) -> Outcome:
    """Judge a system whose score is higher than another's by `delta`; one segment alone is always unclear."""
    if delta == 0:
        return "same"
    if p >= SIGNIFICANT or metric.segment_scores.shape[1] == 1:
        return "unclear"
    return "better" if (delta < 0) == metric.lower_is_better else "worse"


def corrected_p(metric: MetricResult, system: SystemResult) -> float | None:
    """Return p of a system against the baseline after Holm's correction; None where not all pairs were compared."""
    baseline = metric.systems[0].name
    for pair in metric.pairs:
        if {pair.baseline, pair.system} == {baseline, system.name}:
            return pair.p_holm
    return None


def _segments(system: SystemResult) -> str:
    """Return on how many segments the system is better."""
    won, lost, tied = system.won or 0, system.lost or 0, system.tied or 0
    if not won and not lost:
        return "Tied on every segment."
    return f"Better on {plural(won, 'segment')}, worse on {count(lost)}, tied on {count(tied)}."


def power(metric: MetricResult, num_units: int, unit: str) -> str:
    """Return how large a difference the test finds, and how many segments the clearest of the unclear would need."""
    tested = [one for one in metric.systems if one.detectable and one.delta is not None]
    if not tested:
        return ""
    worst = max(tested, key=lambda one: one.detectable or 0)
    smallest = score(worst.detectable or 0, metric)
    sentence = f"With {plural(num_units, unit)} a difference of {smallest} is found 80 times in 100"
    unclear = [one for one in tested if one.needed is not None and one.needed > num_units]
    if unclear:
        closest = min(unclear, key=lambda one: one.needed or 0)
        which = "the observed" if len(tested) == 1 else f"{closest.name}'s"
        sentence += f"; detecting {which} difference would take about {plural(closest.needed or 0, unit)}"
    found = [f"{sentence}."]
    for one in worst.power:
        size, times, needed = score(one.difference, metric), round(100 * one.power), plural(one.needed or 0, unit)
        found.append(f"One of {size} is found {times} times in 100; with {needed}, 80 times.")
    return " ".join(found)
