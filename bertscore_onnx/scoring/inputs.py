"""Pairs of candidates and references.

The texts of a caller are checked, paired, and read a few at a time. `collect_pairs` begins with all
of them, `read_pairs` with an iterable.
"""

import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from numbers import Integral
from typing import Any, TypeVar, cast

import numpy as np

from bertscore_onnx.arrays import Int64Array, lengths_of, starts_of
from bertscore_onnx.errors import InputError, InputTypeError, is_interrupt
from bertscore_onnx.matching.pairs import EncodedTexts
from bertscore_onnx.text.texts import (
    Context,
    Reference,
    Text,
    TextInContext,
    are_in_context,
    bare_texts,
    check_many,
    check_string,
    describe,
    in_context,
)
from bertscore_onnx.text.tokenizer import TokenisedTexts

PAIRS_AT_ONCE = 64
"""The candidates of a slice: pairs that are read, and handed on, together."""

MAX_CHARACTERS = 16_000_000
"""About the most characters of a slice, or of a chunk: far more than texts that fit into a model
have.
"""

Pair = tuple[Text, Reference]
"""A candidate, and its reference or references."""

Cands = Iterable[Text] | EncodedTexts
Refs = Iterable[Reference] | EncodedTexts
Contexts = Iterable[Context] | None
Item = TypeVar("Item")


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """All candidates, or all references: items of one text or of several."""

    texts: Sequence[Text]
    """The texts to encode, with those of an item side by side; none if they were encoded before."""

    counts: Int64Array
    """The number of texts of each item, (items,)."""

    encoded: EncodedTexts | None = None
    """The items, if they were encoded before."""

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.counts)

    def part(self, texts: slice, counts: Int64Array) -> "Side":
        """Return some of the texts, with their number in each item."""
        encoded = None if self.encoded is None else self.encoded.part(texts, counts)
        return Side(self.texts[texts], counts, encoded)

    def joined(self, following: Sequence["Side"]) -> "Side":
        """Return the items followed by those of other sides.

        All of them or none were encoded before, together.
        """
        sides = [self, *following]
        counts = np.concatenate([side.counts for side in sides])
        encoded = self.encoded
        if encoded is not None:
            rows = np.concatenate([side.encoded.rows for side in sides if side.encoded])
            encoded = replace(encoded, rows=rows, counts=counts)
        texts: list[Text] = []
        for side in sides:
            texts += side.texts
        return Side(texts, counts, encoded)

    def documents(self, ids_of: Callable[[list[str]], list[Int64Array]]) -> list[Int64Array]:
        """Return the ids of each text, (tokens,), in which idf counts tokens.

        Those of its context are left out.
        """
        if self.encoded is not None:
            return self.encoded.documents
        return ids_of(bare_texts(self.texts))

    def check_model(self, model: str) -> None:
        """Raise an InputError if another model encoded the texts."""
        if self.encoded is not None and self.encoded.model != model:
            raise InputError(
                f"The texts were encoded by {self.encoded.model}; this scorer is {model}. Encode "
                "them with it."
            )


def singles(texts: Sequence[Text]) -> Side:
    """Return items of one text each."""
    return Side(list(texts), np.ones(len(texts), dtype=np.int64))


def slices_of(side: Side) -> Iterator[Side]:
    """Yield the items, `PAIRS_AT_ONCE` at a time."""
    start = 0
    for item in range(0, len(side), PAIRS_AT_ONCE):
        counts = side.counts[item : item + PAIRS_AT_ONCE]
        stop = start + int(counts.sum())
        yield side.part(slice(start, stop), counts)
        start = stop


@dataclass(frozen=True, slots=True)
class Pairs:
    """Candidates, and as many items of one or more references."""

    candidates: Side
    references: Side

    tokenised: TokenisedTexts | None = None
    """The token ids of every text; None before they are tokenised."""

    @property
    def texts(self) -> list[Text]:
        """The texts to encode."""
        return [*self.candidates.texts, *self.references.texts]

    def texts_for(self, model: str) -> list[Text]:
        """Return the texts to encode.

        Raise an InputError if another model encoded a side.
        """
        self.candidates.check_model(model)
        self.references.check_model(model)
        return self.texts

    @property
    def are_in_context(self) -> bool:
        """Whether some of the texts are in a context."""
        return are_in_context(self.texts)

    @property
    def num_tokens(self) -> Int64Array:
        """The tokens of each candidate and its references, (candidates,).

        0 before they are tokenised.
        """
        if self.tokenised is None or not len(self.candidates):
            return np.zeros(len(self.candidates), dtype=np.int64)
        lengths = np.array([len(self.tokenised[text].ids) for text in self.texts])  # (texts,)
        of_candidates, of_references = np.split(lengths, [len(self.candidates.texts)])
        counts = self.references.counts
        return of_candidates + np.add.reduceat(of_references, starts_of(counts))

    def slices(self) -> Iterator["Pairs"]:
        """Yield the pairs, about `PAIRS_AT_ONCE` at a time.

        No more neighbours with the same references are split.
        """
        ends = np.cumsum(self.references.counts)  # (candidates,)
        start = 0
        while start < len(ends):
            stop = self._cut(ends, start + PAIRS_AT_ONCE, start + 2 * PAIRS_AT_ONCE)
            yield self._between(ends, start, stop)
            start = stop

    def split(self, max_characters: int) -> Iterator["Pairs"]:
        """Yield the pairs in slices of at most this many characters.

        A slice may have more if it is of one candidate.
        """
        number = len(self.candidates)
        if number == 1 or sum(map(len, self.texts)) <= max_characters:
            yield self
            return
        ends = np.cumsum(self.references.counts)
        middle = self._cut(ends, -(-number // 2), number)
        yield from self._between(ends, 0, middle).split(max_characters)
        yield from self._between(ends, middle, number).split(max_characters)

    def _cut(self, ends: Int64Array, first: int, stop: int) -> int:
        """Return the first candidate from `first` to before `stop` whose references differ from
        those of the previous candidate, or `first` if there is none.
        """
        texts = self.references.texts
        number = len(ends)
        if not texts:
            return min(first, number)
        for item in range(first, min(stop, number)):
            begin = _end(ends, item - 1)
            if texts[_end(ends, item - 2) : begin] != texts[begin : _end(ends, item)]:
                return item
        return min(first, number)

    def _between(self, ends: Int64Array, start: int, stop: int) -> "Pairs":
        """Return some of the candidates with their references.

        `ends` is where the references of each candidate end, (candidates,).
        """
        if stop - start == len(ends):
            return self
        items = slice(start, stop)
        texts = slice(_end(ends, start - 1), _end(ends, stop - 1))
        return replace(
            self,
            candidates=self.candidates.part(items, self.candidates.counts[items]),
            references=self.references.part(texts, self.references.counts[items]),
        )


def _end(ends: Int64Array, item: int) -> int:
    """Return where the references of an item end; 0 before the first item."""
    return int(ends[item]) if item >= 0 else 0


def collect_pairs(
    cands: Cands,
    refs: Refs,
    contexts: Contexts = None,
) -> Pairs:
    """Check candidates and references, encoded or not.

    Pair them, and put them into their contexts, if any.

    Warns of references that seem to be in sacreBLEU's order, a list for each set of them.
    """
    _check_labels(cands, refs, "refs")
    _check_labels(cands, contexts, "contexts")
    candidates = collect_single(cands, "cands")
    references = collect_items(refs, "refs")
    if len(candidates) != len(references):
        raise _differ_in_number(candidates, references)
    if _seem_streams(candidates, references):
        warnings.warn(
            "The candidates share less text with their references than if these were in another "
            f"order.{_IN_STREAMS}",
            UserWarning,
            stacklevel=3,
        )
    if contexts is None:
        return Pairs(candidates, references)
    pair_contexts = list(check_many(contexts, "contexts"))
    if len(pair_contexts) != len(candidates):
        raise InputError(
            f"Contexts and candidates differ in number, {len(pair_contexts)} and "
            f"{len(candidates)}; expected one context for each candidate."
        )
    return Pairs(_in_contexts(candidates, pair_contexts), _in_contexts(references, pair_contexts))


def _differ_in_number(candidates: Side, references: Side) -> InputError:
    hint = ""
    if len(candidates) > 1 and len(references) and (references.counts == len(candidates)).all():
        hint = _IN_STREAMS
    return InputError(
        f"Candidates and references differ in number, {len(candidates)} and "
        f"{len(references)}: every candidate needs one reference, or one list of "
        f"references.{hint}"
    )


def _check_labels(cands: object, partners: object, name: str) -> None:
    """Raise an InputError for the labels of `cands` in another order.

    Both are Series of pandas; they would pair by position.
    """
    labels: Any = getattr(cands, "index", None)
    partner_labels: Any = getattr(partners, "index", None)
    if not hasattr(labels, "equals") or not hasattr(partner_labels, "equals"):
        return
    if not labels.equals(partner_labels) and Counter(labels) == Counter(partner_labels):
        raise InputError(
            f"{name} has the labels of cands in another order, and texts pair by position. Take "
            f"both from one frame in one order, or give the lists, such as `{name}.tolist()`, if "
            "the positions are right."
        )


_IN_STREAMS = (
    " If refs has a list for each set of references, as sacreBLEU takes them, give `[*zip(*refs)]`."
)

_MOST_STREAMS = 16


def _seem_streams(candidates: Side, references: Side) -> bool:
    """Return whether the order of references seems sacreBLEU's.

    Then there are as many references for each candidate as candidates. In the order that is right,
    a candidate shares more trigrams of characters with its references: here more than 1.5 times as
    many, and more than five more for each candidate, as texts of few words share some by chance.
    """
    number = len(candidates)
    if not 1 < number <= _MOST_STREAMS or (references.counts != number).any():
        return False
    if candidates.encoded is not None or references.encoded is not None:
        return False
    reference_trigrams = [_trigrams(text) for text in bare_texts(references.texts)]
    shared = 0
    in_sets = 0
    for row, text in enumerate(bare_texts(candidates.texts)):
        trigrams = _trigrams(text)
        for reference in range(number):
            shared += len(trigrams & reference_trigrams[row * number + reference])
            in_sets += len(trigrams & reference_trigrams[reference * number + row])
    return in_sets > 1.5 * shared and in_sets - shared > 5 * number


def _trigrams(text: str) -> set[str]:
    return {text[start : start + 3] for start in range(len(text) - 2)}


def _in_contexts(side: Side, contexts: Sequence[Context]) -> Side:
    if side.encoded is not None:
        raise InputError("Texts that were encoded before have no context. Give them as strings.")
    texts = iter(side.texts)
    texts_in_context: list[Text] = []
    for position, (context, count) in enumerate(zip(contexts, side.counts.tolist(), strict=True)):
        texts_in_context += in_context(islice(texts, count), context, f"contexts[{position}]")
    return Side(texts_in_context, side.counts)


def check_no_context(texts: Iterable[Text], what: str) -> None:
    """Raise an InputError if a text is in a context."""
    if are_in_context(texts):
        raise InputError(f"{what} takes texts without a context. Give strings, or use `score`.")


def collect_single(texts: Cands, name: str) -> Side:
    """Check items that are single texts."""
    encoded = _encoded_before(texts)
    if encoded is None:
        return singles(collect_texts(cast(Any, texts), name))
    if (encoded.counts != 1).any():
        raise InputError(
            f"{name} was encoded from lists of texts; each item must be a single text here."
        )
    return encoded


def _encoded_before(items: object) -> Side | None:
    if not isinstance(items, EncodedTexts):
        return None
    return Side((), items.counts, items)


def collect_texts(texts: Iterable[Text], name: str) -> list[Text]:
    """Check that `texts` is an ordered iterable of texts, and list them.

    `name` is its name in messages.
    """
    return [
        check_text(text, f"{name}[{position}]")
        for position, text in enumerate(check_many(texts, name))
    ]


def check_text(text: object, name: str) -> Text:
    """Return a text; raise an InputTypeError if it is something else."""
    if type(text) is str or isinstance(text, TextInContext):
        return text
    return check_string(text, name)


def collect_items(items: Refs, name: str) -> Side:
    """Check items of one text or several; `name` is their name in messages."""
    encoded = _encoded_before(items)
    if encoded is not None:
        return encoded
    return _side_of(list(_check_items(cast(Any, items), name)))


def read_items(items: Refs, name: str) -> Iterator[Side]:
    """Check items as `collect_items` does, and yield them a few at a time."""
    encoded = _encoded_before(items)
    if encoded is not None:
        yield from slices_of(encoded)
        return
    checked = _check_items(cast(Any, items), name)
    yield from map(_side_of, _few_at_a_time(checked, _num_characters))


def _check_items(items: Iterable[Reference], name: str) -> Iterator[list[Text]]:
    for position, item in enumerate(check_many(items, name)):
        yield _check_item(item, f"{name}[{position}]")


def _check_item(item: Reference, name: str) -> list[Text]:
    if isinstance(item, str | TextInContext):
        return [check_text(item, name)]
    texts = collect_texts(item, name)
    if not texts:
        raise InputError(f"{name} is empty: every candidate needs at least one reference.")
    return texts


def _side_of(items: Sequence[Sequence[Text]]) -> Side:
    return Side([text for texts in items for text in texts], lengths_of(items))


def read_pairs(pairs: Iterable[Pair]) -> Iterator[Pairs]:
    """Check pairs, and yield up to `PAIRS_AT_ONCE` of them at a time.

    Each is a candidate and its reference or references. If a pair is invalid, or `pairs` raises an
    error, the pairs before it come first.
    """
    checked = (
        _check_pair(pair, f"pairs[{position}]")
        for position, pair in enumerate(check_many(pairs, "pairs"))
    )
    for pairs_read in _few_at_a_time(checked, lambda pair: len(pair[0]) + _num_characters(pair[1])):
        candidates, references = zip(*pairs_read, strict=True)
        yield Pairs(singles(candidates), _side_of(references))


def _few_at_a_time(
    items: Iterable[Item], num_characters: Callable[[Item], int]
) -> Iterator[list[Item]]:
    """Yield items, up to `PAIRS_AT_ONCE` at a time.

    If reading one raises an error, those before it come first.
    """
    waiting: list[Item] = []
    size = 0
    try:
        for item in items:
            waiting.append(item)
            size += num_characters(item)
            if len(waiting) == PAIRS_AT_ONCE or size >= MAX_CHARACTERS:
                yield waiting
                waiting = []
                size = 0
    except Exception as error:
        if waiting and not is_interrupt(error):
            yield waiting
        raise
    if waiting:
        yield waiting


def _num_characters(texts: Sequence[Text]) -> int:
    return sum(map(len, texts))


def _check_pair(pair: Any, name: str) -> tuple[Text, list[Text]]:
    if isinstance(pair, str | bytes) or not isinstance(pair, Sequence) or len(pair) != 2:
        more = ""
        if isinstance(pair, tuple | list) and len(pair) in (3, 4):
            more = " A context belongs to its text: TextInContext(text, context)."
        raise InputTypeError(
            f"{name} is {describe(pair)}; expected a candidate and its reference or "
            f"references.{more}"
        )
    return check_text(pair[0], f"{name}[0]"), _check_item(pair[1], f"{name}[1]")


def check_positive(name: str, number: int | None) -> None:
    """Raise an InputError unless the number is 1 or more, or None.

    Raises an InputTypeError if it is no integer.
    """
    if number is None:
        return
    if isinstance(number, bool) or not isinstance(number, Integral):
        raise InputTypeError(f"{name} is {describe(number)}; expected an integer of 1 or more.")
    if number < 1:
        raise InputError(f"{name} is {number}; expected 1 or more.")
