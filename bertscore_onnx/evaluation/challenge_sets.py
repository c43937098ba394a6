"""Does a metric see a certain error? Checks of a challenge set over good and bad outputs, by linguistic category.

Hanna and Bojar, "A Fine-Grained Analysis of BERTScore", WMT 2021; y is the reference, y′ another good translation,
b a bad one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.correlation import Measure, no_value
from bertscore_onnx.evaluation.metrics import BERTSCORE, score_systems
from bertscore_onnx.evaluation.tables import MISSING, Column, Result, Table, count, flatten, with_notes

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
    wrong."""
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
    if name == "mean_good":
        return {"mean": check.value, "n": check.n}
    return {"right": round((check.value or 0) * check.n), "n": check.n, "share": check.value}


def check_challenges(
    categories: Sequence[str],
    good: Sequence[ArrayLike],
    bad: Sequence[ArrayLike],
    *,
    min_examples: int = MIN_EXAMPLES,
) -> ChallengeScores:
    """Check a metric's scores of good and bad translations.

    Args:
        categories: the category of each example, (examples,).
        good: F(y, y′) of each example's other good translation; of several as (good,), of none as NaN or empty. Their
            mean counts for `mean_good`, and the lowest of them for `all_good_above_bad`.
        bad: F(y, b) of each example's bad translations, from better to worse, (bad,) each, and perhaps empty.
        min_examples: categories of fewer examples are not shown. The values over all examples include theirs.

    Returns:
        `mean_good` over examples with a good translation, `all_good_above_bad` over those that also have a bad one,
        `order_kept` over those with two bad ones.

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
    num_bad = np.array([len(scores) for scores in of_bad], dtype=np.int64)
    means = [scores.mean() if len(scores) else np.nan for scores in of_good]
    is_above = [good.min(initial=np.inf) > bad.max(initial=-np.inf) for good, bad in zip(of_good, of_bad, strict=True)]
    falls = [(np.diff(scores) < 0).all() for scores in of_bad]
    values = zip(CHECKS, (means, is_above, falls), (has_good, has_good & (num_bad > 0), num_bad > 1), strict=True)
    names = np.array(categories, dtype=str)
    checks = {}
    by_category: dict[str, dict[str, Measure]] = {name: {} for name in sorted({*categories})}
    for check, of_examples, is_compared in values:
        compared = np.array(of_examples)[is_compared]
        checks[check] = _mean(compared)
        for name in np.unique(names[is_compared]):
            chosen = compared[names[is_compared] == name]
            if len(chosen) >= min_examples:
                by_category[str(name)][check] = _mean(chosen)
    return ChallengeScores(checks, {name: of_category for name, of_category in by_category.items() if of_category})


def _scores(scores: ArrayLike) -> NDArray[np.float64]:
    return np.atleast_1d(np.asarray(scores, dtype=np.float64))


def _mean(values: NDArray[Any]) -> Measure:
    if not len(values):
        return no_value("no example has the outputs that this check compares", 0)
    return Measure(float(values.mean()), len(values))


# Challenge sets of texts, which metrics score.


@dataclass(frozen=True, slots=True)
class ChallengeResult(Result):
    """The checks of several metrics."""

    num_examples: int
    min_examples: int
    """Categories of fewer examples are not shown, and count in the values over all."""
    metrics: Mapping[str, ChallengeScores]

    def to_dict(self) -> dict[str, Any]:
        """Return what `to_json` writes; a missing value is None, with a reason."""
        return {
            "examples": self.num_examples,
            "min_examples": self.min_examples,
            "metrics": {name: metric.to_dict() for name, metric in self.metrics.items()},
        }

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        for name, metric in self.metrics.items():
            values = metric.to_dict()
            for category, checks in {ALL: values["checks"], **values["categories"]}.items():
                yield {"metric": name, "category": category, **flatten(checks)}

    def _blocks(self) -> Iterator[str]:
        columns: list[Column] = [("category", "category", str)]
        for title, check in zip(("mean good", "good above bad", "order kept"), CHECKS, strict=True):
            columns += [(title, check, _mean_score if check == "mean_good" else _proportion), ("of", check, _number_of)]
        for name, metric in self.metrics.items():
            by_category = {ALL: metric.checks, **metric.categories}
            none = dict.fromkeys(CHECKS)
            table = Table(columns, [{"category": name, **none, **checks} for name, checks in by_category.items()])
            notes = {check: measure.reason for check, measure in metric.checks.items()}
            yield with_notes(f"{name} ({metric.signature})\n{table.text()}", notes)
        yield (
            "mean good: the mean score of good translations. good above bad: each good one scores\n"
            "above every bad one. order kept: bad ones score in their order, from better to worse.\n"
            f"Categories of fewer than {self.min_examples} examples are not shown, and count in {ALL}."
        )


def _mean_score(check: Measure | None) -> str:
    return MISSING if check is None or check.value is None else f"{check.value:.3f}"


def _proportion(check: Measure | None) -> str:
    return MISSING if check is None or check.value is None else f"{check.value:.1%}"


def _number_of(check: Measure | None) -> str:
    return MISSING if check is None or check.value is None else count(check.n)


def evaluate_challenge_set(
    examples: Sequence[ChallengeExample],
    *,
    metrics: Iterable[str] | Mapping[str, Mapping[str, Any]] = (BERTSCORE,),
    scorer: "BERTScorer | None" = None,
    min_examples: int = MIN_EXAMPLES,
    verbose: bool | None = False,
) -> ChallengeResult:
    """Score good and bad translations with metrics, each once, and check the scores.

    Args:
        examples: at least one, with a good or a bad translation among them.
        metrics, scorer, verbose: as `score_systems` takes them.
        min_examples: categories of fewer examples are not shown.

    Raises:
        InputError: there is nothing to score, a metric or an option is unknown, or the scorer is missing or scores
            every layer.
        MissingExtraError: sacreBLEU is needed and not installed.
    """
    texts = [[*one.good, *one.bad] for one in examples]
    if not any(texts):
        raise InputError(
            f"There are {len(examples)} examples, and no good or bad translation among them. Give both to at least one."
        )
    references = [one.reference for one, some in zip(examples, texts, strict=True) for _ in some]
    candidates = [text for some in texts for text in some]
    ends = list(accumulate(map(len, texts)))[:-1]
    results = {}
    for name, metric in score_systems(metrics, [candidates], [references], scorer=scorer, verbose=verbose).items():
        sign = -1 if metric.lower_is_better else 1
        [scores] = sign * np.asarray(metric.segment)
        by_example = np.split(scores, ends)
        found = check_challenges(
            [one.category for one in examples],
            [some[: len(one.good)] for some, one in zip(by_example, examples, strict=True)],
            [some[len(one.good) :] for some, one in zip(by_example, examples, strict=True)],
            min_examples=min_examples,
        )
        results[name] = replace(
            found,
            checks=_with_sign(found.checks, sign),
            categories={category: _with_sign(checks, sign) for category, checks in found.categories.items()},
            signature=metric.segment_signature or metric.signature,
        )
    return ChallengeResult(len(examples), min_examples, results)


def _with_sign(checks: Mapping[str, Measure], sign: int) -> dict[str, Measure]:
    """Return the mean score as the metric has it, negative again if lower ones are better."""
    mean = checks.get("mean_good")
    if mean is None or mean.value is None:
        return dict(checks)
    return {**checks, "mean_good": replace(mean, value=sign * mean.value)}
