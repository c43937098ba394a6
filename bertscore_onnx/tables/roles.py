"""The roles of columns, and the usual names by which they are known."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain

from bertscore_onnx.errors import Argument, InputError, shown_names
from bertscore_onnx.tables.order import natural_key

USUAL_NAMES: Mapping[str, tuple[str, ...]] = {
    "candidate": (
        "candidate",
        "prediction",
        "predictions",
        "output",
        "hypothesis",
        "response",
        "answer",
    ),
    "reference": ("reference", "references", "target", "ground_truth"),
    "system": ("system",),
    "score": ("score", "f1"),
    "metric": ("metric",),
    "run": ("run",),
}
"""The usual names of the column of each role; those of references may have a number: `reference2`,
`reference_3`.
"""

ID_COLUMNS = ("segment", "segment_id", "seg_id", "id", "line")
"""The usual names of a column of ids, of which the first that a table has counts."""

DOCUMENT_COLUMNS = ("document", "document_id", "doc")
"""The usual names of a column of documents, of which the first that a table has counts; `doc_id` is
an item's id in some logs.
"""

_NUMBER = re.compile(r"[ _.-]?([0-9]{1,9})$")


def plain_name(name: object) -> str:
    """Return the name of a column without case, byte order marks, and blanks around it."""
    return str(name).replace("\ufeff", "").strip().casefold()


def first_usual(usual: Iterable[str], names: Sequence[str]) -> tuple[str, ...]:
    """Return the column with the first of the usual names that a table has; none if it has none."""
    for usual_name in usual:
        for name in names:
            if plain_name(name) == usual_name:
                return (name,)
    return ()


def usual_columns(role: str, names: Iterable[str], title: str, option: str | Argument) -> list[str]:
    """Return the columns that have a role by their usual names; none if there is none.

    Case, blanks and byte order marks of names do not count. There are several columns only of
    references, in the order of their numbers.

    Args:
        role: a role of `USUAL_NAMES`.
        names: the columns of a table.
        title: the table, for messages.
        option: the option, or the argument, that names the column.

    Raises:
        InputError: columns have two different usual names.
    """
    numbers: dict[str, int] = {}
    plain_names = set()
    for name in names:
        plain = plain_name(name)
        number = -1
        found = _NUMBER.search(plain)
        if role == "reference" and found is not None:
            plain = plain[: found.start()]
            number = int(found[1])
        if plain in USUAL_NAMES[role]:
            numbers[name] = number
            plain_names.add(plain)
    columns = sorted(numbers, key=numbers.__getitem__)
    num_without_number = list(numbers.values()).count(-1)
    if len(plain_names) > 1 or num_without_number > 1:
        raise several_usual_names(columns, title, option)
    return columns


def several_usual_names(columns: Iterable[str], title: str, option: str | Argument) -> InputError:
    """Return the error for a table with several columns of one role."""
    shown = " and ".join(map(repr, columns))
    return InputError(
        f"{title}: there are columns {shown}; expected one of them. Name it with ",
        option,
        ".",
    )


NO_IDS = "none"
"""In place of the name of a column of ids: rows belong together by position."""


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
        names: str | list[str] = list(columns)
        if len(columns) == 1:
            names = columns[0]
        advice = "Leave it out"
        if used:
            advice += f", or name one of {', '.join(dict.fromkeys(used))}"
        inputs = ", ".join(dict.fromkeys(forms))
        raise InputError(
            Argument("columns", {role: names}),
            f" has no effect on {inputs}. {advice}.",
        )


def check_forms(named: Mapping[str, Sequence[str]], command: str, forms: Sequence[str]) -> None:
    """Raise InputError for a named role that a command does not use in inputs of these forms."""
    used = chain.from_iterable(ROLES_OF_FORMS[command][form] for form in forms)
    check_uses(named, forms, list(used))


def id_columns(
    names: Sequence[str],
    named: Sequence[str] = (),
    *,
    others: Collection[str] = (),
    title: str = "",
) -> tuple[str, ...]:
    """Return the columns that make up the ids of a table; none if rows go by position.

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
        columns = [key]
        if key not in names:
            columns = key.split("+")
        if set(columns) <= set(names):
            return tuple(columns)
    if named:
        wanted = " or ".join(map(repr, named))
        known = shown_names(list(map(repr, names)))
        raise InputError(f"{title}: there is no column {wanted}, only {known}.")
    return first_usual(ID_COLUMNS, [name for name in names if name not in others])


def check_order_of_ids(ids: Iterable[tuple[str, str]], title: str, plain: str) -> None:
    """Raise InputError unless ids are in their natural order.

    Args:
        ids: the place of each row, and its id.
        title: the table with the ids.
        plain: the input without ids that is joined with it by position.
    """
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
