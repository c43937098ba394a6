"""The tokenizer of a bundle under the names of transformers, for the computation of idf weights."""

from bertscore_onnx.bundle.bundle import Bundle
from bertscore_onnx.scoring.tokenization import load_tokenizer


class BundleTokenizer:
    """Returns the token ids that are scored; threads may share it."""

    def __init__(self, bundle: Bundle) -> None:
        """Load the tokenizer.

        Raises:
            TokenizerError: the files of the bundle are not a tokenizer.
        """
        self._tokenize = load_tokenizer(bundle)
        self.model_max_length = self._tokenize.max_length
        """The most tokens of a text, special tokens included; longer texts are cut."""

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text, special tokens included."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: list[str]) -> list[list[int]]:
        """Return the ids of each text."""
        return [ids.tolist() for ids in self._tokenize(texts)[0]]
