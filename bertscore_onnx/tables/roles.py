"""The roles of columns, and the usual names by which they are known."""

import re
from collections.abc import Iterable, Mapping, Sequence

from bertscore_onnx.errors import Argument, InputError

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
    by_plain_name = {plain_name(name): name for name in reversed(names)}  # of two the first counts
    return tuple(by_plain_name[name] for name in usual if name in by_plain_name)[:1]


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
