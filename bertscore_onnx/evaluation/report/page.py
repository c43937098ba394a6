"""The report: one file that needs nothing else, neither a network nor a script."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bertscore_onnx.errors import needs_extra
from bertscore_onnx.evaluation.comparison import SIGNIFICANT, TITLES, Comparison, Example, MetricResult, SystemResult
from bertscore_onnx.evaluation.report import wording as numbers
from bertscore_onnx.evaluation.report.charts import (
    Chart,
    Drawing,
    distributions,
    intervals,
    length_differences,
    scatter,
)
from bertscore_onnx.evaluation.report.wording import (
    Reading,
    corrected_p,
    read,
    shortened,
    test_settings,
    verdict,
    visible,
    warnings,
)
from bertscore_onnx.similarity import MATCH_STYLE, TokenSimilarity, match_html

if TYPE_CHECKING:
    import jinja2


# What the report says and draws about one metric.


MAX_DETAILED = 6
"""Systems that are drawn segment by segment under each metric, besides the baseline."""


@dataclass(frozen=True, slots=True)
class Row:
    """A system in the table."""

    result: SystemResult

    reading: Reading | None
    """None for the baseline."""

    p_holm: float | None
    """p after Holm's correction, where all pairs were compared."""


@dataclass(frozen=True, slots=True)
class Detail:
    """A system beside the baseline, segment by segment."""

    name: str
    scatter: Drawing
    lengths: Chart


@dataclass(frozen=True, slots=True)
class Chapter:
    """One metric."""

    metric: MetricResult
    label: str
    rows: tuple[Row, ...]
    intervals: Chart
    distributions: Chart
    details: tuple[Detail, ...]


def rows(metric: MetricResult) -> tuple[Row, ...]:
    """Return a row for each system, the baseline first."""
    baseline, *others = metric.systems
    compared = (Row(one, read(metric, one), corrected_p(metric, one)) for one in others)
    return (Row(baseline, None, None), *compared)


def chapter(metric: MetricResult, detailed: Sequence[str], lengths: Sequence[int]) -> Chapter:
    """Collect what is to say about a metric.

    Args:
        metric: what the comparison found.
        detailed: the names of the systems to draw segment by segment.
        lengths: of the reference of each segment.
    """
    scores = metric.segment_scores
    drawn = [row for row, one in enumerate(metric.systems) if one.name in detailed]
    details = tuple(
        Detail(
            metric.systems[row].name,
            scatter(scores[0], scores[row], lower_is_better=metric.lower_is_better),
            by_length,
        )
        for row, by_length in zip(drawn, length_differences(metric, drawn, lengths), strict=True)
    )
    return Chapter(metric, TITLES[metric.name], rows(metric), intervals(metric), distributions(metric), details)


def detailed_systems(comparison: Comparison) -> list[str]:
    """Return the systems, besides the baseline, that the first metric scores best: at most `MAX_DETAILED`."""
    first = comparison.metrics[0]
    best = sorted(first.systems[1:], key=lambda one: one.score, reverse=not first.lower_is_better)
    return [one.name for one in best[:MAX_DETAILED]]


# The templates, filled in by Jinja: all that is put into them is escaped, but for the drawings.


FILTERS = {
    "score": numbers.score,
    "signed": numbers.signed,
    "p_value": numbers.p_value,
    "percent": numbers.percent,
    "count": numbers.count,
    "visible": visible,
    "shortened": shortened,
}


def render(template: str, **values: Any) -> str:
    """Fill in a template of this package.

    Args:
        template: the file's name in `templates/`.
        values: what the template names.

    Raises:
        MissingExtraError: Jinja is not installed.
    """
    return _environment().get_template(template).render(values)


def _environment() -> "jinja2.Environment":
    with needs_extra("evaluation", "Writing a report"):
        import jinja2
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("bertscore_onnx.evaluation.report"),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FILTERS)
    environment.globals.update(match_html=match_html, match_style=MATCH_STYLE)
    return environment


# The segments that differ most, for reading them side by side.


MAX_EXAMPLES = 3
"""Gains of a system that are shown, and likewise losses."""

MAX_TOKENS = 300
"""Of a text and its reference together, whose matches are shown."""


@dataclass(frozen=True, slots=True)
class Side:
    """The text of one system."""

    name: str
    score: float
    text: str

    match: TokenSimilarity | None
    """Which tokens match; None where they are not known, or too many."""

    num_tokens: int
    """Of the text and the reference, where their matches are known; else 0."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment, as the baseline and a system have it."""

    line: int
    """Counted from 1."""

    delta: float
    references: tuple[str, ...]
    sides: tuple[Side, Side]


@dataclass(frozen=True, slots=True)
class Extremes:
    """Where a system differs most from the baseline under the first metric."""

    name: str
    gains: tuple[Segment, ...]
    losses: tuple[Segment, ...]


def extremes(comparison: Comparison, systems: Sequence[str]) -> tuple[Extremes, ...]:
    """Collect the examples of these systems; one of which there are none is left out."""
    lower_is_better = comparison.metrics[0].lower_is_better
    found = []
    for name in systems:
        own = [one for one in comparison.examples if one.system == name and one.delta]
        gains = [one for one in own if (one.delta < 0) == lower_is_better]
        losses = [one for one in own if (one.delta < 0) != lower_is_better]
        if own:
            shown = [
                tuple(_segment(comparison, one) for one in sorted(side, key=lambda one: -abs(one.delta))[:MAX_EXAMPLES])
                for side in (gains, losses)
            ]
            found.append(Extremes(name, *shown))
    return tuple(found)


def _segment(comparison: Comparison, example: Example) -> Segment:
    matches = example.matches or (None, None)
    baseline, system = (
        _side(comparison, row, example.segment, match)
        for row, match in zip((0, comparison.systems.index(example.system)), matches, strict=True)
    )
    references = comparison.references[example.segment]
    return Segment(example.segment + 1, example.delta, references, (baseline, system))


def _side(comparison: Comparison, system: int, segment: int, match: TokenSimilarity | None) -> Side:
    score = float(comparison.metrics[0].segment_scores[system, segment])
    num_tokens = len(match.candidate) + len(match.reference) if match else 0
    shown = match if num_tokens <= MAX_TOKENS else None
    return Side(comparison.systems[system], score, comparison.candidates[system][segment], shown, num_tokens)


def report_html(comparison: Comparison) -> str:
    """Return a page about a comparison: the table, how sure it is, and where the systems differ.

    The same comparison gives the same bytes. Systems and segments beyond a bound are left out of the drawings and the
    examples, and the page says so; the tables are whole.

    Raises:
        MissingExtraError: Jinja is not installed.
    """
    detailed = detailed_systems(comparison)
    lengths = [len(references[0]) for references in comparison.references]
    counts = {len(references) for references in comparison.references}
    return render(
        "report.html",
        comparison=comparison,
        test_settings=test_settings(comparison),
        significant=SIGNIFICANT,
        chapters=[chapter(metric, detailed, lengths) for metric in comparison.metrics],
        verdict=verdict,
        warnings=warnings(comparison),
        extremes=extremes(comparison, detailed),
        num_references=sorted({min(counts), max(counts)}),
        num_tests=sum(len(one.pairs) or len(one.systems) - 1 for one in comparison.metrics),
    )


# The comparison as a notebook shows it: one table, with the intervals drawn.


def notebook_html(comparison: Comparison) -> str:
    """Return a fragment of HTML whose styles hold for itself alone, on light and dark grounds.

    Raises:
        MissingExtraError: Jinja is not installed.
    """
    tables = [(metric, TITLES[metric.name], rows(metric), intervals(metric)) for metric in comparison.metrics]
    return render(
        "notebook.html",
        comparison=comparison,
        tables=tables,
        test_settings=test_settings(comparison),
        warnings=warnings(comparison),
    )
