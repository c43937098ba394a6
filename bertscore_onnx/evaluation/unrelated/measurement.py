"""Measures a baseline: the mean scores of unrelated pairs, bert-score's `journal/rescale_baseline.md`."""

from collections.abc import Iterable
from contextlib import closing

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.catalogue import Baseline
from bertscore_onnx.errors import InputError
from bertscore_onnx.evaluation.significance.resampling import SEED
from bertscore_onnx.evaluation.unrelated.baseline import LayerBaseline, MeasuredBaseline
from bertscore_onnx.evaluation.unrelated.pairs import MAX_WORDS, draw_pairs, short_texts
from bertscore_onnx.scorer import BERTScorer

Floats = NDArray[np.float64]

TOLERANCE = 1e-4
"""Standard errors below this are small enough."""

PAIRS_BETWEEN_CHECKS = 1000
"""The standard errors are looked at after as many pairs, so that the end does not depend on how pairs are batched."""

NUM_QUANTILES = 101


def compute_baseline(
    scorer: BERTScorer,
    texts: Iterable[str],
    *,
    num_pairs: int | None = None,
    max_words: int = MAX_WORDS,
    seed: int = SEED,
    tolerance: float = TOLERANCE,
    verbose: bool | None = False,
) -> MeasuredBaseline:
    """Score unrelated pairs at every layer that the scorer has.

    Half the texts are candidates and half references, drawn without replacement.

    Args:
        scorer: without idf and rescaling.
        texts: those of a corpus, of which the first million are read, and the ones of fewer words than `max_words`
            count; equal ones are drawn like others.
        num_pairs: the most pairs to score; None for all that the texts make.
        max_words: the number of words that is too many.
        seed: of the draw; the pairs are those that bert-score draws after `numpy.random.seed(seed)`.
        tolerance: after every 1,000 pairs the scoring ends if all standard errors are below this; 0 for all pairs.
        verbose: show a progress bar on standard error; None for one on a terminal, where it takes longer.

    Raises:
        InputError: there are too few texts, all pairs score 1, an argument is out of range, or the scorer rescales or
            weighs by idf.
    """
    signature = scorer.signature
    if signature.idf != "no" or signature.rescale != "no":
        raise InputError(
            f"The scorer has idf {signature.idf} and rescale {signature.rescale}; a baseline is measured without both."
        )
    if not tolerance >= 0:
        raise InputError(f"tolerance is {tolerance}; expected 0 or more.")
    pairs = draw_pairs(short_texts(texts, max_words), num_pairs, seed)
    scores = _Scores(len(scorer.manifest.layers), len(pairs))
    with closing(scorer.stream(pairs, verbose=verbose)) as stream:
        for score in stream:
            scores.add(np.reshape(np.array(score), (3, -1)))
            if scores.number % PAIRS_BETWEEN_CHECKS == 0 and scores.standard_errors().max() < tolerance:
                break
    means, errors, quantiles = scores.means(), scores.standard_errors(), scores.f1_quantiles()
    if means.max() >= 1:
        raise InputError("All pairs score 1: the texts are all alike. Give a corpus of different texts.")
    layers = tuple(
        LayerBaseline(layer, Baseline(*map(float, mean)), Baseline(*map(float, error)), tuple(map(float, f1)))
        for layer, mean, error, f1 in zip(scorer.manifest.layers, means.T, errors.T, quantiles, strict=True)
    )
    return MeasuredBaseline(str(signature), signature.precision, scores.number, seed, max_words, layers)


class _Scores:
    """The scores of pairs: of F all, of P and R their sums."""

    def __init__(self, num_layers: int, most: int) -> None:
        self.number = 0
        self._sums: Floats = np.zeros((3, num_layers))
        self._squares: Floats = np.zeros((3, num_layers))
        self._f1 = np.empty((num_layers, most), dtype=np.float32)

    def add(self, score: Floats) -> None:
        """Count one more pair, (3, layers)."""
        self._f1[:, self.number] = score[2]
        self._sums += score
        self._squares += score**2
        self.number += 1

    def means(self) -> Floats:
        """Return the means of P, R and F, (3, layers)."""
        return self._sums / self.number

    def standard_errors(self) -> Floats:
        """Return the standard errors of the means, (3, layers)."""
        variance = np.maximum(self._squares - self._sums**2 / self.number, 0) / (self.number - 1)
        return np.sqrt(variance / self.number)

    def f1_quantiles(self) -> Floats:
        """Return the quantiles of F, (layers, quantiles)."""
        quantiles: Floats = np.quantile(
            self._f1[:, : self.number].astype(np.float64), np.linspace(0, 1, NUM_QUANTILES), axis=1
        ).T
        return quantiles.round(6)
