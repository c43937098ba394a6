"""The signature of a score: all that can change a digit of it, in explicit fields."""

from dataclasses import asdict, dataclass

from bertscore_onnx import __version__


@dataclass(frozen=True, slots=True)
class Signature:
    """How scores were made; two runs with equal signatures on one device give the same scores for the same texts.

    In the precision bf16 they do so only in the same batches: its kernels round as the shape of a batch makes them.

    `str()` gives the line to print or to log: `bertscore-onnx|model:…|layer:…|…`, without fields that are None, and
    with `_` in a value for white space, `|` and what cannot be printed.
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
    """"slow" or "fast", as transformers calls the tokenizer whose ids these are; with SentencePiece its version too."""

    long_text: str
    """"truncate" or "window": what becomes of texts that are longer than the maximum."""

    max_length: int | None
    """The most tokens of a text, or of a window, where that was chosen; None for the model's own maximum."""

    precision: str
    """The compute precision of the model."""

    bundle: str
    """The first digits of the bundle's digest."""

    version: str = __version__
    """That of this package."""

    def __str__(self) -> str:
        """Write the fields that are not None as `key:value`, joined by `|`."""
        fields = (f"{name}:{_word(value)}" for name, value in asdict(self).items() if value is not None)
        return "|".join(("bertscore-onnx", *fields))


def _word(value: object) -> str:
    return "".join(one if one.isprintable() and one not in " |" else "_" for one in str(value))
