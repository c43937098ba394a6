"""What an evaluation of metrics found."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from bertscore_onnx import __version__
from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.correlation import Measure, TieCalibratedAccuracy
from bertscore_onnx.evaluation.metric_tests import Williams
from bertscore_onnx.evaluation.tables import tabulated


@dataclass(frozen=True, slots=True)
class Ties:
    """Pairs of systems with equal scores."""

    pairs: int
    """All pairs that people judged; within each segment, where the scores are those of segments."""
    human: int
    """Those that people tie."""
    metric: int
    """Those that the metric ties."""


@dataclass(frozen=True, slots=True)
class SystemAgreement:
    """How a metric's scores of whole systems agree with people's; no measure has its sign removed."""

    n: int
    """Judged systems."""
    pearson: Measure
    pearson_without_outliers: Measure
    """The same without the systems that people score far from the others."""
    outliers: tuple[str, ...]
    """These systems."""
    accuracy: Measure
    """Pairwise accuracy."""
    spa: Measure
    """Soft pairwise accuracy, from the scores of segments."""
    ties: Ties
    rank: int | None
    """From 1, by Pearson's r; the same where no difference is significant. None where there is no r."""

    @property
    def measures(self) -> dict[str, Measure | TieCalibratedAccuracy]:
        """What may have no value, by its name in JSON."""
        return {
            "pearson": self.pearson,
            "pearson_without_outliers": self.pearson_without_outliers,
            "accuracy": self.accuracy,
            "spa": self.spa,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it; what is missing is None, with its reason."""
        return {
            "n": self.n,
            **_values(self.measures),
            "outliers": list(self.outliers),
            "ties": asdict(self.ties),
            "rank": self.rank,
            "reasons": _left_out_reasons(self.measures),
        }


@dataclass(frozen=True, slots=True)
class SegmentAgreement:
    """How a metric's scores of segments agree with people's; no measure has its sign removed."""

    n: int
    """Judged outputs."""
    pearson: Measure
    """Over all of them."""
    pearson_by_item: Measure
    """Within each segment, and then the mean."""
    pearson_by_system: Measure
    """Within each system, and then the mean."""
    kendall_b: Measure
    kendall_c: Measure
    acc_eq: TieCalibratedAccuracy
    ties: Ties
    rank: int | None
    """As `SystemAgreement` has it, by `pearson`."""

    @property
    def measures(self) -> dict[str, Measure | TieCalibratedAccuracy]:
        """What may have no value, by its name in JSON."""
        return {
            "pearson": self.pearson,
            "pearson_by_item": self.pearson_by_item,
            "pearson_by_system": self.pearson_by_system,
            "kendall": self.kendall_b,
            "kendall_c": self.kendall_c,
            "acc_eq": self.acc_eq,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it; what is missing is None, with its reason."""
        return {
            "n": self.n,
            **_values(self.measures),
            "epsilon": self.acc_eq.epsilon,
            "ties": asdict(self.ties),
            "rank": self.rank,
            "reasons": _left_out_reasons(self.measures),
        }


@dataclass(frozen=True, slots=True)
class MetricAgreement:
    """One metric in one language pair."""

    name: str
    base_name: str
    """Its name in all language pairs."""
    signature: str
    """How its scores were made; empty where that is not known."""
    system: SystemAgreement | None
    """None where the metric has no scores of systems."""
    segment: SegmentAgreement | None
    """None where the metric has no scores of segments, or people judged none."""
    rank: int | None
    """Its rank at the level of segments where any metric has one there, else at that of systems; None without one."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "signature": self.signature,
            "system": self.system.to_dict() if self.system else None,
            "segment": self.segment.to_dict() if self.segment else None,
            "rank": self.rank,
        }


@dataclass(frozen=True, slots=True)
class Difference:
    """How much better the first of two metrics correlates with people at one level."""

    delta: float
    """Pearson's r of the first less that of the second."""
    p: float
    """PERM-BOTH, one-sided: that the first is better by as much if the two were alike."""
    p_reverse: float
    """The same for the second."""
    williams: Williams | None
    """Williams' test, for whole systems."""


@dataclass(frozen=True, slots=True)
class MetricPair:
    """Two metrics in one language pair."""

    first: str
    second: str
    system: Difference | None
    """None where one of them does not correlate."""
    segment: Difference | None


@dataclass(frozen=True, slots=True)
class LanguagePairResult:
    """All metrics in one language pair."""

    language_pair: str
    gold: str
    reference: str
    """As `JudgedSystems` has both."""
    systems: tuple[str, ...]
    """Those that people judged."""
    segments: int
    """Those of which people judged an output; 0 where they judged whole systems alone."""
    metrics: tuple[MetricAgreement, ...]
    """The best first."""
    pairs: tuple[MetricPair, ...]
    """Every two of them, in that order."""
    notes: tuple[str, ...]
    """What a reader should know of the data."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "gold": self.gold,
            "reference": self.reference,
            "systems": list(self.systems),
            "segments": self.segments,
            "metrics": {metric.name: metric.to_dict() for metric in self.metrics},
            "pairs": [asdict(pair) for pair in self.pairs],
            "notes": list(self.notes),
        }


@dataclass(frozen=True, slots=True)
class MetricMean:
    """One metric over the language pairs that it has scores in."""

    name: str
    language_pairs: int
    system_pearson: Measure
    """The mean over language pairs; likewise what follows."""
    spa: Measure
    segment_pearson: Measure
    kendall_b: Measure
    acc_eq: Measure
    accuracy: Measure
    """Pairwise accuracy, pooled: over all pairs of systems of all language pairs."""

    @property
    def measures(self) -> dict[str, Measure]:
        """What may have no value, by its name in JSON."""
        return {
            "accuracy": self.accuracy,
            "system_pearson": self.system_pearson,
            "spa": self.spa,
            "segment_pearson": self.segment_pearson,
            "kendall": self.kendall_b,
            "acc_eq": self.acc_eq,
        }

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it; what is missing is None, with its reason."""
        return {
            "language_pairs": self.language_pairs,
            **_values(self.measures),
            "reasons": _left_out_reasons(self.measures),
        }


@dataclass(frozen=True, slots=True)
class MetaEvaluation:
    """What `meta_evaluate` found."""

    language_pairs: tuple[LanguagePairResult, ...]
    means: tuple[MetricMean, ...]
    """Over language pairs; the highest accuracy first."""
    permutations: int
    seed: int

    @property
    def signature(self) -> str:
        """How metrics were judged, to be quoted beside the values."""
        return f"bertscore-onnx|permutations:{self.permutations}|seed:{self.seed}|version:{__version__}"

    def table(self, table_format: "TableFormat" = "text") -> str:
        """Write a table, as `evaluation_table` says."""
        return evaluation_table(self, table_format)

    def to_json(self) -> str:
        """Write one JSON object; what is missing is null, with its reason."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False)

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "signature": self.signature,
            "permutations": self.permutations,
            "seed": self.seed,
            "language_pairs": {one.language_pair: one.to_dict() for one in self.language_pairs},
            "mean": {"metrics": {one.name: one.to_dict() for one in self.means}},
        }


def _values(measures: Mapping[str, Measure | TieCalibratedAccuracy]) -> dict[str, float | None]:
    return {name: measure.value for name, measure in measures.items()}


def _left_out_reasons(measures: Mapping[str, Measure | TieCalibratedAccuracy]) -> dict[str, str]:
    return {name: measure.reason for name, measure in measures.items() if measure.value is None}


# An evaluation of metrics as tables to read, or as TSV.


TableFormat = Literal["text", "tsv"]

MISSING = "-"
"""Stands for a value that is missing, whose reason is told below the tables."""

HELP = """\
Metrics have ranks by Pearson's r, and share one where no difference is
significant (PERM-BOTH, p < .05). A negative r orders outputs the wrong way
round. Ties are pairs that a metric scores alike; for acc*_eq, alike up to
epsilon. A missing value, -, has its reason below the tables."""


def evaluation_table(result: MetaEvaluation, table_format: TableFormat = "text") -> str:
    """Write an evaluation as a table, without a line end after its last line.

    Args:
        result: what `meta_evaluate` found.
        table_format: "text" has tables for each language pair, the best metric first, then the means; "tsv" a row for
            each language pair and metric, with all digits and without the tests of pairs.

    Raises:
        InputError: there is no such format.
        MissingExtraError: tabulate is not installed.
    """
    match table_format:
        case "text":
            blocks = [block for one in result.language_pairs for block in _language_pair(one)]
            return "\n\n".join([*blocks, *_means(result), HELP, *_signatures(result)])
        case "tsv":
            return "\n".join("\t".join(row) for row in _tsv(result))
        case _:
            raise InputError(f"There is no format {table_format!r}. Choose one of {', '.join(get_args(TableFormat))}.")


def _language_pair(result: LanguagePairResult) -> Iterator[str]:
    judged = _plural(result.segments, "segment") if result.segments else "judged as a whole"
    of = "".join(f", {kind} {name}" for kind, name in (("gold", result.gold), ("reference", result.reference)) if name)
    yield f"{result.language_pair}{of}: {_plural(len(result.systems), 'system')}, {judged}"
    systems = {metric.name: metric.system for metric in result.metrics if metric.system}
    segments = {metric.name: metric.segment for metric in result.metrics if metric.segment}
    if any(one.pearson.value is not None or one.accuracy.value is not None for one in systems.values()):
        yield _systems(systems)
    if segments:
        yield _segments(segments)
    if any(one.acc_eq.value is not None for one in segments.values()):
        yield _segment_pairs(segments)
    yield from _tests(result)
    if lines := [*_outliers(result), *_reasons(result), *result.notes]:
        yield "\n".join(lines)


def _systems(metrics: dict[str, SystemAgreement]) -> str:
    first = next(iter(metrics.values()))
    rows = [
        [
            name,
            _count(one.rank),
            _signed(one.pearson.value),
            _signed(one.pearson_without_outliers.value),
            _share(one.accuracy.value),
            _share(one.spa.value),
            _count(one.ties.metric),
        ]
        for name, one in metrics.items()
    ]
    title = f"Whole systems: {first.n}; people tie {first.ties.human:,} of {first.ties.pairs:,} pairs"
    return f"{title}\n" + tabulated(rows, ["metric", "rank", "Pearson", "no outliers", "accuracy", "SPA", "ties"])


def _segments(metrics: dict[str, SegmentAgreement]) -> str:
    first = next(iter(metrics.values()))
    rows = [
        [
            name,
            _count(one.rank),
            *(
                _signed(measure.value)
                for measure in (one.pearson, one.pearson_by_item, one.pearson_by_system, one.kendall_b, one.kendall_c)
            ),
        ]
        for name, one in metrics.items()
    ]
    header = ["metric", "rank", "Pearson", "by item", "by system", "tau_b", "tau_c"]
    return f"Segments: {first.n:,} judged outputs\n" + tabulated(rows, header)


def _segment_pairs(metrics: dict[str, SegmentAgreement]) -> str:
    first = next(iter(metrics.values()))
    rows = [
        [
            name,
            _share(one.acc_eq.value),
            MISSING if one.acc_eq.epsilon is None else f"{one.acc_eq.epsilon:.4g}",
            _count(one.ties.metric),
        ]
        for name, one in metrics.items()
    ]
    title = f"Pairs of outputs of a segment: people tie {first.ties.human:,} of {first.ties.pairs:,}"
    return f"{title}\n" + tabulated(rows, ["metric", "acc*_eq", "epsilon", "ties"])


def _tests(result: LanguagePairResult) -> Iterator[str]:
    """Yield a matrix of p-values for each test that was made."""
    tests: list[tuple[str, Callable[[Difference], float | None], Literal["system", "segment"]]] = [
        ("PERM-BOTH, segments", lambda one: one.p, "segment"),
        ("PERM-BOTH, whole systems", lambda one: one.p, "system"),
        ("Williams, whole systems", lambda one: one.williams.p if one.williams else None, "system"),
    ]
    for title, p_of, level in tests:
        p = {
            (pair.first, pair.second): p_of(difference)
            for pair in result.pairs
            if (difference := getattr(pair, level)) is not None
        }
        if any(value is not None for value in p.values()):
            yield f"{title}: p that a metric is better than one further down\n" + _matrix(result.metrics, p)


def _matrix(metrics: Sequence[MetricAgreement], p: dict[tuple[str, str], float | None]) -> str:
    names = [metric.name for metric in metrics]
    numbers = [str(number) for number in range(1, len(names) + 1)]
    rows = [
        [
            numbers[row],
            name,
            *["" for _ in names[1 : row + 1]],
            *(_p(p.get((name, other))) for other in names[row + 1 :]),
        ]
        for row, name in enumerate(names)
    ]
    return tabulated(rows, ["", "metric", *numbers[1:]], names=(1,))


def _outliers(result: LanguagePairResult) -> list[str]:
    found = next((metric.system.outliers for metric in result.metrics if metric.system), ())
    return [f"Outliers among the systems: {', '.join(found)}"] if found else []


def _reasons(result: LanguagePairResult) -> list[str]:
    """Say why values are missing, each reason once."""
    missing: dict[tuple[str, str], dict[str, dict[str, None]]] = {}  # by level and reason: measures and metrics
    for metric in result.metrics:
        for level, one in (("whole systems", metric.system), ("segments", metric.segment)):
            for name, measure in one.measures.items() if one else ():
                if measure.value is None:
                    found = missing.setdefault((level, measure.reason), {"measures": {}, "metrics": {}})
                    found["measures"][name] = found["metrics"][metric.name] = None
    for pair in result.pairs:
        if pair.system and pair.system.williams and pair.system.williams.p is None:
            found = missing.setdefault(("whole systems", pair.system.williams.reason), {"measures": {}, "metrics": {}})
            found["measures"]["Williams"] = found["metrics"][f"{pair.first} and {pair.second}"] = None
    return [
        f"No {', '.join(found['measures'])} of {level} ({', '.join(found['metrics'])}): {reason}"
        for (level, reason), found in missing.items()
    ]


def _means(result: MetaEvaluation) -> Iterator[str]:
    if len(result.language_pairs) > 1:
        rows = [
            [
                one.name,
                str(one.language_pairs),
                _share(one.accuracy.value),
                _signed(one.system_pearson.value),
                _share(one.spa.value),
                _signed(one.segment_pearson.value),
                _signed(one.kendall_b.value),
                _share(one.acc_eq.value),
            ]
            for one in result.means
        ]
        header = ["metric", "pairs", "accuracy", "Pearson\nsystems", "SPA", "Pearson\nsegments", "tau_b", "acc*_eq"]
        yield "Means over language pairs, and accuracy over all pairs of systems\n" + tabulated(rows, header)


def _signatures(result: MetaEvaluation) -> list[str]:
    own = {metric.name: metric.signature for one in result.language_pairs for metric in one.metrics if metric.signature}
    return ["\n".join([result.signature, *(f"{name}: {signature}" for name, signature in own.items())])]


def _tsv(result: MetaEvaluation) -> Iterator[list[str]]:
    """Yield the header and then a row for each language pair and metric, by the names that JSON has."""
    rows = [
        {"lang_pair": one.language_pair, "metric": metric.name, "rank": metric.rank, **_flat(metric)}
        for one in result.language_pairs
        for metric in one.metrics
    ]
    header = list(dict.fromkeys(name for row in rows for name in row))
    yield header
    for row in rows:
        yield ["" if row.get(name) is None else str(row[name]) for name in header]


def _flat(metric: MetricAgreement) -> dict[str, object]:
    flat: dict[str, object] = {}
    for level, one in (("system", metric.system), ("segment", metric.segment)):
        for name, value in one.to_dict().items() if one else ():
            if name == "reasons":
                flat[f"{level}_reasons"] = "; ".join(f"{of}: {reason}" for of, reason in value.items())
            elif name == "outliers":
                flat[f"{level}_outliers"] = " ".join(value)
            elif name == "ties":
                flat |= {f"{level}_{kind}": count for kind, count in _tie_columns(value).items()}
            else:
                flat[f"{level}_{name}"] = value
    return flat


def _tie_columns(ties: dict[str, int]) -> dict[str, int]:
    return {"pairs": ties["pairs"], "human_ties": ties["human"], "metric_ties": ties["metric"]}


def _plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def _signed(value: float | None) -> str:
    return MISSING if value is None else f"{value:+.3f}"


def _share(value: float | None) -> str:
    return MISSING if value is None else f"{value:.3f}"


def _count(value: int | None) -> str:
    return MISSING if value is None else f"{value:,}"


def _p(value: float | None) -> str:
    if value is None:
        return MISSING
    return "<.001" if value < 0.0005 else f"{value:.3f}".removeprefix("0")
