"""Cuts pairs into windows, scored together: small enough for memory, large enough to sort and deduplicate."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.encoding.embeddings import TokenEmbeddings
from bertscore_onnx.encoding.encoded_texts import EncodedTexts
from bertscore_onnx.matching.pairs import TokenPairs
from bertscore_onnx.scoring.inputs import Pairs, Side
from bertscore_onnx.text.tokenizer import TextTokenizer


class DistinctTexts:
    """Numbers texts, those of equal ids alike, and tokenises each once."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        """Start without texts."""
        self._tokenizer = tokenizer
        self._row_of_text: dict[str, int] = {}
        self._row_of_ids: dict[bytes, int] = {}
        self.sequences: list[NDArray[np.int64]] = []
        """The ids of each row, (tokens,)."""
        self.num_tokens = 0
        """Their number together."""
        self.num_cut = 0
        """How many different texts were cut."""

    def add(self, texts: list[str]) -> NDArray[np.int64]:
        """Return the row of each text, (texts,); those not seen before get new rows at the end."""
        new = [text for text in dict.fromkeys(texts) if text not in self._row_of_text]
        sequences, num_cut = self._tokenizer(new)
        self.num_cut += num_cut
        for text, ids in zip(new, sequences, strict=True):
            row = self._row_of_ids.setdefault(ids.tobytes(), len(self.sequences))
            if row == len(self.sequences):
                self.sequences.append(ids)
                self.num_tokens += len(ids)
            self._row_of_text[text] = row
        return np.array([self._row_of_text[text] for text in texts], dtype=np.int64)


class Window:
    """Pairs that are scored together."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        """Start without pairs."""
        self.texts = DistinctTexts(tokenizer)
        """What is to be encoded."""
        self.num_candidates = 0
        self._portions: list[tuple[Pairs, NDArray[np.int64], NDArray[np.int64]]] = []

    def add(self, pairs: Pairs) -> None:
        """Add pairs; each side is encoded already or not, like that of the pairs before them."""
        sides = pairs.candidates, pairs.references
        strings = [[] if isinstance(side, EncodedTexts) else side.texts for side in sides]
        rows = self.texts.add(strings[0] + strings[1])  # (texts,)
        new = rows[: len(strings[0])], rows[len(strings[0]) :]
        candidate, reference = (
            side.rows if isinstance(side, EncodedTexts) else some for side, some in zip(sides, new, strict=True)
        )
        self._portions.append((pairs, candidate, reference))
        self.num_candidates += len(pairs.candidates)

    def joined(self, new: TokenEmbeddings) -> tuple[TokenPairs, NDArray[np.int64]]:
        """Return all pairs, and how many references each candidate has, (candidates,).

        Args:
            new: the embeddings of `self.texts`.
        """
        slices, candidate, reference = zip(*self._portions, strict=True)
        counts = _concatenated([pairs.references.counts for pairs in slices])
        pairs = TokenPairs(
            _table(slices[0].candidates, new),
            np.repeat(_concatenated(candidate), counts),
            _table(slices[0].references, new),
            _concatenated(reference),
        )
        return pairs, counts


def _concatenated(arrays: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    return arrays[0] if len(arrays) == 1 else np.concatenate(arrays)


def _table(side: Side, new: TokenEmbeddings) -> TokenEmbeddings:
    return side.embeddings if isinstance(side, EncodedTexts) else new


def cut_chunks(
    pairs: Iterable[Pairs], tokenizer: TextTokenizer, *, max_tokens: int, max_candidates: int
) -> Iterator[Window]:
    """Gather pairs into windows.

    Args:
        pairs: the pairs, a few at a time.
        tokenizer: makes their ids.
        max_tokens: a window is full when its different texts have so many tokens; it can exceed them by those of one
            candidate and its references, or of a portion with as many characters;
        max_candidates: or when it has so many candidates.

    Yields:
        The windows in order. Where `pairs` fails, first what it gave before.
    """
    window = Window(tokenizer)
    try:
        for some in _small_enough(pairs, max_tokens):
            window.add(some)
            if window.texts.num_tokens >= max_tokens or window.num_candidates >= max_candidates:
                yield window
                window = Window(tokenizer)
    except Exception:
        if window.num_candidates:
            yield window
        raise
    if window.num_candidates:
        yield window


def _small_enough(pairs: Iterable[Pairs], max_characters: int) -> Iterator[Pairs]:
    """Take slices of long texts apart before their tokens are known, which are hardly more than the characters."""
    for some in pairs:
        if some.num_characters <= max_characters:
            yield some
        else:
            yield from some.slices(1)
