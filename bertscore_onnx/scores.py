"""The result of scoring.

Precision, recall and F as arrays, which reference was best, and the signature.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx import __version__
from bertscore_onnx.arrays import BoolArray, Float32Array, Float64Array, Int64Array, starts_of
from bertscore_onnx.errors import InputError, InputTypeError, needs_package

if TYPE_CHECKING:
    from pandas import DataFrame
    from torch import Tensor  # noqa: TID251 -- for the return type of `to_torch`


_NAMES = ("precision", "recall", "f1", "best_reference", "truncated", "unknown")
"""The attributes of scores, with the names that files and HTTP answers use."""


Numbers = TypeVar("Numbers")


class PRF(NamedTuple, Generic[Numbers]):
    """Precision, recall and F, of one candidate or as means.

    Unpacks as `P, R, F`.

    Each is a float, or an array (layers,) if every layer is scored; in `Scores`, an array of all
    candidates.
    """

    P: Numbers
    R: Numbers
    F: Numbers

    @property
    def precision(self) -> Numbers:
        """The precision, `P` for short."""
        return self.P

    @property
    def recall(self) -> Numbers:
        """The recall, `R` for short."""
        return self.R

    @property
    def f1(self) -> Numbers:
        """The F, `F` for short; with a beta other than 1 it is the F of that."""
        return self.F


# Any: an array (layers,) if every layer is scored, which a type checker cannot see
class Score(PRF[float | Any]):
    """Precision, recall and F of one candidate; unpacks as `P, R, F`.

    Each is a float, or an array (layers,) if every layer is scored; the ranges are as in `Scores`.
    """

    best_reference: int | Any
    """The position of the reference with the best F, an int; or an array (layers,)."""

    truncated: bool
    """Whether the candidate, or a reference, is longer than the model's maximum, so that its end
    does not count.
    """

    unknown: float
    """The share of tokens that are unknown to the model: in the candidate, or in a reference that
    has more of them.
    """

    def __new__(
        cls,
        P: float | Any,  # noqa: N803 -- as in `Scores`
        R: float | Any,  # noqa: N803
        F: float | Any,  # noqa: N803
        best_reference: int | Any,
        truncated: bool = False,
        unknown: float = 0.0,
    ) -> "Score":
        """Combine the numbers."""
        score = tuple.__new__(cls, (P, R, F))
        score.best_reference = best_reference
        score.truncated = truncated
        score.unknown = unknown
        return score

    def __getnewargs__(self) -> tuple[float | Any, ...]:
        """Keep the further attributes in copies and pickles."""
        return (*self, self.best_reference, self.truncated, self.unknown)


@dataclass(frozen=True, slots=True, repr=False)
class Signature:
    """The settings of scores.

    Two runs with equal signatures on one device give the same scores for the same texts.

    In the precision bf16 this holds only for equal batches, since its kernels round differently for
    each batch shape.

    `str()` is the line to print or to log: `bertscore-onnx|model:…|layer:…|…`, without fields that
    are None. In values `_` replaces white space, `|` and unprintable characters.
    """

    model: str
    """The name of the model."""

    layer: int | str
    """The layer that token embeddings are taken from, or "all"."""

    idf: str
    """"no"; "references" if weights come from the references of each call; else a digest of the
    weights.
    """

    rescale: str
    """"no", the language of the baseline ("language-no" for Norwegian), or a digest of a baseline
    file.
    """

    tokenizer: str
    """The kind of transformers' tokenizer with the same ids, "slow" or "fast"; with SentencePiece
    also its version.
    """

    long_text: str
    """"truncate" or "window": the treatment of texts that are longer than the maximum."""

    max_length: int | None
    """The most tokens of a text, or of a window, if chosen; None for the model's own maximum."""

    precision: str
    """The compute precision of the model."""

    bundle: str
    """The first digits of the bundle's digest."""

    matching: str | None = None
    """The spec of a matching other than the default, which `Matching.parse` reads; "…+context" for
    scores of texts in contexts."""

    references: str | None = None
    """The number of references of each candidate, such as "2", or "1-3" for the smallest and the
    largest; None if each has one, and for a scorer."""

    version: str = __version__
    """The version of this package."""

    libraries: str | None = None
    """The versions of ONNX Runtime or OpenVINO, whichever computes, `tokenizers` and numpy, which
    can move a digit."""

    def with_references(self, least: int, most: int) -> "Signature":
        """Return the signature of scores with these numbers of references.

        Each candidate has from `least` to `most`.
        """
        if most <= 1:
            return self
        references = str(most) if least == most else f"{least}-{most}"
        return replace(self, references=references)

    def in_context(self) -> "Signature":
        """Return the signature of scores of texts in contexts."""
        return replace(self, matching=f"{self.matching or 'bertscore'}+context")

    def _repr_html_(self) -> str:
        """Return the line as a notebook shows it."""
        return f'<code style="overflow-wrap: anywhere">{escape(str(self))}</code>'

    def __repr__(self) -> str:
        """Return the line in brackets."""
        return f"Signature({str(self)!r})"

    def __str__(self) -> str:
        """Return the fields that are not None as `key:value`, joined by `|`."""
        fields = ["bertscore-onnx"]
        for name, value in asdict(self).items():
            if value is not None:
                fields.append(f"{name}:{_word(value)}")
        return "|".join(fields)


def _word(value: object) -> str:
    characters = []
    for character in str(value):
        is_kept = character.isprintable() and character not in " |"
        characters.append(character if is_kept else "_")
    return "".join(characters)


class Scores(PRF[Float32Array]):
    """Precision, recall and F of every candidate; unpacks as `P, R, F`.

    Each is a float32 array (candidates,), or (layers, candidates) if every layer is scored. Before
    rescaling P and R are in [-1, 1], and F is between them, or of any size if one is negative and
    the other is not. With several references P, R and F are each the best over the references,
    independently, as in bert-score.

    `to_pandas()` and `to_dict()` return them by their names in files: precision, recall and f1.
    """

    best_reference: Int64Array
    """The position of the reference with the best F for every candidate, the first of equals;
    shaped like `F`.
    """

    truncated: BoolArray
    """Whether each candidate, or a reference of it, is longer than the model's maximum, so that its
    end does not count; (candidates,)."""

    unknown: Float64Array
    """The share of tokens that are unknown to the model, in each candidate or in a reference of it
    that has more of them; (candidates,)."""

    signature: Signature | None = None
    """The settings of the scores that `score` returns; None for others."""

    worst: PRF[Float32Array] | None = None
    """What an empty text scores under these settings, (layers,) each: 0, or less after rescaling;
    likewise.
    """

    def __new__(
        cls,
        P: Float32Array,  # noqa: N803 -- the paper's names, as in bert-score
        R: Float32Array,  # noqa: N803
        F: Float32Array,  # noqa: N803
        best_reference: Int64Array | None = None,
        truncated: BoolArray | None = None,
        unknown: Float64Array | None = None,
    ) -> "Scores":
        """Combine the arrays.

        By default the first reference is best, no text is truncated, and no token unknown.
        """
        if best_reference is None:
            best_reference = np.zeros(F.shape, dtype=np.int64)
        if truncated is None:
            truncated = np.zeros(F.shape[-1:], dtype=np.bool_)
        if unknown is None:
            unknown = np.zeros(F.shape[-1:])
        scores = tuple.__new__(cls, (P, R, F))
        scores.best_reference = best_reference
        scores.truncated = truncated
        scores.unknown = unknown
        return scores

    def __getitem__(self, index: Any) -> Any:
        """Return P, R or F by its position.

        Raise an InputTypeError for a name, which is an attribute.
        """
        if isinstance(index, str):
            raise InputTypeError(
                f"Scores have no item {index!r}; expected an attribute: scores.P, scores.R or "
                "scores.F."
            )
        return super().__getitem__(index)

    def mean(self) -> PRF[Any]:
        """Return the means of precision, of recall and of F over the candidates.

        The means are arithmetic. The score of a system is its mean F, as bert-score prints it,
        which is not the F of the mean precision and mean recall. After `pairwise` the means of each
        candidate over the references are arrays (candidates,).

        Returns:
            Floats; or with `all_layers` arrays (layers,).

        Raises:
            InputError: there are no scores.
        """
        if not self.F.size:
            raise InputError("There are no scores, and so no means. Score one pair or more.")
        means = []
        for values in self:
            mean = values.mean(axis=-1, dtype=np.float64)
            means.append(float(mean) if mean.ndim == 0 else mean)
        return PRF(*means)

    def to_dict(self) -> dict[str, Any]:
        """Return lists by name, for `json.dumps`.

        The names are those of files and HTTP answers: `precision`, `recall`, `f1`,
        `best_reference`, `truncated` and `unknown`. The lists are nested as the arrays are.
        """
        return {name: getattr(self, name).tolist() for name in _NAMES}

    def to_pandas(self) -> "DataFrame":
        """Return a data frame with a row for each candidate, numbered from 0.

        The columns are those of `to_dict`. With `all_layers` there is a row for each `layer` and
        `candidate`, and after `pairwise` one for each `candidate` and `reference`, which are the
        levels of the index; the latter has no column `best_reference`.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        message = (
            "pandas is not installed. Install it with `pip install pandas`, or use "
            "`scores.to_dict()`."
        )
        with needs_package("pandas", message):
            from pandas import DataFrame, MultiIndex, RangeIndex
        shape = self.F.shape
        # Each pair has one reference, which is therefore the best.
        is_pairwise = self.best_reference.ndim < self.F.ndim
        levels = ["layer", "candidate"]
        if is_pairwise:
            levels.append("reference")
        index: MultiIndex | RangeIndex = RangeIndex(len(self.F))
        if len(shape) > 1:
            index = MultiIndex.from_product(map(range, shape), names=levels[-len(shape) :])
        columns = {}
        for name in _NAMES:
            if is_pairwise and name == "best_reference":
                continue
            columns[name] = np.broadcast_to(getattr(self, name), shape).ravel()
        return DataFrame(columns, index)

    def to_torch(self) -> "tuple[Tensor, Tensor, Tensor]":
        """Return P, R and F as tensors of PyTorch.

        The tensors share the memory of the arrays, and suit code written for bert-score's result,
        such as `torch.stack(scores.to_torch()).mean(dim=1)`.

        Raises:
            MissingExtraError: PyTorch is not installed.
        """
        message = (
            "PyTorch is not installed. Install it with `pip install torch`, or use the arrays: "
            "`scores.f1.tolist()`, `scores.mean()`."
        )
        with needs_package("torch", message):
            from torch import from_numpy  # noqa: TID251 -- only if the caller asks for tensors
        return from_numpy(self.P), from_numpy(self.R), from_numpy(self.F)

    def of_layer(self, layer: int) -> "Scores":
        """Return the scores of one of several layers."""
        arrays = arrays_of(self)
        of_layer = [values[layer] for values in arrays[:4]]
        return Scores(*of_layer, *arrays[4:])

    def each(self) -> Iterator["Score"]:
        """Yield the score of each candidate."""
        columns = []
        for array in arrays_of(self):
            columns.append(array.tolist() if array.ndim == 1 else array.T)
        for values in zip(*columns, strict=True):
            yield Score(*values)

    def __eq__(self, other: object) -> bool:
        """Return whether all arrays are equal, of another tuple P, R and F.

        Signatures are not compared.
        """
        if not isinstance(other, tuple):
            return False
        if isinstance(other, Scores):
            return all(map(np.array_equal, arrays_of(self), arrays_of(other)))
        return len(other) == len(self) and all(map(np.array_equal, self, other))

    def __ne__(self, other: object) -> bool:
        """Return whether they differ."""
        return not self == other

    def __repr__(self) -> str:
        """Return how many they are, and their means."""
        if not self.F.size:
            return f"Scores({self._size})"
        means = [f"{name} {values.mean():.4f}" for name, values in self._asdict().items()]
        return f"Scores({self._size}, means: {', '.join(means)})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows.

        These are the means, a histogram of F unless all are equal, and the signature.
        """
        means = "".join(f"<td>{values.mean():.4f}</td>" for values in self if values.size)
        html = (
            "<table><thead><tr><th>scores</th><th>mean P</th><th>mean R</th><th>mean F</th></tr>"
            f"</thead><tbody><tr><td>{self._size}</td>{means}</tr></tbody></table>"
        )
        if np.unique(self.F).size > 1:
            html += _histogram(self.F.ravel())
        if self.signature is not None:
            html += f"<p>{self.signature._repr_html_()}</p>"
        return html

    @property
    def _size(self) -> str:
        return " × ".join(f"{number:,}" for number in self.F.shape)

    def __getnewargs__(self) -> tuple[NDArray[Any], ...]:
        """Keep the further attributes in copies and pickles."""
        return arrays_of(self)


BINS = 30
BIN_WIDTH = 10
HEIGHT = 80


def _histogram(values: Float32Array) -> str:
    """Return a histogram, from the lowest score to the highest, as SVG in the text's colour."""
    counts, edges = np.histogram(values, bins=BINS)
    heights = HEIGHT * counts / counts.max()
    bars = ""
    for number, height in enumerate(heights):
        bars += (
            f'<rect x="{number * BIN_WIDTH}" y="{HEIGHT - height:.1f}" width="{BIN_WIDTH - 1}" '
            f'height="{height:.1f}"/>'
        )
    width = BINS * BIN_WIDTH
    return (
        f'<svg width="{width}" height="{HEIGHT + 16}" fill="currentColor" font-size="11" '
        'role="img" aria-label="Histogram of F"><title>Histogram of F</title>'
        f'{bars}<text y="{HEIGHT + 13}">F {edges[0]:.3f}</text>'
        f'<text x="{width}" y="{HEIGHT + 13}" text-anchor="end">{edges[-1]:.3f}</text></svg>'
    )


def arrays_of(scores: Scores) -> tuple[NDArray[Any], ...]:
    """Return all arrays of scores, as `Scores` takes them.

    The last axis of each is the candidates.
    """
    return *scores, scores.best_reference, scores.truncated, scores.unknown


def best_of_references(pairs: Scores, counts: Int64Array) -> Scores:
    """Reduce one score a pair to one a candidate.

    That is the maximum of P, of R and of F, each on its own. The pairs of one candidate stand side
    by side; it has one of the counts, (candidates,), of references, at least 1.
    """
    num_pairs = pairs.F.shape[-1]
    if len(counts) == num_pairs:  # one reference each
        return pairs
    starts = starts_of(counts)  # (candidates,)
    precision, recall, f1, _, truncated, unknown = (
        np.maximum.reduceat(values, starts, axis=-1) for values in arrays_of(pairs)
    )
    position = np.arange(num_pairs) - np.repeat(starts, counts)  # (pairs,)
    # (layers, pairs)
    contenders = np.where(np.repeat(f1, counts, axis=-1) == pairs.F, position, num_pairs)
    best_reference = np.minimum.reduceat(contenders, starts, axis=-1)
    return Scores(precision, recall, f1, best_reference, truncated, unknown)


def join_scores(parts: Sequence[Scores], num_layers: int) -> Scores:
    """Concatenate the scores of candidates, in chunks.

    (layers, candidates) if there is no chunk.
    """
    if len(parts) == 1:
        return parts[0]
    if not parts:
        return Scores(*np.zeros((3, num_layers, 0), dtype=np.float32))
    columns = zip(*map(arrays_of, parts), strict=True)
    return Scores(*(np.concatenate(arrays, axis=-1) for arrays in columns))
