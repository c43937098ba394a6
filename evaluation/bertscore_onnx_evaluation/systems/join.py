"""The rows of inputs, joined by segment.

Scores, texts, references and documents with the same id are of one segment. Joined segments stand
in the natural order of their ids, so that the order of rows changes no result. Inputs without ids
are joined by position, tables only if their other columns show that their rows are in the same
order.
"""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import chain, combinations, compress
from operator import itemgetter
from typing import Any, get_args

import numpy as np

from bertscore_onnx.errors import Argument, InputError
from bertscore_onnx.tables.joins import (
    JoinCheck,
    Rows,
    RowsOfSegments,
    TablePart,
    lacks_segment,
    rows_of_segments,
)
from bertscore_onnx.tables.order import natural_key
from bertscore_onnx.tables.whole_table import WholeTable
from bertscore_onnx_evaluation.column_roles import (
    OF_SYSTEMS,
    ColumnChoice,
    check_roles,
    choices_of,
)
from bertscore_onnx_evaluation.systems.input_reader import (
    InputReader,
    Inputs,
    InputValues,
    Key,
    Missing,
    Value,
    is_indexed,
    with_labels_as_ids,
)


@dataclass(frozen=True, slots=True, eq=False)
class JoinedSegments:
    """The segments that all inputs have, in the order of their ids."""

    names: tuple[str | int, ...]
    """The ids; or where there are none, the numbers of the lines or rows, which count from 1."""
    dropped: tuple[str | int, ...]
    """The segments that were left out, since some input lacks them."""
    values: Mapping[Key, list[Any]]
    """The values by input, run and segment."""
    lacking: Mapping[Key, Set[str | int]]
    """The segments without a value by input."""
    columns: Sequence[InputValues]
    """The columns, with the ids that were used."""
    how: Mapping[WholeTable, str]
    """What the output says of how tables were joined, where the values of others could be asked."""


def join_segments(
    inputs: Inputs,
    missing: Missing = "raise",
    *,
    are_ids_trusted: bool = False,
) -> JoinedSegments:
    """Join the rows of inputs, each of one or several runs.

    Rows are joined by their ids, or by position if none has ids. An index of pandas other than
    0, 1, 2, … counts as ids, and beside one every index does. Where segments may be dropped, a
    score of some runs is complete: it is the mean of the runs that there are.

    InputError is raised for an id that occurs again, for tables that may be in different orders,
    and for the first segment that an input lacks, unless such segments are to be dropped.
    """
    if missing not in get_args(Missing):
        raise InputError(f'missing is {missing!r}; expected "raise" or "drop".')
    inputs = _prepared(inputs)
    columns = list(chain.from_iterable(inputs.values()))
    rows_of = rows_of_segments(list(dict.fromkeys(column.rows for column in columns)))
    how: dict[WholeTable, str] = {}
    if not are_ids_trusted:
        how = _how_joined(columns, rows_of)

    names = list(rows_of[columns[0].rows])
    if any(column.rows.ids is not None for column in columns):
        names = sorted(set(chain.from_iterable(rows_of.values())), key=natural_key)
    values: dict[Key, list[list[Any]]] = {}
    lacking: dict[Key, set[str | int]] = {}
    for key, runs in inputs.items():
        values[key] = [_in_order(run, rows_of[run.rows], names) for run in runs]
        lacking[key] = set()
        lacks = any
        if missing == "drop" and runs[0].role == "score":
            lacks = all  # the mean of the runs that there are is a score too
        for name, of_runs in zip(names, zip(*values[key], strict=True), strict=True):
            if lacks(map(_is_missing, of_runs)):
                lacking[key].add(name)

    of_some = set().union(*lacking.values())
    is_kept = [name not in of_some for name in names]
    dropped = tuple(filter(of_some.__contains__, names))
    if dropped and missing == "raise":
        raise _incomplete(columns, rows_of, dropped[0])
    if not any(is_kept):
        titles = ", ".join(dict.fromkeys(column.rows.title for column in columns))
        raise InputError(f"No segment is in all of {titles}, with a value in every column.")
    kept_values = {}
    for key, of_input in values.items():
        kept_values[key] = [list(compress(run, is_kept)) for run in of_input]
    kept_names = tuple(compress(names, is_kept))
    return JoinedSegments(kept_names, dropped, kept_values, lacking, columns, how)


def _prepared(inputs: Inputs) -> Inputs:
    """Return inputs with their runs in natural order, and ids from the index of pandas.

    An index is ids unless all are 0, 1, 2 and so on. InputError is raised for a column of runs in
    one of several tables of runs.
    """
    labelled = {}
    for run in chain.from_iterable(inputs.values()):
        labelled[run.rows] = run.rows
    if any(map(is_indexed, labelled)):
        for rows in labelled:
            labelled[rows] = with_labels_as_ids(rows)
    prepared: Inputs = {}
    for key, runs in inputs.items():
        prepared[key] = []
        for run in sorted(runs, key=lambda run: natural_key(run.run)):
            prepared[key].append(replace(run, rows=labelled[run.rows]))
        tables = {id(run.rows.table) for run in runs}
        if len(tables) > 1 and any(run.run for run in runs):
            both = f"a column of runs, and is one of {len(tables)} runs"
            raise InputError(f"{prepared[key][0].rows.title} has {both}; expected either.")
    return prepared


def _in_order(run: InputValues, rows: RowsOfSegments, names: Iterable[str | int]) -> list[Any]:
    """Return the value of each segment; where a run lacks it, NaN for a score, else None."""
    absent = np.nan if run.role == "score" else None
    values = []
    for name in names:
        row = rows.get(name)
        values.append(absent if row is None else run.values[row])
    return values


def _is_missing(value: Any) -> bool:
    return value is None or bool(value != value)  # NaN


def _how_joined(
    columns: Sequence[InputValues],
    rows_of: Mapping[Rows, RowsOfSegments],
) -> dict[WholeTable, str]:
    """Return what the output says of how tables were joined.

    InputError is raised if values contradict it.
    """
    by_table: dict[WholeTable, list[InputValues]] = {}
    for column in columns:
        if column.rows.table is not None:
            by_table.setdefault(column.rows.table, []).append(column)
    tables = []
    for table, of_table in by_table.items():
        names: dict[str, set[str]] = defaultdict(set)
        for column in of_table:
            roles = {column.role: (column.name,), **column.roles}
            for role, of_role in roles.items():
                names[role].update(of_role)

        # Outputs and results may differ between tables whose rows are the same segments.
        outputs = frozenset(names["candidate"])
        left_out = frozenset().union(*(names[role] for role in _ROLES_OF_RESULTS))
        names_of_rows = {column.rows: f" of {column.name} {column.run}" for column in of_table}
        parts = []
        for rows, name in names_of_rows.items():
            of_system = ""
            if len(names_of_rows) > 1:
                of_system = name.rstrip()
            parts.append(TablePart(table, rows, outputs, left_out, of_system))
        tables.append(parts)
    return _how_of_tables(JoinCheck(rows_of), tables)


def _how_of_tables(
    check: JoinCheck, tables: Sequence[Sequence[TablePart]]
) -> dict[WholeTable, str]:
    """Compare the parts of a table with its first, and the first parts with each other."""
    pairs = list(combinations([parts[0] for parts in tables], 2))
    for first, *further in tables:
        pairs += [(first, part) for part in further]
    said: dict[WholeTable, str] = {}
    for first, second in pairs:
        how = check.how(first, second)
        for part in (first, second):
            # The join of which the least is known counts.
            if part.table not in said or "nothing" in how:
                said[part.table] = how
    return said


_ROLES_OF_RESULTS = ("score", "system", "metric", "run")


def _incomplete(
    columns: Sequence[InputValues],
    rows_of: Mapping[Rows, RowsOfSegments],
    name: str | int,
) -> InputError:
    """Return the error for a segment that an input lacks."""
    remedy = ("or leave out such segments of all systems with ", Argument("missing", "drop"), ".")

    # Of several columns with one title the first one's place stays.
    places: dict[str, str] = {}
    for column in reversed(columns):
        if name in rows_of[column.rows]:
            places[column.rows.title] = column.rows.place(rows_of[column.rows][name])
    for column in columns:
        title = column.rows.title
        if title not in places:
            first = list(places.values())[-1]
            others = rows_of[column.rows]
            return InputError(lacks_segment(first, name, title, others), *remedy)
        row = rows_of[column.rows].get(name)
        if row is not None and not _is_missing(column.values[row]):
            continue
        missing = places[title]
        if row is not None:
            missing = column.rows.place(row)
        missing += ": there is no value"
        if column.name not in (title, column.column):
            missing += f" of {column.name!r}"
        if column.column:
            missing += f" in the column {column.column!r}"
        if column.run:
            missing += f" in run {column.run!r}, which other segments have,"
        if not isinstance(name, int):  # a position is in the place
            missing += f" for segment {name!r}"
        return InputError(f"{missing}. Add it, ", *remedy)
    raise AssertionError(name)


# The joined values by their use.


@dataclass(frozen=True, slots=True, eq=False)
class JoinedInputs:
    """The values of all inputs, in the order of the segments."""

    systems: tuple[str, ...]
    """The baseline first."""
    candidates: Sequence[Sequence[Sequence[str]]]
    references: tuple[tuple[str, ...], ...]
    """The texts by system, run and segment, and the references of each segment; none where only
    scores were given.
    """
    scores: Mapping[str, Sequence[Sequence[Sequence[float]]]]
    """By metric, system, run and segment."""
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
    ranges_of_prf: Mapping[str, tuple[float, float] | None]
    """By metric whose scores are all `Scores` their range, from the score of an empty text; None if
    some have no settings.
    """
    precisions: tuple[str, ...]
    """The precisions in the signatures of scores."""


def join_inputs(
    inputs: Inputs,
    reader: InputReader,
    baseline: str | None,
    *,
    are_systems_named: bool,
) -> JoinedInputs:
    """Join the inputs that were read.

    InputError is raised if a caller named what has no effect on them, or another baseline.
    """
    check_roles(reader, list(chain.from_iterable(inputs.values())))
    systems = _baseline_first(inputs, baseline)
    # A caller who says how rows belong together is trusted.
    are_ids_named = "segment" in reader.roles.named
    joined = join_segments(inputs, reader.missing, are_ids_trusted=are_ids_named)
    runs: dict[str, list[InputValues]] = {}
    for (role, metric, _), of_input in inputs.items():
        if role == "score":
            runs.setdefault(metric, []).extend(of_input)
    scores = {}
    for metric in runs:
        scores[metric] = _of_systems(joined.values, "score", metric, systems)
    role, metric, _ = next(key for key in inputs if key[2] == systems[0])
    texts: list[list[list[str]]] = []
    if role == "candidate":
        texts = _of_systems(joined.values, role, metric, systems)
    first_runs = map(itemgetter(0), _of_systems(inputs, role, metric, systems))
    titles = {values.rows.title for values in first_runs}
    return JoinedInputs(
        systems,
        texts,
        _references_of_segments(joined),
        scores,
        _agreed(joined, "document"),
        _checked_groups(joined),
        joined.names,
        joined.dropped,
        _num_lacking(joined, systems),
        are_systems_named or baseline is not None or len(titles) == len(systems),
        choices_of(joined.columns, joined.how, reader.roles),
        _ranges_of_prf(runs, reader.value),
        _precisions(runs),
    )


def _baseline_first(inputs: Iterable[Key], baseline: str | None) -> tuple[str, ...]:
    """Return the systems with the baseline first.

    InputError is raised unless it is one of them.
    """
    names = [str(name) for role, _, name in inputs if role in OF_SYSTEMS]
    systems = dict.fromkeys(names)
    if not systems:
        raise InputError(
            "There is no system; expected one, or a baseline and others to compare with it.",
        )
    if baseline is None:
        return tuple(systems)
    if baseline not in systems:
        raise InputError(
            f"The baseline {baseline!r} is none of the systems {', '.join(map(repr, systems))}."
        )
    return tuple(dict.fromkeys((baseline, *systems)))


def _ranges_of_prf(
    runs: Mapping[str, Sequence[InputValues]], value: Value
) -> dict[str, tuple[float, float] | None]:
    """Return the ranges of metrics whose runs are all `Scores`.

    InputError is raised for P or R where no run is.
    """
    ranges: dict[str, tuple[float, float] | None] = {}
    num_prf = 0
    for metric, of_metric in runs.items():
        prf = [run.prf for run in of_metric if run.prf is not None]
        num_prf += len(prf)
        if len(prf) == len(of_metric):
            worst = [scores.worst for scores in prf if scores.worst is not None]
            ranges[metric] = None
            if len(worst) == len(prf):
                lowest = min(getattr(scores, value).item() for scores in worst)
                ranges[metric] = (lowest, 1.0)
    if value != "F" and not num_prf:
        raise InputError(
            f"value={value!r} has no effect: no scores are `Scores` of a scorer. Leave it out.",
        )
    return ranges


def _precisions(runs: Mapping[str, Sequence[InputValues]]) -> tuple[str, ...]:
    """Return the precisions in the signatures of scores.

    `Scores` have a signature, and so have the scores of Parquet files.
    """
    precisions = set()
    for run in chain.from_iterable(runs.values()):
        signature = ""
        if run.prf is not None:
            signature = str(run.prf.signature)
        elif run.rows.table is not None:
            signature = run.rows.table.signature
        match = re.search(r"\|precision:([^|]+)", signature)
        if match:
            precisions.add(match[1])
    return tuple(sorted(precisions))


def _of_systems(
    inputs: Mapping[Key, Any], role: str, metric: str, systems: Iterable[str]
) -> list[Any]:
    return [inputs[role, metric, name] for name in systems]


def _of_role(joined: JoinedSegments, role: str) -> list[list[Any]]:
    """Return the values of each input of a role, which has no runs."""
    return [runs[0] for (of_role, *_), runs in joined.values.items() if of_role == role]


def _references_of_segments(joined: JoinedSegments) -> tuple[tuple[str, ...], ...]:
    """Return the references of each segment, from all inputs of references."""
    segments = []
    for cells in zip(*_of_role(joined, "reference"), strict=True):
        texts: list[str] = []
        for cell in cells:
            if isinstance(cell, str):
                texts.append(cell)
            else:
                texts += cell
        segments.append(tuple(texts))
    return tuple(segments)


def _num_lacking(joined: JoinedSegments, systems: Sequence[str]) -> dict[str, int]:
    """Count the segments that each system lacks and the baseline has."""
    lacking: dict[str, set[str | int]] = {name: set() for name in systems}
    for (role, _, name), segments in joined.lacking.items():
        if role in OF_SYSTEMS:
            lacking[str(name)] |= segments
    of_baseline = lacking[systems[0]]
    return {name: len(segments - of_baseline) for name, segments in lacking.items()}


def _agreed(joined: JoinedSegments, role: str) -> list[Any]:
    """Return the document, or the group, of each segment, if there are any.

    InputError is raised if inputs disagree.
    """
    columns = [column for column in joined.columns if column.role == role]
    by_input = _of_role(joined, role)
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


def _checked_groups(joined: JoinedSegments) -> list[str]:
    """Return the group of each segment, if there are groups.

    InputError is raised if there is one only.
    """
    groups = list(map(str, _agreed(joined, "group")))
    if len({*groups}) == 1:
        raise InputError(
            f"All segments are in the group {groups[0]!r}; expected two or more groups.",
        )
    return groups
