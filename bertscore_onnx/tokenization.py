"""Texts to token ids, the ids that the model's own tokenizer gives.

`tokenizer.json` expresses most of a tokenizer of transformers; the rest are steps on the text before it, listed in
the bundle's manifest. As in bert-score (`utils.py:sent_encode`) white space at both ends goes first, and what exceeds
the maximum length is cut off at the right.
"""

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from bertscore_onnx.bundle import Bundle
from bertscore_onnx.errors import TokenizerError
from bertscore_onnx.text_steps import TextStep

_SURROGATE = re.compile("[\ud800-\udfff]")


class TextTokenizer:
    """The tokenizer of one bundle; its settings never change, so threads may share it."""

    def __init__(
        self, path: Path, *, steps: Sequence[TextStep], max_length: int | None, empty_ids: Sequence[int]
    ) -> None:
        """Load a tokenizer.

        Args:
            path: a `tokenizer.json`.
            steps: what happens to a text before, in this order.
            max_length: the most tokens of a text, special tokens included; None for no bound.
            empty_ids: the ids of an empty text.

        Raises:
            TokenizerError: the file is not a tokenizer.
        """
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the package raises nothing more special
            raise TokenizerError(f"{path} is not a tokenizer: {error}. Export the model again.") from error
        self._tokenizer.no_padding()
        if max_length is None:
            self._tokenizer.no_truncation()
        else:
            self._tokenizer.enable_truncation(max_length)
        special_tokens = [token.content for token in self._tokenizer.get_added_tokens_decoder().values()]
        self._steps = [step.bind(special_tokens) for step in steps]
        self._empty_ids = np.array(empty_ids, dtype=np.int64)

    @classmethod
    def of_bundle(cls, bundle: Bundle) -> "TextTokenizer":
        """Load the tokenizer of a bundle."""
        manifest = bundle.manifest
        return cls(
            bundle.tokenizer_path,
            steps=manifest.text_steps,
            max_length=manifest.max_length,
            empty_ids=manifest.empty_ids,
        )

    def __call__(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """Tokenise texts.

        Args:
            texts: any strings; a lone surrogate, which no encoding can express, counts as U+FFFD.

        Returns:
            For each text its ids, special tokens included, (tokens,); at least one.
        """
        prepared = [self._prepare(text) for text in texts]
        ids = [np.array(encoding.ids, dtype=np.int64) for encoding in self._tokenizer.encode_batch_fast(prepared)]
        return [found if text else self._empty_ids for text, found in zip(prepared, ids, strict=True)]

    def _prepare(self, text: str) -> str:
        text = _SURROGATE.sub("\ufffd", text.strip())
        if text:
            for step in self._steps:
                text = step(text)
        return text
