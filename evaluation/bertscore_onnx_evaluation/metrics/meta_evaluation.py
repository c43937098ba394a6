"""The result of an evaluation of metrics, and how it is written."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import TextWrapper
from typing import TYPE_CHECKING, Any, ClassVar

from bertscore_onnx import __version__
from bertscore_onnx.errors import InputError, plural
from bertscore_onnx_evaluation.metrics.agreement import (
    R_OF_OUTPUTS,
    R_OF_SYSTEMS,
    LanguagePairResult,
    MetricMean,
)
from bertscore_onnx_evaluation.metrics.correlation import Measure
from bertscore_onnx_evaluation.metrics.measures_table import MeasuresTable
from bertscore_onnx_evaluation.metrics.ranks import MeasureTests
from bertscore_onnx_evaluation.metrics.sentences import (
    MEASURES,
    heading_of,
    notes_of,
    verdict,
    verdict_of,
)
from bertscore_onnx_evaluation.results import Result
from bertscore_onnx_evaluation.standing import LEVEL
from bertscore_onnx_evaluation.table import Table, TableFormat, listed

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class MetaEvaluation(Result):
    """The results of `meta_evaluate`.

    As text they are the verdict, a table and the tests.
    """

    _FORMATS: ClassVar[tuple[TableFormat, ...]] = ("text", "tsv", "latex", "markdown")

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
        mean |= {"tests": {}, "units": {}, "language_pairs": self.mean_pairs}
        for name, tests in self.mean_tests.items():
            mean["tests"][name] = tests.to_dict()
            mean["units"][name] = self._units(name)
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
                cells = metric.cells()
                yield {**row, **cells, **sizes, "notes": notes, "signature": self.signature}

    def _blocks(self, write: Callable[[Table], str]) -> Iterator[str]:
        yield self._verdict
        if self._several:
            means = self._mean_table
            yield means.text(write)
            yield from means.matrices(write)
            yield "\n".join(self._sentences(result)[0] for result in self._several)
        wrapper = TextWrapper(
            80, subsequent_indent="  ", break_on_hyphens=False, break_long_words=False
        )
        for result in self.language_pairs:
            table = _table_of(result)
            yield table.text(write)
            yield from table.matrices(write)
            notes = [wrapper.fill(note) for note in notes_of(result)]
            if notes:
                yield "\n".join(notes)
        yield self._signatures()

    def _latex(self) -> Iterator[str]:
        signatures = self._signatures().split("\n")
        if self._several:
            sentences = [*self._overall, self.signature]
            yield self._mean_table.latex(sentences, "tab:metrics", signatures)
        for position, result in enumerate(self.language_pairs, 1):
            label = f"tab:metrics-{position}" if self._several else "tab:metrics"
            sentences = [*self._sentences(result), self.signature]
            yield _table_of(result).latex(sentences, label, signatures)

    def figure(self) -> "Figure":
        """Return a matplotlib figure of acc*_eq and SPA with intervals.

        Each metric has a row, and the best sentinel a line.

        Raises:
            InputError: no metric has a value of either.
            MissingExtraError: matplotlib is not installed.
        """
        from bertscore_onnx_evaluation.report.figures import Panel, rows_figure

        panels = []
        for result in self.language_pairs:
            table = _table_of(result)
            for name in table.tests:
                about = f"{MEASURES[name].title} of {MEASURES[name].about}"
                title = f"{result.language_pair}: {about}, with 95 % interval"
                metrics, sentinels = table.split_rows(name)
                rows = [(*row, True) for row in metrics]
                line = max(sentinels, key=lambda row: row[1], default=None)
                if line is None:
                    panels.append(Panel(title, rows))
                else:
                    panels.append(Panel(title, rows, line[1], f"{line[0]}, which reads no meaning"))
        if not panels:
            raise InputError(f"There is nothing to draw. {self._verdict}")
        captions = [" ".join(self._sentences(result)) for result in self.language_pairs]
        return rows_figure(panels, [*self._overall, *captions, *self._signatures().split("\n")])

    @property
    def _overall(self) -> list[str]:
        """The verdict over several language pairs."""
        if self._several:
            return [self._verdict]
        return []

    @property
    def _several(self) -> Sequence[LanguagePairResult]:
        """The language pairs if there are several; else none."""
        return self.language_pairs if len(self.language_pairs) > 1 else ()

    def _sentences(self, result: LanguagePairResult) -> list[str]:
        """Return the verdict on a language pair, and its notes."""
        verdict_of_pair = verdict_of(result)
        if self._overall:
            verdict_of_pair = f"{result.language_pair}: {verdict_of_pair}"
        return [verdict_of_pair, *[f"{note}." for note in notes_of(result)]]

    @property
    def _verdict(self) -> str:
        """Which metric agrees best, of several language pairs by the means."""
        if len(self.language_pairs) == 1:
            return verdict_of(self.language_pairs[0])
        values: dict[str, dict[str, float]] = {}
        for name, tests in self.mean_tests.items():
            values[name] = {}
            for mean in self.means:
                if mean.name in tests.ranks:
                    values[name][mean.name] = mean[name].value or 0.0
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
                    titles.append(MEASURES[name].title)
            if titles:
                systems = plural(len(result.systems), "system")
                shared = f"{plural(result.shared, 'segment')} with two outputs or more"
                sentences.append(
                    f"{listed(titles)} not of {result.language_pair}: {systems}, {shared}."
                )
        names_by_reason: dict[str, list[str]] = {}
        for mean in self.means:
            for name in self.mean_tests:
                # a metric with scores in some language pairs alone
                if mean[name].value is None and mean[name].n:
                    names_by_reason.setdefault(mean[name].reason, []).append(mean.name)
        for reason, names in names_by_reason.items():
            sentences.append(f"No mean of {listed(list(dict.fromkeys(names)))}: {reason}.")
        return sentences

    @property
    def _mean_table(self) -> MeasuresTable:
        """The means of the measures that rank metrics; of all if none does."""
        rows: dict[str, dict[str, Measure]] = {}
        for mean in self.means:
            names = self.mean_tests or mean.measures
            rows[mean.name] = {name: mean[name] for name in names if mean[name].value is not None}
        exchanged = {name: _counted(self._units(name)) for name in self.mean_tests}
        golds = set[str]()
        for result in self.language_pairs:
            golds.update(result.golds)
        return MeasuresTable(
            f"means over {self._averaged}", rows, self.mean_tests, exchanged, golds
        )

    def _signatures(self) -> str:
        lines = {self.signature: None}
        for result in self.language_pairs:
            for metric in result.metrics:
                if metric.signature:
                    lines[f"{metric.name}: {metric.signature}"] = None
        return "\n".join(lines)


def _table_of(result: LanguagePairResult) -> MeasuresTable:
    """Return the metrics and the best sentinels by the measures that rank; else by each r."""
    keys = result.ranked_by or (R_OF_OUTPUTS, R_OF_SYSTEMS)
    rows: dict[str, dict[str, Measure]] = {}
    for metric in (*result.metrics, *result.best_sentinels.values()):
        rows[metric.name] = {}
        for key in keys:
            measure = metric.measure(key)
            if measure is not None:
                rows[metric.name][key] = measure
    exchanged = dict.fromkeys(result.tests, _counted({result.units: result.num_units}))
    return MeasuresTable(heading_of(result), rows, result.tests, exchanged, result.golds)


def _counted(units: Mapping[str, int]) -> str:
    """Write how many units of each kind there are."""
    return listed([plural(number, kind.removesuffix("s")) for kind, number in units.items()])
