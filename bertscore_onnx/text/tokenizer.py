"""Texts to token ids, the ids that the model's own tokenizer gives.

`tokenizer.json` expresses most of a tokenizer of transformers; the rest is the spec in the bundle's manifest. As in
bert-score (`utils.py:sent_encode`) white space at both ends goes first, and what exceeds the maximum length is cut off
at the right, unless long texts are to stay whole.
"""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.concurrency.exit_gate import exit_gate
from bertscore_onnx.errors import BertScoreOnnxError, InputError, TokenizerError, one_line
from bertscore_onnx.text.fast_tokenizer import FastTokenizer
from bertscore_onnx.text.slow_tokenizer import SlowTokenizer
from bertscore_onnx.text.spec import SENTENCEPIECE_FILE, TOKENIZER_FILE, TokenizerSpec

LongText = Literal["truncate", "window"]
"""What becomes of a text that is longer than the model's maximum."""

DEFAULT_MAX_LENGTH = 8192
"""The most tokens of a text for a model without a bound of its own, since attention grows with the square: at this
length one layer's weights take 268 MB for each head, 4.3 GB for 16 heads."""

MAX_TOKENIZER_BYTES = 256_000_000
"""Far more than any has: 17 MB for a vocabulary of 250,000 pieces."""

_SURROGATE = re.compile("[\ud800-\udfff]")


class TextTokenizer:
    """The tokenizer of one bundle; its settings never change, so threads may share it."""

    def __init__(
        self,
        folder: Path,
        *,
        spec: TokenizerSpec | None,
        max_length: int | None,
        empty_ids: Sequence[int],
        long_text: LongText = "truncate",
        in_parallel: bool = True,
    ) -> None:
        """Load a tokenizer.

        Args:
            folder: a bundle, of which the tokenizer's files are read.
            spec: what `tokenizer.json` cannot express; None where it says all.
            max_length: the most tokens of a text, special tokens included; None for no bound but `DEFAULT_MAX_LENGTH`.
            empty_ids: the ids of an empty text.
            long_text: whether longer texts are cut, or keep all their ids, to be encoded in windows.
            in_parallel: whether the tokenizers package may use its threads, one for each CPU.

        Raises:
            TokenizerError: the file is not a tokenizer, or larger than any.
        """
        sentencepiece = spec is not None and spec.sentencepiece is not None
        path = folder / (SENTENCEPIECE_FILE if sentencepiece else TOKENIZER_FILE)
        mode = "fast" if spec is None else "slow"
        self.description: str = f"{mode}+sentencepiece-{version('sentencepiece')}" if sentencepiece else mode
        """Whose ids these are, and the version of the library that decides between equally good cuts."""
        self.max_length: int = DEFAULT_MAX_LENGTH if max_length is None else max_length
        """The most tokens that the model may get at a time."""
        self.long_text: LongText = long_text
        bound = self.max_length if long_text == "truncate" else None
        self._path = path
        with _tokenizer_errors(path, "is not a tokenizer"):
            _check_size(path)
            self._encode = (
                FastTokenizer(path, bound, in_parallel=in_parallel)
                if spec is None
                else SlowTokenizer(path, spec, bound, in_parallel=in_parallel)
            )
        self._empty_ids = list(empty_ids)
        self.num_special_tokens: tuple[int, int] = self._encode.num_special_tokens
        """How many special tokens stand in front of every text, and how many behind."""

    def __call__(self, texts: Sequence[str]) -> tuple[list[NDArray[np.int64]], int]:
        """Tokenise texts.

        Args:
            texts: any strings; a lone surrogate, which no encoding can express, counts as U+FFFD.

        Returns:
            For each text its ids, special tokens included, (tokens,), at least one; and how many texts were cut.

        Raises:
            TokenizerError: the tokenizer fails on a text.
        """
        stripped = [_SURROGATE.sub("\ufffd", text.strip()) for text in texts]
        with exit_gate, _tokenizer_errors(self._path, "fails on a text"):
            found = iter(self._encode([text for text in stripped if text]))
        ids, num_cut = [], 0
        for text in stripped:
            one, is_cut = next(found) if text else (self._empty_ids, False)
            ids.append(np.array(one or self._empty_ids, dtype=np.int64))
            num_cut += is_cut
        return ids, num_cut


def check_long_text(long_text: str) -> None:
    """Raise an InputError where this is no way to treat a long text."""
    if long_text not in get_args(LongText):
        raise InputError(f'long_text is {long_text!r}; expected "truncate" or "window".')


@contextmanager
def _tokenizer_errors(path: Path, what: str) -> Iterator[None]:
    """Turn what the libraries of tokenizers raise into errors of ours."""
    try:
        yield
    except (BertScoreOnnxError, MemoryError):
        raise
    except BaseException as error:
        # the libraries raise nothing more special than Exception; a panic of Rust is not even that
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise TokenizerError(f"{path} {what}: {one_line(error)}. Export the model again.") from error


def _check_size(path: Path) -> None:
    if (size := path.stat().st_size) > MAX_TOKENIZER_BYTES:
        raise ValueError(f"it has {size:,} bytes, and at most {MAX_TOKENIZER_BYTES:,} are read")
