"""Columns of tables.

`Column` finds a column of texts and checks its values, and `RowReader` reads the texts of rows.
Here are also the roles of columns, and the names of the columns of scores.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from math import isnan
from typing import TYPE_CHECKING, Literal, get_args

from bertscore_onnx.errors import (
    Argument,
    InputError,
    InputTypeError,
    either,
    listed,
    meant,
    shortened,
)
from bertscore_onnx.tables.roles import (
    ID_COLUMNS,
    USUAL_NAMES,
    first_usual,
    several_usual_names,
    usual_columns,
)

if TYPE_CHECKING:
    from bertscore_onnx.text.texts import Text  # costs start-up time, and only rows need it

SCORE_NAMES = ("precision", "recall", "f1")
"""The columns of scores, unless other names are chosen."""

UNKNOWN = "unknown"
"""The name of the column with the share of unknown tokens, beside the column of truncated texts."""

BEST = "best_reference"
"""The column with the position of the best reference."""

REASON = "error"
"""The column with the reason why a row has no scores, if rows may have none."""

ROLES_OF_FORMS: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "score": {
        "lines of text": (),
        "a table of candidates": ("candidate",),
        "a table of references": ("reference",),
        "a table of contexts": ("context",),
        "rows that are joined": ("segment",),
        "means alone": (),
        "scores of each pair": ("precision", "recall", "f1", "truncated"),
    },
    "show": {
        "two texts": (),
        "lines of text": (),
        "a table of candidates": ("candidate",),
        "a table of references": ("reference",),
        "rows that are joined": ("segment",),
    },
    "batch": {
        "tables": ("candidate", "reference", "context", "precision", "recall", "f1", "truncated")
    },
    "compare": {
        "these inputs": (
            "system",
            "candidate",
            "score",
            "metric",
            "reference",
            "segment",
            "document",
            "run",
        ),
    },
    "meta": {
        "an EvalSet": (),
        "rows of texts": ("candidate", "reference"),
        "a row for each output": (
            "segment",
            "document",
            "system",
            "lang_pair",
            "human",
            "annotator",
        ),
    },
    "tune-layers": {
        "a table": ("candidate", "reference", "human", "lang_pair", "segment", "document")
    },
    "count-documents": {"a table": ("reference",)},
}
"""By command and form of its inputs the roles of columns that are used; a named role without a use
is refused.
"""


def roles_of_command(command: str) -> tuple[str, ...]:
    """Return the roles that some form of the inputs of a command uses."""
    roles = chain.from_iterable(ROLES_OF_FORMS[command].values())
    return tuple(dict.fromkeys(roles))


def check_uses(
    named: Mapping[str, Sequence[str]], forms: Iterable[str], used: Collection[str]
) -> None:
    """Raise InputError for a named role that is not used.

    Args:
        named: the columns by role.
        forms: the forms of the inputs, for the message.
        used: the roles that these use.
    """
    for role, columns in named.items():
        if role in used:
            continue
        names = columns[0] if len(columns) == 1 else list(columns)
        advice = "Leave it out"
        if used:
            advice += f", or name one of {', '.join(dict.fromkeys(used))}"
        inputs = ", ".join(dict.fromkeys(forms))
        raise InputError(
            Argument("columns", {role: names}),
            f" has no effect on {inputs}. {advice}.",
        )


def check_forms(named: Mapping[str, Sequence[str]], command: str, forms: Sequence[str]) -> None:
    """Raise InputError for a named role that a command does not use.

    It counts what the command uses in inputs of these forms.
    """
    used = chain.from_iterable(ROLES_OF_FORMS[command][form] for form in forms)
    check_uses(named, forms, list(used))


def id_columns(
    names: Sequence[str],
    named: Sequence[str] = (),
    *,
    others: Collection[str] = (),
    title: str = "",
) -> tuple[str, ...]:
    """Return the columns that make up the ids of a table.

    None if it has none, or rows go by position.

    Args:
        names: the columns of the table.
        named: the columns that a caller names, of which the first that the table has counts; `a+b`
            is a key of two columns. Without any, those with the usual names count, in which
            case, blanks and byte order marks do not matter.
        others: columns with another role, which are no ids unless they are named.
        title: the table in the error if it has none of the named columns.

    Raises:
        InputError: the table has none of the columns that were named.
    """
    if tuple(named) == (NO_IDS,):
        return ()
    for key in named:
        columns = (key,) if key in names else tuple(key.split("+"))
        if all(column in names for column in columns):
            return columns
    if named:
        wanted = " or ".join(map(repr, named))
        known = listed(list(map(repr, names)))
        raise InputError(f"{title}: there is no column {wanted}, only {known}.")
    return first_usual(ID_COLUMNS, [name for name in names if name not in others])


def check_order_of_ids(ids: Iterable[tuple[str, str]], title: str, plain: str) -> None:
    """Raise InputError unless ids are in their natural order.

    Args:
        ids: the place of each row, and its id.
        title: the table with the ids.
        plain: the input without ids that is joined with it by position.
    """
    from bertscore_onnx.tables.table import natural_key  # costs start-up time

    earlier = ""
    for place, name in ids:
        if earlier and natural_key(name) < natural_key(earlier):
            raise InputError(
                f"{place}: segment {name!r} is not in the order of ids, and {plain} has no ids to "
                f"join by. Give that as a table with a column of ids, sort {title} by its ids, or "
                "join by position, ",
                Argument("columns", {"segment": NO_IDS}),
                ".",
            )
        earlier = name


NO_IDS = "none"
"""In place of the name of a column of ids: rows belong together by position."""

RENAME_SCORES = "give the scores other names, such as --columns f1=NAME"


def check_free(
    names: Iterable[str],
    added: Collection[str],
    place: str,
    remedy: tuple[str | Argument, ...] = (RENAME_SCORES,),
) -> None:
    """Raise InputError if a column already has the name of a new column.

    The remedy is what helps beside renaming it.
    """
    for name in names:
        if name not in added:
            continue
        # The column of the best reference has one name, whatever the scores are called.
        is_fixed = name == BEST and remedy == (RENAME_SCORES,)
        alternative = () if is_fixed else (", or ", *remedy)
        raise InputError(
            f"{place}: there is a column {name!r} already, and scores would go there. Rename it",
            *alternative,
            ".",
        )


def check_score_names(names: Sequence[str]) -> tuple[str, ...]:
    """Return the names of the columns of precision, recall and F1.

    Beside a fourth, of truncated texts, `UNKNOWN`.

    Raises an InputError unless they are three or four different ones.
    """
    if not _are_score_names(names):
        raise InputError(
            f"The columns of scores are called {names!r}; expected three different names, such as "
            f"p, r and f, or a fourth for whether a text was truncated, other than {BEST}, "
            f"{UNKNOWN} and {REASON}."
        )
    if len(names) > len(SCORE_NAMES):
        return (*names, UNKNOWN)
    return tuple(names)


def _are_score_names(names: object) -> bool:
    """Return whether these are three or four different names that are free."""
    if not isinstance(names, Sequence) or isinstance(names, str):
        return False
    if len(names) not in (3, 4) or not all(isinstance(name, str) for name in names):
        return False
    taken = ("", BEST, REASON, UNKNOWN)
    return len({*names, *taken}) == len(names) + len(taken)


class UnreadableRow(dict[str, object]):
    """A row of a file that cannot be read.

    It has no values, and the reason stands in the place of its texts.
    """

    def __init__(self, reason: str) -> None:
        """Give the reason, without the place of the row."""
        super().__init__()
        self.reason = reason


ColumnName = str | int
"""The name of a column; a number in a data frame without names."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of texts."""

    names: tuple[str, ...]
    """Its possible names. The first counts if a table has it; otherwise the table may have only one
    of them.
    """

    option: str | Argument
    """The option, or argument, that names it; empty if none does."""

    may_hold_lists: bool = False
    """Whether a value may be a list of texts, in formats that have lists."""

    may_be_empty: bool = False
    """Whether a value may have no text: an empty list, or null."""

    is_id: bool = False
    """Whether its values are ids: texts or whole numbers. A row may have none."""

    role: str = ""
    """The role by whose usual names it is found; empty if it has the names above."""

    @property
    def name(self) -> str:
        """The name of a column that was found."""
        return self.names[0]

    @property
    def usual_name(self) -> str:
        """The name of this column in a table without rows, which has no names."""
        return (self.names or USUAL_NAMES[self.role])[0]

    def find(self, available: Sequence[str], place: str, advice: str = "") -> str:
        """Return its name among the available columns.

        Raise InputError, with the place, if not exactly one has it.
        """
        return self.find_all(available, place, advice)[0].name

    def find_all(self, available: Sequence[str], place: str, advice: str = "") -> "list[Column]":
        """Return it as the available columns have it, each with one name.

        There are several only of numbered references, of which all but the first may be empty.

        Raise InputError, with the place, if no column has its name, or too many.
        """
        found = [name for name in self.names if name in available]
        if self.role:
            found = usual_columns(self.role, available, place, self.option)
        elif len(found) > 1:
            if found[0] != self.names[0]:
                raise several_usual_names(found, place, self.option)
            found = found[:1]
        if not found:
            raise self._not_found(available, place, advice)
        columns: list[Column] = []
        for name in found:
            number = available.count(name)
            if number > 1:
                raise InputError(f"{place}: there are {number} columns {name!r}; expected one.")
            may_be_empty = self.may_be_empty or len(columns) > 0
            columns.append(replace(self, names=(name,), role="", may_be_empty=may_be_empty))
        return columns

    def _not_found(self, available: Sequence[str], place: str, advice: str) -> InputError:
        """Return the error for a table without this column."""
        names = self.names or USUAL_NAMES[self.role]
        wanted = either(map(repr, names))
        problem = f"{place}: there is no column {wanted}, "
        if available:
            shown = [shortened(name) if isinstance(name, str) else name for name in available]
            problem += f"only {listed(list(map(repr, shown)))}."
        else:
            problem += "nor any other."
        # A single column is named already.
        if len(available) > 1:
            choices = list(map(str, available))
            near = [meant(str(name), choices) for name in names]
            problem += next(filter(None, near), "")
        remedy = _remedy(available)
        if self.option and not remedy:
            return InputError(f"{problem} Name one with ", self.option, f"{advice}.")
        return InputError(f"{problem} {remedy or 'Add it.'}")

    def texts_of(self, value: object, place: str) -> list[str]:
        """Return the texts of a value in this column, which was found.

        Raise InputError, with the place, if it is no text.

        NaN counts as null. If the column may hold lists, a printed list is refused: it could be
        several texts, or one.
        """
        if isinstance(value, str):
            if self.may_hold_lists and _is_printed_list(value):
                raise InputError(
                    f"{place}: the column {self.name!r} holds {shortened(value)!a}, a printed "
                    "list; expected a text. Write a list as a list, which JSON lines have, or a "
                    "column for each reference, reference=r1+r2."
                )
            return [value]
        if isinstance(value, UnreadableRow):
            raise InputError(f"{place}: {value.reason}")
        if isinstance(value, tuple):
            value = list(value)
        elif hasattr(value, "tolist"):  # an array, or a Series
            value = value.tolist()
        if self.is_id and not isinstance(value, list | dict):
            return [id_text(value)]
        if self.may_be_empty and is_null(value):
            return []
        may_be_list = self.may_hold_lists and (value or self.may_be_empty)
        if may_be_list and isinstance(value, list) and all(isinstance(text, str) for text in value):
            return value
        raise InputError(
            f"{place}: the column {self.name!r} holds {_described(value)}; expected "
            f"{self._expected()}.{self._hint(value)}"
        )

    def _expected(self) -> str:
        """Return the kinds of values that it may hold."""
        if self.is_id:
            return "a text, or a whole number"
        if self.may_be_empty:
            return "a text, a list of texts, or null"
        if self.may_hold_lists:
            return "a text, or a list of one or more"
        return "a text"

    def _hint(self, value: object) -> str:
        """Return what to do about a value that is no text; empty for some."""
        if self.may_be_empty or self.is_id:
            return ""
        if is_null(value) or (isinstance(value, list) and any(map(is_null, value))):
            return " Leave the row out, or make the text empty, which scores 0."
        is_list_of_texts = isinstance(value, list) and value and isinstance(value[0], str)
        if is_list_of_texts and not self.may_hold_lists:
            return " Candidates are scored one by one: write a row for each."
        return ""


def find_columns(
    columns: Iterable[Column], available: Sequence[str], place: str, advice: str = ""
) -> list[Column]:
    """Return columns as the available ones have them.

    Raise InputError, with the place, for one that is missing.
    """
    found = []
    for column in columns:
        found += column.find_all(available, place, advice)
    return found


def texts_of_row(columns: Iterable[Column], values: Iterable[object], place: str) -> list[str]:
    """Return the texts in some columns of a row.

    Raise InputError, with the place, where a value has none.
    """
    texts = []
    for column, value in zip(columns, values, strict=True):
        texts += column.texts_of(value, place)
    return texts


_QUOTED = r"""(?:'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+")"""
_ITEM = rf"(?:{_QUOTED}|np\.str_\({_QUOTED}\)|None|nan|null)"
_LIST = rf"\[(?:{_ITEM}|[\s,])*+\]"
_PRINTED_LIST = re.compile(
    # as Python, JSON and numpy print it
    rf"(?:array\()?\[(?:{_LIST}|{_ITEM}|[\s,])*+\](?:,\s*dtype=.+\))?"
    r"|.*\n(?:(?:Name|Length): [^\n]*, )?dtype: \S+",  # a Series, as pandas prints it
    re.DOTALL,
)


def _is_printed_list(text: str) -> bool:
    """Return whether a text is a printed list.

    A printed list is square brackets around nothing but quoted texts and nulls, or ends with
    pandas' line of a `dtype`.
    """
    # Such beginnings are rare, and faster to find than the expression is to match.
    may_be_list = text.lstrip()[:1] == "[" or "dtype" in text
    return may_be_list and _PRINTED_LIST.fullmatch(text.strip()) is not None


def id_text(value: object) -> str:
    """Return an id as a text, as TSV and CSV have it; empty for null."""
    if is_null(value):
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _remedy(names: Sequence[str]) -> str:
    """Return what to do about columns that are none; nothing if they may be."""
    if str(next(iter(names), "")).startswith("sep="):  # as Excel reads it
        return "Delete this line, which is for Excel alone."
    if {"columns", "data"} <= set(names):
        return "Write an object for each row, as pandas does with orient='records'."
    return ""


_NULLS = {"name": {""}, "number": {"", "n/a", "na", "nan", "none", "null"}}
"""The texts that count as null by the kind of column, of any case and with spaces around; none in a
column of texts.
"""


def is_null(value: object, kind: Literal["text", "name", "number"] = "text") -> bool:
    """Return whether a value is null in a column of this kind.

    None and NaN are, and the texts in `_NULLS`.
    """
    if isinstance(value, str):
        return kind != "text" and value.strip().lower() in _NULLS[kind]
    return value is None or (isinstance(value, float) and isnan(value))


_KINDS = {bool: "true or false", int: "a number", float: "a number", dict: "an object"}


def _described(value: object) -> str:
    if is_null(value):
        return "null"
    if not isinstance(value, list):
        return _KINDS.get(type(value), f"a value of type {type(value).__name__}")
    if not value:
        return "an empty list"
    for item in value:
        if not isinstance(item, str):
            return f"a list with {_described(item)} in it"
    return "a list"


def number_text(value: str | float) -> str | float:
    """Return a number, or its text in a file.

    Raise ValueError if that has an underscore, which Python would skip.
    """
    if isinstance(value, str) and "_" in value:
        raise ValueError(value)
    return value


Errors = Literal["raise", "null"]
"""How to handle a row that cannot be scored: raise an InputError with its number, or write nulls
and a reason.
"""


def check_errors(errors: str) -> None:
    """Raise InputError unless this is one of `Errors`."""
    if errors not in get_args(Errors):
        raise InputError(f'errors is {errors!r}; expected "raise" or "null".')


TextsOfRow = tuple["Text", Sequence["Text"]]
"""A candidate and its references, in their context if the row has one."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The texts in the rows of a batch."""

    pairs: list[TextsOfRow]
    """The texts of each row that can be scored."""

    reasons: list[str | None]
    """For each row the reason why it cannot be scored, without its number; or None, (rows,)."""

    unscored_references: "list[Text]"
    """The references in the rows that cannot be scored, where they are texts."""

    num_columns: int
    """The number of columns of references."""


def column_names(value: object, argument: str) -> tuple[str, ...]:
    """Return one name of a column, or several.

    Raise InputTypeError, with the argument, for anything else.
    """
    names = tuple(value) if isinstance(value, list | tuple) else (value,)
    if names and all(isinstance(name, str | int) for name in names):
        return names
    shown = names[0] if len(names) == 1 else value
    raise InputTypeError(
        f"{argument} is {shown!r}; expected the name of a column, or a list of names of references."
    )


@dataclass(frozen=True, slots=True)
class TextColumns:
    """The columns of the texts of pairs."""

    candidate: Column
    references: Sequence[Column]
    context: Column | None = None

    def __iter__(self) -> Iterator[Column]:
        """Yield the columns, that of contexts last."""
        yield self.candidate
        yield from self.references
        if self.context is not None:
            yield self.context

    def find(self, names: Sequence[str], title: str, advice: str = "") -> "TextColumns":
        """Return them as these columns of a table have them.

        Raise InputError, with the title, if one is missing.
        """
        [candidate] = self.candidate.find_all(names, title, advice)
        references = find_columns(self.references, names, title, advice)
        context = self.context
        if context is not None:
            [context] = context.find_all(names, title, advice)
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
    of_candidate = Column((), argument("candidate"), role="candidate")
    if candidate is not None:
        names = column_names([candidate], "candidate")
        of_candidate = Column(names, argument("candidate"))
    of_reference = Column((), argument("reference"), may_hold_lists=True, role="reference")
    references = [of_reference]
    if reference is not None:
        names = column_names(reference, "reference")
        references = [replace(of_reference, names=(name,), role="") for name in names]
    of_context = None
    if context is not None:
        of_context = context_column(context, argument("context"))
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

    def read(self, columns: TextColumns, values_of: Callable[[str], Sequence[object]]) -> Rows:
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
        rows = Rows([], [], [], len(columns.references))
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
        self, columns: Sequence[Column], values_of: Callable[[str], Sequence[object]]
    ) -> Iterator[list[str]]:
        """Yield the references of the next rows; those that are no texts are left out, or raise."""
        read = texts_of_row if self._errors == "raise" else valid_texts
        values_of_columns = [values_of(column.name) for column in columns]
        for values in zip(*values_of_columns, strict=True):
            place = _place(self._title, self._number)
            self._number += 1
            texts = read(columns, values, place)
            if texts:
                yield texts


def valid_texts(columns: Iterable[Column], values: Iterable[object], place: str) -> list[str]:
    """Return the texts in some columns of a row where they are texts."""
    valid: list[str] = []
    for column, value in zip(columns, values, strict=True):
        with suppress(InputError):
            valid += column.texts_of(value, place)
    return valid


def context_column(name: ColumnName, option: str | Argument = "`context`") -> Column:
    """Return the column of contexts."""
    return Column(column_names([name], "context"), option, may_hold_lists=True, may_be_empty=True)


def _place(title: str, number: int) -> str:
    return f"{title}, row {number}" if title else f"row {number}"
