"""Tables of metrics by the measures that rank them."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bertscore_onnx_evaluation.metrics.correlation import Measure
from bertscore_onnx_evaluation.metrics.judged_systems import SENTINELS
from bertscore_onnx_evaluation.metrics.ranks import MeasureTests
from bertscore_onnx_evaluation.metrics.sentences import MEASURES, is_unranked, write_p
from bertscore_onnx_evaluation.standing import LEVEL, interval, matrix
from bertscore_onnx_evaluation.systems.paired_tests import SIGNIFICANT
from bertscore_onnx_evaluation.table import (
    MISSING,
    Column,
    Format,
    Table,
    count,
    latex_number,
    latex_value,
    listed,
    number,
    plain,
)

Row = tuple[str, float, float | None, float | None]
"""A name, its value, and the ends of the interval."""


@dataclass(frozen=True, slots=True)
class MeasuresTable:
    """Metrics of a language pair, or their means, by the measures that rank them."""

    title: str
    rows: Mapping[str, Mapping[str, Measure]]
    """The measures that have a value, by metric; after the metrics the best sentinels."""
    tests: Mapping[str, MeasureTests]
    """By measure."""
    exchanged: Mapping[str, str]
    """What the tests exchange, by measure, such as `80 segments`."""
    golds: Collection[str]
    """The metrics that are the human scores themselves."""

    def text(self, write: Callable[[Table], str]) -> str:
        """Return the measures that have a value, with their intervals and ranks."""
        return f"{self.title}\n{write(self._table())}"

    def _table(self) -> Table:
        with_values = {name for measures in self.rows.values() for name in measures}
        names = [name for name in dict.fromkeys([*self.tests, *MEASURES]) if name in with_values]
        columns: list[Column] = [("metric", "metric", str)]
        for name in names:
            columns.append((MEASURES[name].title, name, MEASURES[name].write))
            columns.append(("95 % interval", f"{name}_interval", plain))
            if name in self.tests and self.tests[name].ranks:
                columns.append(("rank", f"{name}_rank", count))
        cells: list[dict[str, Any]] = []
        for metric, measures in self.rows.items():
            row: dict[str, Any] = {"metric": metric}
            for name in names:
                measure = measures.get(name)
                row[name] = measure and measure.value
                row[f"{name}_interval"] = _interval(name, measure)
                row[f"{name}_rank"] = None
                if name in self.tests:
                    row[f"{name}_rank"] = self.tests[name].ranks.get(metric)
            cells.append(row)
        # A table that is too wide for the screen loses the intervals of the last measure first.
        return Table(columns, cells, [f"{name}_interval" for name in reversed(names)])

    def split_rows(self, measure: str) -> tuple[list[Row], list[Row]]:
        """Return the values of metrics that are no golds, and those of sentinels."""
        metrics: list[Row] = []
        sentinels: list[Row] = []
        for name, measures in self.rows.items():
            if measure in measures and name not in self.golds:
                found = measures[measure]
                row = (name, found.value or 0.0, found.low, found.high)
                if name in SENTINELS:
                    sentinels.append(row)
                else:
                    metrics.append(row)
        return metrics, sentinels

    def latex(self, sentences: Sequence[str], label: str, comments: Sequence[str]) -> str:
        """Return the table in LaTeX, where the best values that are ranked are bold."""
        table = self._table()
        columns: list[Column] = []
        for heading, key, write in table.columns:
            write_cell = write
            if key.endswith("_interval"):
                write_cell = latex_value
            elif key in MEASURES:
                metrics, _ = self.split_rows(key)
                best = max((value for _, value, *_ in metrics), default=None)
                if key in self.tests and is_unranked(key, self.tests):
                    best = None
                write_cell = _latex_number(write, best)
            columns.append((heading, key, write_cell))
        caption = " ".join([self._caption(), *sentences])
        return Table(columns, table.rows).latex(caption, label, comments)

    def _caption(self) -> str:
        """Return what stands under the table in LaTeX, before the verdict."""
        title = self.title.replace("\n", "; ")
        caption = f"Agreement of metrics with human scores, {title}; the best values are bold."
        legends = [MEASURES[name].legend for name in self.tests]
        for name, meaning in SENTINELS.items():
            if name in self.rows:
                legends.append(f"{name} ({meaning}) reads no meaning")
        if legends:
            caption += f" {'; '.join(legends)}."
        if any(of_measure.ranks for of_measure in self.tests.values()):
            units = listed(list(dict.fromkeys(self.exchanged.values())))
            caption += (
                f" Intervals are of {LEVEL:.0%}, by a jackknife. A rank ends where a metric in it "
                f"is significantly better than the next (p < {SIGNIFICANT} by exchanging {units}, "
                "two-sided, after Holm's correction)."
            )
        return caption

    def matrices(self, write: Callable[[Table], str]) -> Iterator[str]:
        """Yield matrices of p for every two metrics.

        One measure stands above the diagonal, another below.
        """
        tested = [name for name, of_measure in self.tests.items() if of_measure.differences]
        for start in range(0, len(tested), 2):
            heading, table = self._matrix(*tested[start : start + 2])
            yield f"{heading}\n{write(table)}"

    def _matrix(self, above: str, below: str = "") -> tuple[str, Table]:
        """Return a matrix of p of one or two measures, with its heading."""
        names = [name for name in self.rows if name not in (*self.golds, *SENTINELS)]

        def cell(first: int, second: int) -> str:
            name = above if first < second else below
            if first == second or not name:
                return ""
            return _p_of(self.tests[name], names[first], names[second])

        measures = MEASURES[above].title
        units = self.exchanged[above]
        if below:
            measures += " above the diagonal"
            if units != self.exchanged[below]:
                measures += f", by exchanging {units}"
            measures += f", {MEASURES[below].title} below"
            units = self.exchanged[below]
        heading = f"p of {measures}, by exchanging {units}, two-sided, after Holm"
        return heading, matrix("metric", names, cell)


def _interval(name: str, measure: Measure | None) -> str:
    if measure is None:
        return ""
    return interval(measure.low, measure.high, number(2, signed=name.endswith("pearson")))


def _latex_number(write: Format, best: float | None) -> Format:
    def write_cell(value: Any) -> str:
        if value is None:
            return "--"
        return latex_number(write(value), is_bold=value == best)

    return write_cell


def _p_of(tests: MeasureTests, first: str, second: str) -> str:
    """Write the p of two metrics; the smallest that permutations can give is a bound."""
    difference = tests.differences.get((first, second))
    if difference is None:
        return MISSING
    smallest = tests.smallest_p * len(tests.differences) / 2
    text = write_p(max(difference.p_holm, min(smallest, 1.0)))
    if difference.p_holm > smallest or text.startswith("<"):
        return text
    return f"<={text}"
