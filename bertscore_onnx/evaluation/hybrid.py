"""Hybrid systems: many artificial systems, each segment's output drawn from one of the real ones.

Graham and Liu, "Achieving Accurate Conclusions in Evaluation of Automatic Machine Translation Metrics", NAACL 2016;
model selection among them: Zhang et al., "BERTScore", ICLR 2020, section 5.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.correlation import Floats, Measure, correlate_pairs, judged_scores, no_value, pearson
from bertscore_onnx.evaluation.judged_systems import JudgedSystems, Machines, MetricScores, check_systems, machines
from bertscore_onnx.evaluation.metric_tests import Williams, williams
from bertscore_onnx.evaluation.metrics import corpus_metric
from bertscore_onnx.evaluation.tables import (
    MISSING,
    TableFormat,
    format_number,
    format_p,
    format_signed,
    is_tsv,
    language_pair_title,
    missing_note,
    rows_by_language_pair,
    tabulated,
    to_tsv,
    with_notes,
)

QUANTILE = 1.959963984540054
"""Of the standard normal distribution at .975, for intervals of 95 %."""
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
            scores: of the real systems, (systems, segments), finite where people judged. A metric of whole corpora,
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
class Estimate:
    """A mean over trials, with an interval that holds the true one in 95 of 100 cases."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class ModelSelection:
    """What one gets who takes the best of several systems by a metric."""

    hits_at_1: Estimate
    """How often that is the best one by people (interval of Wilson)."""
    mrr: Estimate
    """The mean of 1 / its rank by people (normal interval)."""
    diff: Estimate
    """How much better the best one by people is, in their scores, on average (normal interval)."""
    trials: int
    """How many choices these are the means of."""


def hybrid_systems(human: Floats, *, num_hybrids: int = 10_000, seed: int = 0) -> HybridSystems:
    """Draw hybrid systems: each segment's output from one of the systems judged on it, all as likely.

    Args:
        human: (systems, segments), NaN where nobody judged; segments that nobody judged are left out.
        num_hybrids: how many to draw.
        seed: of the draws. All metrics are compared on the same hybrid systems.

    Raises:
        InputError: the scores have another shape, none is judged, or no hybrid system is asked for.
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
    """Choose the best of a few systems by a metric, many times, and see what people think of the choice.

    Args:
        human: scores of the (hybrid) systems by people, (hybrids,), finite.
        metric: by the metric, (hybrids,), finite. Of systems that tie at the top, one is taken at random.
        num_candidates: how many different systems there are to choose from in each trial, at least 2.
        trials: how many choices are made.
        seed: of the draws.

    Returns:
        Hits@1, MRR and Diff. A choice that people tie with the best is a hit, and has rank 1.

    Raises:
        InputError: shapes differ, a score is not finite, or a number does not fit.
    """
    [selection] = select_by_each(human, [metric], num_candidates=num_candidates, trials=trials, seed=seed)
    return selection


def select_by_each(
    human: Floats, metrics: Sequence[Floats], *, num_candidates: int = 100, trials: int = 100_000, seed: int = 0
) -> list[ModelSelection]:
    """Do as `select_models` does with several metrics, which choose among the same systems.

    Args:
        human: scores of the (hybrid) systems by people, (hybrids,), finite.
        metrics: by each metric, (hybrids,).
        num_candidates, trials, seed: as for `select_models`.

    Raises:
        InputError: as `select_models` says.
    """
    pairs = [judged_scores(human, metric, ndim=1) for metric in metrics]
    human = np.asarray(human, dtype=np.float64)
    if np.isnan(human).any():
        raise InputError("A system has no score by people. Leave it out.")
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
        by_people = human[drawn]  # (rows, candidates)
        for one, (_, metric) in enumerate(pairs):
            chosen = np.take_along_axis(by_people, metric[drawn].argmax(axis=1)[:, None], axis=1)  # (rows, 1)
            ranks[one, rows] = 1 + (by_people > chosen).sum(axis=1)
            diffs[one, rows] = by_people.max(axis=1) - chosen[:, 0]
    return [
        ModelSelection(
            binomial_interval(int((rank == 1).sum()), trials), _mean_interval(1 / rank), _mean_interval(diff), trials
        )
        for rank, diff in zip(ranks, diffs, strict=True)
    ]


def binomial_interval(hits: int, trials: int) -> Estimate:
    """Return a share with its interval: E. B. Wilson, "Probable inference", JASA 1927, at 95 %.

    Raises:
        InputError: there are no trials, or not as many as hits.
    """
    if not 0 <= hits <= trials or trials < 1:
        raise InputError(f"{hits} hits in {trials} trials; expected at least one trial, and no more hits than trials.")
    share = hits / trials
    weight = QUANTILE**2 / trials
    centre = (share + weight / 2) / (1 + weight)
    half = QUANTILE * np.sqrt(share * (1 - share) / trials + weight / (4 * trials)) / (1 + weight)
    return Estimate(share, max(0.0, float(centre - half)), min(1.0, float(centre + half)))


def _mean_interval(values: Floats) -> Estimate:
    mean = float(values.mean())
    half = QUANTILE * float(values.std() / np.sqrt(len(values)))
    return Estimate(mean, mean - half, mean + half)


# What metrics and people say of hybrid systems, by language pair.


@dataclass(frozen=True, slots=True)
class HybridOfMetric:
    """One metric over the hybrid systems of a language pair."""

    metric: str
    is_corpus_score: bool
    """Whether a hybrid system's score is that of its texts as one corpus; else it is the mean over its segments."""

    pearson: Measure
    """With its sign, where higher scores are better."""

    selection: ModelSelection | None
    """None where there is no correlation either."""


@dataclass(frozen=True, slots=True)
class HybridPair:
    """Whether one metric correlates better with people than another."""

    better: str
    worse: str
    williams: Williams


@dataclass(frozen=True, slots=True)
class HybridOfLanguagePair:
    """All metrics on one language pair."""

    language_pair: str
    systems: tuple[str, ...]
    people: tuple[str, ...]
    """The systems that were left out because they are people."""

    num_segments: int
    """Segments that anybody judged."""

    metrics: tuple[HybridOfMetric, ...]
    pairs: tuple[HybridPair, ...]
    """Every two metrics that correlate with people, by falling correlation."""


@dataclass(frozen=True, slots=True)
class HybridSettings:
    """How many hybrid systems there are, and how often the best of some of them is chosen."""

    num_hybrids: int = 10_000
    num_candidates: int = 100
    num_trials: int = 100_000
    seed: int = 0


@dataclass(frozen=True, slots=True)
class HybridResult:
    """What `hybrid_by_language_pair` found."""

    settings: HybridSettings
    language_pairs: tuple[HybridOfLanguagePair, ...]

    def table(self, table_format: TableFormat = "text") -> str:
        """Write a table to read, or with "tsv" one with all digits; without a line end after its last line.

        Raises:
            InputError: there is no such format.
            MissingExtraError: tabulate is not installed.
        """
        return hybrid_table(self, table_format)

    def to_json(self) -> str:
        """Return it as JSON; what is missing is null, with a reason."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False)

    def to_dict(self) -> dict[str, Any]:
        """Return what `to_json` writes."""
        return {
            "num_hybrids": self.settings.num_hybrids,
            "num_candidates": self.settings.num_candidates,
            "num_trials": self.settings.num_trials,
            "seed": self.settings.seed,
            "language_pairs": {
                pair.language_pair: {
                    "systems": list(pair.systems),
                    "human_systems": list(pair.people),
                    "segments": pair.num_segments,
                    "metrics": {one.metric: _as_dict(one) for one in pair.metrics},
                    "pairs": [_pair_as_dict(one) for one in pair.pairs],
                }
                for pair in self.language_pairs
            },
        }


def _as_dict(result: HybridOfMetric) -> dict[str, Any]:
    selection = result.selection
    return {
        "n": result.pearson.n,
        "score": "corpus" if result.is_corpus_score else "mean of segments",
        "pearson": result.pearson.value,
        **_estimate("hits_at_1", None if selection is None else selection.hits_at_1),
        **_estimate("mrr", None if selection is None else selection.mrr),
        **_estimate("diff", None if selection is None else selection.diff),
        "trials": None if selection is None else selection.trials,
        **({"reason": result.pearson.reason} if result.pearson.reason else {}),
    }


def _estimate(name: str, estimate: Estimate | None) -> dict[str, Any]:
    interval = None if estimate is None else [estimate.low, estimate.high]
    return {name: None if estimate is None else estimate.value, f"{name}_interval": interval}


def _pair_as_dict(pair: HybridPair) -> dict[str, Any]:
    test = pair.williams
    reason = {"reason": test.reason} if test.reason else {}
    return {"better": pair.better, "worse": pair.worse, "t": test.t, "p": test.p, "n": test.n, **reason}


# Hybrid systems by language pair: how metrics correlate with people over them, and choose among them.


LEAST_FOR_WILLIAMS = 4


def hybrid_by_language_pair(
    language_pairs: Sequence[JudgedSystems],
    *,
    corpus_metrics: Mapping[str, Mapping[str, Any]] | None = None,
    settings: HybridSettings | None = None,
    people: Collection[str] = (),
) -> HybridResult:
    """Draw hybrid systems for each language pair, and compare metrics with people on them.

    The scores that are there count by their mean over the segments of a hybrid system, as those of people do.

    Args:
        language_pairs: the systems of each, with scores by segment.
        corpus_metrics: metrics of sacreBLEU that score the texts of each hybrid system as one corpus, with what its
            class takes, such as `{"bleu": {}, "chrf": {"word_order": 2}}`. Their names end with the reference in
            use, as those of the metrics do.
        settings: how many, how often, and the seed.
        people: the systems that are people, to be left out.

    Returns:
        Pearson's r over all hybrid systems, what comes of choosing the best of `num_candidates` by each metric, and
        Williams' test of every two metrics with n = `num_hybrids`.

    Raises:
        InputError: numbers that do not fit, a system that is not there, a metric or an option that is unknown, or
            people judged whole systems.
        MissingExtraError: sacreBLEU or scipy is needed and not installed.
    """
    settings = settings or HybridSettings()
    if not 2 <= settings.num_candidates <= settings.num_hybrids or settings.num_trials < 1:
        raise InputError(
            f"num_candidates is {settings.num_candidates}, num_hybrids {settings.num_hybrids} and num_trials "
            f"{settings.num_trials}. Choose among 2 candidates or more, up to all hybrids, at least once."
        )
    check_systems(language_pairs, people)
    return HybridResult(
        settings,
        tuple(_of_language_pair(one, corpus_metrics or {}, settings, people) for one in language_pairs),
    )


def _of_language_pair(
    judged: JudgedSystems,
    corpus_metrics: Mapping[str, Mapping[str, Any]],
    settings: HybridSettings,
    people: Collection[str],
) -> HybridOfLanguagePair:
    end = f"-{judged.reference}" if judged.reference else ""
    of_corpora = {name + end: name for name in corpus_metrics}
    if both := [name for name in of_corpora if name in judged.metrics]:
        raise InputError(f"{judged.language_pair}: there are scores called {both[0]!r} already. Rename them.")
    outputs = machines(judged, people)
    num_segments = int((~np.isnan(outputs.human)).any(axis=0).sum())
    by_people = np.empty(0)
    by_metrics: dict[str, Floats | str] = {}  # (hybrids,), or why there are none
    if reason := _no_hybrids(outputs, num_segments):
        by_metrics |= dict.fromkeys((*judged.metrics, *of_corpora), reason)
    else:
        drawn = hybrid_systems(outputs.human, num_hybrids=settings.num_hybrids, seed=settings.seed)
        by_people = drawn.scores(outputs.human)
        by_metrics |= {name: _means(drawn, outputs, metric) for name, metric in judged.metrics.items()}
        by_metrics |= {
            shown: _corpus_scores(drawn, outputs, name, corpus_metrics[name]) for shown, name in of_corpora.items()
        }
    pearsons = {
        name: no_value(scores, 0) if isinstance(scores, str) else correlate_pairs(by_people, scores)
        for name, scores in by_metrics.items()
    }
    correlations = {name: one.value for name, one in pearsons.items() if one.value is not None}
    compared = {name: np.asarray(by_metrics[name]) for name in correlations}
    selections = _selections(by_people, compared, settings)
    results = tuple(
        HybridOfMetric(name, name in of_corpora, pearson, selections.get(name)) for name, pearson in pearsons.items()
    )
    pairs = tuple(_pairs(correlations, compared, settings.num_hybrids))
    return HybridOfLanguagePair(judged.language_pair, outputs.systems, outputs.people, num_segments, results, pairs)


def _no_hybrids(outputs: Machines, num_segments: int) -> str:
    if len(outputs.systems) < 2:
        return f"hybrid systems are drawn from two systems or more, and there are {len(outputs.systems)}"
    return "" if num_segments else "people judged no segment"


def _means(drawn: HybridSystems, outputs: Machines, metric: MetricScores) -> Floats | str:
    """Return the mean score of each hybrid system, (hybrids,), or why there is none."""
    scores = outputs.scores(metric)
    return outputs.missing(scores) or drawn.scores(scores)


def _corpus_scores(drawn: HybridSystems, outputs: Machines, name: str, options: Mapping[str, Any]) -> Floats | str:
    """Return the score of each hybrid system as a corpus, (hybrids,), higher ones better; or why there is none."""
    is_judged = ~np.isnan(outputs.human)
    texts = [outputs.text(system, segment) for system, segment in np.argwhere(is_judged)]
    if None in texts:
        return f"{texts.count(None)} of {len(texts)} judged outputs have no text"
    candidates, references = zip(*(text for text in texts if text is not None), strict=True)
    statistics = corpus_metric(name, [candidates], references, **options).statistics
    places = np.cumsum(is_judged).reshape(is_judged.shape) - 1  # of judged outputs among the texts
    chunk = max(1, CHUNK_CELLS // len(drawn.segments))
    scores = [
        statistics.gathered(places[drawn.systems[start : start + chunk], drawn.segments])[:, 0]
        for start in range(0, len(drawn.systems), chunk)
    ]
    return np.concatenate(scores) * (-1 if statistics.lower_is_better else 1)


def _selections(
    by_people: Floats, by_metrics: Mapping[str, Floats], settings: HybridSettings
) -> dict[str, ModelSelection]:
    if not by_metrics:
        return {}
    selections = select_by_each(
        by_people,
        [*by_metrics.values()],
        num_candidates=settings.num_candidates,
        trials=settings.num_trials,
        seed=settings.seed,
    )
    return dict(zip(by_metrics, selections, strict=True))


def _pairs(correlations: Mapping[str, float], scores: Mapping[str, Floats], n: int) -> Iterator[HybridPair]:
    """Test every two metrics, the one that correlates better first."""
    for better, worse in combinations(sorted(correlations, key=lambda name: -correlations[name]), 2):
        if n < LEAST_FOR_WILLIAMS:
            test = Williams(None, None, n, reason=f"Williams' test needs {LEAST_FOR_WILLIAMS} systems or more")
        else:
            test = williams(correlations[better], correlations[worse], pearson(scores[better], scores[worse]), n)
        yield HybridPair(better, worse, test)


def hybrid_table(result: "HybridResult", table_format: TableFormat) -> str:
    """Write two tables for each language pair, or one of all metrics as TSV."""
    if is_tsv(table_format):
        return to_tsv(rows_by_language_pair(result.to_dict()))
    settings = result.settings
    blocks = [block for pair in result.language_pairs for block in _hybrid_blocks(pair, settings.num_hybrids)]
    choice = f"the best of {settings.num_candidates:,} hybrids is chosen, {settings.num_trials:,} times"
    return "\n\n".join(
        [*blocks, f"Hits@1, MRR and Diff where {choice};\nintervals of 95 %. p is one-sided, by Williams' test."]
    )


def _hybrid_blocks(pair: "HybridOfLanguagePair", num_hybrids: int) -> list[str]:
    systems = language_pair_title(pair.language_pair, pair.systems, pair.people)
    title = f"{systems}, {num_hybrids:,} hybrids of {pair.num_segments:,} segments"
    rows = [_hybrid_row(one) for one in pair.metrics]
    table = tabulated(rows, ["metric", "score", "Pearson", "Hits@1", "MRR", "Diff"])
    notes = [missing_note(one.metric, one.pearson.reason) for one in pair.metrics]
    notes += [missing_note(f"{test.better} and {test.worse}", test.williams.reason) for test in pair.pairs]
    blocks = [with_notes(f"{title}\n{table}", notes)]
    if pair.pairs:
        tests = [
            [test.better, test.worse, format_number(test.williams.t, 2), format_p(test.williams.p)]
            for test in pair.pairs
        ]
        blocks.append(tabulated(tests, ["metric", "better than", "t", "p"], names=(0, 1)))
    return blocks


def _hybrid_row(one: "HybridOfMetric") -> list[str]:
    chosen = one.selection
    estimates = [None] * 3 if chosen is None else [chosen.hits_at_1, chosen.mrr, chosen.diff]
    score = "corpus" if one.is_corpus_score else "mean"
    return [one.metric, score, format_signed(one.pearson.value), *map(_with_interval, estimates)]


def _with_interval(estimate: Estimate | None) -> str:
    if estimate is None:
        return MISSING
    return f"{estimate.value:.4f} [{estimate.low:.4f}, {estimate.high:.4f}]"
