"""Token weights, uniform or by idf, and the rescaling of scores by a baseline."""

import hashlib
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from numbers import Integral
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.catalogue import Baseline, lower_code, read_baseline_file
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.errors import BaselineError, IdfError, InputTypeError
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.matching.greedy import idf_weights
from bertscore_onnx.scores import Scores, arrays_of
from bertscore_onnx.signature import Signature

Idf = bool | Mapping[int, float] | DocumentCounts
"""Whether and how tokens are weighted by inverse document frequency."""

MAX_WEIGHT = 1e30
"""The largest weight of a token: a text of a hundred million such tokens does not overflow fp32."""

_UNIFORM = "no"


@dataclass(frozen=True, slots=True)
class TokenWeights:
    """A weight for every vocabulary id, and the name of the weights in the signature."""

    table: NDArray[np.float32]
    """Weights, (vocab_size,), each 0 or more; NaN if the caller's table has none."""

    is_word: NDArray[np.bool_]
    """Whether an id makes a text non-empty, (vocab_size,): all do but the special tokens around it."""

    name: str

    @property
    def is_uniform(self) -> bool:
        """Whether there is no idf."""
        return self.name == _UNIFORM

    def of(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the weight of each token, in the shape of the ids; raise an IdfError if the table lacks one."""
        weights = self.table[ids]
        if np.isnan(weights.sum()):
            missing = np.unique(ids[np.isnan(weights)])
            raise IdfError(
                f"The idf table has no weight for {len(missing)} token ids that occur, {missing[0]} among them. Add "
                "them, or give a collections.defaultdict with the weight of unseen tokens."
            )
        return weights


def uniform(manifest: Manifest) -> TokenWeights:
    """Return weights of 1, but of 0 for the classification and separator tokens."""
    table = np.ones(manifest.vocab_size, dtype=np.float32)
    table[manifest.zero_weight_ids] = 0
    return TokenWeights(table, _words(manifest), _UNIFORM)


def idf_given(idf: Mapping[int, float] | DocumentCounts, manifest: Manifest, tokenization: str) -> TokenWeights | None:
    """Return the weights from document counts, or from a caller's mapping; None for {}: as in bert-score, no idf."""
    if isinstance(idf, DocumentCounts):
        return idf_of_references(idf, manifest, tokenization)
    if not hasattr(idf, "items"):
        raise InputTypeError(f"idf is {idf!r}; expected a bool, document counts, or a mapping of token id to weight.")
    return idf_of_mapping(idf, manifest) if idf or hasattr(idf, "default_factory") else None


def idf_of_references(counts: DocumentCounts, manifest: Manifest, tokenization: str, name: str = "") -> TokenWeights:
    """Return the idf weights of counts of references; raise an IdfError if these do not differ."""
    number = counts.num_documents
    if number and (counts.documents == number).all():
        alike = "There is one reference" if number == 1 else f"All {number:,} references hold the same tokens"
        raise IdfError(
            f"{alike}, so every idf weight is 0; idf needs at least two different references. Leave idf out, or in "
            "Python give a larger corpus as idf_sents."
        )
    return idf_of_counts(counts, manifest, tokenization, name)


def idf_of_counts(counts: DocumentCounts, manifest: Manifest, tokenization: str, name: str = "") -> TokenWeights:
    """Return the idf weights of document counts; their name is a digest by default.

    Raises an IdfError if the counts are of another tokenization, or of no document.
    """
    frequency = counts.frequency(manifest.vocab_size, tokenization)
    if not counts.num_documents:
        raise IdfError("There is no text to compute idf weights from. Give at least one, usually all references.")
    table = idf_weights(frequency, counts.num_documents)
    return TokenWeights(table, _words(manifest), name or _digest(table))


def idf_of_mapping(weights: Mapping[int, float], manifest: Manifest) -> TokenWeights:
    """Return the weights of a mapping of vocabulary id to weight, such as bert-score's `get_idf_dict` returns.

    Ids that the mapping lacks get its default if it is a defaultdict; else they must not occur.
    """
    factory = getattr(weights, "default_factory", None)
    unseen = np.nan if factory is None else _checked(factory(), "unseen tokens")
    table = np.full(manifest.vocab_size, unseen, dtype=np.float32)
    for key, weight in weights.items():
        if isinstance(key, bool) or not isinstance(key, Integral) or not 0 <= key < manifest.vocab_size:
            raise IdfError(
                f"The idf table has the token id {key!r}; expected integers, from 0 to {len(table) - 1} for "
                f"{manifest.model_id}."
            )
        table[key] = _checked(weight, f"token id {key}")
    return TokenWeights(table, _words(manifest), _digest(table))


def _checked(weight: float, what: str) -> float:
    try:
        if 0 <= weight <= MAX_WEIGHT:
            return weight
    except (TypeError, ValueError):  # it is no number
        pass
    raise IdfError(f"The idf table gives {what} the weight {weight!r}; expected a number from 0 to {MAX_WEIGHT:g}.")


def _words(manifest: Manifest) -> NDArray[np.bool_]:
    is_word = np.ones(manifest.vocab_size, dtype=np.bool_)
    is_word[manifest.special_ids] = False
    return is_word


def _digest(table: NDArray[np.float32]) -> str:
    return hashlib.sha256(table.tobytes()).hexdigest()[:12]


# Baseline rescaling: bert-score's `journal/rescale_baseline.md`, (s - b) / (1 - b) for each of P, R and F.

_RAW, _FILE, _LANGUAGE = "no", "file-", "language-"
"""In a signature: no rescaling; the prefix of a file's digest; the prefix of a language whose code looks like these."""


@dataclass(frozen=True, slots=True)
class Rescaling:
    """The rescaling of raw scores with the baseline of each layer, or none."""

    language: str | None = None
    """The language of the bundle's baseline; None for a baseline of the caller, or for none."""

    baselines: tuple[Baseline, ...] = ()
    """The baseline of each layer; without any, scores stay raw."""

    @property
    def name(self) -> str:
        """The signature's name for it, each a different one: `no` is also the code of Norwegian."""
        if not self.baselines:
            return _RAW
        if self.language is None:
            return _FILE + hashlib.sha256(repr([*self.baselines]).encode()).hexdigest()[:12]
        is_taken = self.language == _RAW or self.language.startswith((_FILE, _LANGUAGE))
        return _LANGUAGE + self.language if is_taken else self.language

    def apply(self, scores: Scores) -> Scores:
        """Rescale scores, (layers, …); the axis of layers may be missing if there is only one."""
        if not self.baselines:
            return scores
        per_layer = (len(self.baselines), *[1] * (scores.F.ndim - 1))
        baselines = (np.reshape(b, per_layer) for b in zip(*map(astuple, self.baselines), strict=True))
        precision, recall, f1 = map(rescale, scores, baselines)
        return Scores(precision, recall, f1, *arrays_of(scores)[3:])


def rescale(scores: NDArray[np.float32], baseline: float | NDArray[np.float64]) -> NDArray[np.float32]:
    """Map `baseline`, below 1, to 0, and 1 to 1; the shape stays, and an array of baselines broadcasts."""
    return ((scores - baseline) / (1 - baseline)).astype(np.float32)


def choose_rescaling(
    manifest: Manifest,
    precision: str,
    lang: str | None,
    path: str | PathLike[str] | None = None,
    *,
    allow_fp32_baseline: bool = False,
) -> Rescaling:
    """Return the rescaling with the bundle's baseline for a language, or with a file of the caller.

    Raises a BaselineError if there is none, or if it was computed in another precision than the scores.
    """
    if path is not None:
        baselines = tuple(read_baseline_file(path, layer) for layer in manifest.layers)
        return Rescaling(None, baselines)
    languages = ", ".join(sorted(manifest.baselines))
    if lang is None:
        available = (
            f"baselines for: {languages}" if languages else "no baselines; `bertscore-onnx baseline` measures one"
        )
        raise BaselineError(
            f"Rescaling needs the language, `lang`, or a file, `baseline_path`. {manifest.model_id} at layer "
            f"{manifest.num_layers} has {available}."
        )
    language = lower_code(lang)
    if language not in manifest.baselines:
        raise BaselineError(
            f"{manifest.model_id} at layer {manifest.num_layers} has no baseline for {lang!r}, "
            f"{f'only for: {languages}' if languages else 'nor for any other language'}. Give a file of your own with "
            "`baseline_path`, which `bertscore-onnx baseline` makes, or leave rescaling off."
        )
    computed = manifest.baseline_precision(language)
    if precision != computed and not allow_fp32_baseline:
        raise BaselineError(
            f"The baselines of {manifest.model_id} were computed in {computed}, and these scores are computed in "
            f"{precision}. Pass allow_fp32_baseline=True (--allow-fp32-baseline) to use them all the same, give a file "
            f"of your own with `baseline_path`, or score in {computed}."
        )
    return Rescaling(language, tuple(manifest.baselines[language]))


MIN_RANDOM_PAIRS = 100
"""Fewer pairs cannot show a score that only one in a hundred of them exceeds."""


def random_pairs_f1(
    manifest: Manifest, signature: Signature, rescaling: Rescaling, lang: str | None
) -> NDArray[np.float64] | None:
    """Return the quantiles of F of random pairs, (quantiles,) or (layers, quantiles), rescaled as scores are.

    None unless 100 random pairs or more were measured with these settings, in `lang` or the language of the rescaling.
    """
    measurements = manifest.unrelated_scores
    if lang is None:
        is_only_choice = rescaling.language not in measurements and len(measurements) == 1
        lang = next(iter(measurements)) if is_only_choice else rescaling.language
    measured = None if lang is None else measurements.get(lower_code(lang))
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
"""The quantile of unrelated pairs above which a score counts as high: one in a hundred of them exceeds it."""


def high_unrelated(unrelated: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the score that 99 % of unrelated pairs do not exceed, () or (layers,), from evenly spaced quantiles."""
    return np.asarray(np.quantile(unrelated, HIGH_SHARE, axis=-1))
