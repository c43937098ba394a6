"""Token weights, uniform or by idf."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral

import numpy as np

from bertscore_onnx.arrays import BoolArray, Float32Array, Int64Array
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.errors import Argument, IdfError, InputTypeError
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.matching.greedy import idf_weights

Idf = bool | Mapping[int, float] | DocumentCounts
"""Whether and how tokens are weighted by inverse document frequency."""

MAX_WEIGHT = 1e30
"""The largest weight of a token: a text of a hundred million such tokens does not overflow fp32."""

_UNIFORM = "no"


@dataclass(frozen=True, slots=True)
class TokenWeights:
    """A weight for every vocabulary id, and the name of the weights.

    The signature has the name.
    """

    table: Float32Array
    """Weights, (vocab_size,), each 0 or more; NaN if the caller's table has none."""

    is_word: BoolArray
    """Whether an id makes a text non-empty, (vocab_size,): all do but the special tokens around
    it.
    """

    name: str

    @property
    def is_uniform(self) -> bool:
        """Whether there is no idf."""
        return self.name == _UNIFORM

    def of(self, ids: Int64Array) -> Float32Array:
        """Return the weight of each token, in the shape of the ids.

        Raise an IdfError if the table lacks one.
        """
        weights = self.table[ids]
        if np.isnan(weights.sum()):
            missing = np.unique(ids[np.isnan(weights)])
            raise IdfError(
                f"The idf table has no weight for {len(missing)} token ids that occur, "
                f"{missing[0]} among them. Add them, or give a collections.defaultdict with the "
                "weight of unseen tokens."
            )
        return weights


def uniform(manifest: Manifest) -> TokenWeights:
    """Return weights of 1.

    The classification and separator tokens weigh 0.
    """
    table = np.ones(manifest.vocab_size, dtype=np.float32)
    table[manifest.zero_weight_ids] = 0
    return TokenWeights(table, word_ids(manifest), _UNIFORM)


def idf_given(
    idf: Mapping[int, float] | DocumentCounts, manifest: Manifest, tokenization: str
) -> TokenWeights | None:
    """Return the weights from document counts, or from a caller's mapping.

    None for {}: as in bert-score, no idf.
    """
    if isinstance(idf, DocumentCounts):
        return idf_of_references(idf, manifest, tokenization)
    if not hasattr(idf, "items"):
        raise InputTypeError(
            f"idf is {idf!r}; expected a bool, document counts, or a mapping of token id to weight."
        )
    return idf_of_mapping(idf, manifest) if idf or hasattr(idf, "default_factory") else None


def idf_of_references(
    counts: DocumentCounts, manifest: Manifest, tokenization: str, name: str = ""
) -> TokenWeights:
    """Return the idf weights of counts of references.

    Raise an IdfError if these do not differ.
    """
    number = counts.num_documents
    if number and (counts.documents == number).all():
        alike = (
            "There is one reference"
            if number == 1
            else f"All {number:,} references hold the same tokens"
        )
        raise IdfError(
            f"{alike}, so every idf weight is 0; idf needs at least two different references. "
            "Leave ",
            Argument("idf"),
            " out, or in Python give a larger corpus as idf_sents.",
        )
    return idf_of_counts(counts, manifest, tokenization, name)


def idf_of_counts(
    counts: DocumentCounts, manifest: Manifest, tokenization: str, name: str = ""
) -> TokenWeights:
    """Return the idf weights of document counts.

    Their name is a digest by default.

    Raises an IdfError if the counts are of another tokenization, or of no document.
    """
    frequency = counts.frequency(manifest.vocab_size, tokenization)
    if not counts.num_documents:
        raise IdfError(
            "There is no text to compute idf weights from. Give at least one, usually all "
            "references."
        )
    table = idf_weights(frequency, counts.num_documents)
    return TokenWeights(table, word_ids(manifest), name or _digest(table))


def idf_of_mapping(weights: Mapping[int, float], manifest: Manifest) -> TokenWeights:
    """Return the weights of a mapping of vocabulary id to weight.

    It is such as bert-score's `get_idf_dict` returns. Ids that the mapping lacks get its default if
    it is a defaultdict; else they must not occur.
    """
    factory = getattr(weights, "default_factory", None)
    unseen = np.nan if factory is None else _checked(factory(), "unseen tokens")
    table = np.full(manifest.vocab_size, unseen, dtype=np.float32)
    for key, weight in weights.items():
        if (
            isinstance(key, bool)
            or not isinstance(key, Integral)
            or not 0 <= key < manifest.vocab_size
        ):
            raise IdfError(
                f"The idf table has the token id {key!r}; expected integers, from 0 to "
                f"{len(table) - 1} for {manifest.model_id}."
            )
        table[key] = _checked(weight, f"token id {key}")
    return TokenWeights(table, word_ids(manifest), _digest(table))


def _checked(weight: float, what: str) -> float:
    try:
        if 0 <= weight <= MAX_WEIGHT:
            return weight
    except (TypeError, ValueError):  # it is no number
        pass
    raise IdfError(
        f"The idf table gives {what} the weight {weight!r}; expected a number from 0 to "
        f"{MAX_WEIGHT:g}."
    )


def word_ids(manifest: Manifest) -> BoolArray:
    """Return whether an id is not special, (vocab_size,)."""
    is_word = np.ones(manifest.vocab_size, dtype=np.bool_)
    is_word[manifest.special_ids] = False
    return is_word


def _digest(table: Float32Array) -> str:
    return hashlib.sha256(table.tobytes()).hexdigest()[:12]
