"""Scores what systems wrote: with BERTScore, each reference encoded once, and with the metrics of sacreBLEU."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.agreement.judgements import Floats
from bertscore_onnx.evaluation.comparison.metrics import BERTSCORE
from bertscore_onnx.evaluation.meta.judged_systems import MetricScores, SystemTexts, mean_by_system
from bertscore_onnx.evaluation.significance import corpus_metric
from bertscore_onnx.scorer import TextScorer


def score_system_texts(
    metrics: Sequence[str],
    texts: SystemTexts,
    *,
    scorer: TextScorer | None = None,
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


def _bertscore(texts: SystemTexts, scorer: TextScorer | None, verbose: bool | None) -> MetricScores:
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
