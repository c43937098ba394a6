"""The texts of a caller, strings or texts in a context, and their checks."""

import os
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from bertscore_onnx.errors import InputTypeError

Context = str | Sequence[str] | None
"""The context of a text: a text, or several sentences; None for none."""


@dataclass(frozen=True, slots=True)
class TextInContext:
    """A text and the sentences before it.

    These are encoded with it and, by default, not matched. Scorers accept it in place of a string;
    they have a setting for the role of its context.

    Raises:
        InputTypeError: the text is not a string, or the context is neither a string nor a list of
            strings.
    """

    text: str
    """The text to score."""

    context: Sequence[str]
    """A string, or several; stored as a tuple without blank ones. If none is left, the text is
    scored without context, and a warning says so."""

    def __post_init__(self) -> None:
        """Check the strings, and strip the sentences of the context."""
        sentences = _sentences(self.context, "context")
        object.__setattr__(self, "text", check_string(self.text, "text"))
        stripped = [sentence.strip() for sentence in sentences]
        object.__setattr__(self, "context", tuple(filter(None, stripped)))

    def __len__(self) -> int:
        """Return the number of characters."""
        return sum(map(len, self.context)) + len(self.text)


Text = str | TextInContext

Reference = Text | Iterable[Text]
"""A reference, or several, where the best counts."""


def bare_texts(texts: Iterable[Text]) -> list[str]:
    """Return texts without their contexts."""
    return [text if isinstance(text, str) else text.text for text in texts]


def are_in_context(texts: Iterable[Text]) -> bool:
    """Return whether some of the texts are in a context that is not empty."""
    return any(isinstance(text, TextInContext) and text.context for text in texts)


def in_context(texts: Iterable[Text], context: Context, name: str) -> list[Text]:
    """Put texts into a context, unless it is None.

    `name` is the name of the context in messages.
    """
    if context is None:
        return list(texts)
    sentences = _sentences(context, name)
    return [TextInContext(text, sentences) for text in bare_texts(texts)]


def _sentences(context: str | Iterable[str], name: str) -> list[str]:
    """Return the sentences of a context, which may be one text."""
    if isinstance(context, str):
        return [context]
    return collect_strings(context, name)


def collect_strings(texts: Iterable[str], name: str) -> list[str]:
    """Check that `texts` is an ordered iterable of strings, and list them.

    `name` is its name in messages.
    """
    strings = []
    for position, text in enumerate(check_many(texts, name)):
        strings.append(check_string(text, f"{name}[{position}]"))
    return strings


def check_string(text: object, name: str) -> str:
    """Return a text as a plain `str`.

    Raise an InputTypeError if it is not a string.
    """
    if not isinstance(text, str):
        raise InputTypeError(f"{name} is {describe(text)}; expected a string.{_hint(text)}")
    # Of a subclass too: scoring compares texts without any code of the caller.
    return str.__str__(text)


def check_many(values: Iterable[Any], name: str) -> Iterable[Any]:
    """Return an ordered iterable.

    Raise an InputTypeError for anything else, including a single text or a table.
    """
    if _has_columns(values):
        raise InputTypeError(
            f"{name} is {type(values).__name__} with columns; expected a list of strings. Give "
            'one column, such as frame["candidate"], or use `score_frame`.'
        )
    is_single = isinstance(values, str | bytes | os.PathLike) or getattr(values, "ndim", 1) == 0
    if is_single or isinstance(values, Set) or not isinstance(values, Iterable):
        raise InputTypeError(
            f"{name} is {describe(values)}; expected a list of strings.{_hint(values)}"
        )
    return values


def _has_columns(values: object) -> bool:
    """Return whether this is a data frame, a table, a dataset or a mapping.

    Most of them iterate over the names of columns.
    """
    if isinstance(values, Mapping):
        return True
    kind = type(values)
    return hasattr(kind, "columns") or hasattr(kind, "column_names")


def describe(value: object) -> str:
    """Return the type of a value, and the beginning of its representation."""
    text = repr(value)
    if len(text) > 60:
        text = f"{text[:57]}..."
    return f"{type(value).__name__} {text}"


def _hint(value: object) -> str:
    if isinstance(value, os.PathLike) or (isinstance(value, str) and os.path.isfile(value)):
        return (
            " It names a file: read its lines first, or use `bertscore-onnx score -c FILE -r FILE`."
        )
    if isinstance(value, str):
        return " Put a single text into a list."
    if isinstance(value, bytes):
        return " Decode it first."
    if value is None or isinstance(value, float):
        return " Drop missing texts, or make them empty strings."
    return ""
