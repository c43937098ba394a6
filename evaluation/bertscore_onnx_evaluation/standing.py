"""How systems, metrics and layers stand against each other."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from bertscore_onnx_evaluation.systems.paired_tests import SIGNIFICANT
from bertscore_onnx_evaluation.table import Column, Format, Table, listed, plain

LEVEL = 1 - SIGNIFICANT
"""The level of intervals."""

LISTED = 4
"""Of more names a sentence gives the number."""


class Stand(NamedTuple):
    """How the best stands against another, by the tests."""

    is_better: bool | None
    """Whether it is significantly better; None where this was not tested."""
    clause: str = ""
    """Words after the names of all others with the same, such as ` in these runs`."""
    detail: str = ""
    """What stands in the place of `{}` in the clause, listed by name."""


_RELATIONS = ("significantly better than", "not significantly better than", "not tested against")


def relations(stands: Mapping[str, Stand]) -> str:
    """Return what the best is against the others, such as `significantly better than a and b`."""
    groups: dict[tuple[int, str], list[str]] = {}
    for name, stand in stands.items():
        relation = 2
        if stand.is_better is not None:
            relation = int(not stand.is_better)
        groups.setdefault((relation, stand.clause), []).append(name)
    sentences = []
    for (relation, clause), names in sorted(groups.items()):
        whom = listed(names)
        if len(names) == len(stands) >= LISTED:
            whom = "any other" if relation else "all others"
        elif len(names) > LISTED and not clause:
            whom = f"{len(names)} others"
        details = ", ".join(stands[name].detail for name in names)
        sentences.append(f"{_RELATIONS[relation]} {whom}{clause.format(details)}")
    return "; ".join(sentences)


def interval(low: float | None, high: float | None, write: Format) -> str:
    """Return an interval, such as `0.12 to 0.34`; empty where there is none."""
    if low is None or high is None:
        return ""
    return f"{write(low)} to {write(high)}"


def matrix(
    heading: str,
    names: Sequence[str],
    cell: Callable[[int, int], str],
    write: Format = plain,
) -> Table:
    """Return a table of every two names, whose columns have the numbers of its rows.

    Args:
        heading: of the column of names.
        names: the best first.
        cell: the cell of two positions from 0. A column of empty cells is left out.
        write: the format of cells.
    """
    rows = []
    for first, name in enumerate(names):
        cells = {str(second + 1): cell(first, second) for second in range(len(names))}
        rows.append({"number": str(first + 1), "name": name, **cells})
    columns: list[Column] = [("", "number", plain), (heading, "name", str)]
    for number in map(str, range(1, len(names) + 1)):
        if any(row[number] for row in rows):
            columns.append((number, number, write))
    return Table(columns, rows)
