"""Rescaling by a baseline.

It is (s - b) / (1 - b) for each of P, R and F: bert-score's `journal/rescale_baseline.md`.
"""

import hashlib
from dataclasses import astuple, dataclass

import numpy as np

from bertscore_onnx.arrays import Float32Array, Float64Array
from bertscore_onnx.bundle.catalogue import Baseline, lower_code, read_baseline_file
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.errors import Argument, BaselineError
from bertscore_onnx.files import StrPath
from bertscore_onnx.scores import Scores, Signature, arrays_of

_RAW = "no"
"""No rescaling, in a signature."""

_FILE = "file-"
"""The prefix of a file's digest, in a signature."""

_LANGUAGE = "language-"
"""The prefix of a language whose code looks like these, in a signature."""


@dataclass(frozen=True, slots=True)
class Rescaling:
    """The rescaling of raw scores with the baseline of each layer, or none."""

    language: str | None = None
    """The language of the bundle's baseline; None for a baseline of the caller, or for none."""

    baselines: tuple[Baseline, ...] = ()
    """The baseline of each layer; without any, scores stay raw."""

    @property
    def name(self) -> str:
        """The signature's name for it.

        Each rescaling has another name: `no` is also the code of Norwegian.
        """
        if not self.baselines:
            return _RAW
        if self.language is None:
            content = repr(list(self.baselines)).encode()
            return _FILE + hashlib.sha256(content).hexdigest()[:12]
        if self.language == _RAW or self.language.startswith((_FILE, _LANGUAGE)):
            return _LANGUAGE + self.language
        return self.language

    @property
    def worst(self) -> Scores:
        """What an empty text scores, (layers,): 0 before rescaling."""
        return self.apply(Scores(*np.zeros((3, 1), dtype=np.float32)))

    def apply(self, scores: Scores) -> Scores:
        """Rescale scores, (layers, …).

        The axis of layers may be missing if there is only one.
        """
        if not self.baselines:
            return scores
        other_axes = [1] * (scores.F.ndim - 1)
        baselines = np.array([astuple(baseline) for baseline in self.baselines]).T  # (3, layers)
        per_layer = baselines.reshape(3, -1, *other_axes)
        precision, recall, f1 = map(rescale, scores, per_layer)
        return Scores(precision, recall, f1, *arrays_of(scores)[3:])


def rescale(scores: Float32Array, baseline: float | Float64Array) -> Float32Array:
    """Map `baseline`, below 1, to 0, and 1 to 1.

    The shape stays, and an array of baselines broadcasts.
    """
    return ((scores - baseline) / (1 - baseline)).astype(np.float32)


def choose_rescaling(
    manifest: Manifest,
    precision: str,
    lang: str | None,
    path: StrPath | None = None,
    *,
    allow_fp32_baseline: bool = False,
) -> Rescaling:
    """Return the rescaling for a language, or with a file of the caller.

    That of a language has the bundle's baseline. Raises a BaselineError if there is none, or if it
    was computed in another precision than the scores.
    """
    if path is not None:
        baselines = tuple(read_baseline_file(path, layer) for layer in manifest.layers)
        return Rescaling(None, baselines)
    languages = ", ".join(sorted(manifest.baselines))
    if lang is None:
        available = "no baselines; `bertscore-onnx baseline` measures one"
        if languages:
            available = f"baselines for: {languages}"
        raise BaselineError(
            "Rescaling needs the language, ",
            Argument("lang"),
            ", or a file, ",
            Argument("baseline_path"),
            f". {manifest.model_id} at layer {manifest.num_layers} has {available}.",
        )
    language = lower_code(lang)
    if language not in manifest.baselines:
        available = f"only for: {languages}" if languages else "nor for any other language"
        raise BaselineError(
            f"{manifest.model_id} at layer {manifest.num_layers} has no baseline for {lang!r}, "
            f"{available}. Give a file of your own with ",
            Argument("baseline_path"),
            ", which `bertscore-onnx baseline` makes, or leave rescaling off.",
        )
    # Unrelated texts score differently in another precision, so its baseline does not fit.
    computed = manifest.baseline_precision(language)
    if precision != computed and not allow_fp32_baseline:
        raise BaselineError(
            f"The baselines of {manifest.model_id} were computed in {computed}, and these scores "
            f"are computed in {precision}. Pass ",
            Argument("allow_fp32_baseline", True),
            " to use them all the same, give a file of your own with ",
            Argument("baseline_path"),
            f", or score in {computed}.",
        )
    return Rescaling(language, tuple(manifest.baselines[language]))


MIN_RANDOM_PAIRS = 100
"""Fewer pairs cannot show a score that only one in a hundred of them exceeds."""


def random_pairs_f1(
    manifest: Manifest, signature: Signature, rescaling: Rescaling, lang: str | None
) -> Float64Array | None:
    """Return the quantiles of F of random pairs.

    They are rescaled as scores are, (quantiles,) or (layers, quantiles). None unless 100 random
    pairs or more were measured with these settings, in `lang` or the language of the rescaling.
    """
    measurements = manifest.unrelated_scores
    if lang is None:
        lang = rescaling.language
        if lang not in measurements and len(measurements) == 1:
            [lang] = measurements
    if lang is None:
        return None
    measured = measurements.get(lower_code(lang))
    if measured is None or measured.precision != signature.precision:
        return None
    if signature.idf != "no" or signature.matching is not None:
        return None
    if measured.num_pairs < MIN_RANDOM_PAIRS:
        return None
    quantiles = np.array(measured.f1_quantiles, dtype=np.float64)
    if rescaling.baselines:
        baseline = np.array([[layer.f1] for layer in rescaling.baselines])  # (layers, 1)
        quantiles = (quantiles - baseline) / (1 - baseline)
    return quantiles if manifest.all_layers else quantiles[0]


HIGH_SHARE = 0.99
"""The quantile of unrelated pairs above which a score counts as high: one in a hundred of them
exceeds it.
"""


def high_unrelated(unrelated: Float64Array) -> Float64Array:
    """Return the score that 99 % of unrelated pairs do not exceed.

    It is found from evenly spaced quantiles, () or (layers,).
    """
    return np.asarray(np.quantile(unrelated, HIGH_SHARE, axis=-1))
