"""A comparison as a page, and as a fragment for notebooks.

A page is one file without links to others. Jinja fills in the templates: all values are escaped,
except the drawings.
"""

from base64 import b64encode
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

from bertscore_onnx.errors import needs_extra
from bertscore_onnx.similarity import MATCH_STYLE, TokenSimilarity, match_html
from bertscore_onnx.tables.table import count
from bertscore_onnx_evaluation.report import wording
from bertscore_onnx_evaluation.report.comparison_charts import distributions, intervals, scatter
from bertscore_onnx_evaluation.systems.comparison_record import ComparisonRecord, Example
from bertscore_onnx_evaluation.systems.paired_tests import SIGNIFICANT
from bertscore_onnx_evaluation.systems.verdicts import (
    LABELS,
    SYMBOLS,
    MetricResult,
    SystemResult,
    headline,
    interval,
    outcome,
    p_value,
    pair_outcomes,
    rank,
    score,
    signed,
    verdict,
)

MAX_CHARACTERS = 2000
"""Of a text that is shown; the page states how many more there are."""

MAX_DETAILED = 6
"""Systems that are drawn segment by segment under each metric, besides the baseline."""

MAX_EXAMPLES = 3
"""Gains of a system that are shown, and likewise losses."""

MAX_TOKENS = 300
"""Of a text and its reference together, whose matches are shown."""


def report_html(comparison: ComparisonRecord) -> str:
    """Return a page about a comparison.

    The page has the table, the certainty of its results, and where the systems differ. The same
    comparison gives the same bytes. Systems and segments beyond a bound are left out of the
    drawings and the examples, which the page states; the tables are complete. Raises
    MissingExtraError unless Jinja is installed.
    """
    first = comparison.metrics[0]
    compared = [first.systems[row].name for row in first.ranked if row]
    detailed = compared[:MAX_DETAILED]
    sections = [_metric_section(comparison, metric, detailed) for metric in comparison.metrics]
    num_tests = sum(metric.num_tests for metric in comparison.metrics)
    return _render(
        "comparison.html",
        comparison,
        significant=SIGNIFICANT,
        sections=sections,
        outcome_of=outcome,
        match_html=match_html,
        match_style=MATCH_STYLE,
        examples=_examples(comparison, detailed),
        num_tests=num_tests,
    )


def notebook_html(comparison: ComparisonRecord) -> str:
    """Return a table with the intervals drawn.

    The styles of its HTML hold for itself alone, on any background.
    """
    tables = [(metric, _rows(metric), intervals(metric)) for metric in comparison.metrics]
    return _render("comparison_notebook.html", comparison, tables=tables)


def _render(template: str, comparison: ComparisonRecord, **values: Any) -> str:
    with needs_extra("evaluation", "Writing a report"):
        import jinja2
    environment: jinja2.Environment = jinja2.Environment(
        loader=jinja2.PackageLoader("bertscore_onnx_evaluation.report"),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    for write in (wording.visible, wording.name, wording.sentence, count, p_value, rank):
        environment.filters[write.__name__] = write
    for write_number in (score, signed):
        environment.filters[write_number.__name__] = partial(_typographic, write_number)
    environment.filters[interval.__name__] = _interval
    copy_script = environment.get_template("copy.js").render()
    digest = sha256(copy_script.encode()).digest()
    environment.globals.update(
        symbols=SYMBOLS,
        labels=LABELS,
        max_characters=MAX_CHARACTERS,
        copy_script=copy_script,
        copy_digest=b64encode(digest).decode(),
    )
    return environment.get_template(template).render(comparison=comparison, **values)


def _typographic(
    write: Callable[[float, MetricResult], str],
    value: float,
    metric: MetricResult,
) -> str:
    return wording.typographic(write(value, metric))


def _interval(result: SystemResult, metric: MetricResult) -> str:
    return wording.typographic(interval(metric, result.delta_low, result.delta_high))


def _metric_section(
    comparison: ComparisonRecord,
    metric: MetricResult,
    detailed: Sequence[str],
) -> dict[str, Any]:
    """Return the values of a metric's section, with scatter plots of the detailed systems."""
    scores = metric.segment_scores
    plots = []
    for row in metric.ranked:
        name = metric.systems[row].name
        if name in detailed:
            plot = scatter(scores[0], scores[row], lower_is_better=metric.lower_is_better)
            plots.append({"name": name, "scatter": plot})
    return {
        "metric": metric,
        "rows": _rows(metric),
        "headline": headline(metric),
        "outcomes": pair_outcomes(metric),
        "intervals": intervals(metric),
        "distributions": distributions(metric),
        "plots": plots,
    }


def _rows(metric: MetricResult) -> list[dict[str, Any]]:
    """Return a row of the table for each system, the best first.

    The baseline has no verdict.
    """
    baseline = metric.systems[0].name
    rows = []
    for place in metric.ranked:
        result = metric.systems[place]
        of_result = verdict(metric, result, baseline)
        rows.append({"place": place, "result": result, "verdict": of_result})
    return rows


# The segments that differ most, for reading them side by side.


def _examples(comparison: ComparisonRecord, systems: Sequence[str]) -> list[dict[str, Any]]:
    """Return the largest gains and losses of these systems.

    A system without any is left out.
    """
    lower_is_better = comparison.metrics[0].lower_is_better
    shown = []
    for name in systems:
        differing = []
        for example in comparison.examples:
            if example.system == name and example.delta:
                differing.append(example)
        if not differing:
            continue
        gains: list[dict[str, Any]] = []
        losses: list[dict[str, Any]] = []
        for example in sorted(differing, key=lambda example: -abs(example.delta)):
            # A smaller score is a gain where lower is better.
            is_gain = (example.delta < 0) == lower_is_better
            side = gains if is_gain else losses
            if len(side) < MAX_EXAMPLES:
                side.append(_segment(comparison, example))
        shown.append({"name": name, "gains": gains, "losses": losses})
    return shown


def _segment(comparison: ComparisonRecord, example: Example) -> dict[str, Any]:
    rows = (0, comparison.systems.index(example.system))
    matches = example.matches or (None, None)
    sides = []
    for row, match in zip(rows, matches, strict=True):
        sides.append(_side(comparison, row, example.segment, match))
    return {
        "segment": comparison.segments[example.segment],
        "delta": example.delta,
        "references": comparison.references[example.segment],
        "sides": sides,
    }


def _side(
    comparison: ComparisonRecord,
    system: int,
    segment: int,
    match: TokenSimilarity | None,
) -> dict[str, Any]:
    """Return a system's text and score, with its token matches if known and not too many."""
    num_tokens = 0
    if match:
        num_tokens = len(match.candidate) + len(match.reference)
    return {
        "name": comparison.systems[system],
        "score": float(comparison.metrics[0].segment_scores[system, segment]),
        "text": comparison.candidates[system][segment],
        "match": match if num_tokens <= MAX_TOKENS else None,
        "num_tokens": num_tokens,
    }
