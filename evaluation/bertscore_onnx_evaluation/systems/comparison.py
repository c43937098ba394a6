"""The result of comparing systems, as records, tables and JSON."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from bertscore_onnx.errors import Argument, InputError, OptionalStep, needs_package, plural
from bertscore_onnx_evaluation.results import Result
from bertscore_onnx_evaluation.standing import matrix
from bertscore_onnx_evaluation.systems.comparison_record import ComparisonRecord, Example
from bertscore_onnx_evaluation.systems.paired_tests import SIGNIFICANT
from bertscore_onnx_evaluation.systems.verdicts import (
    GroupResult,
    MetricResult,
    Outcome,
    SystemResult,
    equals,
    fixed,
    headline,
    in_runs,
    interval,
    interval_of_score,
    is_significant,
    outcome,
    outcome_in_runs,
    p_value,
    pair_outcomes,
    rank,
    signed,
    untested_groups,
    verdict,
    within_margin,
)
from bertscore_onnx_evaluation.table import (
    MISSING,
    Column,
    Format,
    Table,
    TableFormat,
    count,
    latex_value,
    listed,
    plain,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


@dataclass(frozen=True, slots=True, eq=False)
class Comparison(ComparisonRecord, Result):
    """The result of `compare`.

    As text there are verdicts and a table, the best system first, with `*` at a p below 0.05, with
    several tests after Holm's correction; as TSV a row for each metric and system; as LaTeX a row
    for each system, and `*` too.

    In JSON a value that the baseline lacks is null, and `segments` are those that differ most under
    the first metric, with their ids.
    """

    _FORMATS: ClassVar[tuple[TableFormat, ...]] = ("text", "tsv", "latex", "markdown")

    def __repr__(self) -> str:
        metrics = tuple(metric.name for metric in self.metrics)
        material = f"metrics={metrics}, segments={self.num_segments}"
        return f"Comparison(systems={self.systems}, {material})"

    @property
    def regressions(self) -> list[str]:
        """The systems that are significantly worse, in sentences.

        They are worse than the baseline under some metric or in some group. With a margin they are
        the systems that may be worse by the margin or more, in all segments or in a group.

        Raises:
            InputError: that cannot be judged. Nobody named the baseline, or the direction of a
                metric; a system lacks segments that were left out; a group is too small for a test;
                or no p can be significant.
        """
        self._check_compared("A gate")
        self._check_named()
        for name in self.systems[1:]:
            self._check_scores(name)

        sentences: list[str] = []
        for metric in self.metrics:
            sentences.extend(self._regressions(metric))
        if not sentences:
            for metric in self.metrics:
                self._check_can_fail(metric)
        return sentences

    def _check_compared(self, output: str) -> None:
        if not self._is_compared:
            baseline = self.systems[0]
            alone = f"{baseline} is the only system"
            raise InputError(f"{output} is about differences, and {alone}. Add another.")

    def _check_named(self) -> None:
        """Raise InputError unless the baseline and directions are named."""
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

    def _check_scores(self, name: str) -> None:
        """Raise InputError if scores that judge a system are missing."""
        row = self.systems.index(name)
        num_missing = self.lacking.get(name, 0)
        for metric in self.metrics:
            num_missing = num_missing or metric.systems[row].missing_runs
        if num_missing:
            raise InputError(
                f"{name} lacks {plural(num_missing, 'score')}, which cannot be left out where it "
                "is judged. Add them, the worst ones where it failed; or compare the rest without ",
                OptionalStep("a gate", "--fail-if-worse"),
                ".",
            )

    def _check_can_fail(self, metric: MetricResult) -> None:
        """Raise InputError if no result under a metric could be a regression."""
        if metric.margin is not None:
            return
        finds_nothing = self._finds_nothing(metric)
        if finds_nothing:
            raise InputError(f"The gate cannot fail. {finds_nothing}")
        small = untested_groups(metric)
        if small:
            expected = "expected larger groups, or none"
            raise InputError(f"{small} So the gate cannot judge these; {expected}.")

    def _regressions(self, metric: MetricResult) -> Iterator[str]:
        baseline = self.systems[0]
        for system in metric.systems[1:]:
            judged = verdict(metric, system, baseline)
            if judged and _is_worse(metric, system):
                yield f"{metric.title}: {system.name} {judged.sentence}"
        for group in metric.groups:
            for system in group.systems[1:]:
                if not _is_worse(metric, system):
                    continue
                name = f"{metric.title}, {group.name}: {system.name}"
                if metric.margin is not None:
                    yield f"{name}: {within_margin(metric, system, baseline, group)}"
                    continue
                delta = signed(system.delta or 0, metric)
                p = f"p {equals(system.p_holm or 0)} with Holm's correction"
                where = in_runs(metric)
                yield f"{name} is worse than {baseline}{where}: {delta}, {p}."

    def to_dict(self) -> dict[str, Any]:
        """Return what `to_json` writes."""
        signatures = {metric.name: metric.signature for metric in self.metrics}
        systems = [self._system(row) for row in range(len(self.systems))]
        headlines = {metric.name: headline(metric) for metric in self.metrics}
        record: dict[str, Any] = {
            "signature": self.signature,
            "signatures": signatures,
            "resamples": self.num_resamples,
            "seed": self.seed,
            "num_segments": self.num_segments,
            "num_documents": self.num_documents,
            "num_references": self.num_references,
            "dropped": list(self.dropped),
            "columns": list(map(asdict, self.choices)),
            "inputs": self.inputs,
            "warnings": self.warnings,
            "notes": self.notes,
            "legend": self.legend,
            "methods": self.methods,
            "headlines": headlines,
            "systems": systems,
            "segments": list(map(self._segment, self.examples)),
        }

        # Without groups or pairs the keys are absent, not empty.
        if any(metric.groups for metric in self.metrics):
            record["groups"] = {metric.name: _groups(metric) for metric in self.metrics}
        if any(metric.pairs for metric in self.metrics):
            record["pairs"] = {metric.name: _pairs(metric) for metric in self.metrics}
        return record

    def _system(self, row: int) -> dict[str, Any]:
        metrics = {metric.name: self._with_verdict(metric, row) for metric in self.metrics}
        return {"name": self.systems[row], "metrics": metrics}

    def _with_verdict(self, metric: MetricResult, row: int) -> dict[str, Any]:
        system = metric.systems[row]
        values = _values(system)
        judged = verdict(metric, system, self.systems[0])
        if judged is None:
            return values | {"significant": None, "verdict": None}
        sentence = f"{system.name} {judged.sentence}"
        return values | {"significant": is_significant(judged.name), "verdict": sentence}

    def _segment(self, example: Example) -> dict[str, Any]:
        segment = example.segment
        scores: dict[str, float] = {}
        candidates: dict[str, str] = {}
        for name in (self.systems[0], example.system):
            row = self.systems.index(name)
            scores[name] = float(self.metrics[0].segment_scores[row, segment])
            candidates[name] = self.candidates[row][segment]
        return {
            "segment": self.segments[segment],
            "metric": self.metrics[0].name,
            "system": example.system,
            "delta": example.delta,
            "scores": scores,
            "candidates": candidates,
            "references": self.references[segment],
        }

    def to_pandas(self) -> "DataFrame":
        """Return a data frame with a row for each metric, group and system.

        Its columns are those of TSV: `score`, `delta`, `delta_low`, `delta_high`, `delta_error`
        (the standard error of the difference), `p`, `p_holm` and others.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        remedy = "Install it with `pip install pandas`, or use `comparison.to_dict()`."
        with needs_package("pandas", f"pandas is not installed. {remedy}"):
            from pandas import DataFrame
        return DataFrame(list(self._rows()))

    def to_html(self) -> str:
        """Return a page about it that needs no network.

        Its only script copies a text to quote or a command to run. The same result gives the same
        bytes.

        Raises:
            MissingExtraError: Jinja is not installed.
        """
        from bertscore_onnx_evaluation.report.comparison_page import report_html

        self._check_compared("A report")
        return report_html(self)

    def figure(self) -> "Figure":
        """Return a matplotlib figure of the differences from the baseline.

        They have their intervals, and each metric has a panel.

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
        dropped = {"dropped": len(self.dropped)} if self.dropped else {}
        for metric in self.metrics:
            num_units, unit = metric.units
            said = {
                "num_segments": self.num_segments,
                "num_units": num_units,
                "units": f"{unit}s",
                "level": 1 - SIGNIFICANT,
                "notes": notes,
                "signature": metric.signature,
            }
            for system in metric.systems:
                name = {"metric": metric.name, "system": system.name}
                yield {**name, **_values(system), **said, **dropped}
            for pair in metric.pairs:
                if pair.baseline == self.systems[0]:
                    continue  # the row of the system has these values
                values = asdict(pair)
                name = {"metric": metric.name, "system": values.pop("system")}
                yield {**name, "against": values.pop("baseline"), **values, **said}
            for group in metric.parts:
                sizes = {
                    "group": group.name,
                    "num_segments": group.num_segments,
                    "num_units": group.num_units,
                }
                for system in group.systems:
                    values = _of_group(system)
                    name = {"metric": metric.name, "system": values.pop("name")}
                    yield {**name, **sizes, **values, **said, **sizes}

    def _blocks(self, write: Callable[[Table], str]) -> Iterator[str]:
        yield "\n".join(self._headlines)
        yield write(_systems(self.metrics))
        for metric in self.metrics:
            if _has_matrix(metric):
                yield f"{write(_matrix(metric))}\n{_MATRIX_KEY}"
        warnings = [f"Warning: {warning}" for warning in self.warnings]
        if self.notes or warnings:
            yield "\n".join([*self.notes, *warnings])
        signatures = [metric.signature for metric in self.metrics]
        yield "\n".join([self.legend, *signatures])

    def _latex(self) -> Iterator[str]:
        signatures = [f"signature of {metric.title}: {metric.signature}" for metric in self.metrics]
        comments = [*self.inputs, *signatures]
        table = _systems(self.metrics, is_latex=True)
        yield table.latex(self._caption(), "tab:systems", comments)
        for number, metric in enumerate(self.metrics, 1):
            if not _has_matrix(metric):
                continue
            systems = f"{metric.title}: systems in rows against systems in columns"
            caption = f"{systems}; {_MATRIX_KEY} {self._significant}"
            label = f"tab:pairs-{number}" if len(self.metrics) > 1 else "tab:pairs"
            yield _matrix(metric, latex_value).latex(caption, label)

    def _caption(self) -> str:
        """Return what stands under the table of systems in LaTeX."""
        titles = listed([metric.title_with_model for metric in self.metrics])
        sentences = [f"{titles} of {plural(len(self.systems), 'system')}."]
        if any(metric.lower_is_better for metric in self.metrics):
            sentences.append("↓: lower is better.")
        if self._is_compared:
            sentences.append(f"Δ: difference from {self.systems[0]}.")
        if self.metrics[0].pairs:
            sentences.append("Rank: the places that the tests of all pairs leave open.")
        sentences += [*self._headlines, self.legend, *self.notes, *self.warnings]
        return " ".join(sentences)


def _is_worse(metric: MetricResult, system: SystemResult) -> bool:
    """Return whether a system is worse, or may be by the margin or more.

    These runs alone decide where it is not known how systems trained again differ.
    """
    if metric.margin is not None:
        return not system.not_worse
    if system.runs_low is None:
        return outcome_in_runs(metric, system) == "worse"
    return outcome(metric, system) == "worse"


def _has_matrix(metric: MetricResult) -> bool:
    """Return whether the outcomes of pairs say more than the table."""
    return bool(metric.pairs) and len(metric.systems) > 2


def _pairs(metric: MetricResult) -> list[dict[str, Any]]:
    """Return the values of all pairs."""
    return list(map(asdict, metric.pairs))


def _groups(metric: MetricResult) -> list[dict[str, Any]]:
    """Return the values of all systems in each group, and in their mean."""
    groups = []
    for group in metric.parts:
        systems = list(map(_of_group, group.systems))
        groups.append(asdict(group) | {"systems": systems})
    return groups


def _values(system: SystemResult) -> dict[str, Any]:
    """Return the values of a system by name."""
    values = asdict(system)
    del values["name"]
    return values


GROUP_VALUES = (
    *("name", "score", "score_low", "score_high"),
    *("delta", "delta_low", "delta_high", "p", "p_holm", "test"),
    *("runs_low", "runs_high"),
    *("not_worse", "equivalent", "largest_loss", "largest_gain"),
)
"""The fields of a system that it has in a group."""


def _of_group(system: SystemResult) -> dict[str, Any]:
    """Return the values that a system has in a group, by name."""
    values = asdict(system)
    return {name: values[name] for name in GROUP_VALUES}


# The tables of text and of LaTeX.


_OPTIONAL = ("differing", "counts", "delta_interval p", "rank")
"""The columns that a narrow terminal does not show, the least important first. An interval is not
corrected, so it goes with the p that is not."""

_MATRIX_KEY = "> better, < worse, . not significant, = same score; by p (Holm)."
_MARKS: dict[Outcome, str] = {"better": ">", "worse": "<", "unclear": ".", "same": "="}


def _systems(metrics: Sequence[MetricResult], *, is_latex: bool = False) -> Table:
    """Return the systems under each metric and in each group, the best first.

    The order is that in all segments.
    """
    first = metrics[0]
    has_groups = any(metric.groups for metric in metrics)
    is_corrected = has_groups or first.is_corrected
    are_several = len(metrics) > 1
    rows = []
    for metric in metrics:
        title = _title(metric, is_latex=is_latex) if are_several else ""
        num_segments = metric.segment_scores.shape[1]
        whole = GroupResult("", num_segments, metric.units[0], metric.systems)
        for group in (whole, *metric.parts):
            headings = [", ".join(filter(None, [title, group.name]))]
            if has_groups:
                headings.append(plural(group.num_segments, "segment"))
            if has_groups or are_several:
                rows.append({"system": ": ".join(filter(None, headings))})
            for place in metric.ranked:
                rows.append(_cells(metric, group.systems[place], is_corrected=is_corrected))

    heading = "system" if are_several else _title(first, is_latex=is_latex)
    columns = _columns(first, heading, is_corrected=is_corrected, is_latex=is_latex)
    if is_latex or len(first.systems) == 1:
        return Table(columns, rows)
    columns.append(("won/lost/tied", "counts", plain))
    differ = "documents\nthat differ" if first.units[1] == "document" else "differ"
    columns.append((differ, "differing", plain))
    optional = [keys for keys in _OPTIONAL if is_corrected or "p" not in keys.split()]
    return Table(columns, rows, optional)


def _title(metric: MetricResult, *, is_latex: bool) -> str:
    """Return the title of a metric, with a sign if lower is better."""
    if not metric.lower_is_better:
        return metric.title
    return f"{metric.title} ↓" if is_latex else f"{metric.title} (lower is better)"


def _columns(
    metric: MetricResult,
    heading: str,
    *,
    is_corrected: bool,
    is_latex: bool,
) -> list[Column]:
    """Return the columns of text and LaTeX; the first has this heading."""
    write = latex_value if is_latex else plain
    columns: list[Column] = [(heading, "system", str)]
    if metric.pairs:
        columns.append(("rank", "rank", write))
    columns.append(("score", "score", write))
    if len(metric.systems) == 1:
        columns.append(("95 % interval", "delta_interval", write))
        return columns
    columns.append(("Δ" if is_latex else "delta", "delta", write))
    columns.append(("95 % interval" if is_latex else "95 % of delta", "delta_interval", write))
    columns.append(("p", "p", write))
    if is_corrected:
        columns.append(("p (Holm)", "p_holm", write))
    return columns


def _cells(metric: MetricResult, system: SystemResult, *, is_corrected: bool) -> dict[str, str]:
    """Return the cells of a system; without a test the difference alone."""
    cells = {"system": system.name, "score": fixed(system.score, metric.digits)}
    if system.rank_low is not None:
        cells["rank"] = rank(system)
    if system.delta is None:
        if len(metric.systems) == 1:
            cells["delta_interval"] = interval_of_score(metric, system) or MISSING
        else:
            cells["delta"] = "baseline"
        return cells
    cells["delta"] = signed(system.delta, metric)
    if system.p is None or system.p_holm is None:
        return cells
    if system.won is not None:
        cells["counts"] = f"{system.won}/{system.lost}/{system.tied}"
        cells["differing"] = count(system.differing)
    cells["delta_interval"] = interval(metric, system.delta_low, system.delta_high) or MISSING

    # The star stands by the p that decides; a blank keeps the digits of a column aligned.
    mark = "*" if is_significant(outcome(metric, system)) else " "
    decisive = f"{p_value(system.p_holm)}{mark}"
    if is_corrected:
        cells["p"] = f"{p_value(system.p)} "
        cells["p_holm"] = decisive
    else:
        cells["p"] = decisive
    return cells


def _matrix(metric: MetricResult, write: Format = plain) -> Table:
    """Return the outcomes of systems in rows against rivals in columns, the best first."""
    outcomes = pair_outcomes(metric)
    names = [metric.systems[row].name for row in metric.ranked]

    def cell(first: int, second: int) -> str:
        if first == second:
            return ""
        return _MARKS[outcomes[metric.ranked[first], metric.ranked[second]]]

    return matrix(f"{metric.title} against", names, cell, write)
