"""SentencePiece's Unigram model, to the bit: which pieces a text is cut into.

The `tokenizers` package has this model too, but adds scores in double precision, where SentencePiece rounds each sum
to single precision; between cuts of nearly equal score (`!!!!!`) the two then choose differently. It also takes a
literal `<0x41>` for a byte, and knows no user-defined pieces. (Kudo 2018, https://arxiv.org/abs/1804.10959; the search
is a Viterbi as in sentencepiece 0.2.3; 0.2.1 compared sums before rounding them, and so breaks some ties otherwise.)
"""

import base64
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec

from bertscore_onnx.charsmap import Charsmap
from bertscore_onnx.punctuation import split_punctuation

SPACE = "▁"

_UNKNOWN_PENALTY = 10.0

_CLOSE = 2.0**-5
"""Scores nearer than this may change places by rounding, if a word and the sum before it keep below these bounds:"""
_WORD_BOUND = 32
_SUM_BOUND = 2.0**13

_MEMORY = 100_000
"""How many words are remembered."""

Ids = list[Annotated[int, msgspec.Meta(ge=0)]]


class SentencePiece(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a SentencePiece model goes about a text; its pieces and characters are in `tokenizer.json`."""

    add_dummy_prefix: bool
    """Whether a space goes before a text."""

    remove_extra_whitespaces: bool
    unknown_id: Annotated[int, msgspec.Meta(ge=0)]

    unmatched_ids: Ids
    """The ids that no text can have: control pieces, bytes, special tokens."""

    user_defined_ids: Ids
    """The pieces whose characters the character table leaves alone."""

    byte_ids: Ids
    """The ids of the 256 bytes, where they stand for unknown characters; else empty."""

    split_number_comma: bool
    """Whether a piece such as `9,` is cut again without its comma (ALBERT, XLNet)."""

    split_punctuation: bool
    """Whether punctuation marks are texts of their own (DeBERTa, on request)."""


class _Model(msgspec.Struct):
    vocab: list[tuple[str, float]]


class _File(msgspec.Struct):
    """What is read of a `tokenizer.json`."""

    model: _Model
    normalizer: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class _Cut:
    """The pieces of a word."""

    pieces: list[str]
    scores: list[float]
    ids: list[int]
    is_settled: bool
    """Whether no rounding can change it."""


class SentencePieceEncoder:
    """A model of SentencePiece, loaded; threads may share it."""

    def __init__(self, path: Path, options: SentencePiece) -> None:
        """Load the pieces and the characters of a `tokenizer.json`.

        Raises:
            OSError, msgspec.DecodeError, ValueError: the file is not one.
        """
        file = msgspec.json.decode(path.read_bytes(), type=_File)
        hidden = {*options.unmatched_ids, options.unknown_id}
        vocab = [(index, *entry) for index, entry in enumerate(file.model.vocab) if index not in hidden]
        user_defined = {file.model.vocab[index][0] for index in options.user_defined_ids}
        self._options = options
        self._ids = {piece: index for index, piece, _ in vocab}
        self._scores = {piece: score for _, piece, score in vocab}
        lowest = min(score for piece, score in self._scores.items() if piece not in user_defined)
        self._unknown_score = array("f", [lowest - _UNKNOWN_PENALTY])[0]
        self._longest: dict[str, int] = {}
        for piece in self._scores:
            self._longest[piece[0]] = max(self._longest.get(piece[0], 0), len(piece))
        blob = base64.b64decode(file.normalizer["precompiled_charsmap"]) if file.normalizer else b""
        self._replace = Charsmap(blob, untouched=user_defined)
        keeps_words = SPACE in self._ids and not any(SPACE in piece[1:] for piece in self._scores)
        self._word = re.compile(f"{SPACE}?[^{SPACE}]*" if keeps_words else ".+", re.DOTALL)
        self._known: dict[str, _Cut] = {}

    def __call__(self, text: str) -> list[int]:
        """Return the ids of a text, without special tokens."""
        parts = split_punctuation(text) if self._options.split_punctuation else [text]
        return [piece_id for part in parts for cut in self._cuts(part) for piece_id in cut.ids]

    def normalise(self, text: str) -> str:
        """Return a text as the model sees it, its spaces made visible."""
        if not text:
            return ""
        replaced = self._replace(text)
        if self._options.remove_extra_whitespaces:
            replaced = re.sub(" +", " ", replaced).lstrip(" ")
        visible = (SPACE if self._options.add_dummy_prefix else "") + replaced.replace(" ", SPACE)
        return visible.rstrip(SPACE) if self._options.remove_extra_whitespaces else visible

    def _cuts(self, text: str) -> Iterator[_Cut]:
        """Cut a text word by word; no piece reaches into the next."""
        total = array("f", [0.0])  # rounds whatever is put in, as SentencePiece's own sums are
        for word in self._word.findall(self.normalise(text)):
            is_bounded = total[0] > -_SUM_BOUND
            cut = self._known.get(word) if is_bounded else None
            if cut is None:
                cut = self._search(word, total[0])
                if cut.is_settled and is_bounded:
                    self._remember(word, cut)
            for score in cut.scores:
                total[0] += score
            yield cut

    def _remember(self, word: str, cut: _Cut) -> None:
        if len(self._known) >= _MEMORY:
            self._known = {}
        self._known[word] = cut

    def _search(self, word: str, total: float) -> _Cut:
        """Find the cut of the highest score, by the best cut up to each place.

        Args:
            word: what to cut.
            total: the score of all that stands before it.
        """
        size = len(word)
        reached = array("f", [0.0])  # rounds, as `total` does
        best = array("f", [0.0]) * (size + 1)  # the score of the best cut that ends at a place
        best[0] = total
        starts = [-1] * (size + 1)  # where the last piece of that cut begins
        gains = [0.0] * (size + 1)  # and its own score
        is_settled = size <= _WORD_BOUND
        for start in range(size):
            for end, score in self._pieces_at(word, start):
                reached[0] = score + best[start]
                ahead = reached[0] - best[end]
                if starts[end] >= 0:
                    is_settled = is_settled and abs(ahead) > _CLOSE
                    if ahead <= 0:
                        continue
                best[end], starts[end], gains[end] = reached[0], start, score
        return self._traced(word, starts, gains, is_settled)

    def _pieces_at(self, word: str, start: int) -> Iterator[tuple[int, float]]:
        """Yield the ends and scores of all pieces that begin at a place, and so an end one character on."""
        scores = self._scores
        if word[start] not in scores:
            yield start + 1, self._unknown_score
        for end in range(start + 1, min(start + self._longest.get(word[start], 0), len(word)) + 1):
            score = scores.get(word[start:end])
            if score is not None:
                yield end, score

    def _traced(self, word: str, starts: list[int], gains: list[float], is_settled: bool) -> _Cut:
        """Follow the best cut back from its end; neighbouring unknown characters are one piece."""
        pieces: list[str] = []
        scores: list[float] = []
        end = len(word)
        while end > 0:
            start = starts[end]
            scores.append(gains[end])
            piece = word[start:end]
            if pieces and piece not in self._ids and pieces[-1] not in self._ids:
                pieces[-1] = piece + pieces[-1]
            else:
                pieces.append(piece)
            end = start
        pieces.reverse()
        ids = [piece_id for piece in pieces for part in self._parts(piece) for piece_id in self._ids_of(part)]
        return _Cut(pieces, scores[::-1], ids, is_settled)

    def _parts(self, piece: str) -> list[str]:
        """Return a piece, or what it is cut into where its comma is to stand alone."""
        if not (self._options.split_number_comma and piece.endswith(",") and piece[-2:-1].isdigit()):
            return [piece]
        again = [part for cut in self._cuts(piece[:-1].replace(SPACE, "")) for part in cut.pieces]
        if not piece.startswith(SPACE) and again[0].startswith(SPACE):
            again[0] = again[0][1:]
        return [*filter(None, again), ","]

    def _ids_of(self, piece: str) -> list[int]:
        found = self._ids.get(piece)
        if found is not None:
            return [found]
        if self._options.byte_ids:
            return [self._options.byte_ids[byte] for byte in piece.encode()]
        return [self._options.unknown_id]
