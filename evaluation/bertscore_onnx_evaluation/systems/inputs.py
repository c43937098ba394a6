"""The inputs of `compare`.

They are the systems and what they are compared on, joined by segment; and what was taken from
where.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from bertscore_onnx.errors import Argument, InputError, InputTypeError, shortened
from bertscore_onnx.tables.whole_table import WholeTable, is_frame, row_labels
from bertscore_onnx_evaluation.column_roles import ROLES, ColumnChoice, Roles, roles_of
from bertscore_onnx_evaluation.systems.corpus_scores import Value, in_order
from bertscore_onnx_evaluation.systems.input_reader import (
    Candidates,
    Frame,
    InputReader,
    Systems,
    are_parts,
    checked_references,
)
from bertscore_onnx_evaluation.systems.join import (
    Column,
    JoinedSegments,
    Missing,
    column_of_list,
    join_segments,
)

References = Iterable[str | Sequence[str]] | Frame
Documents = Iterable[Hashable] | Frame

SystemScores = Any
"""The scores of each system by its name, one for each segment or (runs, segments), or a data
frame.
"""

Input = tuple[str, str, str | int]
"""A role, a metric, and a system or a number."""


@dataclass(frozen=True, slots=True, eq=False)
class JoinedInputs:
    """The values of all inputs, in the order of the segments."""

    systems: tuple[str, ...]
    """The baseline first."""
    candidates: tuple[tuple[str | tuple[str, ...], ...], ...]
    references: tuple[tuple[str, ...], ...]
    """The texts by system and segment, a text or the texts of all runs, and the references of each
    segment; none where only scores were given.
    """
    scores: Mapping[str, Sequence[Sequence[float | tuple[float, ...]]]]
    """By metric, system and segment, a score or the scores of all runs."""
    documents: Sequence[Hashable]
    groups: Sequence[str]
    """Of each segment; none where none were given."""
    segments: tuple[str | int, ...]
    dropped: tuple[str | int, ...]
    lacking: Mapping[str, int]
    """By system the number of segments that were left out, and that the baseline has and the system
    lacks.
    """
    is_baseline_named: bool
    """Whether someone named the baseline, or gave an input for each system in an order."""
    choices: tuple[ColumnChoice, ...]


def join_inputs(
    candidates: Candidates | None,
    references: References | None,
    scores: SystemScores | Mapping[str, SystemScores] | None,
    documents: Documents | None,
    by: str | Iterable[Hashable] | None = None,
    *,
    systems: str | Sequence[str] | None = None,
    baseline: str | None = None,
    columns: Mapping[str, str | Sequence[str]] | None = None,
    value: Value = "F",
    missing: Missing = "raise",
    needs_texts: bool = False,
) -> JoinedInputs:
    """Join what `compare` is given, which it describes.

    With `needs_texts` there have to be texts of systems.
    """
    reader = InputReader(roles_of(columns, by), missing, value)
    named = _names(systems)
    if candidates is None and (needs_texts or scores is None or references is not None):
        raise InputError(
            "There are no texts of systems. Give them as ",
            Argument("candidates", option="--cand"),
            ", or give ",
            Argument("scores"),
            " alone.",
        )
    inputs: dict[Input, Sequence[Column]] = {}
    texts: Systems = {}
    if candidates is not None:
        texts = reader.systems(candidates, "candidate", named).get("", {})
    for name, runs in texts.items():
        inputs["candidate", "", name] = runs
    if texts:
        if references is None and is_frame(candidates):
            references = candidates  # which may have a column of references
        if references is None:
            raise InputError(
                "There are no references. Give a list or a table of them as ",
                Argument("references", option="--ref"),
                "; if the table of a system has them too, give that table again.",
            )
        files = [references]
        if are_parts(references):
            files = references
        for number, file in enumerate(files):
            column = reader.column(file, "references", "reference", checked_references)
            inputs["reference", "", number] = [column]
    if documents is not None:
        inputs["document", "", 0] = [reader.column(documents, "documents", "document", list)]
    by_metric: dict[str, Systems] = {}
    if scores is not None:
        by_metric = reader.systems(scores, "score", list(texts) or named)
    of_systems = texts or next(iter(by_metric.values()), {})
    ordered = _baseline_first(list(of_systems), baseline)
    if by is not None:
        for number, column in enumerate(_groups_of(by, reader)):
            inputs["group", "", number] = [column]
    if documents is None:
        # All tables have been read by now, so that any of them may have the documents.
        for number, table in enumerate(reader.with_documents(ordered)):
            column = reader.column(table, table.title, "document", list)
            inputs["document", "", number] = [column]
    for metric, systems_of_metric in by_metric.items():
        for name, runs in systems_of_metric.items():
            inputs["score", metric, name] = runs
    reader.check_roles(chain.from_iterable(inputs.values()))

    joined = join_segments(inputs, missing, are_ids_trusted=reader.roles.are_ids_named)
    values = joined.values
    texts_of_systems: list[tuple[Any, ...]] = []
    if texts:
        texts_of_systems = [tuple(values["candidate", "", name]) for name in ordered]
    scores_of_systems = {}
    for metric in by_metric:
        scores_of_systems[metric] = [values["score", metric, name] for name in ordered]
    titles = {runs[0].rows.title for runs in of_systems.values()}
    is_named = baseline is not None or named is not None
    return JoinedInputs(
        ordered,
        tuple(texts_of_systems),
        _references_of_segments(joined),
        scores_of_systems,
        _agreed(joined, "document"),
        _checked_groups(joined),
        joined.names,
        joined.dropped,
        _num_lacking(joined, ordered),
        is_named or len(titles) == len(of_systems),
        _choices(joined, reader.roles),
    )


def _references_of_segments(joined: JoinedSegments[Input]) -> tuple[tuple[str, ...], ...]:
    """Return the references of each segment, from all inputs of references."""
    columns = [column for (role, *_), column in joined.values.items() if role == "reference"]
    segments = []
    for cells in zip(*columns, strict=True):
        texts: list[str] = []
        for cell in cells:
            if isinstance(cell, str):
                texts.append(cell)
            else:
                texts += cell
        segments.append(tuple(texts))
    return tuple(segments)


def _num_lacking(joined: JoinedSegments[Input], systems: Sequence[str]) -> dict[str, int]:
    """Count the segments that each system lacks and the baseline has."""
    lacking: dict[str, set[str | int]] = {name: set() for name in systems}
    for (role, _, name), segments in joined.lacking.items():
        if role in ("candidate", "score"):
            lacking[str(name)] |= segments
    of_baseline = lacking[systems[0]]
    return {name: len(segments - of_baseline) for name, segments in lacking.items()}


def _names(systems: str | Sequence[str] | None) -> list[str] | None:
    """Return the names of systems that a caller gives, if any.

    InputTypeError is raised for anything else.
    """
    if systems is None:
        return None
    if isinstance(systems, str | Mapping) or not isinstance(systems, Iterable):
        raise InputTypeError(
            f"systems is {shortened(repr(systems))}; expected a list of names, the baseline first. "
            "Texts are given as `candidates`."
        )
    return list(map(str, systems))


def _choices(joined: JoinedSegments[Input], named: Roles) -> tuple[ColumnChoice, ...]:
    """Return what was taken from each table, and from the files of systems."""
    by_source: dict[object, list[Column]] = {}
    for column in joined.columns:
        rows = column.rows
        # Files without columns count only where they are of a system, and lists never.
        if rows.table is not None:
            by_source.setdefault(rows.table, []).append(column)
        elif rows.unit != "value" and column.is_of_system:
            by_source.setdefault(rows.title, []).append(column)
    choices = []
    for columns in by_source.values():
        rows = columns[0].rows
        systems = dict.fromkeys(column.name for column in columns if column.is_of_system)
        roles: dict[str, tuple[str, ...]] = {}
        for column in columns:
            roles |= column.used
        ignored: list[str] = []
        how = ""
        if rows.table is not None:
            ignored = _ignored_columns(rows.table, systems, roles)
            how = joined.how.get(rows.table, "")
        if named.are_by_position:
            how = "by position, as you said"
        ordered = {role: roles[role] for role in (*ROLES, "group") if role in roles}
        choices.append(ColumnChoice(rows.title, tuple(systems), ordered, tuple(ignored), how))
    return tuple(choices)


def _ignored_columns(
    table: WholeTable,
    systems: Collection[str],
    roles: Mapping[str, tuple[str, ...]],
) -> list[str]:
    """Return the columns of a table without a use, and unnamed systems."""
    used = {*chain.from_iterable(roles.values()), *systems, *table.levels}
    ignored = dict.fromkeys(name for name in table.names if name not in used)
    if "system" in roles:
        ignored |= dict.fromkeys(table.keys(*roles["system"]))
    shown = [table.shown(name) for name in ignored if name not in systems]
    return list(dict.fromkeys(shown))


def _baseline_first(systems: Sequence[str], baseline: str | None) -> tuple[str, ...]:
    """Return the systems with the baseline first.

    InputError is raised unless it is one of them.
    """
    if not systems:
        raise InputError(
            "There is no system; expected one, or a baseline and others to compare with it.",
        )
    if len({*systems}) < len(systems):
        raise InputError(f"The systems are {', '.join(systems)}; expected each of them once.")
    if baseline is None:
        return tuple(systems)
    if baseline not in systems:
        names = ", ".join(map(repr, systems))
        raise InputError(f"The baseline {baseline!r} is none of the systems {names}.")
    return (baseline, *(name for name in systems if name != baseline))


def _groups_of(by: str | Iterable[Hashable], reader: InputReader) -> list[Column]:
    """Return the groups of the segments, from every table that has the column.

    InputError is raised if none has it.
    """
    if not isinstance(by, str):
        groups = list(in_order(by, "`by`"))
        return [column_of_list(groups, "`by`", "group", row_labels(by))]
    tables = [table for table in reader.tables if by in table.names]
    if tables:
        return [reader.column(table, table.title, "group", list) for table in tables]
    names = reader.column_names
    remedy = "there is no table. Give one that has it"
    if names:
        remedy = f"the tables have {', '.join(names)}. Name one of these"
    raise InputError(f"There is no column {by!r} to group by; {remedy}.")


def _agreed(joined: JoinedSegments[Input], role: str) -> list[Any]:
    """Return the document, or the group, of each segment, if there are any.

    InputError is raised if inputs disagree.
    """
    columns = [column for column in joined.columns if column.role == role]
    by_input = [values for (of_role, *_), values in joined.values.items() if of_role == role]
    for column, values in zip(columns, by_input, strict=True):
        for segment, first, other in zip(joined.names, by_input[0], values, strict=True):
            if first != other:
                raise InputError(
                    f"Segment {segment!r} is in the {role} {first!r} in {columns[0].rows.title}, "
                    f"and in {other!r} in {column.rows.title}; expected the same in both."
                )
    if not by_input:
        return []
    return by_input[0]


def _checked_groups(joined: JoinedSegments[Input]) -> list[str]:
    """Return the group of each segment, if there are groups.

    InputError is raised if there is one only.
    """
    groups = list(map(str, _agreed(joined, "group")))
    if len({*groups}) == 1:
        raise InputError(
            f"All segments are in the group {groups[0]!r}; expected two or more groups.",
        )
    return groups
