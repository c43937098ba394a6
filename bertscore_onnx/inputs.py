"""Takes what the caller hands in, checks it, and lays it out as pairs of one candidate and one reference."""

import os
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import InputError, InputTypeError

Reference = str | Iterable[str]


@dataclass(frozen=True, slots=True)
class Pairs:
    """Candidates and references, one of each a pair, the pairs of one candidate side by side."""

    candidates: list[str]
    """The candidate of each pair; a candidate with three references stands here three times."""

    references: list[str]
    """The reference of each pair."""

    counts: NDArray[np.int64]
    """How many references each candidate has, (candidates,)."""


def collect_pairs(cands: Iterable[str], refs: Iterable[Reference]) -> Pairs:
    """Check candidates and references and pair them up.

    Args:
        cands: strings, from any iterable.
        refs: for each candidate a string or a non-empty iterable of strings.

    Raises:
        InputTypeError: something is not a string, or a single string or path stands where many texts are expected.
        InputError: the numbers differ, or a candidate has no reference.
    """
    candidates = collect_texts(cands, "cands")
    groups = [
        [reference] if isinstance(reference, str) else collect_texts(reference, f"refs[{position}]")
        for position, reference in enumerate(_many(refs, "refs"))
    ]
    if len(candidates) != len(groups):
        raise InputError(
            f"There are {len(candidates)} candidates and references for {len(groups)}: every candidate needs one "
            "reference, or one list of references."
        )
    counts = np.array([len(group) for group in groups], dtype=np.int64)
    if not counts.all():
        raise InputError(f"refs[{counts.argmin()}] is empty: every candidate needs at least one reference.")
    return Pairs(
        [candidate for candidate, group in zip(candidates, groups, strict=True) for _ in group],
        [reference for group in groups for reference in group],
        counts,
    )


def collect_texts(texts: Iterable[str], name: str) -> list[str]:
    """Check that `texts` yields strings only, and list them.

    Args:
        texts: strings, from any iterable that has an order.
        name: what to call them in a message.

    Raises:
        InputTypeError: `texts` is one string or path, has no order, or yields something other than strings.
    """
    collected = list(_many(texts, name))
    for position, text in enumerate(collected):
        if not isinstance(text, str):
            raise InputTypeError(f"{name}[{position}] is {_describe(text)}; expected a string.{_hint(text)}")
    return [str(text) for text in collected]


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
