"""What happens to a text before it is encoded, where `tokenizer.json` cannot express it.

Each normalizer is a record in the bundle's manifest. The slow tokenizers of transformers are Python, and so follow
Python's own Unicode tables; the `tokenizers` package has older ones, and differs on characters assigned since.
"""

from collections.abc import Callable, Sequence

from bertscore_onnx.text.normalizers.basic_tokenize import BasicTokenize
from bertscore_onnx.text.normalizers.clean_quotes import CleanQuotes
from bertscore_onnx.text.normalizers.lowercase import Lowercase
from bertscore_onnx.text.normalizers.moses import Moses
from bertscore_onnx.text.normalizers.prefix_space import PrefixSpace
from bertscore_onnx.text.normalizers.separate_words import SeparateDialogue, SeparateWords
from bertscore_onnx.text.normalizers.unknown_words import UnknownWords

Normalizer = (
    BasicTokenize | CleanQuotes | Lowercase | Moses | PrefixSpace | SeparateDialogue | SeparateWords | UnknownWords
)


def bind_normalizers(normalizers: Sequence[Normalizer]) -> Callable[[str], str]:
    """Return one function that applies all normalizers in their order."""
    transforms = [normalizer.bind() for normalizer in normalizers]

    def apply(text: str) -> str:
        for transform in transforms:
            text = transform(text)
        return text

    return apply


__all__ = [
    "BasicTokenize",
    "CleanQuotes",
    "Lowercase",
    "Moses",
    "Normalizer",
    "PrefixSpace",
    "SeparateDialogue",
    "SeparateWords",
    "UnknownWords",
    "bind_normalizers",
]
