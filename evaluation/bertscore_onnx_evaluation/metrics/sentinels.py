"""Sentinels: scores that read no meaning.

They show what a set of judgements grants to any metric: a metric that does not beat them has not
been shown to measure quality.

Perrella, Proietti, Huguet Cabot, Barba and Navigli, "Guardians of the Machine Translation
Meta-Evaluation: Sentinel Metrics Fall In!", ACL 2024.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import InputError, plural
from bertscore_onnx.tables.order import natural_key
from bertscore_onnx_evaluation.metric_scores import MetricScores
from bertscore_onnx_evaluation.metrics.agreement import MetricAgreement
from bertscore_onnx_evaluation.metrics.correlation import Floats, mean_by_system
from bertscore_onnx_evaluation.metrics.judged_systems import SENTINELS, JudgedSystems
from bertscore_onnx_evaluation.table import listed

RANDOM, SEGMENT, LENGTH, LENGTH_RATIO, OVERLAP = SENTINELS

DRAWN_SCORES = 100_000
"""Random scores of a simulation, of 10 to 100 draws; a smaller set of judgements has more draws."""

_WORD = re.compile(
    r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
)
"""A word, or a character of Chinese or Japanese."""


def sentinel_scores(judged: JudgedSystems, seed: int = 4) -> dict[str, MetricScores]:
    """Return the scores of each sentinel by its name.

    Sentinels that read texts only if each judged output has texts.

    They are normal random numbers (the first of `random_scores`); where systems share segments, the
    difficulty of each segment, which is the mean of the metrics' scores over all systems,
    standardised; the number of characters of the candidate; the lengths of candidate and reference
    as the shorter by the longer; and their overlap (F1 of the counts of lower-case words). Of
    several references the best counts.

    Raises InputError if a metric is called as a sentinel.
    """
    for name in judged.metrics:
        if name in SENTINELS:
            raise InputError(
                f"{judged.language_pair}: two of the scores are called {name!r}. Rename the metric."
            )
    sentinels = {RANDOM: next(random_scores(judged, seed))}
    is_judged = judged.is_judged
    if judged.num_shared:
        difficulty = _difficulty(judged)
        if difficulty is not None:
            sentinels[SEGMENT] = _scores(difficulty)
    for name, scores in _of_texts(judged).items():
        if np.isfinite(scores[is_judged]).all():
            sentinels[name] = _scores(scores)
    return sentinels


def _difficulty(judged: JudgedSystems) -> Floats | None:
    """Return the mean standardised score of all metrics in each segment, the same for all systems;
    None without metrics.
    """
    is_judged = judged.is_judged
    standardised = []
    for metric in judged.metrics.values():
        scores = metric.segment
        spread = scores[is_judged].std()
        if spread > 0:
            deviations = scores - scores[is_judged].mean()
            standardised.append(np.where(is_judged, deviations / spread, 0))
    if not standardised:
        return None
    means = np.mean(standardised, axis=0).sum(axis=0) / np.maximum(is_judged.sum(axis=0), 1)
    return np.where(is_judged, means, np.nan)


def notes_of_sentinels(judged: JudgedSystems, sentinels: Collection[str]) -> Iterator[str]:
    """Yield why these are not all sentinels, if there are texts."""
    lacking = [name for name in (LENGTH, LENGTH_RATIO, OVERLAP) if name not in sentinels]
    if not sentinels or not lacking or judged.candidates is None:
        return
    is_judged = judged.is_judged
    textless = int((is_judged & ~_has_texts(judged)).sum())
    outputs = plural(int(is_judged.sum()), "judged output")
    reason = f"{textless:,} of {outputs} have no text, or no reference"
    yield f"left out {listed(lacking)}: {reason}"


def random_scores(judged: JudgedSystems, seed: int = 4) -> Iterator[MetricScores]:
    """Yield normal random scores, draw by draw, whatever the order of systems or segments."""
    shape = judged.human_segment.shape
    rng = np.random.default_rng(seed)
    rows = np.argsort(np.argsort(judged.systems))
    names = judged.segments
    order = sorted(range(len(names)), key=lambda segment: natural_key(names[segment]))
    columns = np.argsort(order)
    num_draws = np.clip(DRAWN_SCORES // (shape[0] * shape[1]), 10, 100)
    for _ in range(int(num_draws)):
        yield _scores(rng.normal(size=shape)[rows][:, columns])


def mean_agreement(draws: Sequence[MetricAgreement]) -> MetricAgreement:
    """Return the mean of each measure over random draws, without an interval."""
    measures = dict(draws[0].measures)
    for key, first in measures.items():
        of_draws = [draw.measures[key].value for draw in draws]
        values = [value for value in of_draws if value is not None]
        if values:
            measures[key] = replace(first, value=float(np.mean(values)))
    return replace(draws[0], measures=measures)


def _has_texts(judged: JudgedSystems) -> NDArray[np.bool_]:
    """Return which outputs have a candidate and a reference, (systems, segments)."""
    has_texts = np.zeros_like(judged.is_judged)
    if not judged.references:
        return has_texts
    for row, outputs in enumerate(judged.candidates or ()):
        for segment, candidate in enumerate(outputs):
            has_reference = bool(judged.references[row][segment])
            has_texts[row, segment] = candidate is not None and has_reference
    return has_texts


def _scores(segment: Floats) -> MetricScores:
    return MetricScores(mean_by_system(segment), segment)


def _of_texts(judged: JudgedSystems) -> dict[str, Floats]:
    """Return the scores of sentinels that read texts, (systems, segments), NaN without texts."""
    if judged.candidates is None:
        return {}
    shape = judged.human_segment.shape
    scores = {name: np.full(shape, np.nan) for name in (LENGTH, LENGTH_RATIO, OVERLAP)}
    count_words = cache(lambda text: Counter(_WORD.findall(text.lower())))
    for row, segment in np.argwhere(_has_texts(judged)).tolist():
        text = judged.candidates[row][segment] or ""
        references = judged.references[row][segment]
        ratios = [_length_ratio(len(text), len(reference)) for reference in references]
        scores[LENGTH][row, segment] = len(text)
        scores[LENGTH_RATIO][row, segment] = max(ratios)
        scores[OVERLAP][row, segment] = _overlap(count_words(text), map(count_words, references))
    return scores


def _length_ratio(candidate: int, reference: int) -> float:
    if candidate == reference:
        return 1.0  # also of two empty texts
    return min(candidate, reference) / max(candidate, reference, 1)


def _overlap(candidate: Counter[str], references: Iterable[Counter[str]]) -> float:
    """Return the F1 of the counts of words, of the best reference; 0 if neither has a word."""
    return max(
        2 * (candidate & reference).total() / max(1, candidate.total() + reference.total())
        for reference in references
    )
