"""The results of an evaluation of metrics, as records, tables and JSON."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import fill
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

import numpy as np
from msgspec import to_builtins

from bertscore_onnx import __version__
from bertscore_onnx.tables.table import (
    MISSING,
    Column,
    Format,
    Table,
    TableFormat,
    count,
    latex_number,
    listed,
    number,
    p_value,
    plain,
    plural,
)
from bertscore_onnx_evaluation.metrics.correlation import Measure
from bertscore_onnx_evaluation.metrics.ranks import Difference, SentinelTest
from bertscore_onnx_evaluation.results import Result
from bertscore_onnx_evaluation.systems.paired_tests import MAX_EXACT
from bertscore_onnx_evaluation.systems.power import SIGNIFICANT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HELP = """\
Metrics have ranks by Pearson's r, over all outputs at once, which mixes the
difficulty of segments with the quality of outputs. A rank ends where a metric
in it is significantly better than the next (p < .05 after Holm's correction);
metrics in neighbouring ranks need not differ: the tables of p show which do.
Below each number is its interval of 95 % over other segments with the same
systems; of whole systems, whose scores then move as the means of their
segments do. The tests of segments, SPA's too, keep the systems as well:
metrics that favour other systems differ by them, though over many systems
they may be equal. By item and by system, a metric that is constant counts as
0. A negative r orders outputs the wrong way round. Ties are pairs that a
metric scores alike; for acc*_eq, alike up to epsilon. A missing value, -, has
its reason below the tables. Sentinels, below the metrics, read no meaning:
random numbers (means over several draws, and the range of 95 % of them), the
length, the ratio of lengths, and the words shared with the reference.
Annotators stand above the metrics. With --test boot-both intervals and p are
over other systems and segments."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement of a metric with human scores, at the level of systems or of segments; correlations are signed."""

    n: int
    """Judged systems, or judged outputs."""
    measures: Mapping[str, Measure]
    """By name. Of systems: `pearson`, `pearson_without_outliers` (without the systems in `outliers`), `accuracy`
    (pairwise), and `spa` (soft pairwise, from the scores of segments). Of segments: `pearson` over all outputs,
    `pearson_by_item` and `pearson_by_system` (within each, then the mean), `kendall` (τ_b), `kendall_c` and
    `acc_eq`."""
    pairs: int
    """Judged pairs of systems; of segments: within each segment."""
    human_ties: int
    """Those with equal human scores."""
    metric_ties: int
    """Those with equal scores by the metric."""
    rank: int | None = None
    """From 1, by Pearson's r: a rank ends where a metric in it is significantly better. None without an r."""
    outliers: tuple[str, ...] | None = None
    """Systems whose human score is far from the others'; None at the level of segments."""

    def __getitem__(self, name: str) -> Measure:
        """Return a measure by its name."""
        return self.measures[name]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it; a missing value is None, with its reason."""
        values, intervals, reasons = _parts(self.measures)
        measures = self.measures.items()
        return {
            "n": self.n,
            **values,
            **({"epsilon": self["acc_eq"].epsilon} if self.outliers is None else {"outliers": list(self.outliers)}),
            "ties": {"pairs": self.pairs, "human": self.human_ties, "metric": self.metric_ties},
            "rank": self.rank,
            "intervals": intervals,
            "groups": {name: value.groups for name, value in measures if value.groups > 1},
            "left_out": {name: value.left_out for name, value in measures if value.groups and value.left_out},
            "zeros": {name: value.zeros for name, value in measures if value.zeros},
            "reasons": reasons,
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
    rank: int | None
    """Its rank at the level of segments if any metric has one there, else at that of systems; None without one."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        levels = {"system": self.system, "segment": self.segment}
        agreements = {level: agreement and agreement.to_dict() for level, agreement in levels.items()}
        return {"signature": self.signature, **agreements, "rank": self.rank}


@dataclass(frozen=True, slots=True)
class MetricPair:
    """Two metrics in one language pair."""

    first: str
    second: str
    system: Difference | None
    """None if one of them does not correlate."""
    segment: Difference | None
    tests: Mapping[str, Difference] = field(default_factory=dict)
    """Differences in other statistics of segments: `pearson_by_item`, `acc_eq` and `spa`."""


Kind = Literal["humans", "metrics", "sentinels"]


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
    """Those of the metrics that score whole systems, by the metric's name; higher is better."""
    segments: int
    """Those of which an output has a human score; 0 if only whole systems have."""
    metrics: tuple[MetricAgreement, ...]
    """The best first."""
    sentinels: tuple[MetricAgreement, ...]
    """Scores that read no meaning, such as the length of a candidate, by the same measures; they have no rank."""
    humans: tuple[MetricAgreement, ...]
    """Annotators who are no part of the human scores and are judged as metrics are, which they are ranked with."""
    sentinel_tests: tuple[SentinelTest, ...]
    """Each metric against the best sentinel, by each statistic that is tested."""
    pairs: tuple[MetricPair, ...]
    """Every two of `humans` and `metrics`, in that order."""
    notes: tuple[str, ...]
    """Warnings about the data."""
    units: str
    """What the tests exchange and the intervals draw: `segments` or `documents`."""
    smallest_p: float
    """The smallest p that the permutations of segments can give; 0 if all ways to exchange them were tried."""

    @property
    def ranked_by(self) -> Literal["segment", "system"]:
        """The level whose Pearson's r ranks the metrics."""
        has_r = any(metric.segment and metric.segment["pearson"].value is not None for metric in self.metrics)
        return "segment" if has_r else "system"

    def ranking_r(self, metric: MetricAgreement) -> Measure | None:
        """Return the r that a metric is ranked by; None without one."""
        agreement: Agreement | None = getattr(metric, self.ranked_by)
        return None if agreement is None or agreement["pearson"].value is None else agreement["pearson"]

    @property
    def best_sentinel(self) -> MetricAgreement | None:
        """The sentinel with the highest r."""
        with_r = [(r.value or 0.0, sentinel) for sentinel in self.sentinels if (r := self.ranking_r(sentinel))]
        return max(with_r, key=lambda pair: pair[0])[1] if with_r else None

    def by_kind(self) -> Iterator[tuple[Kind, MetricAgreement]]:
        """Yield annotators, metrics and sentinels, in the order of the tables."""
        yield from ((kind, metric) for kind in get_args(Kind) for metric in getattr(self, kind))

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        record: dict[str, Any] = to_builtins(self, enc_hook=_of_python)
        del record["language_pair"]
        return record | {
            kind: {metric.name: metric.to_dict() for metric in getattr(self, kind)} for kind in get_args(Kind)
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
    """By name: `accuracy`, pairwise, pooled over all pairs of systems of all language pairs; and the means over
    language pairs of `system_pearson`, `spa`, `segment_pearson`, `kendall` and `acc_eq`."""
    kind: Kind = "metrics"

    def __getitem__(self, name: str) -> Measure:
        """Return a measure by its name."""
        return self.measures[name]

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it; a missing value is None, with its reason."""
        values, intervals, reasons = _parts(self.measures)
        return {"language_pairs": self.language_pairs, **values, "intervals": intervals, "reasons": reasons}


def _parts(measures: Mapping[str, Measure]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return the values of measures by name, the intervals of those that have one, and why the others lack a value."""
    return (
        {name: measure.value for name, measure in measures.items()},
        {name: [measure.low, measure.high] for name, measure in measures.items() if measure.low is not None},
        {name: measure.reason for name, measure in measures.items() if measure.value is None},
    )


@dataclass(frozen=True, slots=True)
class MetaEvaluation(Result):
    """The results of `meta_evaluate`: as text the verdict, a table and the tests of its r; as `full` text all of it."""

    _FORMATS: ClassVar[tuple[TableFormat, ...]] = ("text", "full", "tsv", "latex")

    language_pairs: tuple[LanguagePairResult, ...]
    means: tuple[MetricMean, ...]
    """Over the language pairs that all metrics have; the highest accuracy first."""
    permutations: int
    seed: int
    test: str = "segments"
    """How p and the ranks were made: by exchanging whole `segments` (documents, if known), or by `boot-both`."""

    @property
    def signature(self) -> str:
        """How metrics were judged, to be quoted beside the values."""
        return (
            f"bertscore-onnx|test:{self.test}|permutations:{self.permutations}|seed:{self.seed}|version:{__version__}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what `to_json` writes; a missing value is None, with its reason."""
        return {
            "signature": self.signature,
            "permutations": self.permutations,
            "seed": self.seed,
            "test": self.test,
            "language_pairs": {result.language_pair: result.to_dict() for result in self.language_pairs},
            "mean": {
                kind: {mean.name: mean.to_dict() for mean in self.means if mean.kind == kind} for kind in get_args(Kind)
            },
        }

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        for result in self.language_pairs:
            for kind, metric in result.by_kind():
                row = {"lang_pair": result.language_pair, "metric": metric.name, "kind": kind, "rank": metric.rank}
                for level, agreement in (("system", metric.system), ("segment", metric.segment)):
                    if agreement:
                        row |= {f"{level}_{name}": value for name, value in _row(agreement).items()}
                yield row

    def _blocks(self) -> Iterator[str]:
        yield from self._verdict_and_means()
        for result in self.language_pairs:
            yield from _summary(result, self.test)
        yield self._signatures()

    def _details(self) -> Iterator[str]:
        yield from self._verdict_and_means()
        for result in self.language_pairs:
            yield from _language_pair(result, self.test)
        yield HELP
        yield self._signatures()

    def _latex(self) -> Iterator[str]:
        for result in self.language_pairs:
            yield _latex(result, self.test, self.permutations)

    def figure(self) -> "Figure":
        """Return a matplotlib figure of the r of each metric with its interval, and of the best sentinel.

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        from bertscore_onnx_evaluation.report.figures import meta_figure

        return meta_figure(self)

    def _verdict_and_means(self) -> Iterator[str]:
        """Yield which metric agrees best, and the means over several language pairs."""
        if len(self.language_pairs) == 1:
            yield verdict(self.language_pairs[0])
            return
        with_accuracy = (mean for mean in self.means if mean.kind == "metrics" and mean["accuracy"].value is not None)
        words = f"Over {len(self.language_pairs)} language pairs"
        if best := next(with_accuracy, None):
            accuracy = _proportion(best["accuracy"].value)
            yield f"{words} {best.name} orders systems best, with an accuracy of {accuracy}."
        else:
            yield f"{words}:"
        columns = _columns("metric", "language_pairs", *self.means[0].measures)
        table = Table(columns, [{"metric": mean.name, **mean.to_dict()} for mean in self.means])
        yield f"Means over language pairs, and accuracy over all pairs of systems\n{table.text()}"
        yield "\n".join(f"{result.language_pair}: {verdict(result)}" for result in self.language_pairs)

    def _signatures(self) -> str:
        signatures = {
            metric.name: metric.signature
            for result in self.language_pairs
            for metric in result.metrics
            if metric.signature
        }
        return "\n".join([self.signature, *(f"{name}: {signature}" for name, signature in signatures.items())])


# The tables of text.

_signed, _proportion = number(3, signed=True), number(3)
_COLUMNS: Mapping[str, tuple[str, Format]] = {
    "metric": ("metric", str),
    "rank": ("rank", count),
    "pearson": ("Pearson", _signed),
    "pearson_without_outliers": ("no outliers", _signed),
    "accuracy": ("accuracy", _proportion),
    "spa": ("SPA", _proportion),
    "metric_ties": ("ties", count),
    "pearson_by_item": ("by item", _signed),
    "pearson_by_system": ("by system", _signed),
    "kendall": ("tau_b", _signed),
    "kendall_c": ("tau_c", _signed),
    "acc_eq": ("acc*_eq", _proportion),
    "epsilon": ("epsilon", lambda epsilon: MISSING if epsilon is None else f"{epsilon:.4g}"),
    "language_pairs": ("pairs", plain),
    "system_pearson": ("Pearson\nsystems", _signed),
    "segment_pearson": ("Pearson\nsegments", _signed),
}
"""The title of each value, and its format."""

_SYSTEMS = ("metric", "rank", "pearson", "pearson_without_outliers", "accuracy", "spa", "metric_ties")
_SEGMENTS = ("metric", "rank", "pearson", "pearson_by_item", "pearson_by_system", "kendall", "kendall_c")
_SEGMENT_PAIRS = ("metric", "acc_eq", "epsilon", "metric_ties")


def _columns(*names: str) -> list[Column]:
    """Return the columns of these values."""
    return [(title, name, write) for name in names for title, write in [_COLUMNS[name]]]


def _row(agreement: Agreement) -> dict[str, Any]:
    """Return a row of TSV, by the names that JSON has; lists and reasons are joined."""
    row: dict[str, Any] = {}
    for name, value in agreement.to_dict().items():
        if name == "reasons":
            row[name] = "; ".join(f"{of}: {reason}" for of, reason in value.items())
        elif name == "outliers":
            row[name] = " ".join(value)
        elif name == "intervals":
            row |= {f"{of}_{end}": ends[at] for of, ends in value.items() for at, end in enumerate(("low", "high"))}
        elif name == "ties":
            row |= {"pairs": agreement.pairs, "human_ties": agreement.human_ties, "metric_ties": agreement.metric_ties}
        elif isinstance(value, dict):  # groups, left_out and zeros
            row |= {f"{of}_{name}": number for of, number in value.items()}
        else:
            row[name] = value
    return row


# The verdict, and the table of the measures that most papers report.

_SHOWN = {
    ("segment", "pearson"): "r",
    ("segment", "pearson_by_item"): "by item",
    ("segment", "acc_eq"): "acc*_eq",
    ("system", "spa"): "SPA",
    ("system", "pearson"): "systems",
}
"""The level and name of a measure, and the title of its column."""

_STATISTIC_OF = {"segment": "pearson", "system": "system_pearson"}
"""The name of the tests of r, by level."""


def verdict(result: LanguagePairResult) -> str:
    """Return in a sentence which metric agrees best, and what the tests of its r say of the others."""
    statistic = _STATISTIC_OF[result.ranked_by]
    best = next((metric for metric in result.metrics if result.ranking_r(metric)), None)
    if best is None:
        return "No metric correlates with the human scores."
    measure = result.ranking_r(best)
    of = "systems" if result.ranked_by == "system" else "outputs"
    words = f"{best.name} agrees best with human scores (r {_signed(measure and measure.value)} over all {of})"
    relations: dict[str, list[str]] = {}
    differences = {frozenset([pair.first, pair.second]): _difference(pair, statistic) for pair in result.pairs}
    for other in result.metrics:
        if other is not best and result.ranking_r(other):
            difference = differences[frozenset([best.name, other.name])]
            relation = "not tested against"
            if difference is not None:
                relation = "significantly better than" if difference.p_holm < SIGNIFICANT else "tied with"
            relations.setdefault(relation, []).append(other.name)
    sentinels = [test for test in result.sentinel_tests if (test.metric, test.statistic) == (best.name, statistic)]
    if sentinels and sentinels[0].p_holm >= SIGNIFICANT:
        relations["not significantly better than a score that reads no meaning,"] = [sentinels[0].sentinel]
    others = "; ".join(f"{relation} {listed(names)}" for relation, names in relations.items())
    return f"{words}: {others}." if others else f"{words}."


def _summary(result: LanguagePairResult, test: str) -> Iterator[str]:
    """Yield the table of a language pair, the tests of what ranks it, and its notes."""
    columns, rows = _shown(result)
    columns.insert(3, ("95 % of r", "interval", plain))
    yield f"{_title(result)}\n{Table(columns, rows, ('interval',)).text()}"
    statistic = _STATISTIC_OF[result.ranked_by]
    yield from _tests(result, test, [statistic])
    yield from _notes([*_sentinels(result, [statistic]), *_missing(result, shown_only=True), *result.notes])


def _shown(result: LanguagePairResult) -> tuple[list[Column], list[dict[str, Any]]]:
    """Return the columns of the levels that were judged, and rows of annotators, metrics and the best sentinel."""
    columns = _columns("metric", "rank")
    for (level, name), title in _SHOWN.items():
        if any(getattr(metric, level) for metric in result.metrics):
            columns.append((title, f"{level} {name}", _COLUMNS[name][1]))
    rows = []
    for metric in (*result.humans, *result.metrics, *filter(None, [result.best_sentinel])):
        row: dict[str, Any] = {"metric": metric.name, "rank": metric.rank, "interval": ""}
        for level, name in _SHOWN:
            agreement: Agreement | None = getattr(metric, level)
            row[f"{level} {name}"] = None if agreement is None else agreement[name].value
        measure = result.ranking_r(metric)
        if measure and measure.low is not None:
            row["interval"] = f"{measure.low:+.2f} to {measure.high:+.2f}"
        rows.append(row)
    return columns, rows


def _latex(result: LanguagePairResult, test: str, permutations: int) -> str:
    columns, rows = _shown(result)
    ranked = rows[: len(result.humans) + len(result.metrics)]
    for at, (title, key, write) in enumerate(columns[2:], start=2):
        best = max((row[key] for row in ranked if row[key] is not None), default=None)
        columns[at] = (title, key, _latex_number(write, best))
    sentinel = result.best_sentinel
    way = "drawing systems and " if test == "boot-both" else "exchanging "
    caption = (
        f"Agreement of metrics with human scores, {_title(result)}; the best values are bold. A rank ends where a "
        f"metric in it is significantly better than the next by r (p < {SIGNIFICANT}, {permutations:,} permutations "
        f"{way}{result.units}, two-sided, after Holm's correction)."
    )
    return Table(columns, rows).latex(caption + (f" {sentinel.name} reads no meaning." if sentinel else ""))


def _latex_number(write: Format, best: float | None) -> Format:
    return lambda value: "--" if value is None else latex_number(write(value), is_bold=value == best)


def _title(result: LanguagePairResult) -> str:
    """Return what was judged."""
    judged = plural(result.segments, "segment") if result.segments else "judged as a whole"
    of = "".join(f", {kind} {name}" for kind, name in (("gold", result.gold), ("reference", result.reference)) if name)
    return f"{result.language_pair}{of}: {plural(len(result.systems), 'system')}, {judged}"


# All details.


def _language_pair(result: LanguagePairResult, test: str) -> Iterator[str]:
    yield _title(result)
    systems = {metric.name: metric.system for _, metric in result.by_kind() if metric.system}
    segments = {metric.name: metric.segment for _, metric in result.by_kind() if metric.segment}
    if any(system[name].value is not None for system in systems.values() for name in ("pearson", "accuracy")):
        first = next(iter(systems.values()))
        title = f"Whole systems: {first.n}; human scores tie {first.human_ties:,} of {first.pairs:,} pairs"
        yield f"{title}\n{_table(_SYSTEMS, systems)}"
    if segments:
        first = next(iter(segments.values()))
        yield f"Segments: {first.n:,} judged outputs\n{_table(_SEGMENTS, segments)}"
        if any(segment["acc_eq"].value is not None for segment in segments.values()):
            title = f"Pairs of outputs of a segment: human scores tie {first.human_ties:,} of {first.pairs:,}"
            yield f"{title}\n{_table(_SEGMENT_PAIRS, segments)}"
    yield from _tests(result, test, _STATISTICS)
    outliers = next((system.outliers for system in systems.values()), None)
    named = [f"Outliers among the systems: {', '.join(outliers)}"] if outliers else []
    yield from _notes(_sentinels(result, _STATISTICS))
    yield from _notes([*named, *_groups(result), *_missing(result), *result.notes])


def _notes(lines: Iterable[str]) -> Iterator[str]:
    """Yield a block of these lines, each in lines of 80 columns; nothing without any."""
    filled = (fill(line, 80, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False) for line in lines)
    yield from filter(None, ["\n".join(filled)])


def _table(names: Sequence[str], metrics: Mapping[str, Agreement]) -> str:
    """Write a row of values for each metric, and one of their intervals below it."""
    rows: list[dict[str, Any]] = []
    for name, agreement in metrics.items():
        rows.append({"metric": name, **_row(agreement)})
        _, ends, _ = _parts(agreement.measures)
        intervals = {key: f"{low:.2f} {high:.2f}".replace("0.", ".") for key, (low, high) in ends.items()}
        if intervals.keys() & {*names}:
            rows.append({"metric": "", **intervals})
    return Table([(title, key, _or_text(write)) for title, key, write in _columns(*names)], rows).text()


def _or_text(write: Format) -> Format:
    """Write texts, such as intervals, as they are."""
    return write if write is str else lambda value: value if isinstance(value, str) else write(value)


_STATISTICS = {name: _COLUMNS[name][0] for name in ("pearson", "pearson_by_item", "acc_eq", "spa")}
_STATISTICS["system_pearson"] = "Pearson of whole systems"
"""The titles of the tests, by the name of their statistic."""


def _sentinels(result: LanguagePairResult, statistics: Iterable[str]) -> Iterator[str]:
    """Yield which metrics are not significantly better than the best sentinel, in each of these statistics."""
    for statistic in statistics:
        tests = [test for test in result.sentinel_tests if test.statistic == statistic]
        not_better = [test for test in tests if test.p_holm >= SIGNIFICANT]
        if not_better:
            names = ", ".join(f"{test.metric} ({test.delta:+.3f}, p {p_value(3)(test.p_holm)})" for test in not_better)
            best = f"{not_better[0].sentinel}, the best sentinel"
            yield f"{_STATISTICS[statistic]}: not significantly better than {best}: {names}"
        elif tests:
            yield f"{_STATISTICS[statistic]}: every metric is significantly better than every sentinel"


def _tests(result: LanguagePairResult, test: str, statistics: Iterable[str]) -> Iterator[str]:
    """Yield a matrix of p-values for each test that was made of these statistics."""
    num_systems = next((metric.system.n for metric in result.metrics if metric.system), 0)
    for statistic in statistics:
        of_systems = statistic == "system_pearson"
        differences = {(pair.first, pair.second): _difference(pair, statistic) for pair in result.pairs}
        if not any(differences.values()):
            continue
        smallest = 0.0 if of_systems and num_systems <= MAX_EXACT else result.smallest_p * len(result.pairs)
        p = {pair: _bounded_p(of_pair.p_holm, smallest) for pair, of_pair in differences.items() if of_pair}
        way = f"exchanging {'systems' if of_systems else result.units}"
        if test == "boot-both":
            way = f"drawing systems and {result.units}"
        level = "Whole systems, Pearson" if of_systems else f"Segments, {_STATISTICS[statistic]}"
        yield f"{level}: p by {way}, two-sided, after Holm\n{_matrix(result, p)}"


def _difference(pair: MetricPair, statistic: str) -> Difference | None:
    return {"pearson": pair.segment, "system_pearson": pair.system, **pair.tests}.get(statistic)


def _matrix(result: LanguagePairResult, cells: Mapping[tuple[str, str], str]) -> str:
    """Write a cell for every two annotators or metrics."""
    names = [metric.name for metric in (*result.humans, *result.metrics)]
    rows: list[dict[str, Any]] = [
        {"number": row, "metric": name}
        | {str(at): cells.get((name, second), MISSING) for at, second in enumerate(names[row:], start=row + 1)}
        for row, name in enumerate(names, start=1)
    ]
    columns: list[Column] = [("", "number", plain), *_columns("metric")]
    columns += [(str(at), str(at), plain) for at in range(2, len(names) + 1)]
    return Table(columns, rows).text()


def _bounded_p(p: float, smallest: float) -> str:
    """Write a p-value, the smallest that the permutations can give as a bound."""
    text = p_value(3)(max(p, min(smallest, 1.0)))
    return text if p > smallest or text.startswith("<") else f"<={text}"


def _groups(result: LanguagePairResult) -> Iterator[str]:
    """Yield which means leave out groups, and where a metric counts as 0."""
    left_out: dict[str, None] = {}
    constant: list[str] = []
    for metric in result.metrics:
        for name, mean in metric.segment.measures.items() if metric.segment else ():
            if mean.groups and mean.left_out:
                share = f"{mean.left_out:,} of {mean.groups + mean.left_out:,}"
                left_out[f"{name} leaves out {share}: their human scores are constant"] = None
            if mean.zeros:
                constant.append(f"{name} of {metric.name} is 0 in {mean.zeros:,} of {mean.groups:,}: constant scores")
    yield from (*left_out, *constant)


def _missing(result: LanguagePairResult, *, shown_only: bool = False) -> list[str]:
    """Return why values are missing, each reason once; of all measures, or of those in the first table."""
    missing: dict[tuple[str, str], list[tuple[str, str]]] = {}  # the measures and metrics by level and reason
    for metric in result.metrics:
        for key, level, agreement in (
            ("system", "whole systems", metric.system),
            ("segment", "segments", metric.segment),
        ):
            for name, measure in agreement.measures.items() if agreement else ():
                if measure.value is None and ((key, name) in _SHOWN or not shown_only):
                    missing.setdefault((level, measure.reason), []).append((name, metric.name))
    lists = {
        place: [", ".join(dict.fromkeys(names)) for names in zip(*of, strict=True)] for place, of in missing.items()
    }
    return [f"No {measures} of {level} ({metrics}): {reason}" for (level, reason), (measures, metrics) in lists.items()]
