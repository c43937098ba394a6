"""Checks the texts of a caller, pairs candidates with their references."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from numbers import Integral
from typing import Any

import numpy as np

from bertscore_onnx.errors import InputError, InputTypeError
from bertscore_onnx.matching.tokens import EncodedTexts
from bertscore_onnx.scoring.chunks import Pairs, Side, Texts, few_at_a_time, singles, slices_of
from bertscore_onnx.text.texts import (
    Context,
    Reference,
    Text,
    TextInContext,
    check_many,
    check_text,
    collect_contexts,
    collect_texts,
    describe,
    in_context,
)

Pair = tuple[Text, Reference]
"""A candidate, and its reference or references."""


def collect_pairs(
    cands: Iterable[Text] | EncodedTexts,
    refs: Iterable[Reference] | EncodedTexts,
    contexts: Iterable[Context] | None = None,
    ref_contexts: Iterable[Context] | None = None,
) -> Pairs:
    """Check candidates and references, encoded or not, pair them, and put them into their contexts, if there are any.

    Raises:
        InputTypeError: something is not a text, or a single text or path is given instead of many texts.
        InputError: the numbers differ, a candidate has no reference, an encoded item of candidates is a list, or there
            are contexts of the references alone, or of texts that were encoded before.
    """
    candidates = collect_single(cands, "cands")
    references = collect_items(refs, "refs")
    if len(candidates) != len(references):
        raise InputError(
            f"There are {len(candidates)} candidates and references for {len(references)}: every candidate needs one "
            "reference, or one list of references."
        )
    if contexts is None:
        if ref_contexts is not None:
            raise InputError("ref_contexts are given without contexts. Give the contexts of the candidates too.")
        return Pairs(candidates, references)
    of_candidates = collect_contexts(contexts, "contexts", len(candidates))
    of_references = of_candidates
    if ref_contexts is not None:
        of_references = collect_contexts(ref_contexts, "ref_contexts", len(candidates))
    return Pairs(
        _in_contexts(candidates, of_candidates, "contexts"), _in_contexts(references, of_references, "ref_contexts")
    )


def _in_contexts(side: Side, contexts: Sequence[Context], name: str) -> Texts:
    if isinstance(side, EncodedTexts):
        raise InputError("Texts that were encoded before have no context. Give them as strings.")
    texts = iter(side.texts)
    found: list[Text] = []
    for position, (context, count) in enumerate(zip(contexts, side.counts.tolist(), strict=True)):
        found += in_context(islice(texts, count), context, f"{name}[{position}]")
    return Texts(found, side.counts)


def collect_single(texts: Iterable[Text] | EncodedTexts, name: str) -> Side:
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
    yield from map(_texts_of, few_at_a_time(_check_items(items, name), _num_characters))


def _check_items(items: Iterable[Reference], name: str) -> Iterator[list[Text]]:
    for position, item in enumerate(check_many(items, name)):
        yield _check_item(item, f"{name}[{position}]")


def _check_item(item: Reference, name: str) -> list[Text]:
    texts = [item] if isinstance(item, str | TextInContext) else collect_texts(item, name)
    if not texts:
        raise InputError(f"{name} is empty: every candidate needs at least one reference.")
    return texts


def _texts_of(items: Sequence[Sequence[Text]]) -> Texts:
    counts = np.array([len(texts) for texts in items], dtype=np.int64)
    return Texts([text for texts in items for text in texts], counts)


def read_pairs(pairs: Iterable[Pair]) -> Iterator[Pairs]:
    """Check pairs of a candidate and one or several references, and yield up to `PAIRS_AT_ONCE` of them at a time.

    If a pair is invalid, or `pairs` raises an error, the pairs before it come first.
    """
    checked = (_check_pair(pair, f"pairs[{position}]") for position, pair in enumerate(check_many(pairs, "pairs")))
    for some in few_at_a_time(checked, lambda pair: len(pair[0]) + _num_characters(pair[1])):
        candidates, references = zip(*some, strict=True)
        yield Pairs(singles(candidates), _texts_of(references))


def _num_characters(texts: Sequence[Text]) -> int:
    return sum(map(len, texts))


def _check_pair(pair: Any, name: str) -> tuple[Text, list[Text]]:
    if isinstance(pair, str | bytes) or not isinstance(pair, Sequence) or len(pair) != 2:
        more = ""
        if isinstance(pair, tuple | list) and len(pair) in (3, 4):
            more = " A context belongs into its text: TextInContext(text, context)."
        raise InputTypeError(f"{name} is {describe(pair)}; expected a candidate and its reference or references.{more}")
    return check_text(pair[0], f"{name}[0]"), _check_item(pair[1], f"{name}[1]")


def check_positive(name: str, number: int | None) -> None:
    """Raise an InputError unless the number is None or an integer of 1 or more."""
    if number is None:
        return
    if isinstance(number, bool) or not isinstance(number, Integral):
        raise InputTypeError(f"{name} is {describe(number)}; expected an integer of 1 or more.")
    if number < 1:
        raise InputError(f"{name} is {number}; expected 1 or more.")
