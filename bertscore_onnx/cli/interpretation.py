"""Says what a mean F1 is worth: where it stands among unrelated pairs, or that these score high too."""

import shlex
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bertscore_onnx.scorer import BERTScorer

HIGH_SCORE = 0.8
"""A raw F1 above this looks good to those who do not know what unrelated texts get."""

HIGH_BASELINE = 0.7
"""Where unrelated pairs get more than this on average, a high score says little."""

LARGE_SIZE = 1024
"""Where no baseline is known, models of this hidden size or more are taken to give any texts a high F1: it is that of
roberta-large, whose unrelated pairs get 0.83."""


def interpretation(
    scorer: "BERTScorer", f1: float, unrelated: NDArray[np.float64] | None, lang: str | None
) -> list[str]:
    """Return what to tell people of a mean F1 at one layer, a line each; nothing where there is nothing to tell.

    Args:
        scorer: what it was scored with.
        f1: the mean.
        unrelated: F of unrelated pairs, as `BERTScorer.unrelated_scores` has it, where it is known.
        lang: the language of the texts, where it is known.
    """
    if unrelated is not None:
        return [_standing(f1, unrelated)]
    if scorer.signature.rescale != "no" or f1 <= HIGH_SCORE:
        return []
    return _hint(scorer, lang)


def _standing(f1: float, unrelated: NDArray[np.float64]) -> str:
    from bertscore_onnx.evaluation.percentiles import percentile

    below = float(percentile(f1, unrelated))
    share = "all" if below == 100 else f"{min(below, 99.9):.1f} % of"
    middle, high = np.interp([50, 99], np.linspace(0, 100, len(unrelated)), unrelated)
    return (
        f"An F1 of {f1:.4f} is higher than that of {share} unrelated pairs; half "
        f"of these get less than {middle:.4f}, and 99 % less than {high:.4f}."
    )


def _hint(scorer: "BERTScorer", lang: str | None) -> list[str]:
    """Return what helps, where unrelated texts get high scores of the model too."""
    manifest, code = scorer.manifest, (lang or "").lower()
    means = {language: baselines[0].f1 for language, baselines in manifest.baselines.items()}
    if not (max(means.values()) > HIGH_BASELINE if means else manifest.hidden_size >= LARGE_SIZE):
        return []
    measure = f"  bertscore-onnx baseline --model {shlex.quote(str(scorer.bundle.path))} --corpus FILE --into-bundle "
    rescale = "  bertscore-onnx score ... --rescale-with-baseline --lang "
    language = next((one for one in ((code,) if code else ("en", *means)) if one in means), None)
    if language is None:
        advice = "Unrelated texts get a high F1 from large models too. First measure it, then rescale:"
        return [advice, measure + (code or "CODE"), rescale + (code or "CODE")]
    is_other = manifest.baseline_precision(language) != scorer.signature.precision
    return [
        f"Unrelated texts get a high F1 from this model too: {means[language]:.2f} on average ({language}). Rescale, "
        "or see what texts like yours get:",
        rescale + language + (" --allow-fp32-baseline" if is_other else ""),
        measure + language,
    ]
