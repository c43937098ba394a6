"""The order of a slow tokenizer of transformers.

The normalizers change the whole text; then literal special tokens are cut out of it; each segment between them goes
through the pre-tokenizers and becomes ids; last come the special tokens around every text.
"""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

from bertscore_onnx.text.fast_tokenizer import encode_batch, load_tokenizer_json
from bertscore_onnx.text.normalizers import bind_normalizers
from bertscore_onnx.text.spec import TokenizerSpec
from bertscore_onnx.text.special_tokens import bind_split
from bertscore_onnx.text.word_cache import WordEncoder, has_words


class SlowTokenizer:
    """A tokenizer that has a spec."""

    def __init__(self, path: Path, spec: TokenizerSpec, max_length: int | None, *, in_parallel: bool = True) -> None:
        """Load a tokenizer.

        Args:
            path: a `spiece.model` if the spec is of one, else a `tokenizer.json`.
            spec: what that file does not say.
            max_length: the most tokens of a text, special tokens included; None for no bound.
            in_parallel: whether the tokenizers package may use its threads.
        """
        self._normalize = bind_normalizers(spec.normalizers)
        self._split = bind_split(spec.special_tokens)
        self._pre_tokenize = bind_normalizers(spec.pre_tokenizers)
        self._encode_segments = _segment_encoder(path, spec, in_parallel)
        self._spec = spec
        self.num_special_tokens: tuple[int, int] = (len(spec.prefix_ids), len(spec.suffix_ids))
        self._room = None if max_length is None else max(max_length - sum(self.num_special_tokens), 0)

    def __call__(self, texts: Sequence[str]) -> list[tuple[list[int], bool]]:
        """Return the ids of each text, special tokens included, and whether the text was cut."""
        split = [self._split(self._normalize(text)) for text in texts]
        segments = [self._pre_tokenize(part) for parts in split for part in parts if isinstance(part, str)]
        encoded = map(self._mark_unknown, self._encode_segments(segments))
        ids = [
            [token for part in parts for token in ([part] if isinstance(part, int) else next(encoded))]
            for parts in split
        ]
        return [self._add_special_tokens(ids_of_text) for ids_of_text in ids]

    def _mark_unknown(self, ids: list[int]) -> list[int]:
        """Replace the ids that only `tokenizer.json` has."""
        if (size := self._spec.vocab_size) is None:
            return ids
        return [token if token < size else self._spec.unknown_id for token in ids]

    def _add_special_tokens(self, ids: list[int]) -> tuple[list[int], bool]:
        """Cut ids to their length and put the special tokens around them; tell whether they were cut."""
        prefix, suffix = self._spec.prefix_ids, self._spec.suffix_ids
        kept = ids[: self._room]
        is_cut = len(kept) < len(ids)
        if self._spec.suffix_once and kept[len(kept) - len(suffix) :] == suffix:
            return prefix + kept, is_cut
        return prefix + kept + suffix, is_cut


def _segment_encoder(path: Path, spec: TokenizerSpec, in_parallel: bool) -> Callable[[list[str]], Iterable[list[int]]]:
    """Return what encodes the segments between special tokens."""
    if spec.sentencepiece is not None:
        from bertscore_onnx.text.sentencepiece import SentencePieceEncoder  # costs memory and is needed only here

        return SentencePieceEncoder(path, spec.sentencepiece)
    tokenizer = load_tokenizer_json(path)
    if has_words(tokenizer):
        return partial(map, WordEncoder(tokenizer))
    encode = partial(encode_batch, tokenizer, in_parallel=in_parallel, add_special_tokens=False)
    return lambda segments: [found.ids for found in encode(segments)]
