"""Does a metric see a certain error? Conditions over good and bad outputs, by linguistic category.

Hanna and Bojar, "A Fine-Grained Analysis of BERTScore", WMT 2021; y is the reference, y′ another good translation,
b a bad one.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.metrics import BERTSCORE, SegmentScores, score_texts
from bertscore_onnx.evaluation.tables import (
    MISSING,
    TableFormat,
    flatten,
    format_number,
    is_tsv,
    missing_note,
    tabulated,
    to_tsv,
    with_notes,
)
from bertscore_onnx.scorer import BERTScorer

MIN_EXAMPLES = 5
"""Categories of fewer examples are not shown: their share says little."""


@dataclass(frozen=True, slots=True)
class Condition:
    """How a metric does on the examples of one condition."""

    n: int
    """Examples that the condition can be asked of."""
    value: float | None
    """The mean score for condition i, the share of examples that are right for ii and iii; None where there is none."""
    categories: dict[str, tuple[float, int]]
    """The same by category, with its number of examples; only categories of enough examples."""
    right: int | None = None
    """How many examples are right; None for condition i, which has no right and wrong."""

    @property
    def reason(self) -> str:
        """Why there is no value; empty where there is one."""
        return "" if self.n else "no example has the outputs that this condition compares"


@dataclass(frozen=True, slots=True)
class Phenomena:
    """The three conditions of the paper."""

    i: Condition
    """A good translation scores high: the mean F(y, y′)."""
    ii: Condition
    """It scores higher than every bad one: F(y, y′) > F(y, b) for each b; a tie is wrong."""
    iii: Condition
    """Bad ones are ordered by how bad they are: F(y, bᵢ) > F(y, bⱼ) for each better i; a tie is wrong."""


def phenomena(
    categories: Sequence[str],
    good: Sequence[ArrayLike],
    bad: Sequence[ArrayLike],
    *,
    min_examples: int = MIN_EXAMPLES,
) -> Phenomena:
    """Ask the three conditions of a metric's scores.

    Args:
        categories: the phenomenon of each example, (examples,).
        good: F(y, y′) of each example's other good translation; of several as (good,), of none as NaN or empty. Their
            mean counts for condition i, and the lowest of them for ii.
        bad: F(y, b) of each example's bad translations, from better to worse, (bad,) each, and perhaps empty.
        min_examples: categories of fewer examples are not shown. The values over all examples have theirs too.

    Returns:
        Condition i over examples with a good translation, ii over those that also have a bad one, iii over those
        with two bad ones.

    Raises:
        InputError: the arguments are not equally long, or a score is not a number.
    """
    of_good = [_scores(scores) for scores in good]
    of_bad = [_scores(scores) for scores in bad]
    if not len(of_good) == len(categories) == len(of_bad):
        raise InputError(
            f"{len(categories)} categories, {len(of_good)} rows of good scores and {len(of_bad)} rows of bad scores; "
            "expected one of each per example."
        )
    of_good = [scores if scores.ndim != 1 else scores[~np.isnan(scores)] for scores in of_good]
    for example, rows in enumerate(zip(of_good, of_bad, strict=True)):
        if not all(scores.ndim == 1 and np.isfinite(scores).all() for scores in rows):
            raise InputError(
                f"Example {example} (counted from 0) has scores that are no numbers; expected (good,) and (bad,)."
            )
    has_good = np.array([len(scores) > 0 for scores in of_good], dtype=bool)
    means = np.array([scores.mean() if len(scores) else np.nan for scores in of_good], dtype=np.float64)
    is_above = np.array(
        [good.min(initial=np.inf) > bad.max(initial=-np.inf) for good, bad in zip(of_good, of_bad, strict=True)],
        dtype=bool,
    )
    falls = np.array([(np.diff(scores) < 0).all() for scores in of_bad], dtype=bool)
    num_bad = np.array([len(scores) for scores in of_bad], dtype=np.int64)
    names = np.array(categories, dtype=str)
    return Phenomena(
        _condition(names, means, has_good, min_examples),
        _condition(names, is_above, has_good & (num_bad > 0), min_examples),
        _condition(names, falls, num_bad > 1, min_examples),
    )


def _scores(scores: ArrayLike) -> NDArray[np.float64]:
    return np.atleast_1d(np.asarray(scores, dtype=np.float64))


def _condition(
    categories: NDArray[np.str_],
    values: NDArray[np.float64] | NDArray[np.bool_],
    is_compared: NDArray[np.bool_],
    min_examples: int,
) -> Condition:
    categories, values = categories[is_compared], values[is_compared]
    shown = {
        str(name): (float(values[categories == name].mean()), int(count))
        for name, count in zip(*np.unique(categories, return_counts=True), strict=True)
        if count >= min_examples
    }
    right = int(values.sum()) if values.dtype == np.bool_ else None
    return Condition(len(values), float(values.mean()) if len(values) else None, shown, right)


# Conditions i to iii of metrics over good and bad translations, by linguistic category.


@dataclass(frozen=True, slots=True)
class PhenomenonExample:
    """A reference with other translations of the same text."""

    category: str
    """What the bad translations get wrong, such as negation."""

    reference: str | Sequence[str]
    good: Sequence[str] = ()
    """Other good translations, usually one."""

    bad: Sequence[str] = ()
    """From better to worse."""


@dataclass(frozen=True, slots=True)
class PhenomenaOfMetric:
    """The conditions of one metric."""

    metric: str
    signature: str
    conditions: Phenomena


@dataclass(frozen=True, slots=True)
class PhenomenaResult:
    """What `phenomena_of_texts` found."""

    num_examples: int
    min_examples: int
    """Categories of fewer examples are not shown, and count in the values over all."""

    metrics: tuple[PhenomenaOfMetric, ...]

    def table(self, table_format: TableFormat = "text") -> str:
        """Write a table to read, or with "tsv" one with all digits; without a line end after its last line.

        Raises:
            InputError: there is no such format.
            MissingExtraError: tabulate is not installed.
        """
        return phenomena_table(self, table_format)

    def to_json(self) -> str:
        """Return it as JSON; what is missing is null, with a reason."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False)

    def to_dict(self) -> dict[str, Any]:
        """Return what `to_json` writes."""
        return {
            "examples": self.num_examples,
            "min_examples": self.min_examples,
            "metrics": {one.metric: _as_dict(one) for one in self.metrics},
        }


def phenomena_of_texts(
    examples: Sequence[PhenomenonExample],
    *,
    metrics: Sequence[str] = (BERTSCORE,),
    scorer: BERTScorer | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    min_examples: int = MIN_EXAMPLES,
    verbose: bool | None = False,
) -> PhenomenaResult:
    """Score good and bad translations with metrics, each once, and ask the three conditions of them.

    Args:
        examples: at least one, with a good or a bad translation among them.
        metrics, scorer, options, verbose: as `score_texts` takes them.
        min_examples: categories of fewer examples are not shown.

    Raises:
        InputError: there is nothing to score, or as `score_texts` says.
        MissingExtraError: sacreBLEU is needed and not installed.
    """
    if not any(one.good or one.bad for one in examples):
        raise InputError(
            f"There are {len(examples)} examples, and no good or bad translation among them. Give both to at least one."
        )
    texts = [[*one.good, *one.bad] for one in examples]
    references = [one.reference for one in examples for _ in (*one.good, *one.bad)]
    scored = score_texts(
        metrics,
        [text for some in texts for text in some],
        references,
        scorer=scorer,
        options=options,
        verbose=verbose,
    )
    ends = list(accumulate(map(len, texts)))[:-1]
    return PhenomenaResult(
        len(examples), min_examples, tuple(_of_metric(metric, examples, ends, min_examples) for metric in scored)
    )


def _of_metric(
    metric: SegmentScores, examples: Sequence[PhenomenonExample], ends: Sequence[int], min_examples: int
) -> PhenomenaOfMetric:
    """Ask the conditions of the scores of all texts, those of each example up to its end."""
    scores = np.split(metric.oriented, ends)
    conditions = phenomena(
        [one.category for one in examples],
        [some[: len(one.good)] for some, one in zip(scores, examples, strict=True)],
        [some[len(one.good) :] for some, one in zip(scores, examples, strict=True)],
        min_examples=min_examples,
    )
    if metric.lower_is_better:
        conditions = replace(conditions, i=_negated(conditions.i))
    return PhenomenaOfMetric(metric.name, metric.signature, conditions)


def _negated(means: Condition) -> Condition:
    """Return mean scores as the metric has them, of which lower ones are better."""
    value = None if means.value is None else -means.value
    return replace(means, value=value, categories={name: (-mean, n) for name, (mean, n) in means.categories.items()})


def _as_dict(result: PhenomenaOfMetric) -> dict[str, Any]:
    conditions = {name: getattr(result.conditions, name) for name in ("i", "ii", "iii")}
    categories = sorted({name for condition in conditions.values() for name in condition.categories})
    return {
        "signature": result.signature,
        "conditions": {
            name: _value(name, condition.value, condition.n)
            | ({"reason": condition.reason} if condition.reason else {})
            for name, condition in conditions.items()
        },
        "categories": {
            category: {
                name: _value(name, *condition.categories[category])
                for name, condition in conditions.items()
                if category in condition.categories
            }
            for category in categories
        },
    }


def _value(name: str, value: float | None, n: int) -> dict[str, Any]:
    """Return the mean score of condition i; how many examples are right of the others, and their share."""
    if name == "i":
        return {"mean": value, "n": n}
    return {"right": round((value or 0) * n), "n": n, "share": value}


ALL = "(all)"
"""Stands for all examples where categories do."""


def phenomena_table(result: "PhenomenaResult", table_format: TableFormat) -> str:
    """Write a table for each metric, or one of all metrics and categories as TSV."""
    if is_tsv(table_format):
        return to_tsv(
            [
                {"metric": metric, "category": category, **flatten(conditions)}
                for metric, values in result.to_dict()["metrics"].items()
                for category, conditions in {ALL: values["conditions"], **values["categories"]}.items()
            ]
        )
    blocks = []
    for one in result.metrics:
        asked = (one.conditions.i, one.conditions.ii, one.conditions.iii)
        categories = (ALL, *sorted({name for condition in asked for name in condition.categories}))
        rows = [[name, *(cell for condition in asked for cell in _cells(condition, name))] for name in categories]
        header = ["category", "i: mean", "of", "ii: right", "of", "iii: right", "of"]
        notes = [
            missing_note(name, condition.reason) for name, condition in zip(("i", "ii", "iii"), asked, strict=True)
        ]
        blocks.append(with_notes(f"{one.metric} ({one.signature})\n{tabulated(rows, header)}", notes))
    return "\n\n".join(
        [
            *blocks,
            "i: the mean score of good translations. ii: a good one scores above every bad one.\n"
            "iii: bad ones score in their order, from better to worse. Categories of fewer than\n"
            f"{result.min_examples} examples are not shown, and count in {ALL}.",
        ]
    )


def _cells(condition: Condition, category: str) -> tuple[str, str]:
    """Return the value of a category and its number of examples."""
    value, n = condition.categories.get(category, (None, 0))
    if category == ALL:
        value, n = condition.value, condition.n
    if value is None:
        return MISSING, MISSING
    return (format_number(value, 3) if condition.right is None else f"{value:.1%}"), f"{n:,}"
