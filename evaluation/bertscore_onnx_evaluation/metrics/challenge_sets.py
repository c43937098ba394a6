"""Does a metric see a certain error? Checks of a challenge set over good and bad outputs, by linguistic category.

Hanna and Bojar, "A Fine-Grained Analysis of BERTScore", WMT 2021; y is the reference, y′ another good translation,
b a bad one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.table import MISSING, Column, Table, count
from bertscore_onnx_evaluation.metric_scores import BERTSCORE, MetricScores, score_systems
from bertscore_onnx_evaluation.metrics.correlation import Floats, Measure, no_value
from bertscore_onnx_evaluation.metrics.metric_pairs import (
    PAIR_COLUMNS,
    MetricDifference,
    SentinelTest,
    against_sentinels,
    by_kind,
    ends,
    interval_of,
    kind_of,
    metric_differences,
    notes_of_exchanges,
    notes_of_few,
    p_of_others,
    pairs_of,
    sentinel_lines,
)
from bertscore_onnx_evaluation.metrics.resampling import (
    UnitSums,
    enough_permutations,
    exchange_units,
    mean_interval,
    numbered,
    ratio,
    ratio_influences,
    share_interval,
    sum_by_unit,
)
from bertscore_onnx_evaluation.metrics.sentinels import sentinels_of_pairs
from bertscore_onnx_evaluation.results import Result, flatten, with_notes

if TYPE_CHECKING:
    from bertscore_onnx.scorer import BERTScorer

MIN_EXAMPLES = 5
"""Categories of fewer examples are not shown: their proportion means little."""

CHECKS = ("mean_good", "all_good_above_bad", "order_kept")
"""The paper's conditions i, ii and iii."""

ALL = "(all)"
"""Stands for all examples in the column of categories."""


@dataclass(frozen=True, slots=True)
class ChallengeExample:
    """A reference with other translations of the same text."""

    category: str
    """The error of the bad translations, such as negation."""
    reference: str | Sequence[str]
    good: Sequence[str] = ()
    """Other good translations, usually one."""
    bad: Sequence[str] = ()
    """From better to worse."""


@dataclass(frozen=True, slots=True)
class ChallengeScores:
    """The checks of one metric."""

    checks: Mapping[str, Measure]
    """Over all examples: `mean_good`, the mean score F(y, y′) of good translations (condition i of the paper);
    `all_good_above_bad`, the proportion of examples where F(y, y′) > F(y, b) for each b (ii); `order_kept`, the
    proportion where bad translations score in their order, F(y, bᵢ) > F(y, bⱼ) for each better i (iii). A tie is
    wrong. With 95 % intervals over other units: examples, or those of one reference or document together."""
    categories: Mapping[str, Mapping[str, Measure]]
    """The same by category; only categories of enough examples."""
    signature: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it; a missing value is None, with its reason."""
        return {
            "signature": self.signature,
            "checks": {name: _counts(name, check) | check.reasons for name, check in self.checks.items()},
            "categories": {
                category: {name: _counts(name, check) for name, check in checks.items()}
                for category, checks in self.categories.items()
            },
        }


def _counts(name: str, check: Measure) -> dict[str, Any]:
    """Return the mean score; of the other checks how many examples are right, and their proportion."""
    interval = {"interval": interval_of(check)}
    if name == "mean_good":
        return {"mean": check.value, "n": check.n, **interval}
    return {"right": round((check.value or 0) * check.n), "n": check.n, "share": check.value, **interval}


def check_challenges(
    categories: Sequence[str],
    good: Sequence[ArrayLike],
    bad: Sequence[ArrayLike],
    *,
    units: Sequence[str] | None = None,
    min_examples: int = MIN_EXAMPLES,
) -> ChallengeScores:
    """Check a metric's scores of good and bad translations.

    Args:
        categories: the category of each example, (examples,).
        good: F(y, y′) of each example's other good translation; of several as (good,), of none as NaN or empty. Their
            mean counts for `mean_good`, and the lowest of them for `all_good_above_bad`.
        bad: F(y, b) of each example's bad translations, from better to worse, (bad,) each, and perhaps empty.
        units: the reference or document of each example, (examples,); examples of one are dependent. None if each is a
            unit.
        min_examples: categories of fewer examples are not shown. The values over all examples include theirs.

    Returns:
        `mean_good` over examples with a good translation, `all_good_above_bad` over those that also have a bad one,
        `order_kept` over those with two bad ones. Their 95 % intervals are over other units.

    Raises:
        InputError: the arguments are not equally long, or a score is not a number.
        MissingExtraError: scipy is not installed.
    """
    outcomes = example_outcomes(len(categories), good, bad)
    return _checked(np.array(categories, dtype=str), outcomes, numbered(units, len(categories)), min_examples)


def example_outcomes(num_examples: int, good: Sequence[ArrayLike], bad: Sequence[ArrayLike]) -> dict[str, Floats]:
    """Return by check the value of each example, (examples,): a mean, or 1 if it is right; NaN without one."""
    of_good = [_scores(scores) for scores in good]
    of_bad = [_scores(scores) for scores in bad]
    if not len(of_good) == num_examples == len(of_bad):
        raise InputError(
            f"{num_examples} categories, {len(of_good)} rows of good scores and {len(of_bad)} rows of bad scores; "
            "expected one of each per example."
        )
    of_good = [scores if scores.ndim != 1 else scores[~np.isnan(scores)] for scores in of_good]
    for example, rows in enumerate(zip(of_good, of_bad, strict=True)):
        if not all(scores.ndim == 1 and np.isfinite(scores).all() for scores in rows):
            raise InputError(
                f"Example {example} (counted from 0) has scores that are no numbers; expected (good,) and (bad,)."
            )
    has_good = np.array([len(scores) > 0 for scores in of_good], dtype=bool)
    num_bad = np.array([len(scores) for scores in of_bad], dtype=np.int64)
    means = [scores.mean() if len(scores) else np.nan for scores in of_good]
    is_above = [good.min(initial=np.inf) > bad.max(initial=-np.inf) for good, bad in zip(of_good, of_bad, strict=True)]
    falls = [(np.diff(scores) < 0).all() for scores in of_bad]
    values = zip(CHECKS, (means, is_above, falls), (has_good, has_good & (num_bad > 0), num_bad > 1), strict=True)
    return {
        check: np.where(is_compared, np.array(of_examples, float), np.nan) for check, of_examples, is_compared in values
    }


def _checked(
    categories: NDArray[np.str_], outcomes: Mapping[str, Floats], units: NDArray[np.int64], min_examples: int
) -> ChallengeScores:
    """Summarise the outcomes of all examples, and of each category of enough."""
    checks = {check: _mean(check, of_examples, units) for check, of_examples in outcomes.items()}
    by_category = {}
    for name in np.unique(categories):
        of_category = categories == name
        found = {check: _mean(check, values[of_category], units[of_category]) for check, values in outcomes.items()}
        by_category[str(name)] = {check: one for check, one in found.items() if one.n >= max(1, min_examples)}
    return ChallengeScores(checks, {name: of_category for name, of_category in by_category.items() if of_category})


def _scores(scores: ArrayLike) -> NDArray[np.float64]:
    return np.atleast_1d(np.asarray(scores, dtype=np.float64))


def _mean(check: str, values: Floats, units: NDArray[np.int64]) -> Measure:
    compared = values[~np.isnan(values)]
    if not len(compared):
        return no_value("no example has the outputs that this check compares", 0)
    measure, influences = Measure(float(compared.mean()), len(compared)), ratio_influences(_sums(values, units).sums)
    if len(influences) < 2:
        return measure
    if check == "mean_good":
        low, high = mean_interval(float(compared.mean()), influences)
    else:
        low, high = share_interval(float(compared.mean()), influences, len(influences) - 1)
    return replace(measure, low=low, high=high)


def _sums(values: Floats, units: NDArray[np.int64]) -> UnitSums:
    """Return the mean of the values that are not NaN, of the units that have any."""
    has_value = ~np.isnan(values)
    numbers = np.unique(units[has_value], return_inverse=True)[1]
    return UnitSums(sum_by_unit(np.stack([np.ones(len(numbers)), values[has_value]]), numbers), ratio)


# Challenge sets of texts, which metrics score.


@dataclass(frozen=True, slots=True)
class ChallengeResult(Result):
    """The checks of several metrics."""

    num_examples: int
    min_examples: int
    """Categories of fewer examples are not shown, and count in the values over all."""
    metrics: Mapping[str, ChallengeScores]
    differences: Mapping[str, Mapping[tuple[str, str], MetricDifference]]
    """Over all examples, by check, `all_good_above_bad` or `order_kept`, and the names of two metrics, the better one
    first."""
    units: int
    """What intervals are of and tests exchange: examples, or those of one reference or document together."""
    notes: tuple[str, ...] = ()
    """Warnings about the data."""
    sentinel_tests: tuple[SentinelTest, ...] = ()
    """Each metric against the best sentinel by each check, if there are any."""

    def to_dict(self) -> dict[str, Any]:
        """Return what `to_json` writes; a missing value is None, with a reason."""
        return {
            "examples": self.num_examples,
            "min_examples": self.min_examples,
            "units": self.units,
            **by_kind({name: metric.to_dict() for name, metric in self.metrics.items()}),
            "pairs": [
                pair for check, differences in self.differences.items() for pair in pairs_of(differences, check=check)
            ],
            "notes": list(self.notes),
            "sentinel_tests": [asdict(test) for test in self.sentinel_tests],
        }

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        for name, metric in self.metrics.items():
            values = metric.to_dict()
            for category, checks in {ALL: values["checks"], **values["categories"]}.items():
                of_checks = {f"{check}_{key}": value for check, one in checks.items() for key, value in one.items()}
                row = {"metric": name, "kind": kind_of(name), "category": category, **flatten(of_checks)}
                for check, differences in self.differences.items() if category == ALL else ():
                    row |= p_of_others(differences, name, f"{check}_")
                yield row

    def _blocks(self) -> Iterator[str]:
        columns: list[Column] = [("category", "category", str)]
        for title, check in _TITLES.items():
            mean, interval = (_mean_score, _ends) if check == "mean_good" else (_proportion, _percent_ends)
            columns += [(title, check, mean), ("95 %", check, interval), ("of", check, _number_of)]
        for name, metric in self.metrics.items():
            by_category = {ALL: metric.checks, **metric.categories}
            none = dict.fromkeys(CHECKS)
            table = Table(columns, [{"category": name, **none, **checks} for name, checks in by_category.items()])
            notes = {check: measure.reason for check, measure in metric.checks.items()}
            signature = f" ({metric.signature})" if metric.signature else ""
            yield with_notes(f"{name}{signature}\n{table.text()}", notes)
        titles = {check: title for title, check in _TITLES.items()}
        for check, differences in self.differences.items():
            if differences:
                yield f"{titles[check]}, {ALL}\n{Table(PAIR_COLUMNS, pairs_of(differences)).text()}"
            tests = [test for test in self.sentinel_tests if test.statistic == check]
            yield from sentinel_lines(titles[check], tests)
        yield "\n".join(
            [
                *self.notes,
                "mean good: the mean score of good translations. good above bad: each good one scores",
                "above every bad one. order kept: bad ones score in their order, from better to worse.",
                f"Categories of fewer than {self.min_examples} examples are not shown, and count in {ALL}.",
                f"Intervals of 95 % are over other units, here {count(self.units)}: examples, or those of one",
                "reference or document together. p: by exchanging these as a whole, two-sided, after Holm.",
            ]
        )


_TITLES = dict(zip(("mean good", "good above bad", "order kept"), CHECKS, strict=True))


def _mean_score(check: Measure | None) -> str:
    return MISSING if check is None or check.value is None else f"{check.value:.3f}"


def _proportion(check: Measure | None) -> str:
    return MISSING if check is None or check.value is None else f"{check.value:.1%}"


def _ends(check: Measure | None) -> str:
    return MISSING if check is None else ends(3)(interval_of(check))


def _percent_ends(check: Measure | None) -> str:
    interval = None if check is None else interval_of(check)
    return MISSING if interval is None else " ".join(f"{end:.1%}" for end in interval)


def _number_of(check: Measure | None) -> str:
    return MISSING if check is None or check.value is None else count(check.n)


def evaluate_challenge_set(
    examples: Sequence[ChallengeExample],
    *,
    metrics: Iterable[str] | Mapping[str, Mapping[str, Any]] = (BERTSCORE,),
    scorer: "BERTScorer | None" = None,
    units: Sequence[str] | None = None,
    min_examples: int = MIN_EXAMPLES,
    permutations: int = 1000,
    seed: int = 4,
    sentinels: bool = True,
    verbose: bool | None = False,
) -> ChallengeResult:
    """Score good and bad translations with metrics, each once, and check the scores.

    Args:
        examples: at least one, with a good or a bad translation among them.
        metrics, scorer, verbose: as `score_systems` takes them.
        units: the document of each example, (examples,), or any other group of dependent ones; None takes examples
            with the same reference together.
        min_examples: categories of fewer examples are not shown.
        permutations: of the test of every two metrics, which exchanges their outcomes in whole units; at least 30 for
            each pair of metrics.
        seed: of the permutations.
        sentinels: whether to check sentinels too, and to test whether each metric is better than all of them.

    Raises:
        InputError: there is nothing to score, a metric or an option is unknown, or the scorer is missing or scores
            every layer.
        MissingExtraError: scipy is not installed, or sacreBLEU, if it is needed.
    """
    texts = [[*one.good, *one.bad] for one in examples]
    if not any(texts):
        raise InputError(
            f"There are {len(examples)} examples, and no good or bad translation among them. Give both to at least one."
        )
    references = [one.reference for one, some in zip(examples, texts, strict=True) for _ in some]
    candidates = [text for some in texts for text in some]
    ends_of = list(accumulate(map(len, texts)))[:-1]
    numbers = numbered([str(one.reference) for one in examples] if units is None else units, len(examples))
    categories = np.array([one.category for one in examples], dtype=str)
    results, outcomes = {}, {}
    scored = score_systems(metrics, [candidates], [references], scorer=scorer, verbose=verbose)
    of_each = [[one] if isinstance(one, str) else [*one] for one in references]
    for name, scores in sentinels_of_pairs(candidates, of_each, seed).items() if sentinels else ():
        scored[name] = MetricScores(None, scores[None])
    for name, metric in scored.items():
        sign = -1 if metric.lower_is_better else 1
        [scores] = sign * np.asarray(metric.segment)
        by_example = np.split(scores, ends_of)
        outcomes[name] = example_outcomes(
            len(examples),
            [some[: len(one.good)] for some, one in zip(by_example, examples, strict=True)],
            [some[len(one.good) :] for some, one in zip(by_example, examples, strict=True)],
        )
        found = _checked(categories, outcomes[name], numbers, min_examples)
        results[name] = replace(
            found,
            checks=_with_sign(found.checks, sign),
            categories={category: _with_sign(checks, sign) for category, checks in found.categories.items()},
            signature=metric.segment_signature or metric.signature,
        )
    drawn = enough_permutations(permutations, len(results))
    compared = {check: compare_checks(check, outcomes, numbers, drawn, seed) for check in CHECKS[1:]}
    num_units = int(numbers.max()) + 1
    notes = (*notes_of_few(num_units, "units"), *notes_of_exchanges(num_units, "units", len(results)))
    differences = {check: pairs for check, (pairs, _) in compared.items()}
    tests = tuple(test for _, of_check in compared.values() for test in of_check)
    return ChallengeResult(len(examples), min_examples, results, differences, num_units, notes, tests)


def compare_checks(
    check: str, outcomes: Mapping[str, Mapping[str, Floats]], units: NDArray[np.int64], permutations: int, seed: int
) -> tuple[dict[tuple[str, str], MetricDifference], tuple[SentinelTest, ...]]:
    """Compare every two metrics by a check, and each with the sentinels; none where no example has what it compares."""
    compared = {name: of_metric[check] for name, of_metric in outcomes.items() if not np.isnan(of_metric[check]).all()}
    sums = {name: _sums(values, units) for name, values in compared.items()}
    values = {name: float(ratio(one.sums.sum(axis=0))) for name, one in sums.items()}
    p = exchange_units([*sums.values()], permutations=permutations, seed=seed)
    return metric_differences(values, [*values], p), against_sentinels(check, values, [*values], p)


def _with_sign(checks: Mapping[str, Measure], sign: int) -> dict[str, Measure]:
    """Return the mean score as the metric has it, negative again if lower ones are better."""
    mean = checks.get("mean_good")
    if sign > 0 or mean is None or mean.value is None:
        return dict(checks)
    low, high = (None if end is None else -end for end in (mean.high, mean.low))
    return {**checks, "mean_good": replace(mean, value=-mean.value, low=low, high=high)}
