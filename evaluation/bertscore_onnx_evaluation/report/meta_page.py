"""An evaluation of metrics as a page, and as a fragment for notebooks."""

from collections.abc import Mapping, Sequence
from math import floor, log10
from typing import Any, NamedTuple

from bertscore_onnx.tables.table import Format, listed, number, plural
from bertscore_onnx_evaluation.metrics.correlation import Measure
from bertscore_onnx_evaluation.metrics.meta_results import (
    Kind,
    LanguagePairResult,
    MetaEvaluation,
    bounded_p,
    notes,
    p_matrices,
    sentinel_notes,
)
from bertscore_onnx_evaluation.report.charts import Chart, Drawing, Estimate, dots_and_bars
from bertscore_onnx_evaluation.report.named_points import named_points
from bertscore_onnx_evaluation.report.page import Cell, cell, render
from bertscore_onnx_evaluation.report.wording import typographic
from bertscore_onnx_evaluation.systems.power import SIGNIFICANT
from bertscore_onnx_evaluation.systems.verdicts import fixed

HIGHLY_SIGNIFICANT = SIGNIFICANT / 5
"""Below it p has a darker shade."""

MAX_OPEN = 6
"""Metrics up to which the plots of systems are open at first."""

MAX_NAMED = 4
"""Metrics that the headline names."""


class _Shown(NamedTuple):
    """A measure on the page."""

    key: str
    title: str
    write: Format
    is_drawn: bool = True


_signed, _proportion = number(3, signed=True), number(3)

SYSTEM = (
    _Shown("pearson", "Pearson’s r", _signed),
    _Shown("pearson_without_outliers", "r without outliers", _signed, is_drawn=False),
    _Shown("accuracy", "Pairwise accuracy", _proportion),
    _Shown("spa", "SPA", _proportion),
)
SEGMENT = (
    _Shown("pearson", "Pearson’s r", _signed),
    _Shown("pearson_by_item", "r by item", _signed),
    _Shown("pearson_by_system", "r by system", _signed, is_drawn=False),
    _Shown("kendall", "Kendall’s τ_b", _signed),
    _Shown("kendall_c", "τ_c", _signed, is_drawn=False),
    _Shown("acc_eq", "acc*_eq", _proportion),
)
MEANS = (
    _Shown("accuracy", "Pairwise accuracy, pooled", _proportion),
    _Shown("system_pearson", "r of systems", _signed),
    _Shown("spa", "SPA", _proportion),
    _Shown("segment_pearson", "r of segments", _signed),
    _Shown("kendall", "Kendall’s τ_b", _signed),
    _Shown("acc_eq", "acc*_eq", _proportion),
)


class _Row(NamedTuple):
    """A metric, an annotator or a sentinel, with its measures at one level."""

    name: str
    kind: Kind
    rank: int | None
    measures: Mapping[str, Measure]
    epsilon: float | None = None
    ties: int | None = None


def report_html(result: MetaEvaluation) -> str:
    """Return a page about an evaluation of metrics; every number on it, but those of axes, is in the JSON.

    The same result gives the same bytes. Raises MissingExtraError unless Jinja is installed.
    """
    signatures = {one.name: one.signature for of_pair in result.language_pairs for one in of_pair.metrics}
    return render(
        "meta.html",
        {},
        result=result,
        sections=[_section(one, result.test) for one in result.language_pairs],
        means=_level([_Row(one.name, one.kind, None, one.measures) for one in result.means], MEANS)
        if len(result.language_pairs) > 1
        else None,
        signatures={name: signature for name, signature in signatures.items() if signature},
        warnings=[],
        test=_test(result),
        significant=SIGNIFICANT,
        highly_significant=HIGHLY_SIGNIFICANT,
    )


def _test(result: MetaEvaluation) -> str:
    """Return the test with its settings, in words."""
    units = " or ".join(dict.fromkeys(one.units for one in result.language_pairs))
    tests = {"segments": f"exchange of {units}", "perm-both": "PERM-BOTH", "boot-both": f"draws of systems and {units}"}
    permutations = "" if result.test == "boot-both" else f", {plural(result.permutations, 'permutation')}"
    return f"{tests[result.test]}{permutations}, seed {result.seed}"


def notebook_html(result: MetaEvaluation) -> str:
    """Return one table with the main correlation drawn, as HTML whose styles hold for itself alone."""
    return render("meta_notebook.html", {}, tables=[_notebook_table(one) for one in result.language_pairs])


def headline(result: LanguagePairResult) -> str:
    """Return which metrics have the highest rank, whatever that of annotators, in a sentence."""
    level = "segment" if any(one.segment and one.segment.rank for one in result.metrics) else "system"
    highest = min((one.rank for one in result.metrics if one.rank is not None), default=None)
    first = [one for one in result.metrics if one.rank is not None and one.rank == highest]
    what = "segments" if level == "segment" else "whole systems"
    if not first:
        return f"No metric has a correlation with the human scores of {what}."
    agreement = getattr(first[0], level)
    r = f"Pearson's r {_signed(agreement['pearson'].value)}"
    if len(first) == 1:
        return f"{first[0].name} correlates best with the human scores of {what}: {r}."
    names = [one.name for one in first]
    named = listed(names if len(names) <= MAX_NAMED else [*names[:MAX_NAMED], "others"])
    return (
        f"{named} share the highest rank, {names[0]} with {r}: none of them correlates significantly better with the "
        f"human scores of {what} than another."
    )


def _section(result: LanguagePairResult, test: str) -> dict[str, Any]:
    """Return the values of a language pair's section."""
    of = ", ".join(f"{kind} {name}" for kind, name in (("gold", result.gold), ("reference", result.reference)) if name)
    judged = plural(result.segments, "segment") if result.segments else "judged as a whole"
    return {
        "name": result.language_pair,
        "details": ", ".join(filter(None, [of, plural(len(result.systems), "system"), judged])),
        "headline": headline(result),
        "levels": [
            (title, level)
            for title, level in (
                ("Whole systems", _level(_rows(result, "system"), SYSTEM)),
                ("Segments", _level(_rows(result, "segment"), SEGMENT)),
            )
            if level
        ],
        "scatters": _scatters(result),
        "are_open": len(result.metric_scores) <= MAX_OPEN,
        "scores": _scores(result),
        "matrices": [_matrix(result, title, matrix) for title, matrix in p_matrices(result, test).items()],
        "warnings": result.notes,
        "notes": [*sentinel_notes(result), *notes(result)],
        "names": [*result.systems, *(one.name for _, one in result.by_kind())],
    }


def _rows(result: LanguagePairResult, level: str) -> list[_Row]:
    """Return what has scores at a level, `system` or `segment`."""
    return [
        _Row(
            one.name,
            kind,
            agreement.rank,
            agreement.measures,
            agreement["acc_eq"].epsilon if level == "segment" else None,
            agreement.metric_ties,
        )
        for kind, one in result.by_kind()
        if (agreement := getattr(one, level))
    ]


def _level(rows: Sequence[_Row], measures: Sequence[_Shown]) -> dict[str, Any] | None:
    """Return the charts and the table of some measures; None without a row."""
    if not rows:
        return None
    return {
        "charts": [(one.title, _chart(rows, one)) for one in measures if one.is_drawn and _values(rows, one.key)],
        "titles": [one.title for one in measures],
        "rows": [(row, [_cell(row.measures[one.key], one.write) for one in measures]) for row in rows],
        "has_ranks": any(row.rank is not None for row in rows),
        "has_ties": any(row.ties is not None for row in rows),
        "has_epsilon": any(row.epsilon is not None for row in rows),
        "kinds": {row.kind for row in rows},
    }


def _values(rows: Sequence[_Row], key: str, kind: Kind | None = None) -> list[float]:
    """Return the values of a measure that there are, perhaps those of one kind of row."""
    found = (row.measures[key].value for row in rows if kind is None or row.kind == kind)
    return [value for value in found if value is not None]


def _chart(rows: Sequence[_Row], shown: _Shown) -> Chart:
    """Draw a measure, with a line through all rows for each annotator, and one for the best sentinel."""
    lines = [("humans-line", value) for value in _values(rows, shown.key, "humans")]
    if sentinels := _values(rows, shown.key, "sentinels"):
        lines.append(("sentinels-line", max(sentinels)))
    estimates = [
        Estimate(row.name, one.value, one.low, one.high, one.reason, row.kind)
        for row, one in ((row, row.measures[shown.key]) for row in rows)
    ]
    return dots_and_bars(estimates, shown.title, shown.write, lines)


def _cell(measure: Measure, write: Format) -> Cell:
    return cell(measure.value, measure.low, measure.high, write, measure.reason)


# The scores of whole systems by annotators and by metrics.


def _scatters(result: LanguagePairResult) -> list[tuple[str, Drawing]]:
    """Draw the systems by their human scores and those of each metric, where there are both."""
    drawn = []
    for metric in result.metrics:
        scores = result.metric_scores.get(metric.name, (None,) * len(result.systems))
        points = [
            (system, human, score)
            for system, human, score in zip(result.systems, result.human_scores, scores, strict=True)
            if human is not None and score is not None
        ]
        if points:
            text = f"{plural(len(points), 'system')}: human scores from left to right, the metric's upwards"
            drawn.append((metric.name, named_points(points, text)))
    return drawn


def _scores(result: LanguagePairResult) -> dict[str, Any] | None:
    """Return a row of scores for each system, the one with the best human score first; None without scores."""
    names = [metric.name for metric in result.metrics if metric.name in result.metric_scores]
    columns = [result.human_scores, *(result.metric_scores[name] for name in names)]
    if all(score is None for column in columns for score in column):
        return None
    keys = [float("inf") if score is None else -score for score in result.human_scores]
    rows = sorted(zip(keys, result.systems, *map(_written, columns), strict=True))
    return {"titles": ["Human", *names], "rows": [row[1:] for row in rows]}


def _written(scores: Sequence[float | None]) -> list[str]:
    """Write scores with the decimals that the largest needs for five digits."""
    largest = max((abs(score) for score in scores if score is not None), default=0.0)
    decimals = min(max(0, 4 - floor(log10(largest))), 6) if largest else 0
    return ["–" if score is None else typographic(fixed(score, decimals)) for score in scores]


# p of every two metrics.


def _matrix(
    result: LanguagePairResult, title: str, p_values: Mapping[tuple[str, str], tuple[float, float]]
) -> dict[str, Any]:
    """Return the cells of a matrix: text and class, none on and below the diagonal."""
    names = [one.name for kind, one in result.by_kind() if kind != "sentinels"]
    rows = [
        (name, [_p_cell(p_values.get((name, other))) if at > row else ("", "none") for at, other in enumerate(names)])
        for row, name in enumerate(names)
    ]
    return {"title": title, "names": names, "rows": rows}


def _p_cell(values: tuple[float, float] | None) -> tuple[str, str]:
    if values is None:
        return "–", ""
    text = bounded_p(*values).replace("<=", "≤").replace("<", "< ")
    p = max(values[0], min(values[1], 1.0))
    return text, "significant high" if p < HIGHLY_SIGNIFICANT else "significant" if p < SIGNIFICANT else ""


# The fragment for notebooks.


NOTEBOOK = (
    *(("segment", one) for one in (SEGMENT[0], SEGMENT[-1])),
    *(("system", one) for one in SYSTEM if one.is_drawn),
)
"""The measures that a notebook shows, with their level."""


def _notebook_table(result: LanguagePairResult) -> dict[str, Any]:
    """Return the main measures of each metric, with a drawing of Pearson's r at the level that ranks go by."""
    levels = (_rows(result, level) for level in ("segment", "system"))
    drawn = next((rows for rows in levels if _values(rows, "pearson")), [])
    chart = _chart(drawn, SYSTEM[0]).rows if drawn else []
    drawings = {(row.kind, row.name): one.drawing for row, one in zip(drawn, chart, strict=True)}
    rows = []
    for kind, one in result.by_kind():
        of = {"segment": one.segment, "system": one.system}
        cells = [
            _cell(agreement[shown.key], shown.write) if (agreement := of[level]) else Cell("")
            for level, shown in NOTEBOOK
        ]
        rows.append((one, drawings.get((kind, one.name)), cells))
    return {"name": result.language_pair, "rows": rows}
