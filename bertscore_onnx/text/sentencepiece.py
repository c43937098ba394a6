"""SentencePiece, to the bit: which pieces of a model a text is cut into.

The `tokenizers` package has such models too, but applies the character table to other stretches, adds scores in another
precision, takes a literal `<0x41>` for a byte, and knows no user-defined pieces.
"""

import base64
import re
from array import array
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from weakref import proxy

import msgspec

from bertscore_onnx.text.bpe import Merging
from bertscore_onnx.text.characters import split_punctuation
from bertscore_onnx.text.charsmap import Charsmap
from bertscore_onnx.text.unigram import Cut, Unigram
from bertscore_onnx.text.word_cache import LONGEST, MEMORY

SPACE = "▁"

_MODELS: dict[str, type[Unigram | Merging]] = {"unigram": Unigram, "bpe": Merging}

Ids = list[Annotated[int, msgspec.Meta(ge=0)]]


class SentencePiece(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How a SentencePiece model goes about a text; its pieces and characters are in `tokenizer.json`."""

    model: Literal["unigram", "bpe"]
    """How pieces are chosen: those of the highest total score, or by joining neighbours."""

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


class _Word(NamedTuple):
    """A word in pieces, neighbouring unknown characters being one."""

    pieces: list[str]
    ids: list[int]
    scores: list[float]


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
        scores = {piece: score for _, piece, score in vocab}
        self._model = _MODELS[options.model](scores, user_defined)
        blob = base64.b64decode(file.normalizer["precompiled_charsmap"]) if file.normalizer else b""
        self._replace = Charsmap(blob, untouched=user_defined)
        keeps_words = SPACE in self._ids and not any(SPACE in piece[1:] for piece in scores)
        self._word = re.compile(f"{SPACE}[^{SPACE}]*|[^{SPACE}]+" if keeps_words else ".+", re.DOTALL)
        me: Any = proxy(self)  # else the memory, which is part of this object, would keep it alive
        self._settled = lru_cache(MEMORY)(partial(SentencePieceEncoder._cut_alike, me))

    def __call__(self, text: str) -> list[int]:
        """Return the ids of a text, without special tokens."""
        parts = split_punctuation(text) if self._options.split_punctuation else [text]
        return [piece_id for part in parts for word in self._words(part) for piece_id in word.ids]

    def normalise(self, text: str) -> str:
        """Return a text as the model sees it, its spaces made visible."""
        if not text:
            return ""
        replaced = self._replace(text)
        if self._options.remove_extra_whitespaces:
            replaced = re.sub(" +", " ", replaced).lstrip(" ")
        visible = (SPACE if self._options.add_dummy_prefix else "") + replaced.replace(" ", SPACE)
        return visible.rstrip(SPACE) if self._options.remove_extra_whitespaces else visible

    def _words(self, text: str) -> Iterator[_Word]:
        """Cut a text word by word; no piece reaches into the next."""
        total = array("f", [0.0])  # rounds whatever is put in, as SentencePiece's own sums are
        for text_word in self._word.findall(self.normalise(text)):
            word = None
            if len(text_word) <= LONGEST and self._model.holds_after(total[0]):
                word = self._settled(text_word)
            if word is None:
                word = self._named(self._model.cut(text_word, total[0]))
            for score in word.scores:
                total[0] += score
            yield word

    def _cut_alike(self, text: str) -> _Word | None:
        """Cut a word; None if what stands before it matters."""
        cut = self._model.cut(text, 0.0)
        return self._named(cut) if cut.is_settled else None

    def _named(self, cut: Cut) -> _Word:
        pieces = self._unknown_joined(cut.pieces)
        ids = [piece_id for piece in pieces for part in self._parts(piece) for piece_id in self._ids_of(part)]
        return _Word(pieces, ids, cut.scores)

    def _unknown_joined(self, pieces: list[str]) -> list[str]:
        joined: list[str] = []
        for piece in pieces:
            if joined and piece not in self._ids and joined[-1] not in self._ids:
                joined[-1] += piece
            else:
                joined.append(piece)
        return joined

    def _parts(self, piece: str) -> list[str]:
        """Return a piece, or what it is cut into where its comma is to stand alone."""
        if not (self._options.split_number_comma and piece.endswith(",") and piece[-2:-1].isdigit()):
            return [piece]
        again = [part for word in self._words(piece[:-1].replace(SPACE, "")) for part in word.pieces]
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
