"""What a comparison finds of each system, in numbers and in words.

It is the same on a terminal, in JSON and in a report.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import floor, inf, log10
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.tables import table
from bertscore_onnx.tables.table import count, listed, plural
from bertscore_onnx_evaluation.metric_scores import SACREBLEU
from bertscore_onnx_evaluation.systems.paired_tests import MIN_UNITS, SIGNIFICANT, TestName

COMPUTED = {
    "bertscore": ("BERTScore F1", 4),
    "bertscore,value=P": ("BERTScore P", 4),
    "bertscore,value=R": ("BERTScore R", 4),
    "bleu": ("BLEU", 2),
    "chrf": ("chrF", 2),
    "ter": ("TER", 2),
}
"""The names for readers of the metrics that are computed here, and the digits after the point."""

MAX_DIGITS = 12
"""Beyond them is rounding."""


@dataclass(frozen=True, slots=True)
class SystemResult:
    """One system under one metric, in all segments or in those of a group.

    In a group it has `score`, `delta` and what is said of a margin, and where the group is tested
    the interval, `p` and `p_holm`.
    """

    name: str
    score: float
    runs: int | None = None
    """The number of runs whose mean is the score of a segment; None where there is one score."""
    missing_runs: int = 0
    """The scores of runs that are missing; the score of their segment is the mean of the others."""
    score_low: float | None = None
    """The low end of the 95 % interval of the score.

    None where systems are compared, and where there is none, as with fewer than 6 segments, or
    scores that are all the same."""
    score_high: float | None = None
    """The high end."""
    delta: float | None = None
    """The score minus the baseline's; None for the baseline itself, as are the next fields."""
    delta_low: float | None = None
    """The low end of the 95 % interval of the difference.

    The interval holds the differences that the test does not reject; None where it can reject
    none, as with fewer than 6 segments, and where all segments differ by the same."""
    delta_high: float | None = None
    """The high end."""
    delta_error: float | None = None
    """The standard error of the difference."""
    p: float | None = None
    """The p-value of the difference, two-sided."""
    p_holm: float | None = None
    """p, corrected for all tests under this metric (Holm).

    In groups it is corrected for all groups and systems."""
    test: TestName | None = None
    """The test that p is of; None also where no unit differs, and p is 1."""
    won: int | None = None
    """Segments on which the system is better."""
    lost: int | None = None
    """Segments on which the baseline is better."""
    tied: int | None = None
    """Segments on which neither is."""
    differing: int | None = None
    """Units, segments or documents, on which the two differ."""
    runs_low: float | None = None
    """The low end of the 95 % interval of the difference over other runs too.

    Such are those of systems that are trained again. None unless both systems have two runs or
    more, and where there is no interval over these runs."""
    runs_high: float | None = None
    """The high end."""
    not_worse: bool | None = None
    """Whether it is worse than the baseline by less than the margin.

    It is so if `largest_loss` is below the margin. None without a margin, as are the next
    fields."""
    equivalent: bool | None = None
    """Whether the two differ by less than the margin: `largest_gain` is below it too."""
    largest_loss: float | None = None
    """The largest true loss against the baseline that is not excluded.

    It holds at 2.5 % over the number of systems, and of groups, if no score is outside the range;
    below 0 for a system that is shown to be better. With BLEU, chrF and TER of texts it is no
    guarantee."""
    largest_gain: float | None = None
    """The largest true gain, likewise."""
    rank_low: int | None = None
    """One more than the number of significantly better systems, with `all_pairs`; else None."""
    rank_high: int | None = None
    """The number of systems that are not significantly worse, itself among them."""


@dataclass(frozen=True, slots=True)
class PairResult:
    """Two systems under one metric, with `all_pairs`."""

    baseline: str
    system: str
    delta: float
    delta_low: float | None
    """The low end of the 95 % interval of the difference; None as for `SystemResult`."""
    delta_high: float | None
    p: float
    p_holm: float
    """p, corrected for all pairs under this metric (Holm)."""
    delta_error: float
    """The standard error of the difference."""
    test: TestName | None
    """The test that p is of; None where no unit differs, and p is 1."""


@dataclass(frozen=True, slots=True)
class GroupResult:
    """All systems on the segments of one group."""

    name: str
    num_segments: int
    num_units: int
    """The units that the test exchanges: segments or documents."""
    systems: tuple[SystemResult, ...]
    """The baseline first."""


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
    margin: float | None = None
    """The difference from which on a system counts as worse, if one was given."""
    units: tuple[int, str] = (0, "segment")
    """The number of units that the test exchanged, and what they are: segments or documents."""
    effective_units: float = inf
    """How many units of one size would tell as much: fewer, where documents have unequal sizes."""
    groups: tuple[GroupResult, ...] = ()
    """The results by group of segments, if groups were given."""
    mean_of_groups: GroupResult | None = None
    """The means of the scores of groups, which count equally; None with fewer than 20 units."""
    score_range: tuple[float, float] = (0.0, 1.0)
    """With a margin, the lowest and the highest score that a segment can have."""
    has_exact_interval: bool = False
    """Whether the interval of one system is Clopper and Pearson's."""

    @property
    def parts(self) -> tuple[GroupResult, ...]:
        """The groups, and after them their mean."""
        if self.mean_of_groups is None:
            return self.groups
        return (*self.groups, self.mean_of_groups)

    @property
    def is_corrected(self) -> bool:
        """Whether p is corrected, since there are several tests."""
        return len(self.systems) > 2

    @property
    def num_tests(self) -> int:
        """The number of tests that p is corrected for."""
        return len(self.pairs) or len(self.systems) - 1

    @property
    def num_runs(self) -> list[int]:
        """The number of runs of a system; none without runs.

        It is the smallest and the largest number, or the number that all systems have.
        """
        numbers = [system.runs for system in self.systems if system.runs]
        if not numbers:
            return []
        return sorted({min(numbers), max(numbers)})

    @property
    def computed_name(self) -> str:
        """The name of a metric that was computed here; empty for given scores.

        Given scores may have the name of such a metric.
        """
        if self.signature.startswith(f"{self.name}|scores:given"):
            return ""
        return self.name

    @property
    def is_of_corpus(self) -> bool:
        """Whether it was computed here, and is no mean over segments."""
        return self.computed_name.partition(",")[0] in SACREBLEU

    @property
    def is_binary(self) -> bool:
        """Whether it is a mean of scores that are all 0 or 1."""
        return not self.is_of_corpus and bool(np.isin(self.segment_scores, (0, 1)).all())

    @property
    def tests(self) -> set[TestName]:
        """The tests that its p are of, also those in groups."""
        results: list[SystemResult | PairResult] = [*self.systems, *self.pairs]
        for group in self.parts:
            results += group.systems
        return {result.test for result in results if result.test}

    @property
    def is_exact(self) -> bool:
        """Whether neither p nor the interval of one system rests on draws."""
        return self.is_sign_test if len(self.systems) > 1 else self.has_exact_interval

    @property
    def test_signature(self) -> str:
        """The test, or the interval of one system, as signatures have it."""
        if len(self.systems) == 1:
            return f"interval:{'clopper-pearson' if self.is_exact else 'subsets'}"
        if self.is_exact:
            return "test:sign"
        return "test:permutation+sign" if "sign" in self.tests else "test:permutation"

    @property
    def is_sign_test(self) -> bool:
        """Whether all p are of the sign test, or would be if any unit differed."""
        return self.tests == {"sign"} or (not self.tests and self.is_binary)

    @property
    def digits(self) -> int:
        """The number of decimals of its scores.

        They are so many that the narrowest interval of a difference has two digits. Given scores
        have 4 if none is above 10, else 2, if that is enough.
        """
        usual = 4 if np.abs(self.segment_scores).max() <= 10 else 2
        if self.computed_name in COMPUTED:
            _, usual = COMPUTED[self.computed_name]
        ends = [(system.delta_low, system.delta_high) for system in self.systems]
        ends += [(system.score_low, system.score_high) for system in self.systems]
        digits = usual
        for low, high in ends:
            if low is not None and high is not None and high > low:
                digits = max(digits, 1 - floor(log10(high - low)))
        return min(digits, MAX_DIGITS)

    @property
    def title(self) -> str:
        """The name for readers."""
        title, _ = COMPUTED.get(self.computed_name, (self.name, 0))
        return title

    @property
    def ranked(self) -> tuple[int, ...]:
        """The positions of the systems, the best first; of equal ones the first."""
        sign = 1 if self.lower_is_better else -1
        scores = [sign * system.score for system in self.systems]
        return tuple(sorted(range(len(scores)), key=scores.__getitem__))


# Numbers, in ASCII: they can be searched for and pasted.


def score(value: float, metric: MetricResult) -> str:
    """Return a score of this metric, or the half-width of an interval of them."""
    return fixed(value, metric.digits)


def signed(value: float, metric: MetricResult) -> str:
    """Return a difference of scores, with a sign unless it is rounded to 0."""
    return _signed(value, metric.digits)


def _signed(value: float, digits: int) -> str:
    text = fixed(value, digits)
    if value > 0 and text.strip("0."):
        return f"+{text}"
    return text


def fixed(value: float, decimals: int) -> str:
    """Return a number with so many decimals; without a sign if it shows 0."""
    text = f"{value:.{decimals}f}"
    if text.strip("-0."):
        return text
    return text.lstrip("-")


def p_value(p: float) -> str:
    """Return a p-value with four decimals or more."""
    return table.p_value(4, SIGNIFICANT)(p)


def _digits_apart(digits: int, values: Sequence[float], thresholds: Sequence[float]) -> int:
    """Return so many digits, or more, that no value looks like a threshold.

    A value that is a threshold may look like it.
    """
    unequal = [pair for pair in product(values, thresholds) if pair[0] != pair[1]]

    # More digits can make two numbers alike again, as 0.549996 and 0.550004: all are compared anew.
    while digits < MAX_DIGITS:
        if not any(fixed(value, digits) == fixed(other, digits) for value, other in unequal):
            break
        digits += 1
    return digits


def equals(p: float) -> str:
    """Return a p-value as it stands in a sentence, after "p"."""
    text = p_value(p)
    if text.startswith("<"):
        return text.replace("<", "< ")
    return f"= {text}"


# Verdicts.

Outcome = Literal["better", "worse", "unclear", "same"]
"""Of a system against the baseline; `unclear` if luck may explain the difference."""

LABELS: dict[Outcome, str] = {
    "better": "better",
    "worse": "worse",
    "unclear": "unclear",
    "same": "no difference",
}
SYMBOLS: dict[Outcome, str] = {"better": "▲", "worse": "▼", "unclear": "≈", "same": "="}


class Verdict(NamedTuple):
    """One system against the baseline."""

    name: Outcome
    relation: str
    """The sentence after the system's name; it contains the baseline's name."""
    remarks: str
    segments: str
    """On how many segments the system is better."""

    @property
    def sentence(self) -> str:
        """The relation, and what it does not show."""
        return f"{self.relation} {self.remarks}".strip()


def verdict(metric: MetricResult, system: SystemResult, baseline: str) -> Verdict | None:
    """Put the comparison of a system with the baseline into words.

    Everything shows these; None for the baseline. Of several tests, p after Holm's correction
    decides.
    """
    judged = outcome(metric, system)
    if judged is None or system.delta is None or system.p is None or system.p_holm is None:
        return None
    segments = "Tied on every segment."
    if system.won or system.lost:
        won = plural(system.won or 0, "segment")
        lost = count(system.lost or 0)
        segments = f"Better on {won}, worse on {lost}, tied on {count(system.tied)}."
    remark = remarks(metric, system, baseline)
    if system.delta == 0:
        return Verdict("same", f"has the same score as {baseline}.", remark, segments)
    evidence = f"p {equals(system.p)}"
    if metric.is_corrected:
        evidence += f" ({p_value(system.p_holm)} with Holm's correction)"
    ends = interval(metric, system.delta_low, system.delta_high)
    if ends:
        evidence = f"95 % interval {ends}, {evidence}"
    relation = "does not differ significantly from" if judged == "unclear" else f"is {judged} than"
    sentence = f"{relation} {baseline}: {signed(system.delta, metric)}, {evidence}."
    return Verdict(judged, sentence, remark, segments)


def remarks(metric: MetricResult, system: SystemResult, baseline: str) -> str:
    """Warn of few differing units, and judge within the margin.

    Empty for the baseline.
    """
    if system.delta is None or system.p is None:
        return ""
    warning = _few_units_warning(metric, system)
    return f"{warning} {within_margin(metric, system, baseline)}".strip()


def _few_units_warning(metric: MetricResult, system: SystemResult) -> str:
    """Warn if few units differ from the baseline's; empty otherwise."""
    num_units, unit = metric.units
    differing = system.differing or 0
    if differing >= min(MIN_UNITS, num_units):
        return ""
    units = plural(num_units, unit)
    if not differing:
        return f"None of {units} differs; on others they may."
    verb = "differs" if differing == 1 else "differ"
    return f"Only {count(differing)} of {units} {verb}, too few to rely on the interval."


def outcome(metric: MetricResult, system: SystemResult) -> Outcome | None:
    """Judge a system against the baseline; None for the baseline.

    Everything that is shown goes by this.
    """
    if system.delta is None or system.p_holm is None:
        return None
    return verdict_of(metric, system.delta, system.p_holm)


def is_significant(judged: Outcome | None) -> bool:
    """Return whether an outcome has a star."""
    return judged in ("better", "worse")


def interval(metric: MetricResult, low: float | None, high: float | None) -> str:
    """Return an interval; empty where there is none.

    No end looks like 0 that is not 0.
    """
    if low is None or high is None:
        return ""
    digits = _digits_apart(metric.digits, [low, high], [0])
    return f"{_signed(low, digits)} to {_signed(high, digits)}"


def interval_of_score(metric: MetricResult, system: SystemResult) -> str:
    """Return the interval of the score of one system; empty without one."""
    if system.score_low is None or system.score_high is None:
        return ""
    return f"{score(system.score_low, metric)} to {score(system.score_high, metric)}"


def pair_outcomes(metric: MetricResult) -> Mapping[tuple[int, int], Outcome]:
    """Return the outcomes of tests, of the first system against the second.

    The keys are the positions of the two systems.
    """
    outcomes: dict[tuple[int, int], Outcome] = {}

    def add(first: int, second: int, delta: float, p: float) -> None:
        outcomes[first, second] = verdict_of(metric, delta, p)
        outcomes[second, first] = verdict_of(metric, -delta, p)

    rows = {system.name: row for row, system in enumerate(metric.systems)}
    for pair in metric.pairs:
        add(rows[pair.system], rows[pair.baseline], pair.delta, pair.p_holm)
    if not metric.pairs:
        for row, system in enumerate(metric.systems):
            if system.delta is not None and system.p_holm is not None:
                add(row, 0, system.delta, system.p_holm)
    return outcomes


def with_ranks(metric: MetricResult) -> MetricResult:
    """Add the ranks of the systems, if all pairs were tested."""
    if not metric.pairs:
        return metric
    outcomes = pair_outcomes(metric)
    num_systems = len(metric.systems)
    systems = []
    for row, system in enumerate(metric.systems):
        results = [outcomes[row, rival] for rival in range(num_systems) if rival != row]
        rank_low = 1 + results.count("worse")
        rank_high = num_systems - results.count("better")
        systems.append(replace(system, rank_low=rank_low, rank_high=rank_high))
    return replace(metric, systems=tuple(systems))


def rank(system: SystemResult) -> str:
    """Return the ranks that a system may have, such as `2-4`."""
    if system.rank_low == system.rank_high:
        return f"{system.rank_low}"
    return f"{system.rank_low}-{system.rank_high}"


def untested_groups(metric: MetricResult) -> str:
    """Return which groups are too small for a test; empty if none is."""
    small = [group.name for group in metric.groups if group.num_units < MIN_UNITS]
    if not small:
        return ""
    _, unit = metric.units
    return f"Not tested, since they have fewer than {MIN_UNITS} {unit}s: {listed(small)}."


def headline(metric: MetricResult) -> str:
    """Say which systems score best, and what the tests say of the rest."""
    systems = metric.systems
    if len(systems) == 1:
        ends = interval_of_score(metric, systems[0])
        sentence = f"{systems[0].name} scores {score(systems[0].score, metric)}"
        return f"{sentence}, 95 % interval {ends}." if ends else f"{sentence}."

    ranked = metric.ranked
    outcomes = pair_outcomes(metric)
    top = ranked[0]
    best = []
    for row in ranked:
        if systems[row].score == systems[top].score or outcomes.get((top, row)) == "same":
            best.append(row)
    names = [systems[row].name for row in best]
    subject = f"{names[0]} scores best"
    if len(names) > 1:
        subject = f"{listed(names)} score best, equally"
    rivals = ranked[len(best) :]
    if not rivals:
        return f"{subject}."

    # The best systems share a sentence if the tests say the same of all.
    relations = {}
    for row in best:
        of_rivals = {systems[rival].name: outcomes.get((row, rival)) for rival in rivals}
        relations[systems[row].name] = _relations(of_rivals)
    if len(set(relations.values())) == 1:
        return f"{subject}: {relations[names[0]]}."
    sentences = [f"{name} is {relation}." for name, relation in relations.items()]
    return f"{subject}. {' '.join(sentences)}"


def _relations(outcomes: Mapping[str, Outcome | None]) -> str:
    """Say what a system is against rivals, given its outcomes."""
    by_relation: dict[str, list[str]] = {
        "significantly better than": [],
        "not significantly better than": [],
        "not tested against": [],
    }
    for name, judged in outcomes.items():
        relation = "not significantly better than"
        if judged is None:
            relation = "not tested against"
        elif judged == "better":
            relation = "significantly better than"
        by_relation[relation].append(name)
    relations = []
    for relation, names in by_relation.items():
        if len(names) == len(outcomes) > 3:
            relations.append(f"{relation} all others")
        elif names:
            relations.append(f"{relation} {listed(names)}")
    return "; ".join(relations)


def within_margin(
    metric: MetricResult,
    system: SystemResult,
    baseline: str,
    group: GroupResult | None = None,
) -> str:
    """Judge a system within the margin, in all segments or in a group.

    Empty without a margin.
    """
    loss = system.largest_loss
    gain = system.largest_gain
    if metric.margin is None or loss is None or gain is None:
        return ""
    digits = _digits_apart(metric.digits, [abs(loss), abs(gain)], [metric.margin, 0])

    # The margin is written whole, with all decimals that were given.
    decimals = fixed(metric.margin, MAX_DIGITS).rstrip("0").partition(".")[2]
    margin = fixed(metric.margin, max(digits, len(decimals)))
    worse = fixed(abs(loss), digits)
    better = fixed(abs(gain), digits)
    if system.equivalent:
        sides = f"at most {worse} worse and at most {better} better"
        if loss < 0:
            sides = f"at least {worse} and at most {better} better"
        elif gain < 0:
            sides = f"at least {better} and at most {worse} worse"
        level = _level(metric, group, is_of_two=True)
        return f"Equivalent to {baseline} within {margin}: {sides} ({level})."
    level = _level(metric, group)
    if system.not_worse and loss < 0:
        return f"At least {worse} better than {baseline} ({level})."
    if system.not_worse:
        return f"At most {worse} worse than {baseline}, less than {margin} ({level})."
    if -gain > metric.margin:
        return f"At least {better} worse than {baseline}, more than {margin} ({level})."
    num_units, unit = metric.units
    if group is not None:
        num_units = group.num_units
    rare = f"failures may be too rare to show in {plural(num_units, unit)}"
    return f"Up to {worse} worse than {baseline} is not excluded: {rare} ({level})."


def _level(metric: MetricResult, group: GroupResult | None, *, is_of_two: bool = False) -> str:
    """Return at which level bounds hold, by which method, and if what is true."""
    num_claims = len(metric.systems) - 1
    if group is not None:
        num_claims *= len(metric.groups)
    level = f"{100 * (1 - SIGNIFICANT / 2):g} %"
    method = "Gaffke's bound"
    if is_of_two:
        level += " each"
        method += "s"
    if num_claims > 1:
        level += f" for all {num_claims}"
    low, high = metric.score_range
    assumption = f"if all scores are from {low:.9g} to {high:.9g}"
    if metric.is_of_corpus:
        assumption = f"no guarantee for {metric.title}"
    return f"{level}, {method}, {assumption}"


def verdict_of(metric: MetricResult, delta: float, p: float) -> Outcome:
    """Judge a system whose score is higher than another's by `delta`.

    One segment alone is always unclear.
    """
    if delta == 0:
        return "same"
    if p >= SIGNIFICANT or metric.segment_scores.shape[1] == 1:
        return "unclear"
    return "better" if (delta < 0) == metric.lower_is_better else "worse"


def runs(metric: MetricResult) -> str:
    """Return what results of runs are about; empty without runs."""
    if not metric.num_runs:
        return ""
    num_runs = " to ".join(map(str, metric.num_runs))
    scores = f"Scores are means of {num_runs} runs"
    missing = sum(system.missing_runs for system in metric.systems)
    if missing:
        verb = "is" if missing == 1 else "are"
        scores += f", and of fewer where {plural(missing, 'score')} {verb} missing"
    results = "Results are about these runs"
    single = [system.name for system in metric.systems if system.runs == 1]
    if single:
        results += f", and for {listed(single)} about this run"
    sentences = f"{scores}. {results}."

    # Beside the interval over these runs there may be a wider one over runs to come.
    intervals = []
    for system in metric.systems:
        if system.runs_low is not None:
            ends = interval(metric, system.runs_low, system.runs_high)
            intervals.append(f"{system.name} {ends}")
    if not intervals:
        return sentences
    method = "95 % each, widened by Student's t of the means of runs, if runs are independent"
    return f"{sentences} Trained again: {'; '.join(intervals)} ({method})."
