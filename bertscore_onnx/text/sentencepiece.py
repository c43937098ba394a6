"""Encodes texts with SentencePiece.

This is the library that the slow tokenizers call; the ids are those of their models.
"""

from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from pathlib import Path

import sentencepiece

from bertscore_onnx.protobuf import message_fields
from bertscore_onnx.text.budget import (
    MAX_ADDED,
    growth_by_table,
    longest_piece,
    normalized_in_pieces,
)
from bertscore_onnx.text.normalizers import SPACE, split_punctuation
from bertscore_onnx.text.spec import SentencePieceSpec
from bertscore_onnx.text.tokenizer_json import check_size, over_budget

SEQUENTIAL_TEXTS = 8
"""Up to this many texts are encoded one after the other.

This is faster than starting the library's thread.
"""

TEXTS_AT_ONCE = 16_384
"""The number of texts per call.

It holds the GIL for up to 15 ms while it receives and returns them.
"""

_NORMALIZER = 3
_TABLE = 2
"""The fields of a model's normalizer, and of its table of replacements."""


class SentencePieceEncoder:
    """A SentencePiece model; threads may share it."""

    def __init__(self, path: Path, spec: SentencePieceSpec) -> None:
        """Load a model.

        Raises an OSError, RuntimeError or ValueError if it is damaged or does not fit its spec.
        """
        check_size(path)
        content = path.read_bytes()
        self._processor = sentencepiece.SentencePieceProcessor()
        self._processor.LoadFromSerializedProto(content)
        self._path = path
        self._growth = max(map(growth_by_table, _replacement_tables(content)), default=1)
        indices = list(range(self._processor.get_piece_size()))
        pieces: list[str] = self._processor.id_to_piece(indices)
        self._ids = _ids_of_pieces(spec.id_runs, len(pieces))  # (pieces,)
        self._split_punctuation = spec.split_punctuation
        self._number_commas: set[int] = set()
        if spec.split_number_comma:
            for index, piece in enumerate(pieces):
                if _ends_in_number_comma(piece):
                    self._number_commas.add(index)
            # An unknown piece may be any text.
            self._number_commas.add(self._processor.unk_id())

    def __call__(self, texts: list[str]) -> list[list[int]]:
        """Return the ids of each text, without special tokens."""
        if not self._split_punctuation:
            return self._encode(texts)
        parts = [list(split_punctuation(text)) for text in texts]
        encoded = iter(self._encode(list(chain.from_iterable(parts))))
        ids = []
        for parts_of_text in parts:
            encoded_parts = islice(encoded, len(parts_of_text))
            ids.append(list(chain.from_iterable(encoded_parts)))
        return ids

    def _check(self, text: str) -> None:
        """Raise a TokenizerError if a text becomes too long, normalised."""
        if len(text) <= longest_piece(self._growth):
            return
        max_bytes = len(text.encode()) + MAX_ADDED
        try:
            normalized_in_pieces(self._processor.normalize, text, self._growth, max_bytes)
        except ValueError as error:
            raise over_budget(self._path, text, error) from error

    def _encode(self, texts: list[str]) -> list[list[int]]:
        for text in texts:
            self._check(text)
        encoded: list[list[int]] = []
        if len(texts) <= SEQUENTIAL_TEXTS:
            for text in texts:
                encoded.append(self._processor.encode(text, out_type=int))
        else:
            # In large groups: each call releases the GIL, which busy threads return late.
            for start in range(0, len(texts), TEXTS_AT_ONCE):
                group = texts[start : start + TEXTS_AT_ONCE]
                encoded += self._processor.encode(group, out_type=int, num_threads=1)
        ids = []
        for text, pieces in zip(texts, encoded, strict=True):
            if self._number_commas and not self._number_commas.isdisjoint(pieces):
                pieces = self._with_commas_split(text)
            ids.append([self._ids[piece] for piece in pieces])
        return ids

    def _with_commas_split(self, text: str) -> list[int]:
        """Encode a text with commas after digits by themselves (ALBERT, XLNet)."""
        pieces = []
        for piece in self._processor.encode(text, out_type=str):
            pieces += self._without_number_comma(piece)
        return list(self._processor.piece_to_id(pieces))

    def _without_number_comma(self, piece: str) -> list[str]:
        if not _ends_in_number_comma(piece):
            return [piece]
        pieces = self._processor.encode(piece[:-1].replace(SPACE, ""), out_type=str)
        if not piece.startswith(SPACE):
            # The library begins each text with a space.
            pieces[0] = pieces[0].removeprefix(SPACE)
        return [*filter(None, pieces), ","]


def _ids_of_pieces(id_runs: Sequence[tuple[int, int]], num_pieces: int) -> "array[int]":
    """Return the id of each piece, (pieces,), from runs of consecutive ids."""
    starts = [start for start, _ in id_runs]
    if starts[0] != 0 or starts != sorted(starts) or starts[-1] > num_pieces:
        head = starts[:9]
        raise ValueError(
            f"it has {num_pieces:,} pieces, and the manifest has ids for runs that begin at {head}",
        )
    ends = [*starts[1:], num_pieces]
    ids = array("q")
    for (start, first), end in zip(id_runs, ends, strict=True):
        ids.extend(range(first, first + end - start))
    if len(ids) != num_pieces:
        raise ValueError(
            f"it has {num_pieces:,} pieces, and the manifest has ids for {len(ids):,}",
        )
    return ids


def _replacement_tables(content: bytes) -> Iterator[bytes]:
    """Yield the tables of replacements in a SentencePiece model."""
    for number, start, end in message_fields(content, 0, len(content)):
        if number != _NORMALIZER:
            continue
        for field, table_start, table_end in message_fields(content, start, end):
            if field == _TABLE and table_start < table_end:
                yield content[table_start:table_end]


def _ends_in_number_comma(piece: str) -> bool:
    return piece.endswith(",") and piece[-2:-1].isdigit()
