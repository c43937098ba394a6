"""BLEU, chrF and TER by sacreBLEU itself, over statistics that are taken from each segment once.

This is the one place that uses what sacreBLEU 2 keeps private: `_extract_corpus_statistics` and
`_compute_score_from_stats` (`metrics/base.py`), on which its own `significance.py` stands.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import InputError, needs_extra
from bertscore_onnx.evaluation.significance.corpus_scores import SummedStatistics

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

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
