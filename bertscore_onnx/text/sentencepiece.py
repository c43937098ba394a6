"""Encodes texts with SentencePiece: with the library that the slow tokenizers call, to the ids of their models."""

from array import array
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import sentencepiece

from bertscore_onnx.files import message_fields
from bertscore_onnx.text.budget import MAX_ADDED, growth_by_table, longest_piece, normalized_in_pieces
from bertscore_onnx.text.normalizers import SPACE, split_punctuation
from bertscore_onnx.text.spec import SentencePieceSpec
from bertscore_onnx.text.tokenizer_json import check_size, over_budget

SEQUENTIAL_TEXTS = 8
"""Up to this many texts are encoded one after the other, which is faster than starting the library's thread."""

TEXTS_AT_ONCE = 16_384
"""The number of texts per call, which holds the GIL for up to 15 ms while it receives and returns them."""


_NORMALIZER, _TABLE = 3, 2


class SentencePieceEncoder:
    """A SentencePiece model; threads may share it."""

    def __init__(self, path: Path, spec: SentencePieceSpec) -> None:
        """Load a model; raise an OSError, RuntimeError or ValueError if it is damaged or does not fit its spec."""
        check_size(path)
        content = path.read_bytes()
        self._processor = sentencepiece.SentencePieceProcessor()
        self._processor.LoadFromSerializedProto(content)
        self._path = path
        self._growth = max(map(growth_by_table, _replacement_tables(content)), default=1)
        pieces: list[str] = self._processor.id_to_piece(list(range(self._processor.get_piece_size())))
        starts = [start for start, _ in spec.id_runs]
        if starts[0] != 0 or starts != sorted(starts) or starts[-1] > len(pieces):
            raise ValueError(
                f"it has {len(pieces):,} pieces, and the manifest has ids for runs that begin at {starts[:9]}"
            )
        ends = [*(start for start, _ in spec.id_runs[1:]), len(pieces)]
        runs = [range(first, first + end - start) for (start, first), end in zip(spec.id_runs, ends, strict=True)]
        self._ids = array("q", chain.from_iterable(runs))  # (pieces,)
        if len(self._ids) != len(pieces):
            raise ValueError(f"it has {len(pieces):,} pieces, and the manifest has ids for {len(self._ids):,}")
        self._split_punctuation = spec.split_punctuation
        self._number_commas: set[int] = set()
        if spec.split_number_comma:
            self._number_commas = {index for index, piece in enumerate(pieces) if _ends_in_number_comma(piece)}
            self._number_commas.add(self._processor.unk_id())  # an unknown piece may be any text

    def __call__(self, texts: list[str]) -> list[list[int]]:
        """Return the ids of each text, without special tokens."""
        if not self._split_punctuation:
            return self._encode(texts)
        parts = [list(split_punctuation(text)) for text in texts]
        encoded = iter(self._encode(list(chain.from_iterable(parts))))
        return [[token for _ in parts_of_text for token in next(encoded)] for parts_of_text in parts]

    def _check(self, text: str) -> None:
        """Raise a TokenizerError if a text becomes too long when the library normalises it."""
        if len(text) <= longest_piece(self._growth):
            return
        most = len(text.encode()) + MAX_ADDED
        try:
            normalized_in_pieces(self._processor.normalize, text, self._growth, most)
        except ValueError as error:
            raise over_budget(self._path, text, error) from error

    def _encode(self, texts: list[str]) -> list[list[int]]:
        for text in texts:
            self._check(text)
        encoded: list[list[int]] = []
        if len(texts) <= SEQUENTIAL_TEXTS:
            encoded += (self._processor.encode(text, out_type=int) for text in texts)
        else:  # few calls: each one releases the GIL, which busy threads return late
            for start in range(0, len(texts), TEXTS_AT_ONCE):
                encoded += self._processor.encode(texts[start : start + TEXTS_AT_ONCE], out_type=int, num_threads=1)
        if self._number_commas:
            encoded = [
                pieces if self._number_commas.isdisjoint(pieces) else self._with_commas_split(text)
                for text, pieces in zip(texts, encoded, strict=True)
            ]
        return [[self._ids[piece] for piece in pieces] for pieces in encoded]

    def _with_commas_split(self, text: str) -> list[int]:
        """Encode a text with commas after digits as pieces of their own (ALBERT, XLNet)."""
        pieces = self._processor.encode(text, out_type=str)
        parts = [part for piece in pieces for part in self._without_number_comma(piece)]
        return list(self._processor.piece_to_id(parts))

    def _without_number_comma(self, piece: str) -> list[str]:
        if not _ends_in_number_comma(piece):
            return [piece]
        parts = self._processor.encode(piece[:-1].replace(SPACE, ""), out_type=str)
        if not piece.startswith(SPACE):
            parts[0] = parts[0].removeprefix(SPACE)
        return [*filter(None, parts), ","]


def _replacement_tables(content: bytes) -> Iterator[bytes]:
    """Yield the tables of replacements in a SentencePiece model; the numbers are those of its fields."""
    for number, start, end in message_fields(content, 0, len(content)):
        if number == _NORMALIZER:
            fields = message_fields(content, start, end)
            yield from (content[begin:stop] for field, begin, stop in fields if field == _TABLE and begin < stop)


def _ends_in_number_comma(piece: str) -> bool:
    return piece.endswith(",") and piece[-2:-1].isdigit()
