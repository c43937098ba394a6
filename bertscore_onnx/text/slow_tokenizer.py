"""The order of a slow tokenizer of transformers.

The normalizers change the whole text; then literal special tokens are cut out of it; each segment between them goes
through the pre-tokenizers and becomes ids; last come the special tokens around every text.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from bertscore_onnx.text.fast_tokenizer import encode_batch, load_tokenizer_json
from bertscore_onnx.text.normalizers import bind_normalizers
from bertscore_onnx.text.sentencepiece import SentencePieceEncoder
from bertscore_onnx.text.spec import TokenizerSpec
from bertscore_onnx.text.special_tokens import bind_cut
from bertscore_onnx.text.word_cache import WordEncoder, has_words


class SlowTokenizer:
    """A tokenizer that has a spec."""

    def __init__(self, path: Path, spec: TokenizerSpec, max_length: int | None) -> None:
        """Load a tokenizer.

        Args:
            path: a `spiece.model` if the spec is of one, else a `tokenizer.json`.
            spec: what that file does not say.
            max_length: the most tokens of a text, special tokens included; None for no bound.
        """
        self._prepare_text = bind_normalizers(spec.normalizers)
        self._cut = bind_cut(spec.special_tokens)
        self._prepare_segment = bind_normalizers(spec.pre_tokenizers)
        self._look_up = _segment_encoder(path, spec)
        self._unlisted_from, self._unknown_id = spec.unlisted_from, spec.unknown_id
        self._prefix_ids, self._suffix_ids, self._suffix_once = spec.prefix_ids, spec.suffix_ids, spec.suffix_once
        self.frame = (len(spec.prefix_ids), len(spec.suffix_ids))
        self._room = None if max_length is None else max(max_length - sum(self.frame), 0)

    def __call__(self, texts: Sequence[str]) -> list[tuple[list[int], bool]]:
        """Return the ids of each text, special tokens included, and whether the text was cut."""
        cut = [self._cut(self._prepare_text(text)) for text in texts]
        segments = [self._prepare_segment(piece) for pieces in cut for piece in pieces if isinstance(piece, str)]
        found = map(self._listed, self._look_up(segments))
        return [
            self._framed([token for piece in pieces for token in ([piece] if isinstance(piece, int) else next(found))])
            for pieces in cut
        ]

    def _listed(self, ids: list[int]) -> list[int]:
        """Take those that the model has not for unknown."""
        if (bound := self._unlisted_from) is None:
            return ids
        return [one if one < bound else self._unknown_id for one in ids]

    def _framed(self, ids: list[int]) -> tuple[list[int], bool]:
        """Cut ids to their length and put the special tokens around them; tell whether they were cut."""
        kept = ids[: self._room]
        is_cut = len(kept) < len(ids)
        if self._suffix_once and kept[len(kept) - len(self._suffix_ids) :] == self._suffix_ids:
            return self._prefix_ids + kept, is_cut
        return self._prefix_ids + kept + self._suffix_ids, is_cut


def _segment_encoder(path: Path, spec: TokenizerSpec) -> Callable[[list[str]], Iterable[list[int]]]:
    """Return what looks up stretches of text, without special tokens."""
    if spec.sentencepiece is not None:
        return SentencePieceEncoder(path, spec.sentencepiece)
    tokenizer = load_tokenizer_json(path)
    if has_words(tokenizer):
        return partial(map, WordEncoder(tokenizer))
    return lambda segments: [found.ids for found in encode_batch(tokenizer, segments, add_special_tokens=False)]
