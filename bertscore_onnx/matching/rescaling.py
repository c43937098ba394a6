"""Baseline rescaling: bert-score's `journal/rescale_baseline.md`, (s - b) / (1 - b) for each of P, R and F."""

import hashlib
from dataclasses import astuple, dataclass
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.catalogue import Baseline, read_baseline_file
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.errors import BaselineError
from bertscore_onnx.scores import Scores


@dataclass(frozen=True, slots=True)
class Rescaling:
    """What becomes of raw scores: they are rescaled with the baseline of each layer, or stay as they are."""

    name: str = "no"
    """The signature's name for it."""

    baselines: tuple[Baseline, ...] = ()
    """The baseline of each layer; none to leave scores as they are."""

    def apply(self, scores: Scores) -> Scores:
        """Rescale scores of these layers.

        Args:
            scores: (layers, …); the axis of layers may be missing where there is one only.
        """
        if not self.baselines:
            return scores
        per_layer = (len(self.baselines), *[1] * (scores.F.ndim - 1))
        precision, recall, f1 = (np.reshape(b, per_layer) for b in zip(*map(astuple, self.baselines), strict=True))
        return Scores(
            rescale(scores.P, precision), rescale(scores.R, recall), rescale(scores.F, f1), scores.best_reference
        )


def rescale(scores: NDArray[np.float32], baseline: float | NDArray[np.float64]) -> NDArray[np.float32]:
    """Move `baseline` to 0 and keep 1 at 1.

    Args:
        scores: raw scores, any shape.
        baseline: the raw score that becomes 0, below 1; or an array of them that broadcasts against `scores`.

    Returns:
        Rescaled scores of the same shape; negative where the raw score is below the baseline.
    """
    return ((scores - baseline) / (1 - baseline)).astype(np.float32)


def choose_rescaling(
    manifest: Manifest,
    precision: str,
    lang: str | None,
    path: str | PathLike[str] | None = None,
    *,
    allow_fp32_baseline: bool = False,
) -> Rescaling:
    """Return the rescaling with the bundle's baseline for a language, or with a file of the caller's.

    Args:
        manifest: the bundle's, which holds the baselines of its layers, computed in fp32 or measured with itself.
        precision: the compute precision of the scores.
        lang: the language whose baseline to take.
        path: a baseline file to take instead.
        allow_fp32_baseline: whether the bundle's baselines may rescale scores of another precision.

    Raises:
        BaselineError: there is no such baseline, or it was computed in another precision.
        InputError: the file cannot be read.
    """
    if path is not None:
        baselines = tuple(read_baseline_file(path, layer) for layer in manifest.layers)
        return Rescaling("file-" + hashlib.sha256(repr([*baselines]).encode()).hexdigest()[:12], baselines)
    known = ", ".join(sorted(manifest.baselines))
    if lang is None:
        raise BaselineError(
            f"Rescaling needs the language, `lang`, or a file, `baseline_path`. {manifest.model_id} at layer "
            f"{manifest.num_layers} has {f'baselines for: {known}' if known else 'no baselines'}."
        )
    language = lang.lower()
    if language not in manifest.baselines:
        raise BaselineError(
            f"{manifest.model_id} at layer {manifest.num_layers} has no baseline for {lang!r}, "
            f"{f'only for: {known}' if known else 'nor for any other language'}. Give a file of your own with "
            "`baseline_path`, or leave rescaling off."
        )
    computed = manifest.baseline_precision(language)
    if precision != computed and not allow_fp32_baseline:
        raise BaselineError(
            f"The baselines of {manifest.model_id} were computed in {computed}, and these scores are computed in "
            f"{precision}. Pass allow_fp32_baseline=True (--allow-fp32-baseline) to use them all the same, give a file "
            f"of your own with `baseline_path`, or score in {computed}."
        )
    return Rescaling(language, tuple(manifest.baselines[language]))
