"""The results of an evaluation of metrics, as records, tables and JSON."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from shlex import quote
from textwrap import TextWrapper
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

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
"""With fewer systems SPA has no rank: random numbers get up to .98 with 2 systems."""


def label(key: Key) -> str:
    """Return the name of a measure where both levels stand together."""
    if key == R_OF_SYSTEMS:
        return "system_pearson"
    return key[1]


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of a metric with human scores.

    It is at the level of systems or of segments; correlations are signed.
    """

    n: int
    """Judged systems, or judged outputs."""
    measures: Mapping[str, Measure]
    """By name. Of systems: `spa` (soft pairwise accuracy, from the scores of segments) and
    `pearson`. Of segments: `acc_eq`, `pearson` over all outputs, and `pearson_by_item` (within each
    segment, then the mean)."""
    ranks: Mapping[str, int] = field(default_factory=dict)
    """From 1, by the name of each measure that ranks the metrics: a rank ends where a metric in it
    is significantly better."""

    def __getitem__(self, name: str) -> Measure:
        """Return a measure by its name."""
        return self.measures[name]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it; a missing value is None, with its reason."""
        record = {"n": self.n, **_values(self.measures), "ranks": dict(self.ranks)}
        pairs: dict[str, int] = {}
        groups: dict[str, int] = {}
        left_out: dict[str, int] = {}
        zeros: dict[str, int] = {}
        for name, measure in self.measures.items():
            if name in ("acc_eq", "spa") and measure.groups:
                pairs[name] = measure.n
            if measure.groups > 1:
                groups[name] = measure.groups
            if measure.groups and measure.left_out:
                left_out[name] = measure.left_out
            if measure.zeros:
                zeros[name] = measure.zeros
        return record | {"pairs": pairs, "groups": groups, "left_out": left_out, "zeros": zeros}


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
        level, name = key
        agreement = self.system if level == "system" else self.segment
        if agreement is None or agreement[name].value is None:
            return None
        return agreement[name]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "signature": self.signature,
            "system": self.system and self.system.to_dict(),
            "segment": self.segment and self.segment.to_dict(),
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
    """The scores of the metrics that score whole systems, by the metric's name; higher is
    better.
    """
    segments: int
    """The number of segments with a judged output; 0 if only whole systems have."""
    metrics: tuple[MetricAgreement, ...]
    """The best first."""
    sentinels: tuple[MetricAgreement, ...]
    """Scores that read no meaning, such as the length of a candidate, by the same measures; they
    have no rank.
    """
    ranked_by: tuple[Key, ...]
    """The measures that rank the metrics, by level and name: acc*_eq and SPA, after r where few
    segments have two outputs; or r of whole systems."""
    tests: Mapping[str, MeasureTests]
    """How metrics compare by each of these, by its name: `acc_eq`, `spa`, `pearson` or
    `system_pearson`.
    """
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
    shared: int
    """The number of segments with two judged outputs or more."""

    @property
    def ranked(self) -> list[MetricAgreement]:
        """The metrics but for those that are the human scores themselves."""
        return [metric for metric in self.metrics if metric.name not in self.golds]

    def is_ranked_by(self, key: Key) -> bool:
        """Return whether a measure ranks the metrics, or is r of whole systems, without ranks."""
        if key not in self.ranked_by:
            return False
        return key == R_OF_SYSTEMS or bool(self.tests[label(key)].ranks)

    @property
    def best_sentinels(self) -> dict[Key, MetricAgreement]:
        """The best sentinel by each measure that ranks the metrics.

        Measures that no sentinel has are left out.
        """
        best = {}
        for key in self.ranked_by:
            values = _values_of(self.sentinels, key)
            if values:
                best_name = max(values, key=values.__getitem__)
                best[key] = next(metric for metric in self.sentinels if metric.name == best_name)
        return best

    def by_kind(self) -> Iterator[tuple[Kind, MetricAgreement]]:
        """Yield metrics and sentinels, in the order of the tables."""
        for metric in self.metrics:
            yield "metrics", metric
        for sentinel in self.sentinels:
            yield "sentinels", sentinel

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        record: dict[str, Any] = to_builtins(self, enc_hook=_of_python)
        del record["language_pair"]
        record["ranked_by"] = [label(key) for key in self.ranked_by]
        record["tests"] = {name: tests.to_dict() for name, tests in self.tests.items()}
        record["metrics"] = {metric.name: metric.to_dict() for metric in self.metrics}
        record["sentinels"] = {metric.name: metric.to_dict() for metric in self.sentinels}
        return record


def _values_of(metrics: Sequence[MetricAgreement], key: Key) -> dict[str, float]:
    """Return the values of a measure by the name of the metric.

    Metrics without a value are left out.
    """
    values = {}
    for metric in metrics:
        measure = metric.measure(key)
        if measure is not None:
            values[metric.name] = measure.value or 0.0
    return values


def _of_python(value: str | np.generic) -> str | float:
    """Return a name or a number as Python's own.

    The name may be of any class of texts, the number of numpy.
    """
    if isinstance(value, str):
        return str(value)
    return value.item()


@dataclass(frozen=True, slots=True)
class MetricMean:
    """One metric over the language pairs that it has scores in."""

    name: str
    language_pairs: int
    measures: Mapping[str, Measure]
    """By name the means over language pairs of `acc_eq`, `spa`, `pearson` over all outputs, and
    `system_pearson`.
    """
    ranks: Mapping[str, int]
    """By the name of a mean that ranks the metrics."""
    kind: Kind = "metrics"

    def __getitem__(self, name: str) -> Measure:
        """Return a measure by its name."""
        return self.measures[name]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it; a missing value is None, with its reason."""
        return {
            "language_pairs": self.language_pairs,
            **_values(self.measures),
            "ranks": dict(self.ranks),
        }


def _values(measures: Mapping[str, Measure]) -> dict[str, Any]:
    """Return the values of measures by name, with intervals.

    Where a value is missing, it returns the reason.
    """
    values: dict[str, Any] = {}
    intervals: dict[str, list[float | None]] = {}
    reasons: dict[str, str] = {}
    for name, measure in measures.items():
        values[name] = measure.value
        if measure.low is not None:
            intervals[name] = [measure.low, measure.high]
        if measure.value is None:
            reasons[name] = measure.reason
    return values | {"intervals": intervals, "reasons": reasons}


@dataclass(frozen=True, slots=True)
class MetaEvaluation(Result):
    """The results of `meta_evaluate`.

    As text they are the verdict, a table and the tests.
    """

    _FORMATS: ClassVar[tuple[TableFormat, ...]] = ("text", "tsv", "latex")

    language_pairs: tuple[LanguagePairResult, ...]
    means: tuple[MetricMean, ...]
    """Over the language pairs that have the measure; the best first."""
    mean_tests: Mapping[str, MeasureTests]
    """How metrics compare by their means, by the name of each measure that ranks them."""
    mean_pairs: Mapping[str, tuple[str, ...]]
    """The language pairs that have the measure, by its name."""
    permutations: int
    seed: int

    @property
    def signature(self) -> str:
        """How metrics were judged, to be quoted beside the values."""
        settings = f"test:segments|permutations:{self.permutations}|seed:{self.seed}"
        return f"bertscore-onnx|{settings}|version:{__version__}"

    def to_dict(self) -> dict[str, Any]:
        """Return what `to_json` writes; a missing value is None, with its reason."""
        mean: dict[str, Any] = {"metrics": {}, "sentinels": {}}
        for metric in self.means:
            mean[metric.kind][metric.name] = metric.to_dict()
        mean["tests"] = {name: tests.to_dict() for name, tests in self.mean_tests.items()}
        mean["units"] = {name: self._units(name) for name in self.mean_tests}
        mean["language_pairs"] = self.mean_pairs
        return {
            "verdict": self._verdict,
            "signature": self.signature,
            "permutations": self.permutations,
            "seed": self.seed,
            "language_pairs": {
                result.language_pair: result.to_dict() for result in self.language_pairs
            },
            "mean": mean,
        }

    @property
    def _exchanged(self) -> dict[str, str]:
        """What the tests of the means exchange, by measure."""
        return {name: _counted(self._units(name)) for name in self.mean_tests}

    def _units(self, name: str) -> dict[str, int]:
        """Return how many units the test of a mean exchanges, by their kind."""
        totals = Counter[str]()
        for result in self.language_pairs:
            if result.language_pair in self.mean_pairs[name]:
                totals[result.units] += result.num_units
        return totals

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        for result in self.language_pairs:
            notes = " ".join([*self._overall, *self._sentences(result)])
            sizes = {"units": result.units, "num_units": result.num_units, "level": LEVEL}
            for kind, metric in result.by_kind():
                row = {"lang_pair": result.language_pair, "metric": metric.name, "kind": kind}
                if metric.system is not None:
                    row |= _row(metric.system, "system_")
                if metric.segment is not None:
                    row |= _row(metric.segment, "segment_")
                yield {**row, **sizes, "notes": notes, "signature": self.signature}

    def _blocks(self) -> Iterator[str]:
        yield from self._verdict_and_means()
        for result in self.language_pairs:
            yield from _summary(result)
        yield self._signatures()

    def _latex(self) -> Iterator[str]:
        signatures = self._signatures().split("\n")
        if self._overall:
            table = _bold_best(self._mean_rows, self.mean_tests, self._base_names_of_golds())
            title = f"means over {self._averaged}"
            caption = _caption(title, self._mean_rows, self.mean_tests, self._exchanged)
            notes = [caption, *self._overall, self.signature]
            yield table.latex(" ".join(notes), "tab:metrics", signatures)
        for position, result in enumerate(self.language_pairs, 1):
            rows = _measures_of(result)
            table = _bold_best(rows, result.tests, result.golds)
            caption = _caption("; ".join(_heading(result)), rows, result.tests, _exchanged(result))
            notes = [caption, *self._sentences(result), self.signature]
            label = f"tab:metrics-{position}" if self._overall else "tab:metrics"
            yield table.latex(" ".join(notes), label, signatures)

    def _base_names_of_golds(self) -> list[str]:
        names = []
        for result in self.language_pairs:
            golds = [metric for metric in result.metrics if metric.name in result.golds]
            names += [metric.base_name for metric in golds]
        return names

    def figure(self) -> "Figure":
        """Return a matplotlib figure of acc*_eq and SPA with intervals.

        It has a row for each metric, and a line for the best sentinel.

        Raises:
            InputError: no metric has a value of either.
            MissingExtraError: matplotlib is not installed.
        """
        from bertscore_onnx_evaluation.report.figures import Panel, rows_figure

        panels = []
        for result in self.language_pairs:
            for key in result.ranked_by:
                measure = _MEASURES[label(key)]
                title = f"{result.language_pair}: {measure.title} of {measure.about}"
                rows = _rows_of_figure(result.ranked, key)
                line = None
                label_of_line = ""
                sentinel = result.best_sentinels.get(key)
                if sentinel is not None:
                    line = _values_of([sentinel], key)[sentinel.name]
                    label_of_line = f"{sentinel.name}, which reads no meaning"
                panels.append(Panel(f"{title}, with 95 % interval", rows, line, label_of_line))
        if not panels:
            raise InputError(f"There is nothing to draw. {self._verdict}")
        captions = [" ".join(self._sentences(result)) for result in self.language_pairs]
        return rows_figure(panels, [*self._overall, *captions, *self._signatures().split("\n")])

    @property
    def _overall(self) -> list[str]:
        """The verdict over several language pairs."""
        return [self._verdict] if len(self.language_pairs) > 1 else []

    def _sentences(self, result: LanguagePairResult) -> list[str]:
        """Return the verdict on a language pair, and its notes."""
        verdict_of_pair = _verdict_of(result)
        if self._overall:
            verdict_of_pair = f"{result.language_pair}: {verdict_of_pair}"
        return [verdict_of_pair, *[f"{note}." for note in _notes(result)]]

    @property
    def _verdict(self) -> str:
        """Which metric agrees best, of several language pairs by the means."""
        if len(self.language_pairs) == 1:
            return _verdict_of(self.language_pairs[0])
        means = {mean.name: mean for mean in self.means}
        values = {}
        for name, tests in self.mean_tests.items():
            values[name] = {metric: means[metric][name].value or 0.0 for metric in tests.ranks}
        found = verdict(values, self.mean_tests) or "no metric is ranked."
        return " ".join([f"Over {self._averaged}, {found}", *self._left_out])

    @property
    def _averaged(self) -> str:
        """The number of language pairs that the means are over."""
        names = set().union(*[self.mean_pairs[name] for name in self.mean_tests])
        return plural(len(names) or len(self.language_pairs), "language pair")

    @property
    def _left_out(self) -> list[str]:
        """The language pairs that a mean is not over, and the metrics without a mean."""
        sentences = []
        for result in self.language_pairs:
            titles = []
            for name in self.mean_tests:
                if result.language_pair not in self.mean_pairs[name]:
                    titles.append(_MEASURES[name].title)
            if titles:
                systems = plural(len(result.systems), "system")
                shared = f"{plural(result.shared, 'segment')} with two outputs or more"
                sentences.append(
                    f"{listed(titles)} not of {result.language_pair}: {systems}, {shared}."
                )
        names_by_reason: dict[str, list[str]] = {}
        for mean in self.means:
            # the means of a metric with scores in some language pairs alone
            lacking = [
                mean[name] for name in self.mean_tests if mean[name].value is None and mean[name].n
            ]
            for reason in dict.fromkeys(measure.reason for measure in lacking):
                names_by_reason.setdefault(reason, []).append(mean.name)
        for reason, names in names_by_reason.items():
            sentences.append(f"No mean of {listed(names)}: {reason}.")
        return sentences

    def _verdict_and_means(self) -> Iterator[str]:
        """Yield which metric agrees best, and the means.

        The means are over several language pairs.
        """
        yield self._verdict
        if len(self.language_pairs) == 1:
            return
        table = _measures_table(self._mean_rows, self.mean_tests)
        yield f"Means over language pairs\n{table.text()}"
        names = [mean.name for mean in self.means if mean.kind == "metrics"]
        yield from _matrix(self.mean_tests, names, self._exchanged)
        yield "\n".join(
            f"{result.language_pair}: {_verdict_of(result)}" for result in self.language_pairs
        )

    @property
    def _mean_rows(self) -> dict[str, dict[str, Measure]]:
        """The means over language pairs by name.

        They are of the measures that rank metrics; of all if none does.
        """
        rows: dict[str, dict[str, Measure]] = {}
        for mean in self.means:
            names = self.mean_tests or mean.measures
            rows[mean.name] = {name: mean[name] for name in names if mean[name].value is not None}
        return rows

    def _signatures(self) -> str:
        signatures = {}
        for result in self.language_pairs:
            for metric in result.metrics:
                if metric.signature:
                    signatures[metric.name] = metric.signature
        lines = [f"{name}: {signature}" for name, signature in signatures.items()]
        return "\n".join([self.signature, *lines])


def _rows_of_figure(
    metrics: Sequence[MetricAgreement], key: Key
) -> list[tuple[str, float, float | None, float | None, bool]]:
    """Return the rows of a figure, for each metric that has a value.

    They are its name, value, interval and emphasis.
    """
    rows = []
    for metric in metrics:
        measure = metric.measure(key)
        if measure is not None:
            rows.append((metric.name, measure.value or 0.0, measure.low, measure.high, True))
    return rows


# The verdict.

_signed = number(3, signed=True)
_proportion = number(3)
_p_value = p_value(3, SIGNIFICANT)
LEVEL = 1 - SIGNIFICANT
"""The level of intervals."""


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
        "acc*_eq: share of pairs of outputs of a segment in the right order, or tied as by "
        "annotators",
    ),
    "spa": _Measure("SPA", "systems", _proportion, "SPA: soft pairwise accuracy of systems"),
    "pearson": _Measure("r", "outputs", _signed, "r: Pearson's, over all outputs"),
    "system_pearson": _Measure("r", "systems", _signed, "r: Pearson's, of whole systems"),
}
_IN_WORDS = (
    "random numbers",
    "the difficulty of the segment",
    "length",
    "ratio of lengths",
    "shared words",
)
"""The sentinels, in their order."""
_LISTED = 4
"""Of more metrics the verdict gives the number."""


def verdict(values: Mapping[str, Mapping[str, float]], tests: Mapping[str, MeasureTests]) -> str:
    """Return in a sentence which metric agrees best by each measure.

    `values` are by measure, and then by metric.
    """
    sentence = ""
    previous_best = ""
    for name, of_metrics in values.items():
        if not of_metrics or _is_unranked(name, tests):
            continue
        best, *rest = sorted(of_metrics, key=lambda metric: -of_metrics[metric])
        measure = _MEASURES[name]
        facts = [f"{measure.title} {measure.write(of_metrics[best])}"]
        facts += _relations(best, rest, tests[name])
        facts += _relation_to_sentinels(best, tests[name], is_alone=not rest)
        clause = f"on {measure.about} ({'; '.join(facts)})"
        if not sentence:
            clause = f"agrees best {clause}" if rest else f"agrees {clause}"
        if best != previous_best:
            clause = f"{best} {clause}"
        if sentence and name == "acc_eq" and _is_beaten(previous_best, tests[name]):
            clause = f" but {clause}"
        elif sentence:
            clause = f" and {clause}"
        sentence += clause
        previous_best = best
    if not sentence:
        return ""
    return f"{sentence}."


def _is_unranked(name: str, tests: Mapping[str, MeasureTests]) -> bool:
    """Return whether a measure is SPA of too few systems."""
    return name == "spa" and not tests[name].ranks


def _relations(best: str, rest: Sequence[str], tests: MeasureTests) -> list[str]:
    """Return how the best metric compares with the rest."""
    names_by_relation: dict[str, list[str]] = {}
    for name in rest:
        difference = tests.differences.get((best, name))
        if difference is None:
            relation = "not tested against"
        elif difference.p_holm < SIGNIFICANT:
            relation = "significantly better than"
        else:
            relation = "not significantly better than"
        names_by_relation.setdefault(relation, []).append(name)
    relations = []
    for relation, names in names_by_relation.items():
        whom = f"{len(names)} others"
        if len(names) <= _LISTED:
            whom = listed(names)
        relations.append(f"{relation} {whom}")
    return relations


def _relation_to_sentinels(best: str, tests: MeasureTests, *, is_alone: bool) -> list[str]:
    """Return that the best metric is not better than a sentinel.

    Of an only metric, return that it is better, if it is.
    """
    for test in tests.sentinels:
        if test.metric != best:
            continue
        if test.p_holm >= SIGNIFICANT:
            return [f"not significantly better than {test.sentinel}, which reads no meaning"]
        if is_alone:
            return ["better than every sentinel"]
    return []


def _is_beaten(metric: str, tests: MeasureTests) -> bool:
    """Return whether any other metric is significantly better."""
    for (first, _), difference in tests.differences.items():
        if first == metric and difference.delta < 0 and difference.p_holm < SIGNIFICANT:
            return True
    return False


def _verdict_of(result: LanguagePairResult) -> str:
    """Return the verdict on a language pair.

    It also names the metrics that order outputs the wrong way round.
    """
    values = {label(key): _values_of(result.ranked, key) for key in result.ranked_by}
    sentence = verdict(values, result.tests) or _no_verdict(result)
    if not result.reversed:
        return sentence
    verb = "order" if len(result.reversed) > 1 else "orders"
    names = " ".join(map(quote, result.reversed))
    return (
        f"{sentence} {listed(result.reversed)} {verb} outputs the wrong way round: if lower scores "
        f"are better, give --lower-better {names}."
    )


def _no_verdict(result: LanguagePairResult) -> str:
    for metric in result.metrics:
        agreement = metric.segment or metric.system
        if agreement and agreement["pearson"].reason == HUMAN_CONSTANT:
            return "The human scores are all equal: nothing can be measured."
        if metric.segment and metric.name not in result.golds:
            return f"No metric is ranked: {metric.segment['acc_eq'].reason}."
    return "No metric is ranked."


# The tables of text.


def _row(agreement: Agreement, prefix: str) -> dict[str, Any]:
    """Return the cells of a row of TSV from the record of JSON.

    Their names begin with a prefix.
    """
    cells: dict[str, Any] = {}
    for name, value in agreement.to_dict().items():
        if name == "reasons":
            reasons = [f"{measure}: {reason}" for measure, reason in value.items()]
            cells[f"{prefix}reasons"] = "; ".join(reasons)
        elif name == "intervals":
            for measure, (low, high) in value.items():
                cells[f"{prefix}{measure}_low"] = low
                cells[f"{prefix}{measure}_high"] = high
        elif name == "ranks":
            for measure, rank in value.items():
                cells[f"{prefix}{measure}_rank"] = rank
        elif isinstance(value, dict):  # pairs, groups, left_out and zeros
            for measure, counted in value.items():
                cells[f"{prefix}{measure}_{name}"] = counted
        else:
            cells[f"{prefix}{name}"] = value
    return cells


def _measures_table(
    rows: Mapping[str, Mapping[str, Measure]], tests: Mapping[str, MeasureTests]
) -> Table:
    """Return a table of metrics by the measures that have a value.

    It has their intervals and ranks too.
    """
    with_values = {name for measures in rows.values() for name in measures}
    names = [name for name in dict.fromkeys([*tests, *_MEASURES]) if name in with_values]
    columns: list[Column] = [("metric", "metric", str)]
    for name in names:
        title = _MEASURES[name].title
        if name == "system_pearson" and "pearson" in names:
            title += " of\nsystems"
        columns.append((title, name, _MEASURES[name].write))
        columns.append(("95 % interval", f"{name}_interval", plain))
        if name in tests and tests[name].ranks:
            columns.append(("rank", f"{name}_rank", count))
    cells: list[dict[str, Any]] = []
    for metric, measures in rows.items():
        row: dict[str, Any] = {"metric": metric}
        for name in names:
            measure = measures.get(name)
            row[name] = measure and measure.value
            row[f"{name}_interval"] = _interval(name, measure)
            row[f"{name}_rank"] = None
            if name in tests:
                row[f"{name}_rank"] = tests[name].ranks.get(metric)
        cells.append(row)
    # A table that is too wide for the screen loses the intervals of the last measure first.
    return Table(columns, cells, [f"{name}_interval" for name in reversed(names)])


def _interval(name: str, measure: Measure | None) -> str:
    if measure is None or measure.low is None or measure.high is None:
        return ""
    write = number(2, signed=name.endswith("pearson"))
    return f"{write(measure.low)} to {write(measure.high)}"


def _measures_of(result: LanguagePairResult) -> dict[str, dict[str, Measure]]:
    """Return the measures that rank metrics.

    They are of metrics and the best sentinels; without such measures, each r.
    """
    keys = result.ranked_by or (R_OF_OUTPUTS, R_OF_SYSTEMS)
    rows: dict[str, dict[str, Measure]] = {}
    for metric in (*result.metrics, *result.best_sentinels.values()):
        rows[metric.name] = {}
        for key in keys:
            measure = metric.measure(key)
            if measure is not None:
                rows[metric.name][label(key)] = measure
    return rows


def _summary(result: LanguagePairResult) -> Iterator[str]:
    """Yield the table of a language pair, its tests and its notes.

    The tests are of what ranks it; the notes are in lines of 80 columns.
    """
    title = "\n".join(_heading(result))
    yield f"{title}\n{_measures_table(_measures_of(result), result.tests).text()}"
    names = [metric.name for metric in result.ranked]
    yield from _matrix(result.tests, names, _exchanged(result))
    wrapper = TextWrapper(
        80, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
    )
    notes = [wrapper.fill(note) for note in _notes(result)]
    if notes:
        yield "\n".join(notes)


def _bold_best(
    rows: Mapping[str, Mapping[str, Measure]],
    tests: Mapping[str, MeasureTests],
    golds: Sequence[str],
) -> Table:
    """Return a table of metrics and sentinels for LaTeX.

    The best value of the metrics is bold, but for SPA without ranks.
    """
    table = _measures_table(rows, tests)
    ranked = [measures for name, measures in rows.items() if name not in (*golds, *SENTINELS)]
    columns: list[Column] = []
    for heading, key, write in table.columns:
        if key.endswith("_interval"):
            columns.append((heading, key, latex_value))
        elif key in _MEASURES:
            values = [measures[key].value for measures in ranked if key in measures]
            best = max(filter(None, values), default=None)
            if key in tests and _is_unranked(key, tests):
                best = None
            columns.append((heading, key, _latex_number(write, best)))
        else:
            columns.append((heading, key, write))
    return Table(columns, table.rows)


def _caption(
    title: str,
    rows: Mapping[str, Mapping[str, Measure]],
    tests: Mapping[str, MeasureTests],
    exchanged: Mapping[str, str],
) -> str:
    """Return what stands under a table of metrics in LaTeX, before the verdict."""
    caption = f"Agreement of metrics with human scores, {title}; the best values are bold."
    legends = [_MEASURES[name].legend for name in tests]
    for name, meaning in zip(SENTINELS, _IN_WORDS, strict=True):
        if name in rows:
            legends.append(f"{name} ({meaning}) reads no meaning")
    if legends:
        caption += f" {'; '.join(legends)}."
    if any(of_measure.ranks for of_measure in tests.values()):
        units = listed(list(dict.fromkeys(exchanged.values())))
        caption += (
            f" Intervals are of {LEVEL:.0%}, by a jackknife. A rank ends where a metric in it is "
            f"significantly better than the next (p < {SIGNIFICANT} by exchanging {units}, "
            "two-sided, after Holm's correction)."
        )
    return caption


def _latex_number(write: Format, best: float | None) -> Format:
    def write_cell(value: Any) -> str:
        if value is None:
            return "--"
        return latex_number(write(value), is_bold=value == best)

    return write_cell


def _heading(result: LanguagePairResult) -> list[str]:
    """Return what was judged, and what the measures were computed from.

    These are the measures that rank metrics.
    """
    heading = result.language_pair
    if result.gold:
        heading += f", gold {result.gold}"
    if result.reference:
        heading += f", reference {result.reference}"
    heading += f": {plural(len(result.systems), 'system')}"
    if result.segments:
        heading += f", {plural(result.segments, 'segment')}"
    else:
        heading += ", judged as a whole"
    bases = []
    for key in result.ranked_by:
        measures = [metric.measure(key) for metric in result.metrics]
        measure = next(filter(None, measures))
        basis = f"{count(measure.n)} {_MEASURES[label(key)].about}"
        if measure.groups > 1:  # of pairs, in segments
            basis = f"{plural(measure.n, 'pair')} in {plural(measure.groups, 'segment')}"
            if key == OF_SYSTEMS and measure.groups < result.shared:
                basis += " or more"
        bases.append(f"{_MEASURES[label(key)].title} of {basis}")
    if not bases:
        return [heading]
    return [heading, "; ".join(bases)]


def _exchanged(result: LanguagePairResult) -> dict[str, str]:
    """Return what the tests of a language pair exchange, by measure."""
    return dict.fromkeys(result.tests, _counted({result.units: result.num_units}))


def _counted(units: Mapping[str, int]) -> str:
    """Write how many units of each kind there are."""
    return listed([plural(number, kind.removesuffix("s")) for kind, number in units.items()])


def _notes(result: LanguagePairResult) -> list[str]:
    return list(_sentinel_notes(result)) + _reasons_of_missing_values(result) + list(result.notes)


def _sentinel_notes(result: LanguagePairResult) -> Iterator[str]:
    """Yield which metrics are not significantly better than a sentinel.

    There is a note for each measure.
    """
    for name, tests in result.tests.items():
        title = _MEASURES[name].title
        not_better = [test for test in tests.sentinels if test.p_holm >= SIGNIFICANT]
        if not_better:
            metrics = [
                f"{test.metric} ({test.sentinel}, p {_p_value(test.p_holm)})" for test in not_better
            ]
            yield f"{title}: not significantly better than a sentinel: {', '.join(metrics)}"
        elif tests.sentinels:
            metrics = [test.metric for test in tests.sentinels]
            yield f"{title}: significantly better than every sentinel: {', '.join(metrics)}"


def _matrix(
    tests: Mapping[str, MeasureTests], names: Sequence[str], exchanged: Mapping[str, str]
) -> Iterator[str]:
    """Yield matrices of p for every two metrics.

    One measure stands above the diagonal, another below.
    """
    tested = [name for name, of_measure in tests.items() if of_measure.differences]
    for start in range(0, len(tested), 2):
        yield _matrix_of(tested[start : start + 2], tests, names, exchanged)


def _matrix_of(
    tested: Sequence[str],
    tests: Mapping[str, MeasureTests],
    names: Sequence[str],
    exchanged: Mapping[str, str],
) -> str:
    """Return a matrix of p of one or two measures."""
    above = tested[0]
    below = None
    first_column = 2  # above the diagonal alone, the first column would be empty
    if len(tested) > 1:
        below = tested[1]
        first_column = 1
    columns: list[Column] = [("", "number", plain), ("metric", "metric", str)]
    columns += [(str(column), str(column), plain) for column in range(first_column, len(names) + 1)]
    rows = []
    for row, first in enumerate(names, start=1):
        cells: dict[str, Any] = {"number": row, "metric": first}
        for column, second in enumerate(names, start=1):
            if column > row:
                cells[str(column)] = _p_of(tests[above], first, second)
            elif column < row and below is not None:
                cells[str(column)] = _p_of(tests[below], first, second)
        rows.append(cells)
    measures = _MEASURES[above].title
    if below is not None:
        measures += " above the diagonal"
        if exchanged[above] != exchanged[below]:
            measures += f", by exchanging {exchanged[above]}"
        measures += f", {_MEASURES[below].title} below"
    units = exchanged[tested[-1]]
    heading = f"p of {measures}, by exchanging {units}, two-sided, after Holm"
    return f"{heading}\n{Table(columns, rows).text()}"


def _p_of(tests: MeasureTests, first: str, second: str) -> str:
    """Write the p of two metrics.

    The smallest that the permutations can give is written as a bound.
    """
    difference = tests.differences.get((first, second))
    if difference is None:
        return MISSING
    smallest = tests.smallest_p * len(tests.differences) / 2
    text = _p_value(max(difference.p_holm, min(smallest, 1.0)))
    if difference.p_holm > smallest or text.startswith("<"):
        return text
    return f"<={text}"


def _reasons_of_missing_values(result: LanguagePairResult) -> list[str]:
    """Return why values are missing, each reason once.

    The values are of acc*_eq, SPA and of r where it ranks.
    """
    keys = [OF_SYSTEMS, OF_OUTPUTS]
    if R_OF_OUTPUTS in result.ranked_by:
        keys.append(R_OF_OUTPUTS)
    metrics: dict[tuple[Key, str], list[str]] = {}  # by measure and reason
    for metric in result.metrics:
        for key in keys:
            level, name = key
            agreement = metric.system if level == "system" else metric.segment
            if agreement is not None and agreement[name].value is None:
                metrics.setdefault((key, agreement[name].reason), []).append(metric.name)
    sentences = []
    for (key, reason), names in metrics.items():
        sentences.append(
            f"No {_MEASURES[label(key)].title} of {key[0]}s ({', '.join(names)}): {reason}"
        )
    return sentences
