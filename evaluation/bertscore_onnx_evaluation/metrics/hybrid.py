"""Hybrid systems: many artificial systems, each segment's output drawn from one of the real ones.

Graham and Liu, "Achieving Accurate Conclusions in Evaluation of Automatic Machine Translation Metrics", NAACL 2016;
model selection among them: Zhang et al., "BERTScore", ICLR 2020, section 5.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.table import MISSING, Column, Table, plain
from bertscore_onnx_evaluation.metric_scores import corpus_metric
from bertscore_onnx_evaluation.metrics.correlation import Floats, Measure, correlate_pairs, judged_scores, no_value
from bertscore_onnx_evaluation.metrics.judged_systems import SENTINELS, JudgedSystems, check_systems
from bertscore_onnx_evaluation.metrics.metric_pairs import (
    PAIR_COLUMNS,
    MetricDifference,
    SentinelTest,
    against_sentinels,
    by_kind,
    metric_differences,
    pairs_of,
    sentinel_lines,
)
from bertscore_onnx_evaluation.metrics.resampling import (
    UnitSums,
    correlation_interval,
    enough_permutations,
    exchange_units,
    resampled,
    sum_by_unit,
    wilson,
)
from bertscore_onnx_evaluation.results import Result, language_pair_title, rows_by_language_pair, with_notes
from bertscore_onnx_evaluation.systems.corpus_scores import SummedStatistics
from bertscore_onnx_evaluation.systems.power import intervals

QUANTILE = 1.959963984540054
"""Of the standard normal distribution at .975, for intervals of 95 %."""
NUM_HYBRIDS, NUM_CANDIDATES, NUM_TRIALS = 10_000, 100, 100_000
NUM_CURVE_CELLS = 200_000
"""Of the simulation of a selection."""
NUM_POOLS = 30
NUM_PERMUTATIONS = 1000
CHUNK_CELLS = 2_000_000
"""Scores or random numbers in memory at a time: 16 MB."""


@dataclass(frozen=True, slots=True)
class HybridSystems:
    """Which system each segment of each hybrid system came from."""

    systems: NDArray[np.int32]
    """(hybrids, judged segments)."""
    segments: NDArray[np.int64]
    """The segments that anybody judged, (judged segments,)."""
    shape: tuple[int, ...]
    """Of the judgements, (systems, segments)."""

    def scores(self, scores: Floats) -> Floats:
        """Average the scores of each hybrid system's outputs; (hybrids,).

        Args:
            scores: of the real systems, (systems, segments), finite where annotators judged. A metric of whole corpora,
                such as BLEU, is computed from the outputs in `systems` and `segments` instead.

        Raises:
            InputError: the scores have another shape than the judgements, or a drawn output has no finite score.
        """
        if np.shape(scores) != self.shape:
            raise InputError(f"Scores of shape {np.shape(scores)}; expected {self.shape}, as the judgements.")
        judged = np.asarray(scores, dtype=np.float64)[:, self.segments]
        chunk = max(1, CHUNK_CELLS // len(self.segments))
        columns = np.arange(len(self.segments))
        starts = range(0, len(self.systems), chunk)
        means = np.concatenate([judged[self.systems[at : at + chunk], columns].mean(axis=1) for at in starts])
        if not np.isfinite(means).all():
            raise InputError(
                "A judged output has no finite score. Give one, or NaN as its human score to leave it out."
            )
        return means


@dataclass(frozen=True, slots=True)
class ModelSelection:
    """The quality of the systems that a metric selects, each with an interval of 95 % and the number of trials.

    The intervals are of the draws alone: more trials make them smaller, other segments would move the values more.
    """

    hits_at_1: Measure
    """How often it is the best one by human scores (interval of Wilson)."""
    mrr: Measure
    """The mean of 1 / its rank by human scores (normal interval)."""
    diff: Measure
    """How much higher the human score of the best one is, on average (normal interval)."""


def hybrid_systems(human: Floats, *, num_hybrids: int = 10_000, seed: int = 0) -> HybridSystems:
    """Draw hybrid systems: each segment's output from one of the systems judged on it, all as likely.

    Args:
        human: (systems, segments), NaN where nobody judged; segments that nobody judged are left out.
        num_hybrids: how many to draw.
        seed: of the draws. All metrics are compared on the same hybrid systems.

    Raises:
        InputError: the scores have another shape, none is judged, or `num_hybrids` is below 1.
    """
    human, _ = judged_scores(human, human)
    is_judged = ~np.isnan(human)
    counts = is_judged.sum(axis=0)
    segments = np.flatnonzero(counts)
    if not len(segments) or num_hybrids < 1:
        raise InputError(f"{num_hybrids} hybrid systems of {len(segments)} judged segments; expected at least 1 of 1.")
    judged_first = np.argsort(~is_judged[:, segments], axis=0, kind="stable")  # (systems, judged segments)
    drawn = np.random.default_rng(seed).integers(counts[segments], size=(num_hybrids, len(segments)), dtype=np.int32)
    return HybridSystems(judged_first.astype(np.int32)[drawn, np.arange(len(segments))], segments, human.shape)


def select_models(
    human: Floats, metric: Floats, *, num_candidates: int = 100, trials: int = 100_000, seed: int = 0
) -> ModelSelection:
    """Choose the best of a few systems by a metric, many times, and rate the choice by human scores.

    Args:
        human: human scores of the (hybrid) systems, (hybrids,), finite.
        metric: by the metric, (hybrids,), finite. Of systems that tie at the top, one is taken at random.
        num_candidates: how many different systems there are to choose from in each trial, at least 2.
        trials: how many choices are made.
        seed: of the draws.

    Returns:
        Hits@1, MRR and Diff. A choice that human scores tie with the best is a hit, and has rank 1.

    Raises:
        InputError: shapes differ, a score is not finite, or a number does not fit.
    """
    [selection] = select_by_each(human, [metric], num_candidates=num_candidates, trials=trials, seed=seed)
    return selection


def select_by_each(
    human: Floats, metrics: Sequence[Floats], *, num_candidates: int = 100, trials: int = 100_000, seed: int = 0
) -> list[ModelSelection]:
    """Select among the same systems by several metrics, (hybrids,) each, as `select_models` does by one."""
    pairs = [judged_scores(human, metric, ndim=1) for metric in metrics]
    human = np.asarray(human, dtype=np.float64)
    if np.isnan(human).any():
        raise InputError("A system has no human score. Leave it out.")
    if not 2 <= num_candidates <= len(human) or trials < 1:
        raise InputError(
            f"{trials} trials with {num_candidates} candidates of {len(human)} systems; "
            f"expected at least 1 trial, and from 2 candidates up to all systems."
        )
    rng = np.random.default_rng(seed)
    ranks, diffs = np.empty((2, len(metrics), trials))
    chunk = max(1, CHUNK_CELLS // num_candidates)
    for start in range(0, trials, chunk):
        rows = slice(start, min(start + chunk, trials))
        size = rows.stop - rows.start
        drawn = np.stack([rng.choice(len(human), num_candidates, replace=False) for _ in range(size)])
        human_scores = human[drawn]  # (rows, candidates)
        for row, (_, metric) in enumerate(pairs):
            chosen = np.take_along_axis(human_scores, metric[drawn].argmax(axis=1)[:, None], axis=1)  # (rows, 1)
            ranks[row, rows] = 1 + (human_scores > chosen).sum(axis=1)
            diffs[row, rows] = human_scores.max(axis=1) - chosen[:, 0]
    return [
        ModelSelection(
            binomial_interval(int((rank == 1).sum()), trials), _mean_interval(1 / rank), _mean_interval(diff)
        )
        for rank, diff in zip(ranks, diffs, strict=True)
    ]


def binomial_interval(hits: int, trials: int) -> Measure:
    """Return a share with its interval: E. B. Wilson, "Probable inference", JASA 1927, at 95 %."""
    low, high = wilson(hits / trials, trials, QUANTILE)
    return Measure(hits / trials, trials, low=low, high=high)


def _mean_interval(values: Floats) -> Measure:
    mean = float(values.mean())
    half = QUANTILE * float(values.std() / np.sqrt(len(values)))
    return Measure(mean, len(values), low=mean - half, high=mean + half)


# Hybrid systems by language pair: how metrics correlate with human scores over them, and select among them.


@dataclass(frozen=True, slots=True)
class HybridOfLanguagePair:
    """All metrics on one language pair."""

    language_pair: str
    systems: tuple[str, ...]
    human_systems: tuple[str, ...]
    """The systems that were left out because they are human translations."""
    num_segments: int
    """Segments that anybody judged."""
    corpus_metrics: frozenset[str]
    """The metrics that score the texts of a hybrid system as one corpus; others average over its segments."""
    pearson: Mapping[str, Measure]
    """By metric, with its sign; higher scores are better. Intervals are of other segments; a metric of whole corpora
    has none."""
    selections: Mapping[str, ModelSelection]
    """By metric, for those that correlate."""
    pairs: Mapping[tuple[str, str], MetricDifference]
    """Whether one metric correlates better than another, for every two that correlate, by falling correlation."""
    sentinel_tests: tuple[SentinelTest, ...] = ()
    """Each metric against the best sentinel, if there are any."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON has it; a missing value is None, with a reason."""
        return {
            "systems": list(self.systems),
            "human_systems": list(self.human_systems),
            "segments": self.num_segments,
            **by_kind({name: self._metric(name) for name in self.pearson}),
            "pairs": pairs_of(self.pairs),
            "sentinel_tests": [asdict(test) for test in self.sentinel_tests],
        }

    def _metric(self, name: str) -> dict[str, Any]:
        pearson, selection = self.pearson[name], self.selections.get(name)
        values: dict[str, Any] = {
            "n": pearson.n,
            "score": "corpus" if name in self.corpus_metrics else "mean of segments",
            "pearson": pearson.value,
            "pearson_interval": None if pearson.low is None else [pearson.low, pearson.high],
        }
        for key in ("hits_at_1", "mrr", "diff"):
            estimate: Measure | None = getattr(selection, key, None)
            values[key] = estimate and estimate.value
            values[f"{key}_interval"] = estimate and [estimate.low, estimate.high]
        return {**values, "trials": selection and selection.hits_at_1.n, **pearson.reasons}


def _estimate(measure: Measure | None) -> str:
    if measure is None or measure.value is None:
        return MISSING
    return f"{measure.value:.3f}" + ("" if measure.low is None else f" [{measure.low:.3f}, {measure.high:.3f}]")


_METRICS: tuple[Column, ...] = (
    ("metric", "metric", str),
    ("score", "score", plain),
    ("Pearson", "pearson", _estimate),
    ("Hits@1", "hits_at_1", _estimate),
    ("MRR", "mrr", _estimate),
    ("Diff", "diff", _estimate),
)


@dataclass(frozen=True, slots=True)
class HybridResult(Result):
    """Every metric on the hybrid systems of every language pair."""

    num_hybrids: int
    num_candidates: int
    num_trials: int
    seed: int
    language_pairs: tuple[HybridOfLanguagePair, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return what `to_json` writes; a missing value is None, with a reason."""
        return {
            "num_hybrids": self.num_hybrids,
            "num_candidates": self.num_candidates,
            "num_trials": self.num_trials,
            "seed": self.seed,
            "language_pairs": {pair.language_pair: pair.to_dict() for pair in self.language_pairs},
        }

    def _rows(self) -> Iterator[Mapping[str, Any]]:
        return rows_by_language_pair(self.to_dict())

    def _blocks(self) -> Iterator[str]:
        for pair in self.language_pairs:
            systems = language_pair_title(pair.language_pair, pair.systems, pair.human_systems)
            rows = [
                {
                    "metric": name,
                    "score": "corpus" if name in pair.corpus_metrics else "mean",
                    "pearson": pearson,
                    **{key: getattr(pair.selections.get(name), key, None) for key in ("hits_at_1", "mrr", "diff")},
                }
                for name, pearson in pair.pearson.items()
            ]
            title = f"{systems}, {self.num_hybrids:,} hybrids of {pair.num_segments:,} segments"
            reasons = {name: pearson.reason for name, pearson in pair.pearson.items()}
            reasons |= {f"{better} and {worse}": test.reason for (better, worse), test in pair.pairs.items()}
            yield with_notes(f"{title}\n{Table(_METRICS, rows).text()}", reasons)
            if pair.pairs:
                yield Table(PAIR_COLUMNS, pair.to_dict()["pairs"]).text()
            yield from sentinel_lines("Pearson", pair.sentinel_tests)
        choice = f"the best of {self.num_candidates:,} hybrids is chosen, {self.num_trials:,} times"
        yield (
            f"Hits@1, MRR and Diff where {choice};\nintervals of 95 % over other segments, but for metrics of whole "
            "corpora, where they are of the\ndraws alone. p: by exchanging whole segments, two-sided, after Holm."
        )


def hybrid_by_language_pair(
    language_pairs: Sequence[JudgedSystems],
    *,
    corpus_metrics: Mapping[str, Mapping[str, Any]] | None = None,
    num_hybrids: int = NUM_HYBRIDS,
    num_candidates: int = NUM_CANDIDATES,
    num_trials: int = NUM_TRIALS,
    seed: int = 0,
    human_systems: Collection[str] = (),
) -> HybridResult:
    """Draw hybrid systems for each language pair, and compare metrics with human scores on them.

    Given scores count by their mean over the segments of a hybrid system, as human scores do.

    Args:
        language_pairs: the systems of each, with scores by segment.
        corpus_metrics: metrics of sacreBLEU that score the texts of each hybrid system as one corpus, with the options
            of its class, such as `{"bleu": {}, "chrf": {"word_order": 2}}`. Their names end with the reference in
            use, as those of the metrics do.
        num_hybrids: how many hybrid systems are drawn.
        num_candidates: how many of them a metric selects the best one from.
        num_trials: how often it does.
        seed: of all draws.
        human_systems: the systems that are human translations, which are left out.

    Returns:
        Pearson's r over all hybrid systems, how good the best of `num_candidates` by each metric is, both with
        intervals by a bootstrap of segments (documents, if known), and a test of every two metrics by exchanging these.

    Raises:
        InputError: numbers that do not fit, an unknown system, metric or option, or only whole systems have human
            scores.
        MissingExtraError: sacreBLEU is needed and not installed.
    """
    if not 2 <= num_candidates <= num_hybrids or num_trials < 1:
        raise InputError(
            f"num_candidates is {num_candidates}, num_hybrids {num_hybrids} and num_trials {num_trials}. Choose among "
            "2 candidates or more, up to all hybrids, at least once."
        )
    check_systems(language_pairs, human_systems)
    draws = {"num_candidates": num_candidates, "trials": num_trials, "seed": seed}
    found = tuple(
        _of_language_pair(one, corpus_metrics or {}, num_hybrids, draws, human_systems) for one in language_pairs
    )
    return HybridResult(num_hybrids, num_candidates, num_trials, seed, found)


def _of_language_pair(
    judged: JudgedSystems,
    corpus_metrics: Mapping[str, Mapping[str, Any]],
    num_hybrids: int,
    draws: Mapping[str, int],
    excluded: Collection[str],
) -> HybridOfLanguagePair:
    end = f"-{judged.reference}" if judged.reference else ""
    of_corpora = {name + end: name for name in corpus_metrics}
    if both := [name for name in of_corpora if name in judged.metrics]:
        raise InputError(f"{judged.language_pair}: there are scores called {both[0]!r} already. Rename them.")
    outputs, human, human_systems = judged.exclude_human_systems(excluded)
    num_segments = int((~np.isnan(human)).any(axis=0).sum())
    human_scores = np.empty(0)
    scores: dict[str, Floats | str] = {}  # (hybrids,), or the reason why there are none
    if reason := _no_hybrids(outputs, num_segments):
        scores |= dict.fromkeys((*judged.metrics, *of_corpora), reason)
    else:
        hybrids = hybrid_systems(human, num_hybrids=num_hybrids, seed=draws["seed"])
        human_scores = hybrids.scores(human)
        for name, metric in outputs.metrics.items():
            of_segments = outputs.segment_scores(metric)
            scores[name] = outputs.unscored(of_segments) or hybrids.scores(of_segments)
        for shown, name in of_corpora.items():
            scores[shown] = _corpus_scores(hybrids, outputs, human, name, corpus_metrics[name])
    pearsons = {
        name: no_value(of_metric, 0) if isinstance(of_metric, str) else correlate_pairs(human_scores, of_metric)
        for name, of_metric in scores.items()
    }
    correlations = {name: measure.value for name, measure in pearsons.items() if measure.value is not None}
    compared = {name: np.asarray(scores[name]) for name in correlations}
    found = select_by_each(human_scores, [*compared.values()], **draws) if compared else []
    selections = dict(zip(compared, found, strict=True))
    is_judged = ~np.isnan(human).all(axis=0)
    units = outputs.unit_numbers(is_judged)
    sums = {
        name: _segment_sums(human[:, is_judged], outputs.segment_scores(outputs.metrics[name])[:, is_judged], units)
        for name in compared
        if name in outputs.metrics
    }
    for name, of_metric in sums.items():
        if num_segments > 1 and np.isfinite(_r_of_totals(of_metric.sums.sum(axis=0))):
            pearsons[name], selections[name] = _with_segment_errors(
                pearsons[name],
                selections[name],
                of_metric,
                draws["num_candidates"],
                draws["seed"],
                float(human_scores.std()),
            )
    tested = [name for name in correlations if name in sums]
    drawn = enough_permutations(NUM_PERMUTATIONS, len(tested))
    p = exchange_units([sums[name] for name in tested], permutations=drawn, seed=draws["seed"])
    return HybridOfLanguagePair(
        judged.language_pair,
        outputs.systems,
        human_systems,
        num_segments,
        frozenset(of_corpora),
        {name: pearsons[name] for name in sorted(pearsons, key=SENTINELS.__contains__)},
        selections,
        metric_differences(correlations, tested, p, "a metric of whole corpora has no scores of segments to exchange"),
        against_sentinels("pearson", correlations, tested, p),
    )


def _no_hybrids(outputs: JudgedSystems, num_segments: int) -> str:
    if len(outputs.systems) < 2:
        return f"hybrid systems are drawn from two systems or more, and there are {len(outputs.systems)}"
    return "" if num_segments else "no segment has a human score"


def _corpus_scores(
    hybrids: HybridSystems, outputs: JudgedSystems, human: Floats, name: str, options: Mapping[str, Any]
) -> Floats | str:
    """Return the score of each hybrid system as a corpus, (hybrids,), higher ones better; or why there is none."""
    is_judged = ~np.isnan(human)
    cells = [(system, segment) for system, segment in np.argwhere(is_judged).tolist()]
    texts = [outputs.candidates[system][segment] if outputs.candidates else None for system, segment in cells]
    if None in texts:
        return f"{texts.count(None)} of {len(texts)} judged outputs have no text"
    references = [outputs.references[system][segment] for system, segment in cells]
    scored = corpus_metric(name, [[text or "" for text in texts]], references, **options)
    corpus = cast("SummedStatistics", scored.corpus)
    places = np.cumsum(is_judged).reshape(is_judged.shape) - 1  # of judged outputs among the texts
    chunk = max(1, CHUNK_CELLS // len(hybrids.segments))
    scores = [
        corpus.gathered(places[hybrids.systems[start : start + chunk], hybrids.segments])[:, 0]
        for start in range(0, len(hybrids.systems), chunk)
    ]
    return np.concatenate(scores) * (-1 if corpus.lower_is_better else 1)


# Errors by segments: hybrids are drawn from one set of segments, so that more of them say nothing about other segments.


def _segment_sums(human: Floats, metric: Floats, units: NDArray[np.int64]) -> UnitSums:
    """Return r over hybrids from the covariances of scores within segments, which add up in hybrid systems.

    Human scores are (systems, judged segments), NaN where nobody judged; the sums are the number of segments, and the
    variances and the covariance.
    """
    is_judged = ~np.isnan(human)
    counts = is_judged.sum(axis=0)
    sides = []
    for scores in (human, metric):
        scores = np.where(is_judged, scores / (np.abs(scores[is_judged]).max() or 1.0), 0)
        sides.append(np.where(is_judged, scores - scores.sum(axis=0) / counts, 0))
    scale = np.sqrt((sides[1] ** 2).sum()) or 1.0
    sides[1] = sides[1] / scale
    products = [(one * other).sum(axis=0) / counts for one, other in ((sides[0],) * 2, (sides[1],) * 2, tuple(sides))]
    return UnitSums(sum_by_unit(np.stack([np.ones(len(counts)), *products]), units), _r_of_totals)


def _r_of_totals(totals: Floats) -> Floats:
    _, human, metric, both = np.moveaxis(totals, -1, 0)
    scale = np.sqrt(human * metric)
    r: Floats = np.where(scale > 0, both / np.where(scale > 0, scale, 1), np.nan)
    return r


_SELECTED: Mapping[str, tuple[float, float]] = {"hits_at_1": (0, 1), "mrr": (0, 1), "diff": (0, np.inf)}
"""The estimates of a selection, with their bounds."""


def _with_segment_errors(
    pearson: Measure, selection: ModelSelection, sums: UnitSums, num_candidates: int, seed: int, scale: float
) -> tuple[Measure, ModelSelection]:
    """Widen the intervals, which are of the draws alone, to those of other segments, by a bootstrap of segments.

    Scores of hybrids are means of many segments, and so nearly normal: what selection among them gives depends on r
    and the spread of human scores alone. `scale` is that spread.
    """
    num_units = len(sums.sums)
    [drawn_totals] = resampled([replace(sums, statistic=lambda totals: totals)], np.random.default_rng(seed))
    totals = np.vstack([sums.sums.sum(axis=0), drawn_totals])
    totals = totals[np.isfinite(_r_of_totals(totals))]  # the observed ones first
    r, spread = _r_of_totals(totals), np.sqrt(totals[:, 1]) / totals[:, 0]
    grid, curves = _selection_curves(num_candidates)
    expected = {name: np.interp(r, grid, curves[name]) for name in _SELECTED}
    found = correlation_interval(sums)
    ends_of_r = np.array(found) if np.isfinite(found).all() else intervals(r[1:], num_units)
    value = selection.diff.value or 0.0
    expected["diff"] *= value / max(float(expected["diff"][0]), 1e-9) * spread / spread[0]
    errors = _pool_errors(round(float(r[0]), 2), pearson.n, num_candidates)
    error = QUANTILE * (1 - (pearson.value or 0.0) ** 2) / np.sqrt(pearson.n)
    drawn = replace(pearson, low=(pearson.value or 0.0) - error, high=(pearson.value or 0.0) + error)
    widened = [_wider(drawn, ends_of_r - r[0], 0.0, (-1, 1))]
    for name, bounds in _SELECTED.items():
        of_pool = errors[name] * (scale if name == "diff" else 1.0)
        if name == "diff":
            ends = intervals(expected[name][1:], num_units) - value
        else:
            ends = np.interp(ends_of_r, grid, curves[name]) - expected[name][0]
        widened.append(_wider(getattr(selection, name), ends, of_pool, bounds))
    return widened[0], ModelSelection(*widened[1:])


def _selection_results(human: Floats, metric: Floats) -> tuple[float, float, float]:
    """Return Hits@1, MRR and Diff of the candidates that the metric chooses, both (trials, candidates)."""
    chosen = np.take_along_axis(human, metric.argmax(axis=1)[:, None], axis=1)
    ranks = 1 + (human > chosen).sum(axis=1)
    return float((ranks == 1).mean()), float((1 / ranks).mean()), float((human.max(axis=1) - chosen[:, 0]).mean())


@lru_cache(maxsize=4)
def _selection_curves(num_candidates: int) -> tuple[Floats, Mapping[str, Floats]]:
    """Return correlations, and the expected results of a selection by normal scores that correlate so."""
    rng = np.random.default_rng(0)
    human, noise = rng.normal(size=(2, NUM_CURVE_CELLS // num_candidates + 1, num_candidates))
    grid = np.linspace(-1, 1, 81)
    values: dict[str, list[float]] = {name: [] for name in _SELECTED}
    for r in grid:
        results = _selection_results(human, r * human + np.sqrt(1 - r * r) * noise)
        for name, value in zip(values, results, strict=True):
            values[name].append(value)
    return grid, {name: np.array(of) for name, of in values.items()}


@lru_cache(maxsize=64)
def _pool_errors(r: float, num_hybrids: int, num_candidates: int) -> Mapping[str, float]:
    """Return the half-widths of 95 % intervals over other hybrids of the same segments, which all trials share."""
    rng = np.random.default_rng(0)
    results = []
    for _ in range(NUM_POOLS):
        human, noise = rng.normal(size=(2, num_hybrids))
        metric = r * human + np.sqrt(1 - r * r) * noise
        drawn = rng.integers(num_hybrids, size=(2 * NUM_CURVE_CELLS // num_candidates + 1, num_candidates))
        results.append(_selection_results(human[drawn], metric[drawn]))
    return dict(zip(_SELECTED, QUANTILE * np.std(results, axis=0, ddof=1), strict=True))


def _wider(measure: Measure, ends: Floats, of_pool: float, bounds: tuple[float, float]) -> Measure:
    """Add the errors by segments, the ends minus the value, and of the pool to that of the draws; all independent."""
    value, low, high = (float(one or 0.0) for one in (measure.value, measure.low, measure.high))
    below = np.hypot(np.hypot(value - low, of_pool), max(0.0, -ends[0]))
    above = np.hypot(np.hypot(high - value, of_pool), max(0.0, ends[1]))
    low, high = (float(np.clip(end, *bounds)) for end in (value - below, value + above))
    return replace(measure, low=low, high=high)
