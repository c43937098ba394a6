"""Reads the texts of pairs in batches of rows."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bertscore_onnx.errors import Argument, InputError
from bertscore_onnx.tables.columns import (
    ColumnName,
    TextColumn,
    column_names,
    find_columns,
    is_null,
    texts_of_row,
)
from bertscore_onnx.tables.score_columns import Errors, check_errors

if TYPE_CHECKING:
    from bertscore_onnx.text.texts import Text  # costs start-up time, and only rows need it

TextsOfRow = tuple["Text", Sequence["Text"]]
"""A candidate and its references, in their context if the row has one."""


@dataclass(frozen=True, slots=True)
class TextsOfRows:
    """The texts in the rows of a batch."""

    pairs: list[TextsOfRow]
    """The texts of each row that can be scored."""

    reasons: list[str | None]
    """For each row the reason why it cannot be scored, without its number; or None, (rows,)."""

    unscored_references: "list[Text]"
    """The references in the rows that cannot be scored, where they are texts."""

    num_columns: int
    """The number of columns of references."""


@dataclass(frozen=True, slots=True)
class TextColumns:
    """The columns of the texts of pairs."""

    candidate: TextColumn
    references: Sequence[TextColumn]
    context: TextColumn | None = None

    def __iter__(self) -> Iterator[TextColumn]:
        """Yield the columns, that of contexts last."""
        yield self.candidate
        yield from self.references
        if self.context is not None:
            yield self.context

    def find(self, names: Sequence[str], title: str, advice: str = "") -> "TextColumns":
        """Return them as these columns of a table have them.

        Raise InputError, with the title, if one is missing.
        """
        candidate, *references = find_columns(self, names, title, advice)
        context = None
        if self.context is not None:
            context = references.pop()
        return TextColumns(candidate, references, context)


def text_columns(
    candidate: ColumnName | None,
    reference: ColumnName | Sequence[ColumnName] | None,
    context: ColumnName | None = None,
    argument: Callable[[str], str | Argument] = "`{}`".format,
) -> TextColumns:
    """Return the columns of texts that a caller names; None for the usual names.

    `argument` returns the option, or argument, that names the column of a role.

    InputTypeError is raised for a name that is none.
    """
    of_candidate = TextColumn((), argument("candidate"), role="candidate")
    if candidate is not None:
        names = column_names([candidate], "candidate")
        of_candidate = TextColumn(names, argument("candidate"))
    of_reference = TextColumn((), argument("reference"), may_hold_lists=True, role="reference")
    references = [of_reference]
    if reference is not None:
        names = column_names(reference, "reference")
        references = [replace(of_reference, names=(name,), role="") for name in names]
    of_context = None
    if context is not None:
        names = column_names([context], "context")
        of_context = TextColumn(names, argument("context"), may_hold_lists=True, may_be_empty=True)
    return TextColumns(of_candidate, references, of_context)


class RowReader:
    """Reads the texts of one batch after the other, and numbers the rows."""

    def __init__(self, errors: Errors, title: str = "", first: int = 0) -> None:
        """Call rows by the title in messages, and number them from `first` on.

        Rows of files count from 1, as lines do, and others from 0.
        """
        check_errors(errors)
        self._errors = errors
        self._title = title
        self._number = first

    def read(
        self, columns: TextColumns, values_of: Callable[[str], Sequence[object]]
    ) -> TextsOfRows:
        """Return the texts of the next rows.

        The columns were found, and `values_of` returns the values of one by its name, (rows,).
        """
        from bertscore_onnx.text.texts import in_context

        values_of_columns = [values_of(column.name) for column in columns]
        sizes = list(map(len, values_of_columns))
        if len(set(sizes)) > 1:
            counts = ", ".join(map(str, sizes))
            raise InputError(
                f"The columns of texts have different numbers of values: {counts}. Give each row "
                "a value."
            )
        rows = TextsOfRows([], [], [], len(columns.references))
        for candidate, *values in zip(*values_of_columns, strict=True):
            place = _place(self._title, self._number)
            self._number += 1
            context = None
            try:
                if columns.context is not None:
                    context_value = values.pop()
                    if not is_null(context_value):
                        context = columns.context.texts_of(context_value, place)
                candidates = columns.candidate.texts_of(candidate, place)
                texts = texts_of_row(columns.references, values, place)
            except InputError as error:
                if self._errors == "raise":
                    raise
                rows.reasons.append(str(error).removeprefix(f"{place}: "))
                # Statistics of all references, such as idf, count those that are texts.
                valid = valid_texts(columns.references, values, place)
                rows.unscored_references.extend(in_context(valid, context, "context"))
            else:
                text, *references = in_context([*candidates, *texts], context, "context")
                rows.pairs.append((text, references))
                rows.reasons.append(None)
        return rows

    def references(
        self, columns: Sequence[TextColumn], values_of: Callable[[str], Sequence[object]]
    ) -> Iterator[list[str]]:
        """Yield the references of the next rows; those that are no texts are left out, or raise."""
        read = valid_texts
        if self._errors == "raise":
            read = texts_of_row
        values_of_columns = [values_of(column.name) for column in columns]
        for values in zip(*values_of_columns, strict=True):
            place = _place(self._title, self._number)
            self._number += 1
            texts = read(columns, values, place)
            if texts:
                yield texts


def valid_texts(columns: Iterable[TextColumn], values: Iterable[object], place: str) -> list[str]:
    """Return the texts in some columns of a row where they are texts."""
    valid: list[str] = []
    for column, value in zip(columns, values, strict=True):
        with suppress(InputError):
            valid += column.texts_of(value, place)
    return valid


def _place(title: str, number: int) -> str:
    return f"{title}, row {number}" if title else f"row {number}"
