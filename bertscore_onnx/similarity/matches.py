"""Similarities of tokens.

`pair_similarities` compares the tokens of candidates with those of references; `TokenNames` shows
token ids as text.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import accumulate, chain
from typing import Any

import numpy as np

from bertscore_onnx.arrays import BoolArray, Float32Array
from bertscore_onnx.bundle.bundle import Bundle
from bertscore_onnx.concurrency.blas import blas_gate
from bertscore_onnx.errors import InputError, UnknownLayerError
from bertscore_onnx.scores import Score
from bertscore_onnx.scoring.inputs import Pairs, collect_single
from bertscore_onnx.scoring.text_stats import MAX_UNKNOWN
from bertscore_onnx.text.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class TokenMatch:
    """A token and the most similar one of the other text."""

    text: str
    """The text of the token, as `TokenNames` returns it."""

    weight: float
    """Its weight in the mean of the similarities: its idf, or else 1, and 0 for special tokens."""

    is_special: bool
    """Whether it is a special token around the text, not part of it."""

    position: int
    """The position of the most similar token in the other text."""

    other: str
    """The text of that token."""

    similarity: float
    """The cosine similarity of the two tokens, not rescaled."""

    other_is_special: bool
    """Whether that token is a special one."""

    shade: float
    """The darkness of its shade in a picture, from 0 to 1, as in `TokenSimilarity.shades`."""


@dataclass(frozen=True, slots=True, eq=False)
class TokenSimilarity:
    """The tokens of a candidate and a reference, and how similar they are.

    Special tokens are included; tokens that the matching excludes are left out.
    """

    candidate: list[str]
    """The text of each token of the candidate, as `TokenNames` returns it."""

    reference: list[str]
    """Likewise, of the reference."""

    similarity: Float32Array
    """Cosine similarities, (cand_tokens, ref_tokens); not rescaled."""

    candidate_weights: Float32Array
    """The weight of each token in the precision, (cand_tokens,).

    It is its idf, or else 1, and 0 for special tokens.
    """

    reference_weights: Float32Array
    """The weight of each token in the recall, (ref_tokens,)."""

    candidate_is_special: BoolArray
    """Which tokens are special tokens around the text, not part of it, (cand_tokens,)."""

    reference_is_special: BoolArray
    """Likewise, (ref_tokens,)."""

    score: Score
    """P, R and F of the pair, rescaled if the scorer rescales."""

    baseline: float | None = None
    """The baseline of F that the score was rescaled with; None if scores are raw."""

    is_excluded: tuple[bool, bool] = (False, False)
    """Whether the matching excludes all tokens of the candidate, and of the reference.

    One of them is kept here.
    """

    is_truncated: tuple[bool, bool] = (False, False)
    """Whether the candidate, and the reference, is longer than the model's maximum.

    Then its end is missing.
    """

    unknown: tuple[float, float] = (0.0, 0.0)
    """The share of unknown tokens in the candidate, and in the reference."""

    @property
    def candidate_matches(self) -> list[TokenMatch]:
        """Each token of the candidate with its best match in the reference.

        The weighted mean of their similarities is the precision, before rescaling.
        """
        return _best_matches(
            (self.candidate, self.reference),
            (self.candidate_is_special, self.reference_is_special),
            self.candidate_weights,
            self.similarity,
            self.shades,
        )

    @property
    def reference_matches(self) -> list[TokenMatch]:
        """Each token of the reference with its best match in the candidate.

        The weighted mean of their similarities is the recall, before rescaling.
        """
        return _best_matches(
            (self.reference, self.candidate),
            (self.reference_is_special, self.candidate_is_special),
            self.reference_weights,
            self.similarity.T,
            self.shades.T,
        )

    @property
    def has_weights(self) -> bool:
        """Whether any token of the texts has a weight other than 1, as with idf."""
        candidate = self.candidate_weights[~self.candidate_is_special]
        reference = self.reference_weights[~self.reference_is_special]
        return bool((candidate != 1).any() or (reference != 1).any())

    @property
    def reason_for_zero(self) -> str:
        """A sentence on why P, R and F are 0 before rescaling, or else ""."""
        for name, weights, is_special, is_excluded in (
            ("candidate", self.candidate_weights, self.candidate_is_special, self.is_excluded[0]),
            ("reference", self.reference_weights, self.reference_is_special, self.is_excluded[1]),
        ):
            if is_excluded:
                return f"The matching excludes all tokens of the {name}, so the pair scores 0."
            if is_special.all():
                return f"The {name} has no token, so the pair scores 0."
            if not weights.any():
                return f"All tokens of the {name} have weight 0, so the pair scores 0."
        return ""

    @property
    def remarks(self) -> list[str]:
        """Sentences on what the score hides.

        They are its `reason_for_zero`, and which texts are truncated or unknown.
        """
        sentences = []
        if self.reason_for_zero:
            sentences.append(self.reason_for_zero)
        names = ("candidate", "reference")
        for name, is_long in zip(names, self.is_truncated, strict=True):
            if is_long:
                sentences.append(
                    f"The {name} is longer than the model's maximum, so its end is missing.",
                )
        for name, share in zip(names, self.unknown, strict=True):
            if share > MAX_UNKNOWN:
                sentences.append(
                    f"{100 * share:.0f} % of the tokens of the {name} are unknown to the model.",
                )
        return sentences

    @property
    def shades(self) -> Float32Array:
        """The darkness of similarities in a picture, (cand_tokens, ref_tokens).

        It goes from 0 to 1. Similarities of a model lie close together, with some models from .8 to
        1. So the shade of the baseline, or else of the mean similarity, and of anything below is 0;
        a similarity of 1 has the shade 1.
        """
        lightest = self.baseline
        if lightest is None:
            lightest = float(self.similarity.mean())
        floor = min(max(lightest, 0.0), 0.99)
        return np.clip((self.similarity - floor) / (1 - floor), 0, 1)

    def without_special_tokens(self) -> "TokenSimilarity":
        """Return the same without special tokens.

        A token that matched one of these gets another match.
        """
        rows = np.flatnonzero(~self.candidate_is_special)
        columns = np.flatnonzero(~self.reference_is_special)
        candidate = [self.candidate[row] for row in rows]
        reference = [self.reference[column] for column in columns]
        return replace(
            self,
            candidate=candidate,
            reference=reference,
            similarity=self.similarity[np.ix_(rows, columns)],
            candidate_weights=self.candidate_weights[rows],
            reference_weights=self.reference_weights[columns],
            candidate_is_special=self.candidate_is_special[rows],
            reference_is_special=self.reference_is_special[columns],
        )


def _best_matches(
    texts: tuple[list[str], list[str]],
    special: tuple[BoolArray, BoolArray],
    weights: Float32Array,
    similarity: Float32Array,
    shades: Float32Array,
) -> list[TokenMatch]:
    """Match the tokens of the first of two texts, (tokens, other tokens)."""
    rows = zip(
        texts[0],
        weights.tolist(),
        special[0].tolist(),
        similarity.argmax(axis=1).tolist(),
        similarity.max(axis=1).tolist(),
        shades.max(axis=1).tolist(),
        strict=True,
    )
    matches = []
    for text, weight, is_special, position, largest, shade in rows:
        other = texts[1][position]
        other_is_special = bool(special[1][position])
        match = TokenMatch(
            text,
            weight,
            is_special,
            position,
            other,
            largest,
            other_is_special,
            shade,
        )
        matches.append(match)
    return matches


# The text of a token is written as a person would, without the vocabulary's marks and without the
# space before it. If a character is spread over several tokens, each of them shows the character
# and its own part: `東(1/2)`.

_MISLEADING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that change the direction of their neighbours."""


class TokenNames:
    """The texts of the token ids of one bundle; threads may share it."""

    def __init__(self, bundle: Bundle) -> None:
        """Load the vocabulary."""
        manifest = bundle.manifest
        vocabulary = Vocabulary(
            bundle.tokenizer_path,
            manifest.tokenizer_spec,
            manifest.special_ids,
        )
        self._bytes_of = cache(vocabulary.bytes_of)

    def __call__(self, ids: Sequence[int]) -> list[str]:
        """Return the text of each token.

        Args:
            ids: the ids of a text, or of a part of it, in their order, since neighbours may share a
                character.

        Returns:
            As many texts, none of them empty: a token of spaces alone is `␣`; other white space,
            control characters, and bytes that form no character are escaped as in Python.
        """
        pieces = list(map(self._bytes_of, ids))
        return list(map(_visible, _texts(pieces)))


def _texts(pieces: Sequence[bytes]) -> list[str]:
    """Return the text of each piece of some UTF-8.

    A character may be spread over several pieces.
    """
    ends = list(accumulate(map(len, pieces)))
    texts = [""] * len(pieces)
    piece = 0
    start = 0
    for text, size in _characters(b"".join(pieces)):
        while ends[piece] <= start:
            piece += 1
        last = piece
        while ends[last] < start + size:
            last += 1
        owners = [owner for owner in range(piece, last + 1) if pieces[owner]]
        start += size
        if len(owners) == 1:
            texts[owners[0]] += text
            continue
        for number, owner in enumerate(owners, 1):
            texts[owner] += f"{_visible(text)}({number}/{len(owners)})"
    return texts


def _characters(content: bytes) -> Iterator[tuple[str, int]]:
    """Yield each character of some UTF-8 with its number of bytes.

    A byte that is in no character is escaped.
    """
    start = 0
    while start < len(content):
        for size in range(1, 5):
            try:
                yield content[start : start + size].decode(), size
            except UnicodeDecodeError:
                continue
            break
        else:
            size = 1
            yield f"\\x{content[start]:02x}", size
        start += size


def _visible(text: str) -> str:
    """Return a text without the spaces around it.

    Invisible and misleading characters are escaped.
    """
    bare = text.strip(" ")
    if not bare:
        return "␣" * max(len(text), 1)
    is_hidden = all(not character.isprintable() for character in bare)
    visible = ""
    for character in bare:
        is_control = unicodedata.category(character) in ("Cc", "Zl", "Zp")
        if is_hidden or is_control or _MISLEADING.match(character):
            visible += ascii(character)[1:-1]
        else:
            visible += character
    return visible


def pair_similarities(
    scorer: Any,
    names: TokenNames,
    pairs: Sequence[tuple[str, str]],
    *,
    layer: int | None = None,
) -> list[TokenSimilarity]:
    """Compare every token of each candidate with every token of its reference.

    All texts are encoded together. Idf weights are from all references. There is no warning; each
    result has its `remarks`.

    Args:
        scorer: the `BERTScorer` that scores the pairs; the results have its weights and its
            rescaling.
        names: the texts of tokens of the same bundle.
        pairs: a candidate and a reference each, any texts. The end of one that is longer than the
            model's maximum is missing, unless the scorer encodes long texts in windows.
        layer: the layer to show if the scorer scores all layers; else None.

    Raises:
        InputError: the scorer scores all layers and `layer` is None, or a text is not a string.
        UnknownLayerError: the scorer has no such layer.
        IdfError: idf weights come from the references, and there is only one reference.
        EncodingError: the model returned vectors that are not finite.
        ClosedError: the scorer was closed.
    """
    position = _position(scorer, layer)
    texts = list(chain.from_iterable(pairs))
    encoded, _ = scorer.encode_items(collect_single(texts, "texts"))
    num_references = np.ones(len(pairs), dtype=np.int64)
    # The texts of candidates and of references alternate.
    candidate_rows = np.arange(0, 2 * len(pairs), 2)
    candidates = collect_single(encoded.part(candidate_rows, num_references), "texts")
    references = collect_single(encoded.part(candidate_rows + 1, num_references), "texts")
    weights = scorer.weights_for(references)
    scores, _ = scorer.score_pairs(Pairs(candidates, references))
    if scorer.manifest.all_layers:
        scores = scores.of_layer(position)
    baselines = scorer.rescaling.baselines
    baseline = baselines[position].f1 if baselines else None
    ids = [encoded.embeddings.sequences[row] for row in encoded.rows]
    tokens = [names(text.tolist()) for text in ids]
    token_weights = [weights.of(text) for text in ids]
    is_excluded = np.zeros(len(ids), dtype=np.bool_)
    if encoded.embeddings.is_excluded is not None:
        is_excluded = encoded.embeddings.is_excluded[encoded.rows]
    is_truncated = encoded.is_truncated[encoded.rows].tolist()
    unknown = encoded.unknown[encoded.rows].tolist()
    special_ids = scorer.manifest.special_ids
    is_special = [np.isin(text, special_ids) for text in ids]
    vectors = [encoded.embeddings.vectors_of(position, row) for row in encoded.rows]
    similarities = []
    with blas_gate:
        for candidate, reference in zip(vectors[::2], vectors[1::2], strict=True):
            similarities.append(np.clip(candidate @ reference.T, -1, 1))

    found = []
    rows = range(0, len(ids), 2)
    for row, similarity, score in zip(rows, similarities, scores.each(), strict=True):
        found.append(
            TokenSimilarity(
                tokens[row],
                tokens[row + 1],
                similarity,
                token_weights[row],
                token_weights[row + 1],
                is_special[row],
                is_special[row + 1],
                score,
                baseline,
                (bool(is_excluded[row]), bool(is_excluded[row + 1])),
                (is_truncated[row], is_truncated[row + 1]),
                (unknown[row], unknown[row + 1]),
            ),
        )
    return found


def _position(scorer: Any, layer: int | None) -> int:
    """Return the position of the layer to show among the scorer's."""
    layers = scorer.manifest.layers
    if layer is None:
        if len(layers) > 1:
            raise InputError(
                f"Matches are shown for one layer, and this scorer has the layers {layers[0]} to "
                f"{layers[-1]}. Name one, or make a scorer of one layer with `num_layers`."
            )
        return 0
    if layer not in layers:
        available = f"the layers {layers[0]} to {layers[-1]}"
        if len(layers) == 1:
            available = f"layer {layers[0]}"
        model = scorer.manifest.model_id
        raise UnknownLayerError(
            f"There is no layer {layer} in this scorer of {model}; it has {available}.",
        )
    return layers.index(layer)
