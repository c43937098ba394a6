"""The texts in the rows of batches, checked row by row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.columns import Column

Errors = Literal["raise", "null"]
"""What becomes of a row that cannot be scored: an error that names it, or nulls and a reason."""


def check_errors(errors: str) -> None:
    """Raise an InputError where this is no treatment of rows."""
    if errors not in get_args(Errors):
        raise InputError(f'errors is {errors!r}; expected "raise" or "null".')


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a batch."""

    pairs: list[tuple[str, list[str]]]
    """The candidate and the references of each row that can be scored."""

    reasons: list[str | None]
    """For each row why it cannot be scored, which does not say where it stands; or None, (rows,)."""


class RowReader:
    """Reads the rows of one batch after the other, and knows how many it has read."""

    def __init__(self, candidate: str, reference: str, errors: Errors, title: str = "", num_read: int = 0) -> None:
        """Take where the texts are.

        Args:
            candidate, reference: the names of the columns.
            errors: what becomes of a row that cannot be scored.
            title: what the rows are of, such as a file, for a message.
            num_read: how many rows stand before the first one that is to be read.

        Raises:
            InputError: there is no such treatment of rows.
        """
        check_errors(errors)
        self._candidate = Column((candidate,), "candidate")
        self._reference = Column((reference,), "reference", may_hold_lists=True)
        self._errors = errors
        self._title = title
        self._num_read = num_read

    def find(self, names: Sequence[str]) -> tuple[str, str]:
        """Return the names of the two columns among all that are there; an InputError where one is missing."""
        title = self._title or "The batch"
        return self._candidate.find(names, title), self._reference.find(names, title)

    def read(self, candidates: Sequence[object], references: Sequence[object]) -> Rows:
        """Check the next rows.

        Args:
            candidates, references: the values of the two columns, (rows,).

        Raises:
            InputError: a row cannot be scored, and is to be an error; it has its number, counted from 1.
        """
        rows = Rows([], [])
        for candidate, reference in zip(candidates, references, strict=True):
            self._num_read += 1
            place = f"{self._title}, row {self._num_read}" if self._title else f"row {self._num_read}"
            try:
                [text] = self._candidate.texts_of(candidate, self._candidate.names[0], place)
                texts = self._reference.texts_of(reference, self._reference.names[0], place)
            except InputError as error:
                if self._errors == "raise":
                    raise
                rows.reasons.append(str(error).removeprefix(f"{place}: "))
            else:
                rows.pairs.append((text, texts))
                rows.reasons.append(None)
        return rows
