"""Read the references, documents and groups of segments.

They are lists, or columns of any table, where several rows of a segment have to agree.
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import chain
from typing import Any

from bertscore_onnx.errors import Argument, InputError, InputTypeError
from bertscore_onnx.tables.joins import NAMED_IDS
from bertscore_onnx.tables.whole_table import WholeTable, is_frame
from bertscore_onnx.text.texts import collect_strings
from bertscore_onnx_evaluation.systems.input_reader import (
    Candidates,
    Frame,
    InputReader,
    Inputs,
    InputValues,
)

References = Iterable[str | Sequence[str]] | Frame
Documents = Iterable[Hashable] | Frame


def read_references(
    reader: InputReader, references: References | None, candidates: Candidates
) -> Inputs:
    """Return the references, of each file; by default those in the table of the candidates."""
    if references is None and is_frame(candidates):
        references = candidates
    if references is None:
        raise InputError(
            "There are no references. Give a list or a table of them as ",
            Argument("references", option="--ref"),
            "; if the table of a system has them too, give that table again.",
        )
    files = [references]
    if isinstance(references, list) and references and all(map(_is_file, references)):
        files = references
    read = [_read(reader, file, "references", "reference", _checked_references) for file in files]
    return _numbered(read)


def _is_file(references: Any) -> bool:
    return isinstance(references, InputValues | WholeTable)


def read_documents(reader: InputReader, documents: Documents) -> Inputs:
    """Return the document of each segment."""
    return _numbered([_read(reader, documents, "documents", "document", list)])


def documents_of_tables(reader: InputReader) -> Inputs:
    """Return the documents in all tables that were read, of which some may have none.

    Documents are in a named column, or in one with a usual name and no other use. Without a name, a
    constant is no document, and neither is a list or an object.
    """
    roles = reader.roles
    others = {*reader.system_names, *chain.from_iterable(roles.named.values())}
    documents = []
    for table in reader.tables:
        names = roles.of(table, "document")
        if names and "document" not in roles.named:
            [name] = names
            num_values = len({*map(str, table.values(name))})
            if name in others or num_values < 2 or table.is_nested(name):
                continue
        if names:
            documents.append(_read(reader, table, table.title, "document", list))
    return _numbered(documents)


def read_groups(reader: InputReader, by: str | Iterable[Hashable]) -> Inputs:
    """Return the groups of the segments, from every table that has the column.

    InputError is raised if none has it.
    """
    if not isinstance(by, str):
        return _numbered([reader.list_values(by, "`by`", "group", list)])
    tables = [table for table in reader.tables if by in table.names]
    if tables:
        return _numbered([_read(reader, table, table.title, "group", list) for table in tables])
    names = reader.column_names
    remedy = "there is no table. Give one that has it"
    if names:
        remedy = f"the tables have {', '.join(names)}. Name one of these"
    raise InputError(f"There is no column {by!r} to group by; {remedy}.")


def _read(
    reader: InputReader,
    given: Any,
    title: str,
    role: str,
    listing: Callable[[Any], Sequence[Any]],
) -> InputValues:
    """Return the values of a role in a table; or values that `listing` lists.

    Where a table has several rows for a segment, one for each system or run, these have to have the
    same value.
    """
    table = reader.table(given, title)
    if table is None:
        return reader.list_values(given, title, role, listing)
    names = reader.roles.required(table, role)
    cells = _cells(reader, table, role, names)
    rows = reader.rows_of(table)
    ids = rows.ids or ()
    used = {role: names}
    if len({*ids}) < len(ids):
        # Each system or run has a row for a segment, and repeats such values as references.
        repeating = {key: reader.roles.of(table, key) for key in ("system", "run")}
        used |= {key: of_key for key, of_key in repeating.items() if of_key}
        if len(used) > 1:
            rows = rows.part(_first_rows(table, ids, cells, names))
    return InputValues(table.title, rows, [cells[row] for row in rows.at], role, used)


def _numbered(of_role: Iterable[InputValues]) -> Inputs:
    return {(values.role, "", number): [values] for number, values in enumerate(of_role)}


def _cells(reader: InputReader, table: WholeTable, role: str, names: Sequence[str]) -> list[Any]:
    """Return a column's values, or the references of several columns."""
    first, *further = names
    cells = reader.cells(table, role, first)
    for name in further:
        more = table.lists(name, may_be_empty=True)
        for row, texts in enumerate(more):
            if cells[row] is not None:
                cells[row] = [*cells[row], *texts]
    return cells


def _first_rows(
    table: WholeTable, ids: Sequence[str], cells: Sequence[Any], names: Sequence[str]
) -> list[int]:
    """Return the first row of each segment.

    InputError is raised if another row of it has another value.
    """
    first: dict[str, int] = {}
    for row, name in enumerate(ids):
        earlier = first.setdefault(name, row)
        if cells[row] != cells[earlier]:
            raise InputError(
                f"{table.place(row)}: segment {name!r} has another value of {'+'.join(names)!r} "
                f"than in {table.place(earlier)}; expected the same in both, or name a column of "
                "ids that differ, ",
                NAMED_IDS,
                ".",
            )
    return list(first.values())


def _checked_references(references: Iterable[str | Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Return the references of each segment.

    InputError is raised if there is no segment, or one has no reference.
    """
    if isinstance(references, str | bytes):
        kind = type(references).__name__
        raise InputTypeError(
            f"The references are one {kind}; expected a list, one for each segment.",
        )
    lists = []
    for segment, given in enumerate(references):
        title = f"references[{segment}]"
        if isinstance(given, str):
            given = [given]
        texts = collect_strings(given, title)
        if not texts:
            raise InputError(f"{title} is empty; expected a text, or a list of at least one.")
        lists.append(tuple(texts))
    if not lists:
        raise InputError("There are no references; expected one for each segment.")
    return tuple(lists)
