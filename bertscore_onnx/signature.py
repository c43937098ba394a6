"""The signature of a score: everything that can change a digit of it, in explicit fields."""

from dataclasses import asdict, dataclass, replace
from html import escape

from bertscore_onnx import __version__


@dataclass(frozen=True, slots=True, repr=False)
class Signature:
    """The settings of scores; two runs with equal signatures on one device give the same scores for the same texts.

    In the precision bf16 this holds only for equal batches, since its kernels round differently for each batch shape.

    `str()` is the line to print or to log: `bertscore-onnx|model:…|layer:…|…`, without fields that are None. In values
    `_` replaces white space, `|` and unprintable characters.
    """

    model: str
    """The name of the model."""

    layer: int | str
    """The layer that token embeddings are taken from, or "all"."""

    idf: str
    """"no"; "references" if weights come from the references of each call; else a digest of the weights."""

    rescale: str
    """"no", the language of the baseline ("language-no" for Norwegian), or a digest of a baseline file."""

    tokenizer: str
    """The kind of transformers' tokenizer with the same ids, "slow" or "fast"; with SentencePiece also its version."""

    long_text: str
    """"truncate" or "window": the treatment of texts that are longer than the maximum."""

    max_length: int | None
    """The most tokens of a text, or of a window, if chosen; None for the model's own maximum."""

    precision: str
    """The compute precision of the model."""

    bundle: str
    """The first digits of the bundle's digest."""

    matching: str | None = None
    """The spec of a matching other than the default, which `Matching.parse` reads; "…+context" for scores of texts
    in contexts."""

    references: str | None = None
    """The number of references of each candidate, such as "2", or "1-3" for the smallest and the largest; None if each
    has one, and for a scorer."""

    version: str = __version__
    """The version of this package."""

    libraries: str | None = None
    """The versions of ONNX Runtime and of `tokenizers`, which can move a digit."""

    def with_references(self, least: int, most: int) -> "Signature":
        """Return the signature of scores of candidates with these numbers of references."""
        return self if most <= 1 else replace(self, references=str(most) if least == most else f"{least}-{most}")

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
        fields = (f"{name}:{_word(value)}" for name, value in asdict(self).items() if value is not None)
        return "|".join(("bertscore-onnx", *fields))


def _word(value: object) -> str:
    return "".join(character if character.isprintable() and character not in " |" else "_" for character in str(value))
