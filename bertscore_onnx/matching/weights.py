"""Chooses the weight of every vocabulary id: uniform, by idf, or a table the caller made."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.errors import IdfError
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.matching.idf import idf_weights, uniform_weights

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
