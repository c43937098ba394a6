"""Chooses the weight of every vocabulary id: uniform, by idf, or a table the caller made."""

import hashlib
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from os import PathLike

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.catalogue import Baseline, read_baseline_file
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.errors import BaselineError, IdfError
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.matching.greedy import idf_weights, uniform_weights
from bertscore_onnx.scores import Scores
from bertscore_onnx.signature import Signature

Idf = bool | Mapping[int, float] | DocumentCounts
"""Whether and how tokens are weighted by inverse document frequency, as `BERTScorer` takes it."""

MAX_WEIGHT = 1e30
"""Of a token: a text of a hundred million of these does not overflow fp32."""

_UNIFORM = "no"


@dataclass(frozen=True, slots=True)
class TokenWeights:
    """A weight for every vocabulary id, and the name it goes by in the signature."""

    table: NDArray[np.float32]
    """Weights, (vocab_size,), each 0 or more; NaN where the caller's table has none."""

    is_word: NDArray[np.bool_]
    """Whether an id makes a text non-empty, (vocab_size,): all but the special tokens around it do."""

    name: str

    @property
    def is_uniform(self) -> bool:
        """Whether they are those without idf."""
        return self.name == _UNIFORM

    def of(self, ids: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the weight of each token; any shape, which is that of the result.

        Raises:
            IdfError: the caller's table says nothing of an id that occurs.
        """
        weights: NDArray[np.float32] = self.table[ids]
        if np.isnan(weights.sum()):
            missing = np.unique(ids[np.isnan(weights)])
            raise IdfError(
                f"The idf table has no weight for {len(missing)} token ids that occur, {missing[0]} among them. Add "
                "them, or give a collections.defaultdict with the weight of unseen tokens."
            )
        return weights


def uniform(manifest: Manifest) -> TokenWeights:
    """Weigh every token 1, but the classification and separator tokens 0."""
    return TokenWeights(uniform_weights(manifest.vocab_size, manifest.zero_weight_ids), _words(manifest), _UNIFORM)


def idf_given(idf: Mapping[int, float] | DocumentCounts, manifest: Manifest, tokenization: str) -> TokenWeights:
    """Weigh tokens by document counts, or by a ready table; arguments and errors are those of the two functions."""
    if isinstance(idf, DocumentCounts):
        return idf_of_counts(idf, manifest, tokenization)
    return idf_of_mapping(idf, manifest)


def idf_of_counts(counts: DocumentCounts, manifest: Manifest, tokenization: str, name: str = "") -> TokenWeights:
    """Weigh tokens by their idf in documents.

    Args:
        counts: how many documents each token occurs in.
        manifest: the bundle's.
        tokenization: the scorer's, which must be that of the counts.
        name: the signature's name for the table; by default a digest of it.

    Raises:
        IdfError: the counts are of another tokenizer; or every token that occurs would weigh 0.
    """
    frequency, number = counts.frequency(manifest.vocab_size, tokenization), counts.num_documents
    if not number:
        raise IdfError("There are no references; idf needs at least two different ones.")
    if (counts.documents == number).all():
        alike = "There is one reference" if number == 1 else f"All {number:,} references hold the same tokens"
        raise IdfError(
            f"{alike}, so every idf weight is 0; idf needs at least two different references. Leave idf out, or in "
            "Python give a larger corpus as idf_sents."
        )
    table = idf_weights(frequency, number)
    return TokenWeights(table, _words(manifest), name or _digest(table))


def idf_of_mapping(weights: Mapping[int, float], manifest: Manifest) -> TokenWeights:
    """Take the weights from a mapping of vocabulary id to weight, such as bert-score's `get_idf_dict` gives.

    Ids that the mapping lacks get its default, where it is a defaultdict; else they must not occur.

    Raises:
        IdfError: a key is no id of this model, or a weight is negative, above `MAX_WEIGHT` or no number.
    """
    factory = getattr(weights, "default_factory", None)
    unseen = np.nan if factory is None else _checked(factory(), "unseen tokens")
    table = np.full(manifest.vocab_size, unseen, dtype=np.float32)
    for key, weight in weights.items():
        if not 0 <= key < manifest.vocab_size:
            raise IdfError(f"The idf table has the token id {key!r}; {manifest.model_id} has 0 to {len(table) - 1}.")
        table[key] = _checked(weight, f"token id {key}")
    return TokenWeights(table, _words(manifest), _digest(table))


def _checked(weight: float, what: str) -> float:
    if not 0 <= weight <= MAX_WEIGHT:
        raise IdfError(f"The idf table gives {what} the weight {weight!r}; expected 0 to {MAX_WEIGHT:g}.")
    return weight


def _words(manifest: Manifest) -> NDArray[np.bool_]:
    is_word = np.ones(manifest.vocab_size, dtype=np.bool_)
    is_word[manifest.special_ids] = False
    return is_word


def _digest(table: NDArray[np.float32]) -> str:
    return hashlib.sha256(table.tobytes()).hexdigest()[:12]


# Baseline rescaling: bert-score's `journal/rescale_baseline.md`, (s - b) / (1 - b) for each of P, R and F.


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


# What F unrelated pairs of texts get, from the bundle that it was measured with, on the scale of the scores.


def random_pairs_f1(
    manifest: Manifest, signature: Signature, rescaling: Rescaling, lang: str | None
) -> NDArray[np.float64] | None:
    """Return the quantiles of F of unrelated pairs, rescaled as scores are.

    Args:
        manifest: the bundle's.
        signature: how scores are made; unrelated pairs were scored without idf.
        rescaling: what becomes of raw scores.
        lang: the language; None for that of the rescaling, or for the only one that was measured.

    Returns:
        Evenly spaced quantiles in ascending order, (quantiles,), or (layers, quantiles) of all layers; None where they
        are not known for such scores.
    """
    known = manifest.unrelated_scores
    if lang is None:
        lang = rescaling.name if rescaling.name in known or len(known) != 1 else next(iter(known))
    measured = known.get(lang.lower())
    if measured is None or measured.precision != signature.precision or signature.idf != "no":
        return None
    quantiles = np.array(measured.f1_quantiles, dtype=np.float64)
    if rescaling.baselines:
        baseline = np.array([[one.f1] for one in rescaling.baselines])  # (layers, 1)
        quantiles = (quantiles - baseline) / (1 - baseline)
    return quantiles if manifest.all_layers else quantiles[0]
