"""The tokenizer of a bundle under the names of transformers.

The computation of idf weights needs it.
"""

from bertscore_onnx.bundle.bundle import Bundle
from bertscore_onnx.errors import InputError
from bertscore_onnx.scoring.tokenization import load_tokenizer


class BundleTokenizer:
    """Returns the token ids that are scored; threads may share it."""

    def __init__(self, bundle: Bundle) -> None:
        """Load the tokenizer.

        Raises:
            TokenizerError: the files of the bundle are not a tokenizer.
        """
        self._tokenize = load_tokenizer(bundle)

    @property
    def model_max_length(self) -> int:
        """The most tokens of a text, special tokens included.

        Longer texts are cut.
        """
        return self._tokenize.max_length

    @model_max_length.setter
    def model_max_length(self, tokens: int) -> None:
        """Raise an InputError for another maximum.

        The scorer would not follow it.
        """
        if tokens != self.model_max_length:
            raise InputError(
                f"model_max_length cannot be changed to {tokens}, since the scorer has a "
                f"tokenizer of its own. Use bertscore_onnx.BERTScorer(..., max_length={tokens})."
            )

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, special tokens included."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        """Return the ids of each text."""
        return [ids.tolist() for ids in self._tokenize(texts)[0]]
