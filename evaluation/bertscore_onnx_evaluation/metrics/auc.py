"""ROC AUC and AP: how well scores separate two classes, such as paraphrases from other pairs (PAWS, QQP).

Papers report either as "AUC"; they differ, so each has its name here.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.table import Column, Table, count, number
from bertscore_onnx_evaluation.metrics.correlation import Floats, Measure, midranks, no_value
from bertscore_onnx_evaluation.metrics.metric_pairs import (
    PAIR_COLUMNS,
    MetricDifference,
    SentinelTest,
    against_sentinels,
    by_kind,
    ends,
    interval_of,
    metric_differences,
    notes_of_exchanges,
    notes_of_few,
    p_of_others,
    pairs_of,
    sentinel_lines,
)
from bertscore_onnx_evaluation.metrics.resampling import (
    CHUNK_CELLS,
    degrees_of_freedom,
    enough_permutations,
    exchange_p,
    numbered,
    share_interval,
)
from bertscore_onnx_evaluation.results import Result, rows_by_metric, with_notes


def roc_auc(labels: ArrayLike, scores: Floats) -> Measure:
    """Return the area under the ROC curve: how often a positive has a higher score than a negative, ties half.

    By ranks, U / (n₊·n₋) of Mann and Whitney (scipy: `stats.mannwhitneyu`).

    Args:
        labels: 1 for positives and 0 for negatives, (n,).
        scores: finite, (n,).

    Returns:
        The area in [0, 1]; no value if one class is empty.

    Raises:
        InputError: shapes differ, a label is neither 0 nor 1, or a score is not finite.
    """
    is_positive, ranks = _labelled(labels, scores)
    n, positive = len(ranks), int(is_positive.sum())
    if positive in (0, n):
        return no_value(f"of {n} pairs {positive} are positive, and both classes are needed", n)
    return Measure(float(_Counts(ranks[None], is_positive).roc_auc[0]), n)


def average_precision(labels: ArrayLike, scores: Floats) -> Measure:
    """Return the average precision, Σ (Rₖ − Rₖ₋₁)·Pₖ over the distinct scores, from the highest down.

    Equal scores come in together, so that their order does not matter (scikit-learn: `average_precision_score`).

    Args:
        labels: 1 for positives and 0 for negatives, (n,).
        scores: finite, (n,).

    Returns:
        The average in [0, 1]; no value if nothing is positive.

    Raises:
        InputError: shapes differ, a label is neither 0 nor 1, or a score is not finite.
    """
    is_positive, ranks = _labelled(labels, scores)
    n = len(ranks)
    if not is_positive.any():
        return no_value(f"of {n} pairs none is positive", n)
    return Measure(float(_Counts(ranks[None], is_positive).average_precision[0]), n)


class _Counts:
    """The numbers of positives and negatives by rank, from which both areas follow; for several rows of ranks."""

    def __init__(self, ranks: NDArray[np.int64], is_positive: NDArray[np.bool_]) -> None:
        """Count ranks, (rows, n), whole numbers from 0."""
        rows, size = len(ranks), int(ranks.max(initial=0)) + 1
        places = ranks + size * np.arange(rows)[:, None]
        self.positive, self.negative = (
            np.bincount(places[:, chosen].ravel(), minlength=rows * size).reshape(rows, size)
            for chosen in (is_positive, ~is_positive)
        )
        self.num_positive, self.num_negative = int(is_positive.sum()), int((~is_positive).sum())
        self.taken, self.hits = (  # with this rank or a higher one
            np.cumsum(counts[:, ::-1], axis=1)[:, ::-1] for counts in (self.positive + self.negative, self.positive)
        )

    @property
    def areas(self) -> Floats:
        """The area and the average precision of each row, (rows, 2)."""
        return np.stack([self.roc_auc, self.average_precision], axis=1)

    @property
    def roc_auc(self) -> Floats:
        """The area of each row, (rows,)."""
        wins = (self.positive * (2 * np.cumsum(self.negative, axis=1) - self.negative)).sum(axis=1)
        areas: Floats = wins / (2 * self.num_positive * self.num_negative)
        return areas

    @property
    def average_precision(self) -> Floats:
        """The average precision of each row, (rows,)."""
        precision = self.hits / np.maximum(self.taken, 1)
        averages: Floats = (self.positive * precision).sum(axis=1) / self.num_positive
        return averages

    def roc_influences(self) -> tuple[Floats, Floats]:
        """Return how a further positive, and a negative, of each rank would move the area; each (rows, ranks).

        E. DeLong, D. DeLong and Clarke-Pearson, "Comparing the Areas under Two or More Correlated Receiver Operating
        Characteristic Curves", Biometrics 1988: what they call placements, minus the area.
        """
        below = (np.cumsum(self.negative, axis=1) - self.negative / 2) / self.num_negative
        above = (self.hits - self.positive / 2) / self.num_positive
        area = self.roc_auc[:, None]
        return (below - area) / self.num_positive, (above - area) / self.num_negative

    def precision_influences(self) -> tuple[Floats, Floats]:
        """Return the same of the average precision: its derivatives by the weights of a positive and a negative."""
        taken = np.maximum(self.taken, 1)
        gain = np.cumsum(self.positive / taken, axis=1)  # a pair is among those taken at its rank and at lower ones
        loss = np.cumsum(self.positive * self.hits / taken**2, axis=1)
        own = self.hits / taken - self.average_precision[:, None]
        return (own + gain - loss) / self.num_positive, -loss / self.num_positive


def _labelled(labels: ArrayLike, scores: Floats) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Return which pairs are positive, and twice the midranks of their scores."""
    labels, scores = np.asarray(labels), np.asarray(scores, dtype=np.float64)
    if labels.ndim != 1 or labels.shape != scores.shape:
        raise InputError(f"Labels of shape {labels.shape} and scores of shape {scores.shape}; expected both as (n,).")
    if (is_wrong := ~np.isin(labels, (0, 1))).any():
        raise InputError(f"Label {labels[is_wrong][0]} at {is_wrong.argmax()} (counted from 0); expected 0 or 1.")
    if (is_wrong := ~np.isfinite(scores)).any():
        raise InputError(f"Score {scores[is_wrong][0]} at {is_wrong.argmax()} (counted from 0); expected a number.")
    return labels == 1, (2 * midranks(scores)).astype(np.int64)


_MEASURES = {"roc_auc": "ROC AUC", "average_precision": "average precision"}
_COLUMNS: tuple[Column, ...] = (
    ("metric", "metric", str),
    ("pairs", "n", count),
    ("positive", "positive", count),
    ("ROC AUC", "roc_auc", number(4)),
    ("95 %", "roc_auc_interval", ends(4)),
    ("average precision", "average_precision", number(4)),
    ("95 %", "average_precision_interval", ends(4)),
)


@dataclass(frozen=True, slots=True)
class AucResult(Result):
    """Metrics as classifiers of pairs of texts."""

    n: int
    """Pairs of texts."""
    positive: int
    """Those of them that are positive, such as paraphrases."""
    roc_auc: Mapping[str, Measure]
    """By metric, with intervals over other units."""
    average_precision: Mapping[str, Measure]
    """By metric."""
    differences: Mapping[str, Mapping[tuple[str, str], MetricDifference]]
    """By measure, `roc_auc` or `average_precision`, and the names of two metrics, the better one first."""
    units: int
    """What intervals are of and tests exchange: pairs, or groups of dependent ones."""
    notes: tuple[str, ...] = ()
    """Warnings about the data."""
    sentinel_tests: tuple[SentinelTest, ...] = ()
    """Each metric against the best sentinel by each measure, if there are any."""

    def to_dict(self) -> dict[str, Any]:
        """Return what `to_json` writes; a missing value is None, with a reason."""
        return {
            "units": self.units,
            **by_kind({name: self._metric(name) for name in self.roc_auc}),
            "pairs": [
                pair for name, differences in self.differences.items() for pair in pairs_of(differences, measure=name)
            ],
            "notes": list(self.notes),
            "sentinel_tests": [asdict(test) for test in self.sentinel_tests],
        }

    def _metric(self, name: str) -> dict[str, Any]:
        area, precision = self.roc_auc[name], self.average_precision[name]
        return {
            "n": self.n,
            "positive": self.positive,
            "roc_auc": area.value,
            "roc_auc_interval": interval_of(area),
            "average_precision": precision.value,
            "average_precision_interval": interval_of(precision),
            **(area.reasons or precision.reasons),
        }

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        for row in rows_by_metric(self.to_dict()):
            for measure, differences in self.differences.items():
                row |= p_of_others(differences, row["metric"], f"{measure}_")
            yield row

    def _blocks(self) -> Iterator[str]:
        rows = [{"metric": name, **self._metric(name)} for name in self.roc_auc]
        yield with_notes(Table(_COLUMNS, rows).text(), {row["metric"]: row.get("reason", "") for row in rows})
        for name, differences in self.differences.items():
            if differences:
                yield f"{_MEASURES[name]}\n{Table(PAIR_COLUMNS, pairs_of(differences)).text()}"
            tests = [test for test in self.sentinel_tests if test.statistic == name]
            yield from sentinel_lines(_MEASURES[name], tests)
        yield "\n".join(
            [
                *self.notes,
                f"Intervals of 95 % are over other units, here {count(self.units)}: pairs, or those of one reference",
                "or document together. p: by exchanging two metrics' ranks in whole units, two-sided, after Holm.",
            ]
        )


def auc_of_labels(
    labels: NDArray[np.integer],
    metrics: Mapping[str, Floats],
    *,
    units: Sequence[str] | None = None,
    permutations: int = 1000,
    seed: int = 4,
) -> AucResult:
    """Measure how well scores separate the positive pairs of texts from the negative ones.

    The interval of the area has the variance of DeLong et al. (1988); that of average precision the variance that
    follows from its derivatives by the weight of each pair. Two metrics are compared by exchanging the ranks of their
    scores in whole units (E. Venkatraman and C. Begg, "A distribution-free procedure for comparing receiver operating
    characteristic curves from a paired experiment", Biometrika 1996).

    Args:
        labels: 1 for positive pairs and 0 for negative ones, (pairs,).
        metrics: by name the scores of the pairs, (pairs,) each, the higher, the better; NaN where there is none.
        units: the reference or document of each pair, (pairs,); pairs of one are dependent. None if each is a unit.
        permutations: of the test; at least 30 for each pair of metrics.
        seed: of the permutations.

    Returns:
        The area under the ROC curve and the average precision of each metric, with 95 % intervals and a test of every
        two metrics. A metric that lacks scores has neither; with one class alone there is no area.

    Raises:
        InputError: a label is neither 0 nor 1, or there are not as many labels as scores or units.
        MissingExtraError: scipy is not installed.
    """
    n = len(labels)
    if any(len(scores) != n for scores in metrics.values()):
        sizes = ", ".join(f"{len(scores)} of {name}" for name, scores in metrics.items())
        raise InputError(f"There are {n} labels, and scores: {sizes}; expected one for each label.")
    numbers = numbered(units, n)
    keys = [np.asarray(metrics[name]) for name in sorted(metrics)] + [np.asarray(labels)]
    order = np.lexsort(keys if units is None else [*keys, numbers])  # the order of rows changes no exchange
    labels, metrics = np.asarray(labels)[order], {name: np.asarray(scores)[order] for name, scores in metrics.items()}
    unit_of = numbers if units is None else numbers[order]
    num_units = int(unit_of.max(initial=-1)) + 1
    measures: dict[str, dict[str, Measure]] = {name: {} for name in _MEASURES}
    ranks = {}
    for name, scores in metrics.items():
        if lacking := int((~np.isfinite(scores)).sum()):
            missing = no_value(f"{lacking} of {n} pairs have no score", n)
            measures["roc_auc"][name] = measures["average_precision"][name] = missing
            continue
        area, precision = roc_auc(labels, scores), average_precision(labels, scores)
        if area.value is not None and precision.value is not None:
            is_positive, ranks[name] = _labelled(labels, scores)
            area, precision = _with_intervals(area, precision, ranks[name], is_positive, unit_of)
        measures["roc_auc"][name], measures["average_precision"][name] = area, precision
    drawn = enough_permutations(permutations, len(ranks))
    p = _p_values(ranks, np.asarray(labels) == 1, unit_of, drawn, seed)  # (metrics, metrics, measures)
    values = {name: {metric: of[metric].value or 0.0 for metric in ranks} for name, of in measures.items()}
    differences = {name: metric_differences(of, [*ranks], p[..., at]) for at, (name, of) in enumerate(values.items())}
    tests = (against_sentinels(name, of, [*ranks], p[..., at]) for at, (name, of) in enumerate(values.items()))
    notes = [*notes_of_few(num_units, "units"), *notes_of_exchanges(num_units, "units", len(ranks))] if ranks else ()
    roc, precision_of = measures["roc_auc"], measures["average_precision"]
    return AucResult(
        n, int(np.sum(labels)), roc, precision_of, differences, num_units, tuple(notes), tuple(chain(*tests))
    )


def _with_intervals(
    area: Measure,
    precision: Measure,
    ranks: NDArray[np.int64],
    is_positive: NDArray[np.bool_],
    units: NDArray[np.int64],
) -> tuple[Measure, Measure]:
    """Add the intervals; both classes are needed in two units each."""
    counts = _Counts(ranks[None], is_positive)
    smaller = min(len(np.unique(units[chosen])) for chosen in (is_positive, ~is_positive))
    if smaller < 2:
        return area, precision
    found = []
    for measure, sides in ((area, counts.roc_influences()), (precision, counts.precision_influences())):
        of_positive, of_negative = (side[0, ranks] for side in sides)
        influences = np.bincount(units, np.where(is_positive, of_positive, of_negative)).astype(np.float64)
        freedom = min(degrees_of_freedom(influences), smaller - 1)
        low, high = share_interval(measure.value or 0.0, influences, freedom)
        found.append(replace(measure, low=low, high=high))
    return found[0], found[1]


def _p_values(
    ranks: Mapping[str, NDArray[np.int64]],
    is_positive: NDArray[np.bool_],
    units: NDArray[np.int64],
    permutations: int,
    seed: int,
) -> Floats:
    """Test every two metrics in both areas, (metrics, metrics, 2)."""
    rows = [*ranks.values()]

    def difference(first: int, second: int, signs: Floats) -> Floats:
        one, other = np.unique([rows[first], rows[second]], return_inverse=True)[1].reshape(2, -1)
        chunk = max(1, CHUNK_CELLS // len(units))
        found = []
        for start in range(0, len(signs), chunk):
            is_kept = signs[start : start + chunk, units] > 0  # (exchanges, pairs)
            sides = (np.where(is_kept, one, other), np.where(is_kept, other, one))
            areas = [_Counts(side, is_positive).areas for side in sides]
            found.append(areas[0] - areas[1])
        return np.concatenate(found)

    values = np.array([_Counts(row[None], is_positive).areas[0] for row in rows]).reshape(-1, 2)
    return exchange_p(values, int(units.max(initial=-1)) + 1, difference, permutations=permutations, seed=seed)
