"""Checks the texts of a caller, pairs candidates with their references, and counts texts to warn of."""

import os
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import astuple, dataclass, field, replace
from itertools import islice
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.encoding.embeddings import EncodedTexts
from bertscore_onnx.errors import InputError, InputTypeError

Reference = str | Iterable[str]

PAIRS_AT_ONCE = 64
"""The candidates of a slice: pairs that are read, and handed on, together."""

MAX_CHARACTERS = 16_000_000
"""About the most characters of a slice, or of a chunk: far more than any has whose texts fit into a model."""


@dataclass(frozen=True, slots=True)
class TextInContext:
    """A text and its context, which ends with the separator."""

    text: str
    before: str
    """Empty for a context without text."""

    def __len__(self) -> int:
        """Return the number of characters."""
        return len(self.before) + len(self.text)


Text = str | TextInContext


def bare_texts(texts: Iterable[Text]) -> list[str]:
    """Return texts without their contexts."""
    return [text if isinstance(text, str) else text.text for text in texts]


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """Items of one text each, or of several."""

    texts: Sequence[Text]
    """The texts of all items, those of an item side by side."""

    counts: NDArray[np.int64]
    """The number of texts of each item, (items,)."""

    def __len__(self) -> int:
        """Return the number of items."""
        return len(self.counts)

    @property
    def first_texts(self) -> Iterator[Text]:
        """The first text of each item."""
        return (self.texts[start] for start in (np.cumsum(self.counts) - self.counts).tolist())

    def part(self, texts: slice, counts: NDArray[np.int64]) -> "Texts":
        """Return some of the texts, with their number in each item."""
        return Texts(self.texts[texts], counts)


def singles(texts: Sequence[Text]) -> Texts:
    """Return items of one text each."""
    return Texts(list(texts), np.ones(len(texts), dtype=np.int64))


Side = Texts | EncodedTexts
"""All candidates, or all references."""


def slices_of(side: Side, size: int | None = None) -> Iterator[Side]:
    """Yield the items a few at a time, by default `PAIRS_AT_ONCE`."""
    start, size = 0, size or PAIRS_AT_ONCE
    for item in range(0, len(side), size):
        counts = side.counts[item : item + size]
        stop = start + int(counts.sum())
        yield side.part(slice(start, stop), counts)
        start = stop


@dataclass(frozen=True, slots=True)
class Pairs:
    """Candidates, and as many items of one or more references."""

    candidates: Side
    references: Side

    is_continued: bool = False
    """Whether the next pairs begin with further references of the last candidate."""

    token_ids: Mapping[Text, NDArray[np.int64]] | None = None
    """The ids of every text, (tokens,); None before they are tokenised."""

    num_context: Mapping[Text, int] = field(default_factory=dict)
    """The tokens of the context in the ids of each text that has one."""

    truncated: Set[Text] = frozenset()
    """The texts whose ids lack their end, since they are longer than the model's maximum."""

    @property
    def texts(self) -> list[Text]:
        """The texts to encode."""
        sides = (self.candidates, self.references)
        return [text for side in sides if isinstance(side, Texts) for text in side.texts]

    @property
    def num_characters(self) -> int:
        """The length of all texts to encode."""
        return sum(map(len, self.texts))

    @property
    def num_empty_contexts(self) -> int:
        """The number of candidates with an empty context, before them or before their references.

        A candidate whose references continue in the next pairs is counted there.
        """
        if self.is_continued or TextInContext not in set(map(type, self.texts)):
            return 0
        return len(
            {
                item
                for side in (self.candidates, self.references)
                if isinstance(side, Texts)
                for item, text in enumerate(side.first_texts)
                if isinstance(text, TextInContext) and not text.before
            }
        )

    @property
    def num_tokens(self) -> NDArray[np.int64]:
        """The tokens of each candidate and its references, (candidates,); 0 before they are tokenised."""
        sides = (self.candidates, self.references)
        if self.token_ids is None or not len(self.candidates):
            return np.zeros(len(self.candidates), dtype=np.int64)
        lengths = ([len(self.token_ids[text]) for text in side.texts] for side in sides if isinstance(side, Texts))
        candidates, references = map(np.array, lengths)
        counts = self.references.counts
        return candidates + np.add.reduceat(references, np.cumsum(counts) - counts)

    def slices(self, size: int | None = None) -> Iterator["Pairs"]:
        """Yield the pairs a few at a time, by default `PAIRS_AT_ONCE`."""
        if len(self.candidates) <= (size or PAIRS_AT_ONCE):
            yield self
        else:
            for candidates, references in zip(
                slices_of(self.candidates, size), slices_of(self.references, size), strict=True
            ):
                yield replace(self, candidates=candidates, references=references)

    def split(self, max_characters: int) -> Iterator["Pairs"]:
        """Yield the pairs in slices of at most this many characters, or of one candidate and one reference."""
        number = int(self.references.counts.sum())
        if self.num_characters <= max_characters or number == 1:
            yield self
        elif len(self.candidates) > 1:
            for half in self.slices(-(-len(self.candidates) // 2)):
                yield from half.split(max_characters)
        else:
            middle = number // 2
            for texts in (slice(middle), slice(middle, number)):
                references = self.references.part(texts, np.array([len(range(number)[texts])]))
                is_continued = self.is_continued or texts.stop < number
                yield from replace(self, references=references, is_continued=is_continued).split(max_characters)


def collect_pairs(cands: Iterable[str] | EncodedTexts, refs: Iterable[Reference] | EncodedTexts) -> Pairs:
    """Check candidates and references, encoded or not, and pair them.

    Raises:
        InputTypeError: something is not a string, or a single string or path is given instead of many texts.
        InputError: the numbers differ, a candidate has no reference, or an encoded item of candidates is a list.
    """
    candidates = collect_single(cands, "cands")
    references = collect_items(refs, "refs")
    if len(candidates) != len(references):
        raise InputError(
            f"There are {len(candidates)} candidates and references for {len(references)}: every candidate needs one "
            "reference, or one list of references."
        )
    return Pairs(candidates, references)


Context = str | Sequence[str] | None
"""What stands before a text: a text, or several sentences; None for nothing."""

Pair = tuple[str, Reference] | tuple[str, Reference, Context] | tuple[str, Reference, Context, Context]
"""A candidate, its reference or references, and perhaps their context, or one for each of the two sides."""


def add_contexts(
    pairs: Pairs, contexts: Iterable[Context], ref_contexts: Iterable[Context] | None, separator: str
) -> Pairs:
    """Put a context before each candidate, and before all its references.

    Raises:
        InputTypeError: a context is not a text, nor a list of sentences.
        InputError: there are more or fewer contexts than candidates, or a side was encoded before.
    """
    number = len(pairs.candidates)
    of_candidates = _collect_contexts(contexts, "contexts", number)
    of_references = of_candidates
    if ref_contexts is not None:
        of_references = _collect_contexts(ref_contexts, "ref_contexts", number)
    if not (isinstance(pairs.candidates, Texts) and isinstance(pairs.references, Texts)):
        raise InputError("Texts that were encoded before have no context. Give them as strings.")
    return replace(
        pairs,
        candidates=_in_contexts(pairs.candidates, of_candidates, "contexts", separator),
        references=_in_contexts(pairs.references, of_references, "ref_contexts", separator),
    )


def _collect_contexts(contexts: Iterable[Context], name: str, number: int) -> list[Context]:
    found = list(_many(contexts, name))
    if len(found) != number:
        raise InputError(f"There are {len(found)} {name} for {number} candidates; expected one for each.")
    return found


def _in_contexts(side: Texts, contexts: Sequence[Context], name: str, separator: str) -> Texts:
    texts = iter(bare_texts(side.texts))
    found: list[Text] = []
    for position, (context, count) in enumerate(zip(contexts, side.counts.tolist(), strict=True)):
        found += in_context(islice(texts, count), context, f"{name}[{position}]", separator)
    return Texts(found, side.counts)


def in_context(texts: Iterable[str], context: Context, name: str, separator: str) -> list[Text]:
    """Put a context before texts, with the separator after each of its sentences; messages call it by the name."""
    if context is None:
        return [*texts]
    sentences = [context] if isinstance(context, str) else collect_texts(context, name)
    before = "".join(stripped + separator for text in sentences if (stripped := text.strip()))
    return [TextInContext(text, before) for text in texts]


def collect_single(texts: Iterable[str] | EncodedTexts, name: str) -> Side:
    """Check items that are single texts."""
    if not isinstance(texts, EncodedTexts):
        return singles(collect_texts(texts, name))
    if (texts.counts != 1).any():
        raise InputError(f"{name} was encoded from lists of texts; each item must be a single text here.")
    return texts


def collect_items(items: Iterable[Reference] | EncodedTexts, name: str) -> Side:
    """Check items of one text or several; messages call them by the name."""
    return items if isinstance(items, EncodedTexts) else _texts_of(list(_check_items(items, name)))


def read_items(items: Iterable[Reference] | EncodedTexts, name: str) -> Iterator[Side]:
    """Check items as `collect_items` does, and yield them a few at a time."""
    if isinstance(items, EncodedTexts):
        yield from slices_of(items)
        return
    waiting: list[list[str]] = []
    num_characters = 0
    for item in _check_items(items, name):
        waiting.append(item)
        num_characters += sum(map(len, item))
        if len(waiting) == PAIRS_AT_ONCE or num_characters >= MAX_CHARACTERS:
            yield _texts_of(waiting)
            waiting, num_characters = [], 0
    if waiting:
        yield _texts_of(waiting)


def _check_items(items: Iterable[Reference], name: str) -> Iterator[list[str]]:
    for position, item in enumerate(_many(items, name)):
        yield _check_item(item, f"{name}[{position}]")


def _check_item(item: Reference, name: str) -> list[str]:
    texts = [item] if isinstance(item, str) else collect_texts(item, name)
    if not texts:
        raise InputError(f"{name} is empty: every candidate needs at least one reference.")
    return texts


def _texts_of(items: Sequence[Sequence[Text]]) -> Texts:
    counts = np.array([len(texts) for texts in items], dtype=np.int64)
    return Texts([text for texts in items for text in texts], counts)


def read_pairs(pairs: Iterable[Pair], separator: str | None = None) -> Iterator[Pairs]:
    """Check pairs of a candidate and one or several references, and yield up to `PAIRS_AT_ONCE` of them at a time.

    With a separator, each pair has a context, or one for each side. If a pair is invalid, or `pairs` raises an error,
    the pairs before it come first.
    """
    waiting: list[tuple[Text, list[Text]]] = []
    num_characters = 0
    try:
        for position, pair in enumerate(_many(pairs, "pairs")):
            candidate, references = _check_pair(pair, f"pairs[{position}]", separator)
            waiting.append((candidate, references))
            num_characters += len(candidate) + sum(map(len, references))
            if len(waiting) == PAIRS_AT_ONCE or num_characters >= MAX_CHARACTERS:
                yield _joined(waiting)
                waiting, num_characters = [], 0
    except Exception:
        if waiting:
            yield _joined(waiting)
        raise
    if waiting:
        yield _joined(waiting)


def _check_pair(pair: Any, name: str, separator: str | None) -> tuple[Text, list[Text]]:
    lengths = (2,) if separator is None else (3, 4)
    if isinstance(pair, str | bytes) or not isinstance(pair, Sequence) or len(pair) not in lengths:
        more = "" if separator is None else ", and their context"
        raise InputTypeError(
            f"{name} is {_describe(pair)}; expected a candidate and its reference or references{more}."
        )
    references = _check_item(pair[1], f"{name}[1]")
    candidate = _checked(pair[0], f"{name}[0]")
    if separator is None:
        return candidate, [*references]
    [text] = in_context([candidate], pair[2], f"{name}[2]", separator)
    return text, in_context(references, pair[-1], f"{name}[{len(pair) - 1}]", separator)


def _joined(pairs: Sequence[tuple[Text, list[Text]]]) -> Pairs:
    return Pairs(
        _texts_of([[candidate] for candidate, _ in pairs]),
        _texts_of([references for _, references in pairs]),
    )


def collect_texts(texts: Iterable[str], name: str) -> list[str]:
    """Check that `texts` is an ordered iterable of strings, and list them; messages call it by the name."""
    return [_checked(text, f"{name}[{position}]") for position, text in enumerate(_many(texts, name))]


def _checked(text: object, name: str) -> str:
    if not isinstance(text, str):
        raise InputTypeError(f"{name} is {_describe(text)}; expected a string.{_hint(text)}")
    return str(text)


def _many(values: Iterable[Any], name: str) -> Iterable[Any]:
    if isinstance(values, str | bytes | os.PathLike | Mapping | Set) or not isinstance(values, Iterable):
        raise InputTypeError(f"{name} is {_describe(values)}; expected a list of strings.{_hint(values)}")
    return values


def _describe(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"


def _hint(value: object) -> str:
    if isinstance(value, os.PathLike) or (isinstance(value, str) and os.path.isfile(value)):
        return " It names a file: read its lines first, or use `bertscore-onnx score -c FILE -r FILE`."
    if isinstance(value, str):
        return " Put a single text into a list."
    if isinstance(value, bytes):
        return " Decode it first."
    if value is None or isinstance(value, float):
        return " Drop missing texts, or make them empty strings."
    return ""


def check_positive(name: str, number: int | None) -> None:
    """Raise an InputError unless the number is None or an integer of 1 or more."""
    if number is None:
        return
    if isinstance(number, bool) or not isinstance(number, Integral):
        raise InputTypeError(f"{name} is {_describe(number)}; expected an integer of 1 or more.")
    if number < 1:
        raise InputError(f"{name} is {number}; expected 1 or more.")


@dataclass(frozen=True, slots=True)
class TextStats:
    """Counts of texts to warn of, over a whole call so that there is one warning of each kind; they add up with `+`."""

    empty: int = 0
    """Pairs with an empty side."""

    zero_weight: int = 0
    """Pairs with a side that has tokens, all of weight 0."""

    truncated: int = 0
    """Texts that were longer than the model's maximum."""

    excluded: int = 0
    """Pairs with a side that has tokens, none of which is matched."""

    no_context: int = 0
    """Empty contexts."""

    def __add__(self, other: "TextStats") -> "TextStats":
        """Add up the counts."""
        return TextStats(*(one + two for one, two in zip(astuple(self), astuple(other), strict=True)))

    def messages(self, max_length: int) -> Iterator[str]:
        """Yield a sentence for each count that is not 0; `max_length` is the model's maximum, in tokens."""
        if self.empty:
            yield f"{_pairs_score(self.empty)} 0 because a side is empty."
        if self.zero_weight:
            yield f"{_pairs_score(self.zero_weight)} 0 because every token of a side weighs 0."
        if self.excluded:
            yield f"{_pairs_score(self.excluded)} 0 because the matching excludes every token of a side."
        if self.no_context:
            contexts = (
                "1 context is empty; its text is"
                if self.no_context == 1
                else (f"{self.no_context} contexts are empty; their texts are")
            )
            yield f"{contexts} scored without one."
        if self.truncated:
            texts = "1 text is" if self.truncated == 1 else f"{self.truncated} texts are"
            yield (
                f"{texts} longer than {max_length} tokens and truncated, as bert-score does silently. What is beyond "
                'does not count; with long_text="window" it does, unless tokens are matched optimally.'
            )

    def warn(self, max_length: int, stacklevel: int) -> None:
        """Warn of each count that is not 0; a stacklevel of 1 names the line of the caller, 2 that of its caller."""
        for message in self.messages(max_length):
            warnings.warn(message, UserWarning, stacklevel=stacklevel + 1)


def _pairs_score(count: int) -> str:
    return "1 pair scores" if count == 1 else f"{count} pairs score"
