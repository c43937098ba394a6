"""The signature of a score: all that can change a digit of it, in explicit fields."""

import re
from dataclasses import asdict, dataclass

from bertscore_onnx import __version__

_SEPARATORS = re.compile(r"[|\s]")


@dataclass(frozen=True, slots=True)
class Signature:
    """How scores were made; two runs with equal signatures on one device give the same scores for the same texts.

    `str()` gives the line to print or to log: `bertscore-onnx|model:…|layer:…|…`, with `_` for white space and `|` in
    a value.
    """

    model: str
    """The name of the model."""

    layer: int | str
    """The layer the tokens are taken from, or "all"."""

    idf: str
    """"no"; "references" where weights come from the references of each call; else a digest of the weights."""

    rescale: str
    """"no", the language of the baseline, or a digest of a baseline file."""

    tokenizer: str
    """"slow" or "fast", as transformers calls the tokenizer whose ids these are."""

    long_text: str
    """"truncate" or "window": what becomes of texts that are longer than the model's maximum."""

    precision: str
    """The compute precision of the model."""

    bundle: str
    """The first digits of the bundle's digest."""

    version: str = __version__
    """That of this package."""

    def __str__(self) -> str:
        """Write the fields as `key:value`, joined by `|`."""
        fields = (f"{name}:{_SEPARATORS.sub('_', str(value))}" for name, value in asdict(self).items())
        return "|".join(("bertscore-onnx", *fields))
