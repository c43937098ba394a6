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
from bertscore_onnx.similarity import MATCH_STYLE, match_html
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
from bertscore_onnx_evaluation.table import count

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
    detailed = [row for row in first.ranked if row][:MAX_DETAILED]
    return _render(
        "comparison.html",
        comparison,
        detailed=detailed,
        examples=_examples(comparison, detailed),
        num_tests=sum(metric.num_tests for metric in comparison.metrics),
    )


def notebook_html(comparison: ComparisonRecord) -> str:
    """Return a table with the intervals drawn.

    The styles of its HTML hold for itself alone, on any background.
    """
    return _render("comparison_notebook.html", comparison)


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
    for function in (verdict, outcome, pair_outcomes, headline, intervals, distributions, scatter):
        environment.globals[function.__name__] = function
    environment.globals.update(
        symbols=SYMBOLS,
        labels=LABELS,
        significant=SIGNIFICANT,
        match_html=match_html,
        match_style=MATCH_STYLE,
        max_characters=MAX_CHARACTERS,
        max_tokens=MAX_TOKENS,
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


# The segments that differ most, for reading them side by side.


def _examples(comparison: ComparisonRecord, rows: Sequence[int]) -> list[dict[str, Any]]:
    """Return the largest gains and losses of these systems, without a system that has none."""
    lower_is_better = comparison.metrics[0].lower_is_better
    shown = []
    for row in rows:
        gains: list[Example] = []
        losses: list[Example] = []
        for example in sorted(comparison.examples, key=lambda example: -abs(example.delta)):
            if example.system != comparison.systems[row] or not example.delta:
                continue
            # A smaller score is a gain where lower is better.
            is_gain = (example.delta < 0) == lower_is_better
            side = gains if is_gain else losses
            if len(side) < MAX_EXAMPLES:
                side.append(example)
        if gains or losses:
            shown.append({"row": row, "gains": gains, "losses": losses})
    return shown
