"""Tokens to match.

`TokenMatching` prepares the tokens of encoded texts for matching: it leaves some out, and marks
those of contexts.
"""

import string
import unicodedata
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from bertscore_onnx.arrays import BoolArray, Int64Array, joined, joined_ranges, starts_of
from bertscore_onnx.bundle.bundle import Bundle
from bertscore_onnx.bundle.manifest import Manifest
from bertscore_onnx.encoding.encoder import TokenEmbeddings
from bertscore_onnx.matching.variants import SEPARATOR_FIELD, Excluded, Matching
from bertscore_onnx.matching.weights import word_ids
from bertscore_onnx.text.tokenizer import TextTokenizer
from bertscore_onnx.text.vocabulary import Vocabulary

Tokenise = Callable[[Sequence[str]], Sequence[Int64Array]]
"""Returns the ids of each text, without special tokens."""

_OPERATORS = frozenset("+-*/&|~")
_ASCII_PUNCTUATION = frozenset(string.punctuation)


def _is_punctuation(text: str) -> bool:
    bare = text.strip()
    for character in bare:
        if character not in _ASCII_PUNCTUATION and unicodedata.category(character)[0] != "P":
            return False
    return bool(bare)


_KINDS: dict[Excluded, Callable[[str], bool]] = {
    "punctuation": _is_punctuation,
    "ascii-punctuation": lambda text: text.strip() in _ASCII_PUNCTUATION,
    # such white space is punctuation too, and no other is (code_bert_score,
    # `utils.py:mark_all_punc_tokens`)
    "code-punctuation": lambda text: all(
        mark in _ASCII_PUNCTUATION - _OPERATORS for mark in text.strip(" \n\t")
    ),
}
"""The kinds of tokens that their own text decides, white space around it included."""


class TokenMask:
    """Decides which tokens of a text are matched."""

    def __init__(
        self,
        matching: Matching,
        manifest: Manifest,
        vocabulary: Vocabulary,
        added_ids: Sequence[int],
        tokenise: Tokenise,
    ) -> None:
        """Apply a matching to the ids of a model."""
        size = manifest.vocab_size
        self._is_kept = np.ones(size, dtype=np.bool_)  # whether the tokens of an id may be matched
        if "special" in matching.exclude:
            self._is_kept[manifest.special_ids] = False
            # some have a weight: Gemma's <bos>
            self._is_kept[[token for token in added_ids if token < size]] = False
        kinds = [_KINDS[kind] for kind in matching.exclude if kind in _KINDS]
        if kinds:
            for token in range(size):
                text = vocabulary.bytes_of(token).decode(errors="replace")
                if token not in vocabulary.special and any(is_kind(text) for is_kind in kinds):
                    self._is_kept[token] = False
        self.is_word: BoolArray = word_ids(manifest)
        self._keeps_continuations = "subwords" not in matching.exclude
        depends_on_words = matching.words or not self._keeps_continuations
        self._continuations = vocabulary.continuations(size) if depends_on_words else None
        self._words: list[Int64Array] = []  # of several tokens, that are left out
        single_ids = []  # each of which is such a word
        for word in _word_ids(matching.words, tokenise):
            if not vocabulary.special.keys().isdisjoint(word.tolist()):
                continue
            if len(word) > 1:
                self._words.append(word)
            else:
                single_ids.append(word[0])
        self._is_left_out = np.isin(np.arange(size), single_ids)

    def matched(self, ids: Int64Array, begins: Int64Array) -> BoolArray:
        """Return which tokens of some texts are matched, (tokens,).

        The texts follow each other; `begins` is where each of them begins, (texts,).
        """
        is_kept = self._is_kept[ids]
        if self._continuations is None:
            return is_kept
        continues, is_continued = self._continuations
        goes_on = continues[ids]  # (tokens,)
        goes_on[1:] &= is_continued[ids[:-1]]
        goes_on[begins] = False
        if not self._keeps_continuations:
            is_kept &= ~goes_on
        ends = np.append(~goes_on[1:], True)  # (tokens,), where a word ends
        is_kept &= goes_on | ~ends | ~self._is_left_out[ids]
        begin = np.flatnonzero(~goes_on & ~ends)  # of the words of several tokens
        for word in self._words:
            first = begin[ids[begin] == word[0]]
            first = first[first + len(word) <= len(ids)]
            tokens = first[:, None] + np.arange(len(word))  # (occurrences, tokens of the word)
            is_match = (
                (ids[tokens] == word).all(axis=1)
                & ends[tokens[:, -1]]
                & goes_on[tokens[:, 1:]].all(axis=1)
            )
            is_kept[tokens[is_match]] = False
        return is_kept


_BEFORE_WORDS = ("", "a ", "(", '"', "_")
"""Text before a word, after which vocabularies may split the word differently."""


def _word_ids(left_out: Iterable[str], tokenise: Tokenise) -> list[Int64Array]:
    """Return the ids that words may have after nothing, a space or punctuation, (tokens,) each."""
    forms = set()
    for word in filter(None, left_out):
        forms |= {word, word.lower(), word.upper(), word.capitalize()}
    if not forms:
        return []
    sequences = set()
    for before in _BEFORE_WORDS:
        [start] = tokenise([before])
        for ids in tokenise([before + form for form in sorted(forms)]):
            if np.array_equal(ids[: len(start)], start):
                sequences.add(tuple(ids[len(start) :].tolist()))
    return [np.array(ids, dtype=np.int64) for ids in sorted(sequences) if ids]


class TokenMatching:
    """A matching applied to one bundle; prepares its encoded texts."""

    def __init__(
        self, matching: Matching, bundle: Bundle, tokenizer: TextTokenizer, tokenise: Tokenise
    ) -> None:
        """Apply a matching to the vocabulary of a bundle.

        The vocabulary is read only if the matching depends on it.
        """
        self.matching: Matching = matching
        self.mask: TokenMask | None = None
        self.separator: str = matching.separator
        """The string between a context and its text."""
        self._num_prefix = tokenizer.num_special_tokens[0]
        if matching.exclude or matching.words or SEPARATOR_FIELD in self.separator:
            manifest = bundle.manifest
            vocabulary = Vocabulary(
                bundle.tokenizer_path, manifest.tokenizer_spec, manifest.special_ids
            )
            last = (tokenizer.added_ids or manifest.empty_ids)[-1]
            self.separator = self.separator.replace(
                SEPARATOR_FIELD, vocabulary.special.get(last, "")
            )
            if matching.exclude or matching.words:
                self.mask = TokenMask(matching, manifest, vocabulary, tokenizer.added_ids, tokenise)

    def prepare(self, table: TokenEmbeddings, num_context: Int64Array) -> TokenEmbeddings:
        """Return the tokens of texts to match.

        `num_context` is the number of context tokens of each text, (texts,). Of a text without any,
        the first token is kept, without weight.
        """
        has_contexts = num_context.any()
        if self.mask is None and not has_contexts:
            return table
        ids = joined(table.sequences)  # (tokens,)
        begins = starts_of(table.lengths)  # (texts,)
        if self.mask is None:
            is_kept = np.ones(len(ids), dtype=np.bool_)
        else:
            is_kept = self.mask.matched(ids, begins)
        is_context = np.zeros(len(ids), dtype=np.bool_)
        if has_contexts:
            is_context[joined_ranges(begins + self._num_prefix, num_context)] = True
        is_excluded: BoolArray | None = None  # (texts,)
        if self.mask is not None and len(begins):
            is_word = self.mask.is_word[ids] & ~is_context
            has_words = np.logical_or.reduceat(is_word, begins)
            has_kept_words = np.logical_or.reduceat(is_word & is_kept, begins)
            has_only_excluded = has_words & ~has_kept_words
            if has_only_excluded.any():
                is_excluded = has_only_excluded
        weightless = np.zeros(len(ids), dtype=np.bool_)
        if has_contexts and self.matching.context == "excluded":
            is_kept &= ~is_context
        elif has_contexts:
            number = np.where(num_context > 0, num_context + self._num_prefix, 0)
            weightless[joined_ranges(begins, number)] = True
        lengths = _sums(is_kept, begins)
        # A text without tokens to match keeps the first, without weight: none may be empty.
        first = begins[lengths == 0]
        is_kept[first] = True
        weightless[first] = True
        lengths = np.maximum(lengths, 1)
        starts = starts_of(lengths)
        # Tokens without weight stand in front of the others of their text.
        num_weightless = _sums(weightless[is_kept], starts)
        return TokenEmbeddings(
            np.split(ids[is_kept], starts[1:]),
            lengths,
            table.vectors[:, joined_ranges(table.starts, table.lengths)[is_kept]],
            starts,
            table.sequences,
            num_weightless=num_weightless if num_weightless.any() else None,
            is_excluded=is_excluded,
        )


def _sums(is_counted: BoolArray, begins: Int64Array) -> Int64Array:
    """Return how many tokens of each text are counted, (texts,)."""
    if not len(begins):
        return begins
    return np.add.reduceat(is_counted.astype(np.int64), begins)
