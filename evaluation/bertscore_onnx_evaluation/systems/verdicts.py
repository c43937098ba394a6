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

from bertscore_onnx.errors import plural
from bertscore_onnx_evaluation import standing, table
from bertscore_onnx_evaluation.metric_scores import SACREBLEU, is_bertscore
from bertscore_onnx_evaluation.standing import Stand, relations
from bertscore_onnx_evaluation.systems.paired_tests import MIN_UNITS, SIGNIFICANT, TestName
from bertscore_onnx_evaluation.table import count, listed, number

COMPUTED = {
    "bertscore": ("BERTScore F1", 4),
    "bertscore,value=P": ("BERTScore P", 4),
    "bertscore,value=R": ("BERTScore R", 4),
    "bleu": ("BLEU", 2),
    "chrf": ("chrF", 2),
    "ter": ("TER", 2),
}
"""The names for readers of the metrics that are computed here, and the digits after the point."""

_SETTINGS = (
    ("rescale", "no", "rescaled"),
    ("idf", "no", "idf"),
    ("matching", "", ""),
    ("precision", "fp32", ""),
    ("long_text", "truncate", "windows"),
)
"""Fields of the signature, their defaults, and words for other values, which stand for themselves
where there is none."""

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

    It is so if `largest_loss` is below the margin, and with several runs of both systems the end of
    the interval over other runs too. None without a margin, as are the next fields."""
    equivalent: bool | None = None
    """Whether the two differ by less than the margin: `largest_gain`, and the other end, too."""
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
    runs_low: float | None = None
    """The low end of the 95 % interval over other runs too; None as for `SystemResult`."""
    runs_high: float | None = None


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
        """The tests, or the intervals of one system, that ran, also in groups."""
        results: list[SystemResult | PairResult] = [*self.systems, *self.pairs]
        for group in self.parts:
            results += group.systems
        tests: set[TestName] = {result.test for result in results if result.test}
        return tests or {"sign" if self.is_binary else "swaps"}

    @property
    def is_exact(self) -> bool:
        """Whether nothing that ran has drawn swaps or subsets."""
        return self.tests <= {"sign", "clopper-pearson"}

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
        """The name for readers, with those settings of BERTScore that are not the default."""
        return self._with_settings()

    @property
    def title_with_model(self) -> str:
        """The title, with the model of BERTScore and its layer."""
        fields = self._signature_fields
        if "model" not in fields:
            return self.title
        return self._with_settings(f"{fields['model']}, layer {fields['layer']}")

    def _with_settings(self, model: str = "") -> str:
        title, _ = COMPUTED.get(self.computed_name, (self.name, 0))
        fields = self._signature_fields
        settings = []
        for key, default, name in _SETTINGS:
            value = fields.get(key, default)
            if value != default:
                settings.append(name or value)
        details = "; ".join(filter(None, [", ".join(settings), model]))
        return f"{title} ({details})" if details else title

    @property
    def _signature_fields(self) -> dict[str, str]:
        """The fields of the signature of BERTScore; none of another metric."""
        if not is_bertscore(self.computed_name):
            return {}
        fields = [field.partition(":") for field in self.signature.split("|")]
        return {key: value for key, _, value in fields}

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
    return number(metric.digits, signed=True)(value)


def fixed(value: float, decimals: int) -> str:
    """Return a number with so many decimals; without a sign if it shows 0."""
    return number(decimals)(value)


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


def test_fields(
    metrics: Sequence[MetricResult], num_documents: int, num_dropped: int, swaps: str
) -> str:
    """Return what signatures have of the tests; `swaps` are the fields of drawn ones."""
    tests = set[str]().union(*(metric.tests for metric in metrics))
    names = {"permutation" if test.endswith("swaps") else test for test in tests}
    fields = f"|test:{'+'.join(sorted(names))}"
    if num_documents:
        fields += f"|documents:{num_documents}"
    if not all(metric.is_exact for metric in metrics):
        fields += swaps
    if num_dropped:
        fields += f"|dropped:{num_dropped}"
    return fields


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

    @property
    def sentence(self) -> str:
        """The relation, and what it does not show."""
        return f"{self.relation} {self.remarks}".strip()


def verdict(metric: MetricResult, system: SystemResult, baseline: str) -> Verdict | None:
    """Put the comparison of a system with the baseline into words.

    Everything shows these; None for the baseline. Of several tests, p after Holm's correction
    decides; with runs, it is better or worse only if it is so in these runs and trained again.
    """
    judged = outcome(metric, system)
    if judged is None or system.delta is None or system.p is None or system.p_holm is None:
        return None
    remark = remarks(metric, system, baseline)
    if system.delta == 0:
        return Verdict("same", f"has the same score as {baseline}.", remark)
    evidence = f"p {equals(system.p)}"
    if metric.is_corrected:
        evidence += f" ({p_value(system.p_holm)} with Holm's correction)"
    ends = interval(metric, system.delta_low, system.delta_high)
    if ends:
        evidence = f"95 % interval {ends}, {evidence}"
    relation = f"is {judged} than"
    if judged == "unclear":
        is_clear = is_significant(outcome_in_runs(metric, system))
        relation = (
            "differs significantly from" if is_clear else "does not differ significantly from"
        )
    runs = _runs_words(metric, system, is_reversed=False)
    sentence = f"{relation} {baseline}{runs.clause}: {signed(system.delta, metric)}, {evidence}"
    return Verdict(judged, f"{sentence}{runs.again.format(runs.ends)}.", remark)


class _RunsWords(NamedTuple):
    """What a result is about, where systems have runs; empty texts where they have none."""

    clause: str = ""
    """After the name of the other system, such as ` in these runs`."""
    again: str = ""
    """After the numbers of these runs, with {} for the interval over other runs."""
    ends: str = ""
    """The interval over other runs; empty if it is not known."""


def _runs_words(
    metric: MetricResult, result: SystemResult | PairResult, *, is_reversed: bool
) -> _RunsWords:
    """Tell these runs from those of systems that are trained again."""
    clause = in_runs(metric)
    if not clause:
        return _RunsWords()
    low = result.runs_low
    high = result.runs_high
    if low is None or high is None:
        reason = "one run" if 1 in metric.num_runs else "no interval"
        if metric.is_of_corpus:
            reason = f"runs are one corpus for {metric.title}"
        return _RunsWords(clause, f"; trained again is not known ({reason})")
    ends = interval(metric, low, high)
    if is_reversed:
        ends = interval(metric, -high, -low)
    if not is_significant(outcome_in_runs(metric, result)):
        if is_apart(result):
            return _RunsWords(clause, "; trained again {}, not corrected", ends)
        return _RunsWords(f",{clause} or trained again", "; trained again {}", ends)
    if is_apart(result):
        return _RunsWords(f"{clause}, and trained again", "; trained again {}", ends)
    return _RunsWords(clause, "; trained again not told apart ({})", ends)


def in_runs(metric: MetricResult) -> str:
    """Return the words that limit a result to these runs; empty without runs."""
    return " in these runs" if metric.num_runs else ""


def is_apart(result: SystemResult | PairResult) -> bool:
    """Return whether the interval over other runs excludes 0; false where there is none."""
    if result.runs_low is None or result.runs_high is None:
        return False
    return result.runs_low > 0 or result.runs_high < 0


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


def outcome(metric: MetricResult, result: SystemResult | PairResult) -> Outcome | None:
    """Judge a system against the baseline, or another; None for the baseline.

    Everything that is shown goes by this.
    """
    judged = outcome_in_runs(metric, result)
    if metric.num_runs and is_significant(judged) and not is_apart(result):
        return "unclear"
    return judged


def outcome_in_runs(metric: MetricResult, result: SystemResult | PairResult) -> Outcome | None:
    """Judge a system by p alone, which is about these runs; a single segment is unclear."""
    if result.delta is None or result.p_holm is None:
        return None
    if result.delta == 0:
        return "same"
    if result.p_holm >= SIGNIFICANT or metric.segment_scores.shape[1] == 1:
        return "unclear"
    return "better" if (result.delta < 0) == metric.lower_is_better else "worse"


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
    return standing.interval(low, high, number(digits, signed=True))


def interval_of_score(metric: MetricResult, system: SystemResult) -> str:
    """Return the interval of the score of one system; empty without one."""
    return standing.interval(system.score_low, system.score_high, number(metric.digits))


def pair_outcomes(metric: MetricResult) -> Mapping[tuple[int, int], Outcome]:
    """Return the outcomes of tests, of the first system against the second.

    The keys are the positions of the two systems.
    """
    outcomes: dict[tuple[int, int], Outcome] = {}
    for (first, second), result in _tested_pairs(metric).items():
        judged = outcome(metric, result)
        if judged is not None:
            outcomes[first, second] = judged
            outcomes[second, first] = _REVERSED.get(judged, judged)
    return outcomes


_REVERSED: dict[Outcome, Outcome] = {"better": "worse", "worse": "better"}


def _tested_pairs(metric: MetricResult) -> dict[tuple[int, int], SystemResult | PairResult]:
    """Return the results of tests by the positions of the system and of its baseline."""
    rows = {system.name: row for row, system in enumerate(metric.systems)}
    if metric.pairs:
        return {(rows[pair.system], rows[pair.baseline]): pair for pair in metric.pairs}
    return {(row, 0): system for row, system in enumerate(metric.systems) if row}


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
        mean = score(systems[0].score, metric)
        sentence = f"{systems[0].name} scores {mean}{in_runs(metric)}"
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
    by_name = {}
    for row in best:
        by_name[systems[row].name] = _relations(metric, row, rivals)
    if len(set(by_name.values())) == 1:
        return f"{subject}: {by_name[names[0]]}."
    sentences = [f"{name} is {relation}." for name, relation in by_name.items()]
    return f"{subject}. {' '.join(sentences)}"


def _relations(metric: MetricResult, row: int, rivals: Sequence[int]) -> str:
    """Say what the tests show of a system against worse ones."""
    tested = _tested_pairs(metric)
    stands = {}
    for rival in rivals:
        result = tested.get((row, rival)) or tested.get((rival, row))
        is_better = None
        runs = _RunsWords()
        if result is not None:
            is_better = is_significant(outcome_in_runs(metric, result))
            runs = _runs_words(metric, result, is_reversed=(rival, row) in tested)
        end = runs.clause + (" ({})" if runs.clause.endswith("trained again") else runs.again)
        stands[metric.systems[rival].name] = Stand(is_better, end, runs.ends)
    return relations(stands)


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
    again = losses_again(system, lower_is_better=metric.lower_is_better)
    shown = [abs(value) for value in (loss, gain, *(again or ()))]
    digits = _digits_apart(metric.digits, shown, [metric.margin, 0])

    # The margin is written whole, with all decimals that were given.
    decimals = fixed(metric.margin, MAX_DIGITS).rstrip("0").partition(".")[2]
    margin = fixed(metric.margin, max(digits, len(decimals)))
    worse = fixed(abs(loss), digits)
    better = fixed(abs(gain), digits)
    is_equivalent = max(loss, gain) < metric.margin
    where = in_runs(metric)
    end = ""
    if again is not None:
        largest = again[0]
        side = f"up to {fixed(largest, digits)} worse"
        if is_equivalent:
            largest = max(again)
            side = interval(metric, system.runs_low, system.runs_high)
        elif largest < 0:
            side = f"at least {fixed(-largest, digits)} better"
        end = f"; trained again {side} (95 %)"
        if largest >= metric.margin:
            end += f", not less than {margin}"
    elif where:
        end = _runs_words(metric, system, is_reversed=False).again
    if is_equivalent:
        sides = f"at most {worse} worse and at most {better} better"
        if loss < 0:
            sides = f"at least {worse} and at most {better} better"
        elif gain < 0:
            sides = f"at least {better} and at most {worse} worse"
        level = _level(metric, group, is_of_two=True)
        return f"Equivalent to {baseline}{where} within {margin}: {sides} ({level}){end}."
    level = _level(metric, group)
    if loss < 0:
        return f"At least {worse} better than {baseline}{where} ({level}){end}."
    if loss < metric.margin:
        return f"At most {worse} worse than {baseline}{where}, less than {margin} ({level}){end}."
    if -gain > metric.margin:
        return f"At least {better} worse than {baseline}{where}, more than {margin} ({level})."
    num_units, unit = metric.units
    if group is not None:
        num_units = group.num_units
    rare = f"failures may be too rare to show in {plural(num_units, unit)}"
    return f"Up to {worse} worse than {baseline}{where} is not excluded: {rare} ({level})."


def losses_again(
    result: SystemResult | PairResult, *, lower_is_better: bool
) -> tuple[float, float] | None:
    """Return the largest loss and gain by the interval over other runs; None without it."""
    if result.runs_low is None or result.runs_high is None:
        return None
    if lower_is_better:
        return result.runs_high, -result.runs_low
    return -result.runs_low, result.runs_high


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
    sentences = f"{scores}. p and intervals are about these runs."

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
