"""How systems, metrics and layers stand against each other."""

from collections.abc import Callable, Mapping, Sequence

from bertscore_onnx.tables.table import Column, Format, Table, listed, plain
from bertscore_onnx_evaluation.systems.paired_tests import SIGNIFICANT

LEVEL = 1 - SIGNIFICANT
"""The level of intervals."""

LISTED = 4
"""Of more names a sentence gives the number."""


def relations(outcomes: Mapping[str, bool | None]) -> str:
    """Return what the best is against the others, such as `significantly better than a and b`.

    Args:
        outcomes: by name, whether the best is significantly better; None where this was not tested.
    """
    names_by_relation: dict[str, list[str]] = {
        "significantly better than": [],
        "not significantly better than": [],
        "not tested against": [],
    }
    for name, is_better in outcomes.items():
        relation = "not significantly better than"
        if is_better is None:
            relation = "not tested against"
        elif is_better:
            relation = "significantly better than"
        names_by_relation[relation].append(name)
    sentences = []
    for relation, names in names_by_relation.items():
        whom = listed(names)
        if len(names) == len(outcomes) >= LISTED:
            whom = "any other" if relation.startswith("not") else "all others"
        elif len(names) > LISTED:
            whom = f"{len(names)} others"
        if names:
            sentences.append(f"{relation} {whom}")
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
