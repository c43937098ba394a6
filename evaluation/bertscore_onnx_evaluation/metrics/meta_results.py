"""The results of an evaluation of metrics, as records, tables and JSON."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote
from textwrap import fill
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, get_args

import numpy as np
from msgspec import to_builtins

from bertscore_onnx import __version__
from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.table import (
    MISSING,
    Column,
    Format,
    Table,
    TableFormat,
    count,
    latex_number,
    latex_value,
    listed,
    number,
    p_value,
    plain,
    plural,
)
from bertscore_onnx_evaluation.metrics.correlation import HUMAN_CONSTANT, Measure
from bertscore_onnx_evaluation.metrics.judged_systems import SENTINELS
from bertscore_onnx_evaluation.metrics.ranks import MeasureTests
from bertscore_onnx_evaluation.results import Result
from bertscore_onnx_evaluation.systems.paired_tests import SIGNIFICANT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Level = Literal["segment", "system"]
Key = tuple[Level, str]
"""A measure by its level and its name in `Agreement`."""
OF_OUTPUTS: Key = ("segment", "acc_eq")
OF_SYSTEMS: Key = ("system", "spa")
R_OF_OUTPUTS: Key = ("segment", "pearson")
R_OF_SYSTEMS: Key = ("system", "pearson")
MIN_SYSTEMS = 5
"""With fewer systems SPA says little: random numbers get up to .98 with 2 systems."""


def label(key: Key) -> str:
    """Return the name of a measure where both levels stand together."""
    return "system_pearson" if key == R_OF_SYSTEMS else key[1]


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of a metric with human scores, at the level of systems or of segments; correlations are signed."""

    n: int
    """Judged systems, or judged outputs."""
    measures: Mapping[str, Measure]
    """By name. Of systems: `spa` (soft pairwise accuracy, from the scores of segments) and `pearson`. Of segments:
    `acc_eq`, `pearson` over all outputs, and `pearson_by_item` (within each segment, then the mean)."""
    ranks: Mapping[str, int] = field(default_factory=dict)
    """From 1, by the name of each measure that ranks the metrics: a rank ends where a metric in it is significantly
    better."""

    def __getitem__(self, name: str) -> Measure:
        """Return a measure by its name."""
        return self.measures[name]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it; a missing value is None, with its reason."""
        measures = self.measures.items()
        return {
            "n": self.n,
            **_parts(self.measures),
            "ranks": dict(self.ranks),
            "pairs": {name: value.n for name, value in measures if name in ("acc_eq", "spa") and value.groups},
            "groups": {name: value.groups for name, value in measures if value.groups > 1},
            "left_out": {name: value.left_out for name, value in measures if value.groups and value.left_out},
            "zeros": {name: value.zeros for name, value in measures if value.zeros},
        }


@dataclass(frozen=True, slots=True)
class MetricAgreement:
    """One metric in one language pair."""

    name: str
    base_name: str
    """Its name in all language pairs."""
    signature: str
    """How its scores were made; empty if that is not known."""
    system: Agreement | None
    """None if the metric has no scores of systems."""
    segment: Agreement | None
    """None if the metric has no scores of segments, or no segment has a human score."""

    def measure(self, key: Key) -> Measure | None:
        """Return a measure that has a value, or None."""
        agreement: Agreement | None = getattr(self, key[0])
        return None if agreement is None or agreement[key[1]].value is None else agreement[key[1]]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        levels = {"system": self.system, "segment": self.segment}
        return {
            "signature": self.signature,
            **{level: agreement and agreement.to_dict() for level, agreement in levels.items()},
        }


Kind = Literal["metrics", "sentinels"]


@dataclass(frozen=True, slots=True)
class LanguagePairResult:
    """All metrics in one language pair."""

    language_pair: str
    gold: str
    reference: str
    """As `JudgedSystems` has both."""
    systems: tuple[str, ...]
    """Those with human scores."""
    human_scores: tuple[float | None, ...]
    """Of each of `systems` as a whole; None where nobody judged it so."""
    metric_scores: Mapping[str, tuple[float | None, ...]]
    """The scores of the metrics that score whole systems, by the metric's name; higher is better."""
    segments: int
    """The number of segments with a judged output; 0 if only whole systems have."""
    metrics: tuple[MetricAgreement, ...]
    """The best first."""
    sentinels: tuple[MetricAgreement, ...]
    """Scores that read no meaning, such as the length of a candidate, by the same measures; they have no rank."""
    ranked_by: tuple[Key, ...]
    """The measures that rank the metrics, by level and name: acc*_eq and SPA, after r where few segments have two
    outputs; or r of whole systems."""
    tests: Mapping[str, MeasureTests]
    """How metrics compare by each of these, by its name: `acc_eq`, `spa`, `pearson` or `system_pearson`."""
    golds: tuple[str, ...]
    """Metrics that are the human scores themselves, or linear in them, and have no rank."""
    reversed: tuple[str, ...]
    """Metrics that order outputs the wrong way round."""
    notes: tuple[str, ...]
    """Warnings about the data."""
    units: str
    """What the tests exchange, and intervals are over: `segments` or `documents`."""
    num_units: int
    """How many of these there are."""
    spa_systems: tuple[str, ...]
    """The systems that SPA compares: those judged on at least half as many segments as any other."""

    @property
    def ranked(self) -> list[MetricAgreement]:
        """The metrics but for those that are the human scores themselves."""
        return [metric for metric in self.metrics if metric.name not in self.golds]

    @property
    def best_sentinels(self) -> dict[Key, MetricAgreement]:
        """The sentinel with the highest value of each measure that ranks the metrics and that a sentinel has."""
        best = {}
        for key in self.ranked_by:
            values = [(measure.value or 0.0, one) for one in self.sentinels if (measure := one.measure(key))]
            if values:
                best[key] = max(values, key=lambda pair: pair[0])[1]
        return best

    def by_kind(self) -> Iterator[tuple[Kind, MetricAgreement]]:
        """Yield metrics and sentinels, in the order of the tables."""
        yield from ((kind, metric) for kind in get_args(Kind) for metric in getattr(self, kind))

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        record: dict[str, Any] = to_builtins(self, enc_hook=_of_python)
        del record["language_pair"]
        return record | {
            "ranked_by": [label(key) for key in self.ranked_by],
            "tests": {name: tests.to_dict() for name, tests in self.tests.items()},
            **{kind: {metric.name: metric.to_dict() for metric in getattr(self, kind)} for kind in get_args(Kind)},
        }


def _of_python(value: str | np.generic) -> str | float:
    """Return a name of any class of texts, or a number of numpy, as Python's own."""
    return str(value) if isinstance(value, str) else value.item()


@dataclass(frozen=True, slots=True)
class MetricMean:
    """One metric over the language pairs that it has scores in."""

    name: str
    language_pairs: int
    measures: Mapping[str, Measure]
    """By name the means over language pairs of `acc_eq`, `spa`, `pearson` over all outputs, and `system_pearson`."""
    ranks: Mapping[str, int]
    """By the name of a mean that ranks the metrics."""
    kind: Kind = "metrics"

    def __getitem__(self, name: str) -> Measure:
        """Return a measure by its name."""
        return self.measures[name]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it; a missing value is None, with its reason."""
        return {"language_pairs": self.language_pairs, **_parts(self.measures), "ranks": dict(self.ranks)}


def _parts(measures: Mapping[str, Measure]) -> dict[str, Any]:
    """Return the values of measures by name, their intervals if they have any, and why others lack a value."""
    intervals = {name: [measure.low, measure.high] for name, measure in measures.items() if measure.low is not None}
    reasons = {name: measure.reason for name, measure in measures.items() if measure.value is None}
    return {name: measure.value for name, measure in measures.items()} | {"intervals": intervals, "reasons": reasons}


@dataclass(frozen=True, slots=True)
class MetaEvaluation(Result):
    """The results of `meta_evaluate`: as text the verdict, a table and the tests."""

    _FORMATS: ClassVar[tuple[TableFormat, ...]] = ("text", "tsv", "latex")

    language_pairs: tuple[LanguagePairResult, ...]
    means: tuple[MetricMean, ...]
    """Over the language pairs that all metrics have; the best first."""
    mean_tests: Mapping[str, MeasureTests]
    """How metrics compare by their means, by the name of each measure that ranks them in every language pair."""
    permutations: int
    seed: int

    @property
    def signature(self) -> str:
        """How metrics were judged, to be quoted beside the values."""
        return f"bertscore-onnx|test:segments|permutations:{self.permutations}|seed:{self.seed}|version:{__version__}"

    def to_dict(self) -> dict[str, Any]:
        """Return what `to_json` writes; a missing value is None, with its reason."""
        kinds = {kind: [mean for mean in self.means if mean.kind == kind] for kind in get_args(Kind)}
        return {
            "signature": self.signature,
            "permutations": self.permutations,
            "seed": self.seed,
            "language_pairs": {result.language_pair: result.to_dict() for result in self.language_pairs},
            "mean": {
                **{kind: {mean.name: mean.to_dict() for mean in means} for kind, means in kinds.items()},
                "tests": {name: tests.to_dict() for name, tests in self.mean_tests.items()},
                "units": self.units,
            },
        }

    @property
    def units(self) -> dict[str, int]:
        """How many units the tests of the means exchange, by their kind."""
        totals = Counter[str]()
        for result in self.language_pairs:
            totals[result.units] += result.num_units
        return totals

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        for result in self.language_pairs:
            said = {"notes": " ".join(self._said(result)), "signature": self.signature}
            for kind, metric in result.by_kind():
                row = {"lang_pair": result.language_pair, "metric": metric.name, "kind": kind}
                for level, agreement in (("system", metric.system), ("segment", metric.segment)):
                    if agreement:
                        row |= {f"{level}_{name}": value for name, value in _row(agreement).items()}
                yield row | said

    def _blocks(self) -> Iterator[str]:
        yield from self._verdict_and_means()
        for result in self.language_pairs:
            yield from _summary(result)
        yield self._signatures()

    def _latex(self) -> Iterator[str]:
        signatures = self._signatures().split("\n")
        if len(self.language_pairs) > 1:
            title = f"means over {len(self.language_pairs)} language pairs"
            golds = [
                metric.base_name
                for result in self.language_pairs
                for metric in result.metrics
                if metric.name in result.golds
            ]
            yield _latex(title, self._mean_rows, self.mean_tests, self.units, [self._verdict, *signatures], golds)
        for result in self.language_pairs:
            title, comments = "; ".join(_heading(result)), [*self._said(result), *signatures]
            units = {result.units: result.num_units}
            yield _latex(title, _measures_of(result), result.tests, units, comments, result.golds)

    def figure(self) -> "Figure":
        """Return a matplotlib figure of each metric's acc*_eq and SPA with intervals, and of the best sentinel.

        Raises:
            InputError: no metric has a value of either.
            MissingExtraError: matplotlib is not installed.
        """
        from bertscore_onnx_evaluation.report.figures import Panel, rows_figure

        panels = []
        for result in self.language_pairs:
            for key in result.ranked_by:
                sentinel = result.best_sentinels.get(key)
                found = [(metric.name, measure) for metric in result.ranked if (measure := metric.measure(key))]
                rows = [(name, measure.value or 0.0, measure.low, measure.high, True) for name, measure in found]
                line = sentinel and sentinel.measure(key)
                words = f"{sentinel.name}, which reads no meaning" if sentinel else ""
                title, about, *_ = _MEASURES[label(key)]
                title = f"{result.language_pair}: {title} of {about}, with 95 % interval"
                panels.append(Panel(title, rows, line.value if line else None, words))
        if not panels:
            raise InputError(f"There is nothing to draw. {self._verdict}")
        said = [" ".join(self._said(result)) for result in self.language_pairs]
        return rows_figure(panels, [*said, *self._signatures().split("\n")])

    def _said(self, result: LanguagePairResult) -> list[str]:
        """Return the verdict, that on a language pair, and its notes, in sentences."""
        verdicts = [self._verdict]
        if len(self.language_pairs) > 1:
            verdicts.append(f"{result.language_pair}: {_verdict_of(result)}")
        return [*verdicts, *(f"{note}." for note in _notes(result))]

    @property
    def _verdict(self) -> str:
        """Which metric agrees best, of several language pairs by the means."""
        if len(self.language_pairs) == 1:
            return _verdict_of(self.language_pairs[0])
        means = {mean.name: mean for mean in self.means}
        values = {
            name: {metric: means[metric][name].value or 0.0 for metric in tests.ranks}
            for name, tests in self.mean_tests.items()
        }
        num_systems = min(len(result.spa_systems) for result in self.language_pairs)
        no_verdict = "no metric is ranked." if self.mean_tests else "no measure ranks the metrics of all."
        words = verdict(values, self.mean_tests, num_systems) or no_verdict
        return f"Over {len(self.language_pairs)} language pairs, {words}"

    def _verdict_and_means(self) -> Iterator[str]:
        """Yield which metric agrees best, and the means over several language pairs."""
        yield self._verdict
        if len(self.language_pairs) == 1:
            return
        yield f"Means over language pairs\n{_measures_table(self._mean_rows, self.mean_tests).text()}"
        names = [mean.name for mean in self.means if mean.kind == "metrics"]
        yield from _matrix(self.mean_tests, names, _exchanged(self.units))
        yield "\n".join(f"{result.language_pair}: {_verdict_of(result)}" for result in self.language_pairs)

    @property
    def _mean_rows(self) -> dict[str, dict[str, Measure]]:
        """The means over language pairs by name, of the measures that rank metrics in all; of all if none does."""
        rows: dict[str, dict[str, Measure]] = {}
        for mean in self.means:
            names = self.mean_tests or mean.measures
            rows[mean.name] = {name: mean[name] for name in names if mean[name].value is not None}
        return rows

    def _signatures(self) -> str:
        signatures = {
            metric.name: metric.signature
            for result in self.language_pairs
            for metric in result.metrics
            if metric.signature
        }
        return "\n".join([self.signature, *(f"{name}: {signature}" for name, signature in signatures.items())])


# The verdict.

_signed, _proportion = number(3, signed=True), number(3)


class _Measure(NamedTuple):
    """How a measure that may rank metrics is printed."""

    title: str
    about: str
    write: Format
    legend: str


_MEASURES = {
    "acc_eq": _Measure(
        "acc*_eq",
        "outputs of a segment",
        _proportion,
        "acc*_eq: share of pairs of outputs of a segment in the right order, or tied as by annotators",
    ),
    "spa": _Measure("SPA", "systems", _proportion, "SPA: soft pairwise accuracy of systems"),
    "pearson": _Measure("r", "outputs", _signed, "r: Pearson's, over all outputs"),
    "system_pearson": _Measure("r", "systems", _signed, "r: Pearson's, of whole systems"),
}
_IN_WORDS = ("random numbers", "the difficulty of the segment", "length", "ratio of lengths", "shared words")
"""The sentinels, in their order."""
_LISTED = 4
"""Of more metrics the verdict gives the number."""


def verdict(values: Mapping[str, Mapping[str, float]], tests: Mapping[str, MeasureTests], num_systems: int) -> str:
    """Return in a sentence which metric agrees best by each measure, by values of measures and then of metrics."""
    sentence = previous = ""
    for name, of_metrics in values.items():
        if not of_metrics or (name == "spa" and num_systems < MIN_SYSTEMS):
            continue
        best, *others = sorted(of_metrics, key=lambda metric: -of_metrics[metric])
        title, about, write, _ = _MEASURES[name]
        facts = [f"{title} {write(of_metrics[best])}", *_relations(best, others, tests[name])]
        sentinels = [test for test in tests[name].sentinels if test.metric == best]
        is_better = bool(sentinels) and sentinels[0].p_holm < SIGNIFICANT
        if sentinels and not is_better:
            facts.append(f"not significantly better than {sentinels[0].sentinel}, which reads no meaning")
        elif is_better and not others:
            facts.append("better than every sentinel")
        verb = "" if sentence else "agrees best " if others else "agrees "
        subject = f"{best} " if best != previous else ""
        is_contradicted = name == "acc_eq" and any(
            metric == previous and difference.delta < 0 and difference.p_holm < SIGNIFICANT
            for (metric, _), difference in tests[name].differences.items()
        )
        if sentence:
            sentence += " but " if is_contradicted else " and "
        sentence += f"{subject}{verb}on {about} ({'; '.join(facts)})"
        previous = best
    return f"{sentence}." if sentence else ""


def _relations(best: str, others: Sequence[str], tests: MeasureTests) -> list[str]:
    """Return how the best metric compares with the others."""
    relations: dict[str, list[str]] = {}
    for other in others:
        difference = tests.differences.get((best, other))
        relation = "not tested against"
        if difference is not None:
            relation = f"{'' if difference.p_holm < SIGNIFICANT else 'not '}significantly better than"
        relations.setdefault(relation, []).append(other)
    return [
        f"{relation} {listed(names) if len(names) <= _LISTED else f'{len(names)} others'}"
        for relation, names in relations.items()
    ]


def _verdict_of(result: LanguagePairResult) -> str:
    """Return the verdict on a language pair, and which metrics order outputs the wrong way round."""
    values = {
        label(key): {metric.name: measure.value or 0.0 for metric in result.ranked if (measure := metric.measure(key))}
        for key in result.ranked_by
    }
    words = verdict(values, result.tests, len(result.spa_systems)) or _no_verdict(result)
    if result.reversed:
        order = "order" if len(result.reversed) > 1 else "orders"
        names = " ".join(map(quote, result.reversed))
        words += (
            f" {listed(result.reversed)} {order} outputs the wrong way round: if lower scores are better, give "
            f"--lower-better {names}."
        )
    return words


def _no_verdict(result: LanguagePairResult) -> str:
    for metric in result.metrics:
        agreement = metric.segment or metric.system
        if agreement and agreement["pearson"].reason == HUMAN_CONSTANT:
            return "The human scores are all equal: nothing can be measured."
        if metric.segment and metric.name not in result.golds:
            return f"No metric is ranked: {metric.segment['acc_eq'].reason}."
    return "No metric is ranked."


# The tables of text.


def _row(agreement: Agreement) -> dict[str, Any]:
    """Return a row of TSV, by the names that JSON has; lists and reasons are joined."""
    row: dict[str, Any] = {}
    for name, value in agreement.to_dict().items():
        if name == "reasons":
            row[name] = "; ".join(f"{of}: {reason}" for of, reason in value.items())
        elif name == "intervals":
            row |= {f"{of}_{end}": ends[at] for of, ends in value.items() for at, end in enumerate(("low", "high"))}
        elif name == "ranks":
            row |= {f"{of}_rank": rank for of, rank in value.items()}
        elif isinstance(value, dict):  # groups, left_out and zeros
            row |= {f"{of}_{name}": number for of, number in value.items()}
        else:
            row[name] = value
    return row


def _measures_table(rows: Mapping[str, Mapping[str, Measure]], tests: Mapping[str, MeasureTests]) -> Table:
    """Return a table of metrics by the measures that have a value, with their intervals and ranks."""
    ordered = dict.fromkeys([*tests, *_MEASURES])
    names = [name for name in ordered if any(name in measures for measures in rows.values())]
    columns: list[Column] = [("metric", "metric", str)]
    for name in names:
        title = _MEASURES[name].title
        title += " of\nsystems" if name == "system_pearson" and "pearson" in names else ""
        columns += [(title, name, _MEASURES[name].write), ("95 % interval", f"{name}_interval", plain)]
        columns += [("rank", f"{name}_rank", count)] * (name in tests)
    cells: list[dict[str, Any]] = []
    for metric, measures in rows.items():
        row: dict[str, Any] = {"metric": metric}
        for name in names:
            measure = measures.get(name)
            row |= {name: measure and measure.value, f"{name}_interval": _interval(name, measure)}
            row[f"{name}_rank"] = tests[name].ranks.get(metric) if name in tests else None
        cells.append(row)
    return Table(columns, cells, [f"{name}_interval" for name in reversed(names)])


def _interval(name: str, measure: Measure | None) -> str:
    if measure is None or measure.low is None or measure.high is None:
        return ""
    write = number(2, signed=name.endswith("pearson"))
    return f"{write(measure.low)} to {write(measure.high)}"


def _measures_of(result: LanguagePairResult) -> dict[str, dict[str, Measure]]:
    """Return the measures that rank metrics, of metrics and the best sentinels; without such measures, each r."""
    keys = result.ranked_by or (R_OF_OUTPUTS, R_OF_SYSTEMS)
    metrics = (*result.metrics, *result.best_sentinels.values())
    return {
        metric.name: {label(key): measure for key in keys if (measure := metric.measure(key))} for metric in metrics
    }


def _summary(result: LanguagePairResult) -> Iterator[str]:
    """Yield the table of a language pair, the tests of what ranks it, and its notes in lines of 80 columns."""
    title = "\n".join(_heading(result))
    yield f"{title}\n{_measures_table(_measures_of(result), result.tests).text()}"
    exchanged = _exchanged({result.units: result.num_units})
    yield from _matrix(result.tests, [metric.name for metric in result.ranked], exchanged)
    notes = [
        fill(note, 80, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False)
        for note in _notes(result)
    ]
    if notes:
        yield "\n".join(notes)


def _latex(
    title: str,
    rows: Mapping[str, Mapping[str, Measure]],
    tests: Mapping[str, MeasureTests],
    units: Mapping[str, int],
    comments: Sequence[str],
    golds: Sequence[str] = (),
) -> str:
    """Return a table of metrics and sentinels, with the best value of the metrics in bold."""
    table = _measures_table(rows, tests)
    columns = [*table.columns]
    for at, (heading, key, write) in enumerate(columns):
        if key.endswith("_interval"):
            columns[at] = (heading, key, latex_value)
        elif key in _MEASURES:
            ranked = [of for name, of in rows.items() if name not in (*golds, *SENTINELS)]
            values = (measures[key].value for measures in ranked if key in measures)
            columns[at] = (heading, key, _latex_number(write, max(filter(None, values), default=None)))
    explained = [_MEASURES[name].legend for name in tests]
    explained += [f"{name} ({_IN_WORDS[SENTINELS.index(name)]}) reads no meaning" for name in SENTINELS if name in rows]
    caption = f"Agreement of metrics with human scores, {title}; the best values are bold."
    caption += f" {'; '.join(explained)}." * bool(explained)
    if any(of_measure.ranks for of_measure in tests.values()):
        caption += (
            f" Intervals are by a jackknife. A rank ends where a metric in it is significantly better than the next "
            f"(p < {SIGNIFICANT} by exchanging {_exchanged(units)}, two-sided, after Holm's correction)."
        )
    return Table(columns, table.rows).latex(caption, comments=comments)


def _latex_number(write: Format, best: float | None) -> Format:
    return lambda value: "--" if value is None else latex_number(write(value), is_bold=value == best)


def _heading(result: LanguagePairResult) -> list[str]:
    """Return what was judged, and what each measure that ranks metrics was computed from."""
    judged = plural(result.segments, "segment") if result.segments else "judged as a whole"
    of = "".join(f", {kind} {name}" for kind, name in (("gold", result.gold), ("reference", result.reference)) if name)
    lines = [f"{result.language_pair}{of}: {plural(len(result.systems), 'system')}, {judged}"]
    measured: list[str] = []
    for key in result.ranked_by:
        title, about, *_ = _MEASURES[label(key)]
        measure, *_ = filter(None, (metric.measure(key) for metric in result.metrics))
        rests_on = f"{count(measure.n)} {about}"
        if measure.groups > 1:  # of pairs, in segments
            rests_on = f"{plural(measure.n, 'pair')} in {plural(measure.groups, 'segment')}"
        measured.append(f"{title} of {rests_on}")
    return [*lines, "; ".join(measured)] if measured else lines


def _exchanged(units: Mapping[str, int]) -> str:
    """Write how many units of each kind the tests exchange."""
    return listed([plural(number, kind.removesuffix("s")) for kind, number in units.items()])


def _notes(result: LanguagePairResult) -> list[str]:
    return [*_sentinels(result), *_missing(result), *result.notes]


def _sentinels(result: LanguagePairResult) -> Iterator[str]:
    """Yield which metrics are not significantly better than a sentinel, by each measure."""
    for name, tests in result.tests.items():
        not_better = [test for test in tests.sentinels if test.p_holm >= SIGNIFICANT]
        if not_better:
            names = ", ".join(f"{test.metric} ({test.sentinel}, p {p_value(3)(test.p_holm)})" for test in not_better)
            yield f"{_MEASURES[name].title}: not significantly better than a sentinel: {names}"
        elif tests.sentinels:
            names = ", ".join(test.metric for test in tests.sentinels)
            yield f"{_MEASURES[name].title}: significantly better than every sentinel: {names}"


def _matrix(tests: Mapping[str, MeasureTests], names: Sequence[str], units: str) -> Iterator[str]:
    """Yield matrices of p for every two metrics: of one measure above the diagonal, of another below."""
    tested = [name for name, of_measure in tests.items() if of_measure.differences]
    for start in range(0, len(tested), 2):
        yield _matrix_of(tested[start : start + 2], tests, names, units)


def _matrix_of(tested: Sequence[str], tests: Mapping[str, MeasureTests], names: Sequence[str], units: str) -> str:
    """Return a matrix of p of one or two measures."""
    has_below = len(tested) > 1
    columns: list[Column] = [("", "number", plain), ("metric", "metric", str)]
    columns += [(str(at), str(at), plain) for at in range(1 if has_below else 2, len(names) + 1)]
    rows = []
    for row, first in enumerate(names, start=1):
        cells: dict[str, Any] = {"number": row, "metric": first}
        for column, second in enumerate(names, start=1):
            if column > row or (column < row and has_below):
                cells[str(column)] = _p_of(tests[tested[column < row]], first, second)
        rows.append(cells)
    titles = [_MEASURES[name].title for name in tested]
    which = f"{titles[0]} above the diagonal, {titles[1]} below" if has_below else titles[0]
    return f"p of {which}, by exchanging {units}, two-sided, after Holm\n{Table(columns, rows).text()}"


def _p_of(tests: MeasureTests, first: str, second: str) -> str:
    """Write the p of two metrics, the smallest that the permutations can give as a bound."""
    difference = tests.differences.get((first, second))
    if difference is None:
        return MISSING
    smallest = tests.smallest_p * len(tests.differences) / 2
    text = p_value(3)(max(difference.p_holm, min(smallest, 1.0)))
    return text if difference.p_holm > smallest or text.startswith("<") else f"<={text}"


def _missing(result: LanguagePairResult) -> list[str]:
    """Return why values of acc*_eq, SPA and of r where it ranks are missing, each reason once."""
    missing: dict[tuple[Key, str], list[str]] = {}  # the metrics by measure and reason
    for metric in result.metrics:
        for key, agreement in (
            (OF_SYSTEMS, metric.system),
            (OF_OUTPUTS, metric.segment),
            (R_OF_OUTPUTS, metric.segment if R_OF_OUTPUTS in result.ranked_by else None),
        ):
            if agreement and agreement[key[1]].value is None:
                missing.setdefault((key, agreement[key[1]].reason), []).append(metric.name)
    return [
        f"No {_MEASURES[label(key)].title} of {key[0]}s ({', '.join(names)}): {reason}"
        for (key, reason), names in missing.items()
    ]
