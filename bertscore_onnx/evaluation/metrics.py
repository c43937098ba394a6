"""The metrics that systems are compared by: BERTScore, and those of sacreBLEU."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import InputError, needs_extra
from bertscore_onnx.evaluation.correlation import Floats
from bertscore_onnx.evaluation.judged_systems import MetricScores, SystemTexts, mean_by_system
from bertscore_onnx.evaluation.significance import CorpusScores, SegmentMeans, SummedStatistics
from bertscore_onnx.scorer import BERTScorer

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric


# BLEU, chrF and TER by sacreBLEU itself, over statistics that are taken from each segment once. This is the one place
# that uses what sacreBLEU 2 keeps private: `_extract_corpus_statistics` and `_compute_score_from_stats`
# (`metrics/base.py`), on which its own `significance.py` stands.


CLASSES = {"bleu": "BLEU", "chrf": "CHRF", "ter": "TER"}
"""The metrics, and sacreBLEU's classes for them."""

LOWER_IS_BETTER = {"ter"}

SENTENCE_OPTIONS: Mapping[str, Mapping[str, Any]] = {"bleu": {"effective_order": True}}
"""What a metric is told for single segments, as sacreBLEU's `compat.py:sentence_bleu` tells it."""


@dataclass(frozen=True, slots=True, eq=False)
class CorpusMetric:
    """A metric of sacreBLEU over several systems."""

    statistics: SummedStatistics
    """For the paired tests, which score resamples by summing."""

    segment_scores: NDArray[np.float64]
    """The score of each segment alone, (systems, segments)."""

    signature: str
    """SacreBLEU's own, such as `nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0`."""

    segment_signature: str
    """That of the scores of segments, which BLEU takes with `eff:yes`."""


def corpus_metric(
    name: str,
    candidates: Sequence[Sequence[str]],
    references: Sequence[str | Sequence[str]],
    **options: Any,
) -> CorpusMetric:
    """Take the statistics of every segment of every system.

    Args:
        name: `bleu`, `chrf` or `ter`.
        candidates: the texts of each system, one for each segment.
        references: for each segment a reference, or several; their number may vary.
        options: what sacreBLEU's class takes, such as `tokenize="zh"` or `word_order=2`.

    Raises:
        InputError: a metric or an option that is unknown or needs what is not there, no text, a system that lacks
            texts, or a segment without a reference.
        MissingExtraError: sacreBLEU is not installed.
    """
    if name not in CLASSES:
        raise InputError(f"There is no metric {name!r} here. Choose one of {', '.join(CLASSES)}.")
    _check_texts(candidates, references)
    lists = [[one] if isinstance(one, str) else one for one in references]
    metric = _sacrebleu_metric(name, options | {"references": list(zip_longest(*lists))})
    statistics = np.array([metric._extract_corpus_statistics(texts, None) for texts in candidates], dtype=np.float64)
    sentence_metric = _sacrebleu_metric(name, {**SENTENCE_OPTIONS.get(name, {}), **options})
    sentence_metric.num_refs = metric.num_refs  # which it has no references to count
    of_segment = _score_of_sums(sentence_metric)
    return CorpusMetric(
        SummedStatistics(statistics, _score_of_sums(metric), lower_is_better=name in LOWER_IS_BETTER),
        np.array([[of_segment(segment) for segment in system] for system in statistics]),
        str(metric.get_signature()),
        str(sentence_metric.get_signature()),
    )


def _sacrebleu_metric(name: str, options: Mapping[str, Any]) -> "Metric":
    """Return the metric of sacreBLEU with these options."""
    with needs_extra("evaluation", "Scoring with BLEU, chrF or TER"):
        from sacrebleu import metrics
        from sacrebleu.metrics.bleu import BLEU
    try:
        metric: Metric = getattr(metrics, CLASSES[name])(**options)
    except (TypeError, KeyError, AssertionError) as error:
        tokenizers = f" Its tokenizers are {', '.join(BLEU.TOKENIZERS)}." if "tokenize" in options else ""
        raise InputError(f"sacreBLEU does not take these options for {CLASSES[name]}: {error}.{tokenizers}") from error
    except (ImportError, OSError, RuntimeError) as error:  # a tokenizer lacks its packages, or cannot be downloaded
        reason = " ".join(str(error).split())
        raise InputError(
            f"sacreBLEU cannot load what these options need for {CLASSES[name]}: {reason} Make that available, or "
            "choose other options."
        ) from error
    return metric


def _score_of_sums(metric: "Metric") -> Callable[[NDArray[np.floating]], float]:
    """Return the function from sums, (statistics,), to the metric's score."""
    of_sums: Callable[[NDArray[np.floating]], Any] = metric._compute_score_from_stats  # type: ignore[assignment]

    def score(sums: NDArray[np.floating]) -> float:
        return float(of_sums(sums.copy()).score)  # BLEU with smoothing add-k adds to what it is given

    return score


def _check_texts(candidates: Sequence[Sequence[str]], references: Sequence[str | Sequence[str]]) -> None:
    """Raise InputError where there is no system or segment, or a text or a reference is missing."""
    if not candidates or not references:
        raise InputError(
            f"There are {len(candidates)} systems and references for {len(references)} segments. Give at least one of "
            "each."
        )
    for system, texts in enumerate(candidates):
        if len(texts) != len(references):
            raise InputError(
                f"System {system}, counted from 0, has {len(texts)} texts, and there are references for "
                f"{len(references)} segments; from number {min(len(texts), len(references)) + 1} on one side has no "
                "partner. Give one text for each segment."
            )
        for segment, text in enumerate(texts):
            if not isinstance(text, str):
                raise InputError(
                    f"System {system} has {text!r} for segment {segment}, both counted from 0: not a text."
                )
    for segment, reference in enumerate(references):
        if not (isinstance(reference, str) or (reference and all(isinstance(one, str) for one in reference))):
            raise InputError(
                f"Segment {segment}, counted from 0, has {reference!r} as its references. Give a text, or at least one "
                "in a list."
            )


# Scores the texts of several systems against the same references, in one pass over the segments.


@contextmanager
def with_fixed_weights(scorer: BERTScorer, references: Iterable[str | Sequence[str]]) -> Iterator[BERTScorer]:
    """Fix the idf weights of a scorer that takes them from the references of each call: each reference counts once.

    Args:
        scorer: any scorer; one with other weights is what the block gets.
        references: for each segment a reference, or several.

    Raises:
        IdfError: the references do not differ.
    """
    if scorer.signature.idf == "references":
        with scorer.with_idf(True, chain.from_iterable(map(_several, references))) as fixed:
            yield fixed
    else:
        yield scorer


@dataclass(frozen=True, slots=True, eq=False)
class SystemScores:
    """BERTScore of every segment of every system."""

    f1: NDArray[np.float64]
    """F, rescaled where the scorer rescales, (systems, segments)."""

    best_reference: NDArray[np.int64]
    """The position of the reference with the best F, (systems, segments)."""


def score_systems(
    scorer: BERTScorer,
    candidates: Sequence[Sequence[str]],
    references: Sequence[str | Sequence[str]],
    *,
    verbose: bool | None = False,
) -> SystemScores:
    """Score all systems segment by segment, so that each reference is encoded once, and memory stays bounded.

    Args:
        scorer: a scorer of one layer, whose weights `with_fixed_weights` has fixed.
        candidates: the texts of each system, one for each segment.
        references: for each segment a reference, or several.
        verbose: show a progress bar on standard error; None for one on a terminal, after 2 seconds.

    Raises:
        InputError: the scorer scores all layers, or what `BERTScorer.stream` says.
        EncodingError: the model gave something other than finite vectors.
    """
    if scorer.manifest.all_layers:
        raise InputError(
            "Systems are compared by the scores of one layer, and this bundle has all of them. Export one without "
            "--all-layers."
        )
    scores = scorer.stream(_BySegment(candidates, references), verbose=verbose)
    found = [(score.F, score.best_reference) for score in scores]
    by_segment = np.array(found, dtype=np.float64).reshape(len(references), len(candidates), 2)
    f1, best = by_segment.transpose(2, 1, 0)
    return SystemScores(f1, best.astype(np.int64))


class _BySegment:
    """The pairs of all systems, those of one segment together."""

    def __init__(self, candidates: Sequence[Sequence[str]], references: Sequence[str | Sequence[str]]) -> None:
        self._candidates = candidates
        self._references = references

    def __len__(self) -> int:
        return len(self._candidates) * len(self._references)

    def __iter__(self) -> Iterator[tuple[str, str | Sequence[str]]]:
        for *texts, references in zip(*self._candidates, self._references, strict=True):
            yield from ((text, references) for text in texts)


def _several(references: str | Sequence[str]) -> Sequence[str]:
    return [references] if isinstance(references, str) else references


BERTSCORE = "bertscore"
METRICS = (BERTSCORE, *CLASSES)

RESOLUTION = 1e-6
"""Of BERTScore: the same pair in another batch may differ by less, in single precision."""


@dataclass(frozen=True, slots=True, eq=False)
class ScoredMetric:
    """All systems under one metric, ready to be tested."""

    name: str
    signature: str
    corpus_scores: CorpusScores

    segment_scores: NDArray[np.float64]
    """(systems, segments)."""

    lower_is_better: bool

    resolution: float = 0.0
    """Two segments whose scores differ by no more than this tie."""

    best_reference: NDArray[np.int64] | None = None
    """The reference that each text matches best, (systems, segments); None where the metric has none."""

    unrelated: NDArray[np.float64] | None = None
    """Scores of unrelated pairs in ascending order, (quantiles,); None where they are not known."""


def check_metric(name: str) -> None:
    """Raise InputError where there is no such metric, with the nearest name."""
    if name not in METRICS:
        near = get_close_matches(str(name), METRICS, n=1)
        meant = f" Did you mean {near[0]}?" if near else ""
        raise InputError(f"There is no metric {name!r} here.{meant} Choose one of {', '.join(METRICS)}.")


def score_metric(
    name: str,
    candidates: Sequence[Sequence[str]],
    references: Sequence[Sequence[str]],
    scorer: BERTScorer | None,
    options: Mapping[str, Any],
    *,
    verbose: bool | None,
) -> ScoredMetric:
    """Score every segment of every system by one metric.

    Args:
        name: one of `METRICS`.
        candidates: the texts of each system.
        references: those of each segment.
        scorer: for BERTScore.
        options: for the class of sacreBLEU.
        verbose: as `score_systems` has it.

    Raises:
        InputError: there is no scorer for BERTScore, or an option that is unknown.
        MissingExtraError: sacreBLEU is needed and not installed.
    """
    if name != BERTSCORE:
        found = corpus_metric(name, candidates, references, **options)
        return ScoredMetric(
            name, found.signature, found.statistics, found.segment_scores, found.statistics.lower_is_better
        )
    if scorer is None:
        raise InputError("The metric bertscore needs a scorer, such as BERTScorer(MODEL). Give it as `scorer`.")
    if options:
        raise InputError(
            f"The metric bertscore has no options, and was given {', '.join(options)}. Give the scorer them."
        )
    scores = score_systems(scorer, candidates, references, verbose=verbose)
    return ScoredMetric(
        name,
        str(scorer.signature),
        SegmentMeans(scores.f1),
        scores.f1,
        lower_is_better=False,
        resolution=RESOLUTION,
        best_reference=scores.best_reference,
        unrelated=scorer.unrelated_scores(),
    )


# Scores of metrics, one per text: those that are there already, and those of texts.


@dataclass(frozen=True, slots=True, eq=False)
class SegmentScores:
    """The scores of one metric."""

    name: str
    values: NDArray[np.float64]
    """One per text, (texts,); NaN where there is none."""

    lower_is_better: bool = False
    signature: str = ""
    """How they were made; empty where that is not known."""

    @property
    def oriented(self) -> NDArray[np.float64]:
        """The scores, negated where lower ones are better."""
        return -self.values if self.lower_is_better else self.values


def score_texts(
    metrics: Sequence[str],
    candidates: Sequence[str],
    references: Sequence[str | Sequence[str]],
    *,
    scorer: BERTScorer | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    verbose: bool | None = False,
) -> tuple[SegmentScores, ...]:
    """Score each text with several metrics.

    Args:
        metrics: `bertscore`, `bleu`, `chrf` or `ter`, each once.
        candidates: the texts, at least one.
        references: one for each, or several.
        scorer: for `bertscore`, whose F counts.
        options: by metric what sacreBLEU's class takes, such as `{"bleu": {"smooth_method": "none"}}`.
        verbose: show a progress bar of `bertscore` on standard error; None for one that appears after 2 seconds, on a
            terminal.

    Raises:
        InputError: a metric is unknown, there twice or lacks its scorer, options are for none of the metrics, the
            scorer scores every layer, or texts and references do not pair up.
        MissingExtraError: sacreBLEU is needed and not installed.
    """
    options = options or {}
    _check_metrics(metrics, options)
    return tuple(
        _segment_bertscore(scorer, candidates, references, verbose)
        if name == BERTSCORE
        else _segment_sacrebleu(name, candidates, references, options.get(name, {}))
        for name in metrics
    )


def _segment_bertscore(
    scorer: BERTScorer | None,
    candidates: Sequence[str],
    references: Sequence[str | Sequence[str]],
    verbose: bool | None,
) -> SegmentScores:
    if scorer is None:
        raise InputError("The metric bertscore needs a scorer, such as BERTScorer(MODEL). Give it as `scorer`.")
    scores = score_systems(scorer, [candidates], references, verbose=verbose)
    return SegmentScores(BERTSCORE, scores.f1[0], signature=str(scorer.signature))


def _segment_sacrebleu(
    name: str, candidates: Sequence[str], references: Sequence[str | Sequence[str]], options: Mapping[str, Any]
) -> SegmentScores:
    scored = corpus_metric(name, [candidates], references, **options)
    return SegmentScores(
        name, scored.segment_scores[0], scored.statistics.lower_is_better, signature=scored.segment_signature
    )


def _check_metrics(metrics: Sequence[str], options: Mapping[str, Mapping[str, Any]]) -> None:
    for name in metrics:
        check_metric(name)
        if metrics.count(name) > 1:
            raise InputError(f"The metric {name!r} is there {metrics.count(name)} times. Name it once.")
    for name in options:
        if name not in metrics or name == BERTSCORE:
            raise InputError(f"There are options for {name!r}, which is no metric of sacreBLEU that was asked for.")


# Scores what systems wrote: with BERTScore, each reference encoded once, and with the metrics of sacreBLEU.


def score_system_texts(
    metrics: Sequence[str],
    texts: SystemTexts,
    *,
    scorer: BERTScorer | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    verbose: bool | None = False,
) -> dict[str, MetricScores]:
    """Score systems and their segments, by metric.

    Args:
        metrics: `bertscore`, `bleu`, `chrf` or `ter`. TER counts errors, so its scores are negative here: the higher
            is the better in all.
        texts: what the systems wrote.
        scorer: for `bertscore`, whose F counts.
        options: by metric what sacreBLEU's class takes, such as `{"bleu": {"smooth_method": "none"}}`.
        verbose: show a progress bar of `bertscore` on standard error; None for one that appears after 2 seconds, on a
            terminal.

    Returns:
        By metric its scores. A system's score is that of its outputs as one corpus with the metrics of sacreBLEU, and
        the mean over its segments with BERTScore.

    Raises:
        InputError: a metric or an option is unknown, or the scorer is missing or scores every layer.
        MissingExtraError: sacreBLEU is needed and not installed.
    """
    scores = {}
    for name in dict.fromkeys(metrics):
        if name == BERTSCORE:
            scores[name] = _bertscore(texts, scorer, verbose)
        else:
            scores[name] = _of_sacrebleu(name, texts, (options or {}).get(name, {}))
    return scores


def _bertscore(texts: SystemTexts, scorer: BERTScorer | None, verbose: bool | None) -> MetricScores:
    if scorer is None or scorer.manifest.all_layers:
        raise InputError("The metric 'bertscore' needs a scorer of one layer. Name the layer as `num_layers`.")
    cells, pairs = [], []
    for segment in range(len(texts.candidates[0])):  # those of one reference side by side
        for system, outputs in enumerate(texts.candidates):
            if (candidate := outputs[segment]) is not None:
                cells.append((system, segment))
                pairs.append((candidate, list(texts.references[system][segment])))
    scores = _no_scores(texts)
    for cell, score in zip(cells, scorer.stream(pairs, verbose=verbose), strict=True):
        scores[cell] = score.F
    return MetricScores(mean_by_system(scores), scores, str(scorer.signature))


def _of_sacrebleu(name: str, texts: SystemTexts, options: Mapping[str, Any]) -> MetricScores:
    of_segments, of_systems = _no_scores(texts), np.full(len(texts.candidates), np.nan)
    signature = ""
    for systems, segments, references in _with_equal_references(texts):
        candidates = [[texts.candidates[system][segment] or "" for segment in segments] for system in systems]
        scored = corpus_metric(name, candidates, references, **options)
        sign = -1 if scored.statistics.lower_is_better else 1
        of_segments[np.ix_(systems, segments)] = sign * scored.segment_scores
        of_systems[systems] = sign * scored.statistics.observed()
        signature = scored.signature + ("|negative:yes" if sign < 0 else "")
    return MetricScores(of_systems, of_segments, signature)


def _with_equal_references(texts: SystemTexts) -> Iterator[tuple[list[int], list[int], list[tuple[str, ...]]]]:
    """Yield systems whose outputs are of the same segments, with the same references, and these segments."""
    groups: dict[tuple[tuple[str, ...], ...], list[int]] = {}
    for system, references in enumerate(texts.references):
        groups.setdefault(references, []).append(system)
    for references, systems in groups.items():
        if segments := [segment for segment, of_segment in enumerate(references) if of_segment]:
            yield systems, segments, [references[segment] for segment in segments]


def _no_scores(texts: SystemTexts) -> Floats:
    return np.full((len(texts.candidates), len(texts.candidates[0])), np.nan)
