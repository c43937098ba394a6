"""The result of comparing systems, as records, tables and JSON."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from bertscore_onnx.errors import Argument, InputError, OptionalStep, needs_package
from bertscore_onnx.tables.table import (
    MISSING,
    Column,
    Format,
    Table,
    TableFormat,
    count,
    latex_value,
    listed,
    plain,
    plural,
)
from bertscore_onnx_evaluation.results import Result
from bertscore_onnx_evaluation.systems.comparison_record import ComparisonRecord, Example
from bertscore_onnx_evaluation.systems.verdicts import (
    MetricResult,
    Outcome,
    SystemResult,
    equals,
    fixed,
    headline,
    interval,
    interval_of_score,
    is_significant,
    outcome,
    p_value,
    pair_outcomes,
    rank,
    signed,
    untested_groups,
    verdict,
    verdict_of,
    within_margin,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(ComparisonRecord, Result):
    """The result of `compare`.

    As text there are verdicts and a table, the best system first, with `*` at a p below 0.05, with several tests after
    Holm's correction; as TSV a row for each metric and system; as LaTeX a row for each system, and `*` too. In JSON a
    value that the baseline lacks is null, and `segments` are those that differ most under the first metric, with their
    ids.
    """

    _FORMATS: ClassVar[tuple[TableFormat, ...]] = ("text", "tsv", "latex")

    def __repr__(self) -> str:
        metrics = tuple(metric.name for metric in self.metrics)
        return f"Comparison(systems={self.systems}, metrics={metrics}, segments={self.num_segments})"

    @property
    def regressions(self) -> list[str]:
        """The systems that are significantly worse than the baseline under some metric or in some group, in a sentence.

        With a margin they are the systems that may be worse by the margin or more, in all segments or in a group.

        Raises:
            InputError: that cannot be judged. Nobody named the baseline, the direction of a metric, or with a margin
                the worst score; a system lacks segments that were left out; a group is too small for a test; no p can
                be significant; or with a margin, nothing says how large a loss can be.
        """
        self._check_compared("A gate")
        if not self.is_baseline_named:
            names = ", ".join(self.systems)
            raise InputError(
                "Nothing names the baseline that systems are judged against. Add ",
                Argument("baseline", "NAME"),
                f", one of {names}.",
            )
        if self.assumed:
            raise InputError(
                f"Nothing says whether higher scores of {listed(self.assumed)} are better. Add ",
                Argument("higher_is_better", self.assumed, option="--higher-better"),
                " or ",
                Argument("lower_is_better", self.assumed, option="--lower-better"),
                ".",
            )
        for metric in self.metrics:
            if metric.is_worst_assumed:
                raise InputError(
                    f"Nothing says which score of {metric.title} is the worst that there can be, by which a margin is "
                    "judged. Add ",
                    Argument("worst"),
                    ".",
                )
        for name in self.systems[1:]:
            systems = [system for metric in self.metrics for system in metric.systems if system.name == name]
            number = self.lacking.get(name, 0) or max(system.missing_runs for system in systems)
            if number:
                raise InputError(
                    f"{name} lacks {plural(number, 'score')}, which cannot be left out where it is judged. Add them, "
                    "the worst ones where it failed; or compare the rest without ",
                    OptionalStep("a gate", "--fail-if-worse"),
                    ".",
                )
            if any(metric.margin and of.largest_loss is None for metric, of in zip(self.metrics, systems, strict=True)):
                raise InputError(
                    f"All scores of {self.systems[0]} and {name} are the same: nothing says how large a loss can be. "
                    "Judge them without a margin."
                )
        sentences = [sentence for metric in self.metrics for sentence in self._regressions(metric)]
        for metric in self.metrics if not sentences else ():
            small = untested_groups(metric)
            if finds_nothing := metric.margin is None and self._finds_nothing(metric):
                raise InputError(f"The gate cannot fail. {finds_nothing}")
            if small and metric.margin is None:
                raise InputError(f"{small} So the gate cannot judge these; expected larger groups, or none.")
        return sentences

    def _check_compared(self, output: str) -> None:
        if not self._is_compared:
            raise InputError(f"{output} is about differences, and {self.systems[0]} is the only system. Add another.")

    def _regressions(self, metric: MetricResult) -> Iterator[str]:
        for system in metric.systems[1:]:
            judged = verdict(metric, system, self.systems[0])
            if judged and (judged.name == "worse" if metric.margin is None else not system.not_worse):
                yield f"{metric.title}: {system.name} {judged.sentence}"
        for group in metric.groups:
            for system in group.systems[1:]:
                if metric.margin is not None and not system.not_worse:
                    words = within_margin(metric, system, self.systems[0], group)
                    yield f"{metric.title}, {group.name}: {system.name}: {words}"
                elif metric.margin is None and outcome(metric, system) == "worse":
                    size = f"{signed(system.delta or 0, metric)}, p {equals(system.p_holm or 0)} with Holm's correction"
                    yield f"{metric.title}, {group.name}: {system.name} is worse than {self.systems[0]}: {size}."

    def to_dict(self) -> dict[str, Any]:
        """Return what `to_json` writes."""
        metrics = {metric.name: metric for metric in self.metrics}
        record: dict[str, Any] = {
            "signature": self.signature,
            "signatures": {name: metric.signature for name, metric in metrics.items()},
            "resamples": self.num_resamples,
            "seed": self.seed,
            "num_segments": self.num_segments,
            "num_documents": self.num_documents,
            "num_references": self.num_references,
            "dropped": list(self.dropped),
            "columns": [asdict(choice) for choice in self.choices],
            "inputs": self.inputs,
            "warnings": self.warnings,
            "notes": self.notes,
            "legend": self.legend,
            "methods": self.methods,
            "headlines": {name: headline(metric) for name, metric in metrics.items()},
            "systems": [
                {"name": name, "metrics": {key: self._with_verdict(metric, row) for key, metric in metrics.items()}}
                for row, name in enumerate(self.systems)
            ],
            "segments": [self._segment(example) for example in self.examples],
        }
        if any(metric.groups for metric in self.metrics):
            record["groups"] = {
                name: [asdict(group) | {"systems": [*map(_of_group, group.systems)]} for group in metric.parts]
                for name, metric in metrics.items()
            }
        if any(metric.pairs for metric in self.metrics):
            record["pairs"] = {name: [asdict(pair) for pair in metric.pairs] for name, metric in metrics.items()}
        return record

    def _with_verdict(self, metric: MetricResult, row: int) -> dict[str, Any]:
        system = metric.systems[row]
        judged = verdict(metric, system, self.systems[0])
        is_marked = None if judged is None else is_significant(judged.name)
        words = judged and f"{system.name} {judged.sentence}"
        return _values(system) | {"significant": is_marked, "verdict": words}

    def _segment(self, example: Example) -> dict[str, Any]:
        systems = {name: self.systems.index(name) for name in (self.systems[0], example.system)}
        scores = self.metrics[0].segment_scores
        return {
            "segment": self.segments[example.segment],
            "metric": self.metrics[0].name,
            "system": example.system,
            "delta": example.delta,
            "scores": {name: float(scores[row, example.segment]) for name, row in systems.items()},
            "candidates": {name: self.candidates[row][example.segment] for name, row in systems.items()},
            "references": self.references[example.segment],
        }

    def to_pandas(self) -> "DataFrame":
        """Return a data frame with a row for each metric and system, and for each group of segments.

        Its columns are those of TSV: `score`, `delta`, `delta_low`, `delta_high`, `delta_error` (the standard error of
        the difference), `p`, `p_holm` and others.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        message = "pandas is not installed. Install it with `pip install pandas`, or use `comparison.to_dict()`."
        with needs_package("pandas", message):
            from pandas import DataFrame
        return DataFrame([*self._rows()])

    def to_html(self) -> str:
        """Return a page about it that needs no network; its only script copies a text to quote or a command to run.

        The same result gives the same bytes.

        Raises:
            MissingExtraError: Jinja is not installed.
        """
        from bertscore_onnx_evaluation.report.comparison_page import report_html

        self._check_compared("A report")
        return report_html(self)

    def figure(self) -> "Figure":
        """Return a matplotlib figure of the differences from the baseline with their intervals, a panel a metric.

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        from bertscore_onnx_evaluation.report.figures import comparison_figure

        self._check_compared("A figure")
        return comparison_figure(self)

    def _repr_html_(self) -> str:
        """Return the main tables as a notebook shows them."""
        from bertscore_onnx_evaluation.report.comparison_page import notebook_html

        if not self._is_compared:
            return Result._repr_html_(self)
        return notebook_html(self)

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        notes = " ".join([*self.notes, *self.warnings])
        for metric in self.metrics:
            said = {"notes": notes, "signature": metric.signature}
            for system in metric.systems:
                values = _values(system)
                dropped = {"dropped": len(self.dropped)} if self.dropped else {}
                yield {"metric": metric.name, "system": system.name, **values, **said, **dropped}
            for pair in metric.pairs:
                values = asdict(pair)
                if (against := values.pop("baseline")) != self.systems[0]:
                    yield {"metric": metric.name, "system": values.pop("system"), "against": against, **values, **said}
            for group in metric.parts:
                sizes = {"group": group.name, "num_segments": group.num_segments, "num_units": group.num_units}
                for values in map(_of_group, group.systems):
                    yield {"metric": metric.name, "system": values.pop("name"), **sizes, **values, **said}

    def _blocks(self) -> Iterator[str]:
        yield "\n".join(self._headlines)
        yield _systems(self.metrics).text()
        for metric in self.metrics:
            if metric.pairs and len(metric.systems) > 2:
                yield f"{_matrix(metric).text()}\n{_MATRIX_KEY}"
        yield from filter(None, ["\n".join([*self.notes, *map("Warning: {}".format, self.warnings)])])
        yield "\n".join([self.legend, *(metric.signature for metric in self.metrics)])

    def _latex(self) -> Iterator[str]:
        lower = " ↓: lower is better." if any(metric.lower_is_better for metric in self.metrics) else ""
        ranks = " Rank: the places that the tests of all pairs leave open." if self.metrics[0].pairs else ""
        delta = f" Δ: difference from {self.systems[0]}." if self._is_compared else ""
        caption = (
            f"{listed([metric.title for metric in self.metrics])} of {plural(len(self.systems), 'system')}."
            f"{lower}{delta}{ranks} {' '.join([*self._headlines, self.legend, *self.notes, *self.warnings])}"
        )
        signatures = (f"signature of {metric.title}: {metric.signature}" for metric in self.metrics)
        comments = [*self.inputs, *signatures]
        yield _systems(self.metrics, is_latex=True).latex(caption, "tab:systems", comments)
        for number, metric in enumerate(self.metrics, 1):
            if metric.pairs and len(metric.systems) > 2:
                caption = (
                    f"{metric.title}: systems in rows against systems in columns; {_MATRIX_KEY} {self._significant}"
                )
                label = f"tab:pairs-{number}" if len(self.metrics) > 1 else "tab:pairs"
                yield _matrix(metric, latex_value).latex(caption, label)


def _values(system: SystemResult) -> dict[str, Any]:
    """Return the values of a system by name."""
    values = asdict(system)
    del values["name"]
    return values


GROUP_VALUES = (
    *("name", "score", "score_low", "score_high", "delta", "delta_low", "delta_high", "p", "p_holm"),
    *("not_worse", "equivalent", "largest_loss", "largest_gain"),
)
"""The fields of a system that it has in a group."""


def _of_group(system: SystemResult) -> dict[str, Any]:
    """Return the values that a system has in a group, by name."""
    values = asdict(system)
    return {name: values[name] for name in GROUP_VALUES}


# The tables of text and of LaTeX.


_OPTIONAL = ("differing", "counts", "delta_interval p", "rank")
"""The columns that a narrow terminal does not show, the least important first. An interval is not corrected, so it goes
with the p that is not."""

_MATRIX_KEY = "> better, < worse, . not significant, = same score; by p (Holm)."
_MARKS: dict[Outcome, str] = {"better": ">", "worse": "<", "unclear": ".", "same": "="}


def _systems(metrics: Sequence[MetricResult], *, is_latex: bool = False) -> Table:
    """Return the systems under each metric, and in each group of segments, the best of all segments first."""
    one, has_groups = metrics[0], any(metric.groups for metric in metrics)
    has_headings, is_corrected = has_groups or len(metrics) > 1, has_groups or one.is_corrected
    lower = " ↓" if is_latex else " (lower is better)"
    titles = {metric.name: metric.title + lower * metric.lower_is_better for metric in metrics}
    rows = []
    for metric in metrics:
        title = titles[metric.name] if len(metrics) > 1 else ""
        number = metric.segment_scores.shape[1]
        parts = [
            ("", number, metric.systems),
            *((group.name, group.num_segments, group.systems) for group in metric.parts),
        ]
        for group, num_segments, systems in parts:
            names = ", ".join(filter(None, [title, group]))
            size = plural(num_segments, "segment") if has_groups else ""
            rows += [{"system": ": ".join(filter(None, [names, size]))}] * has_headings
            rows += [_cells(metric, systems[place], is_corrected=is_corrected) for place in metric.ranked]
    write = latex_value if is_latex else plain
    delta, ends = ("Δ", "95 % interval") if is_latex else ("delta", "95 % of delta")
    is_compared = len(one.systems) > 1
    columns: list[Column] = [
        ("system" if len(metrics) > 1 else titles[one.name], "system", str),
        *([("rank", "rank", write)] if one.pairs else []),
        ("score", "score", write),
        *([(delta, "delta", write)] if is_compared else []),
        (ends if is_compared else "95 % interval", "delta_interval", write),
    ]
    if not is_compared:
        return Table(columns, rows)
    columns += [("p", "p", write), *([("p (Holm)", "p_holm", write)] if is_corrected else [])]
    if is_latex:
        return Table(columns, rows)
    columns += [("won/lost/tied", "counts", plain)]
    columns += [("documents\nthat differ" if one.units[1] == "document" else "differ", "differing", plain)]
    return Table(columns, rows, [keys for keys in _OPTIONAL if is_corrected or "p" not in keys.split()])


def _cells(metric: MetricResult, system: SystemResult, *, is_corrected: bool) -> dict[str, str]:
    """Return the cells of a system, with the difference alone where there was no test."""
    cells = {"system": system.name, "score": fixed(system.score, metric.digits)}
    if system.rank_low is not None:
        cells["rank"] = rank(system)
    if system.delta is None and len(metric.systems) == 1:
        return {**cells, "delta_interval": interval_of_score(metric, system) or MISSING}
    if system.delta is None:
        return {**cells, "delta": "baseline"}
    cells["delta"] = signed(system.delta, metric)
    if system.p is None or system.p_holm is None:
        return cells
    mark = "*" if is_significant(verdict_of(metric, system.delta, system.p_holm)) else " "
    ends = interval(metric, system.delta_low, system.delta_high) or MISSING
    p, p_holm = f"{p_value(system.p)} ", f"{p_value(system.p_holm)}{mark}"
    if system.won is not None:
        cells["counts"] = f"{system.won}/{system.lost}/{system.tied}"
        cells["differing"] = count(system.differing)
    return {**cells, "delta_interval": ends, **({"p": p, "p_holm": p_holm} if is_corrected else {"p": p_holm})}


def _matrix(metric: MetricResult, write: Format = plain) -> Table:
    """Return the outcome of each system, in rows, against each rival, in columns; both are sorted by their scores."""
    outcomes, ranked = pair_outcomes(metric), metric.ranked
    rows = [
        {"number": str(number), "system": metric.systems[row].name}
        | {str(at): "" if row == rival else _MARKS[outcomes[row, rival]] for at, rival in enumerate(ranked, 1)}
        for number, row in enumerate(ranked, 1)
    ]
    columns: list[Column] = [("", "number", plain), (f"{metric.title} against", "system", str)]
    return Table([*columns, *((str(at), str(at), write) for at in range(1, len(ranked) + 1))], rows)
