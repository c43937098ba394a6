"""The inputs of `compare`, in lists or data frames, joined by segment; and which columns of a table hold systems.

The rows of scores, texts, references and documents belong together if they have the same id. Joined segments stand in
the natural order of their ids, so that the order of rows changes no result. Inputs without ids are joined by position.
"""

import math
import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.errors import InputError, InputTypeError
from bertscore_onnx.tables.batches import check_form
from bertscore_onnx.tables.columns import ID_COLUMNS, NO_IDS, REFERENCE_COLUMNS, Column
from bertscore_onnx.tables.table import natural_key
from bertscore_onnx.tables.whole_table import WholeTable
from bertscore_onnx.text.texts import collect_strings

Missing = Literal["raise", "drop"]
"""How to handle a segment that some input lacks: raise an error, or leave it out for all systems."""

Frame = Any
"""A data frame in any form that `BERTScorer.score_frame` takes."""

Systems = Mapping[str, Iterable[str] | Frame] | Frame | Sequence[str]
References = Iterable[str | Sequence[str]] | Frame
Documents = Iterable[Hashable] | Frame

SegmentScores = Any
"""The scores of each system by its name, one for each segment or (runs, segments); or a data frame of
`system_scores`."""

CANDIDATE, REFERENCE, DOCUMENT = (
    Column(("candidate",), ""),
    Column(REFERENCE_COLUMNS, "", may_hold_lists=True),
    Column(("document", "document_id", "doc", "doc_id"), ""),
)

RUN = "run"
"""The column of runs: other samples, seeds or judgements of the same systems and segments."""


# The columns of one input.


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """Which columns of a table were taken for systems, and which were not."""

    table: str
    """The file, or the argument that was the data frame."""

    id_column: str | None
    """The column of ids; None if rows were joined by position."""

    systems: tuple[str, ...]
    """The columns of systems, or the systems in the rows."""

    ignored: tuple[str, ...]
    """All other columns, or systems."""

    def __str__(self) -> str:
        """Return a sentence about them."""
        ids = f"segments by the column {self.id_column!r}" if self.id_column else "segments by position"
        ignored = f"; ignored {_list(self.ignored)}" if self.ignored else ""
        return f"{self.table}: systems {_list(self.systems)}; {ids}{ignored}."


@dataclass(frozen=True, slots=True, eq=False)
class SegmentColumns:
    """Values for segments, such as the scores or the texts of some systems, from one input."""

    title: str
    """The input in messages."""

    columns: Mapping[str, Sequence[Any]]
    """The values of each column, (rows,); None or NaN where there is none."""

    ids: Sequence[str] | None = None
    """The id of each row, (rows,); None if rows have none."""

    place: Callable[[int], str] = str
    """The place of a row, counted from 0, in messages."""

    unit: str = "row"
    """What a row is in messages, such as a line."""

    choice: ColumnChoice | None = None
    """How the columns were chosen, if they had to be."""

    table: WholeTable | None = None
    """The table of the columns, which may have groups too."""

    lacking_runs: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """The run that a column lacks in a row, where its value is None; its other values are tuples, a value for each
    run."""

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(next(iter(self.columns.values())))

    def incomplete(self) -> dict[int, str]:
        """Return the rows that lack a value, with the first column where they do."""
        rows: dict[int, str] = {}
        for name, values in self.columns.items():
            for row, value in enumerate(values):
                is_missing = value is None or value != value  # NaN
                if is_missing or (isinstance(value, tuple) and any(score is None or score != score for score in value)):
                    rows.setdefault(row, name)
        return rows


def is_frame(value: object) -> bool:
    """Return whether a value is a table, a data frame or a mapping of columns."""
    return isinstance(value, WholeTable | Mapping) or hasattr(value, "columns") or hasattr(value, "column_names")


def table_of(value: Any, title: str) -> WholeTable:
    """Return a table, or the rows of a data frame; `title` is its name in messages."""
    return value if isinstance(value, WholeTable) else WholeTable.of_frame(value, title)


def columns_of_list(values: Sequence[Any], title: str) -> SegmentColumns:
    """Return one column of values without ids, such as the texts of a list."""
    return SegmentColumns(title, {title: values}, place=lambda row: f"{title}[{row}]", unit="value")


def ids_of(table: WholeTable, id_column: str | None = None) -> tuple[str | None, list[str] | None]:
    """Return the name of the column of ids and its values; None twice if a table has none, or none is to be used."""
    if id_column == NO_IDS:
        return None, None
    usual = (name for name in ID_COLUMNS if name in table.names)
    name = next(usual, None) if id_column is None else table.find(id_column, "--columns id=NAME")
    return name, None if name is None else table.keys(name)


def text_columns(
    table: WholeTable,
    column: Column | Sequence[Column],
    *,
    id_column: str | None = None,
    missing: Missing = "raise",
) -> SegmentColumns:
    """Return the texts of a column, or those of several as lists of texts, in a column called as the table is.

    Where a table has several rows for a segment, one for each system or run, these have to have the same texts.
    """
    if isinstance(column, Column):
        values = _values(table, column, missing)
    else:
        rows = zip(*(_values(table, part, missing) for part in column), strict=True)
        values = [None if None in row else [text for texts in row for text in texts] for row in rows]
    _, ids = ids_of(table, id_column)
    if ids is None or not {"system", RUN} & {*table.names}:
        return SegmentColumns(table.title, {table.title: values}, ids, table.place, table=table)
    first: dict[str, int] = {}
    for row, name in enumerate(ids):
        earlier = first.setdefault(name, row)
        if values[row] != values[earlier]:
            raise InputError(
                f"{table.place(row)}: segment {name!r} has another value than in {table.place(earlier)}; expected the "
                "same in both."
            )
    rows_of_segments = [*first.values()]
    distinct = [values[row] for row in rows_of_segments]
    return SegmentColumns(
        table.title, {table.title: distinct}, [*first], lambda row: table.place(rows_of_segments[row]), table=table
    )


def _values(table: WholeTable, column: Column, missing: Missing) -> list[Any]:
    """Return the texts of a column, or names of documents or groups; None for a null, if segments may be missing."""
    name = table.find(column.names, column.option)
    read: Callable[[WholeTable, str], Sequence[Any]] = WholeTable.texts
    if column.may_hold_lists:
        read = WholeTable.lists
    elif column is DOCUMENT or column.is_id:
        read = WholeTable.keys
    if missing == "raise":
        return [*read(table, name)]
    values: list[Any] = [None] * len(table)
    present, rows = table.without_nulls(name, are_texts=read is not WholeTable.keys)
    for row, value in zip(rows, read(present, name), strict=True):
        values[row] = value
    return values


# The systems of a table: a column for each, or a row for each system and segment.


_ID = r"(seg|segment|sent|sentence|doc|document|line|row|item|example|sample|pair|sys|system|annotator|rater|user)"
_NO_SYSTEM = re.compile(
    # ids and positions, among them those that pandas and R write
    rf"|unnamed\d+(level\d+)?|indexlevel\d+|level\d+|index|idx|{_ID}|{_ID}?(id|ids|idx|index|no|nr|num|number|key)|uu?id|guid"
    r"|documents?|docs?|domain|genre|testset|dataset|split|fold|topic|category|group|cluster"
    r"|(src|source|tgt|trg|target|orig|original)?(lang|language)|lp|langpair|languagepair"
    r"|human|human(score|mean|rating)s?|judge?ments?|gold(score)?|labels?|rating|mqm|esa|da|rawda|zscore"
    r"|source|src|references?|refs?|candidates?|hypothesis|hyp|mt|translation|target|tgt|text|prompt|input|context"
    r"|comments?|notes?"
    r"|year|month|day|date|time|timestamp|seed|run|rank|weights?|count|total|age|epoch|step|version"
    r"|len|length|words|tokens|chars|characters|duration|seconds|latency|cost|price|temperature"
    r"|mean|average|avg|median|std|stdev|var|variance|min|max|sum|delta|diff|difference|best|winner|p|pvalue"
)
_NO_SYSTEM_PARTS = re.compile(
    r"(num|len|length|count|n)_.*|.*_(id|idx|len|length|counts?|words|tokens|chars|lang|time|date)"
)


def may_be_system(name: str) -> bool:
    """Return whether a column may hold a system, by its name: not one of ids, languages, documents, people, sizes."""
    words = re.sub(r"[^a-z0-9]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()).strip("_")
    return not (_NO_SYSTEM.fullmatch(words.replace("_", "")) or _NO_SYSTEM_PARTS.fullmatch(words))


def system_scores(
    table: WholeTable,
    metric: str,
    *,
    systems: Sequence[str] | None = None,
    id_column: str | None = None,
    by: str | None = None,
) -> dict[str, SegmentColumns]:
    """Return by metric the scores of systems, in a column for each; NaN where a system has none.

    A table with the columns system and score has a row for each system and segment, and perhaps for each metric, in the
    column metric. Any other has a column for each system: those that `systems` names, or else all that hold numbers and
    `may_be_system`, but for `by`, the column of groups.
    """
    if {"system", "score"} <= {*table.names}:
        metrics = table.keys("metric") if "metric" in table.names else [metric] * len(table)
        return _Cells(table, id_column).by_metric(metrics, table.numbers("score").tolist(), systems)
    id_name, ids = ids_of(table, id_column)
    names = _systems_by_column(table, systems, "numbers", (id_name, by))
    columns = {name: table.numbers(name).tolist() for name in names}
    if systems is None:
        _check_alike(table, columns)
    if RUN in table.names:
        return {metric: _Cells(table, id_column).by_run(columns, by)}
    return {metric: SegmentColumns(table.title, columns, ids, table.place, choice=_choice(table, id_name, names, by))}


def system_texts(
    table: WholeTable,
    *,
    systems: Sequence[str] | None = None,
    candidate: Column = CANDIDATE,
    references: Sequence[Column] = (REFERENCE,),
    id_column: str | None = None,
    by: str | None = None,
    missing: Missing = "raise",
) -> SegmentColumns:
    """Return the texts of systems, in a column for each, as `system_scores` does with numbers.

    Columns of references are no systems.
    """
    if "system" in table.names:
        values = _values(table, candidate, missing)
        [texts] = _Cells(table, id_column).by_metric([""] * len(table), values, systems).values()
        return texts
    id_name, ids = ids_of(table, id_column)
    reference_names = (name for column in references for name in column.names)
    names = _systems_by_column(table, systems, "texts", (id_name, by, *reference_names))
    columns = {name: _values(table, Column((name,), "`systems`"), missing) for name in names}
    choice = _choice(table, id_name, names, by)
    return SegmentColumns(table.title, columns, ids, table.place, choice=choice, table=table)


def _choice(table: WholeTable, id_column: str | None, systems: Sequence[str], by: str | None) -> ColumnChoice:
    ignored = [name for name in table.names if name not in systems and name not in (id_column, RUN, by)]
    return ColumnChoice(table.title, id_column, tuple(systems), tuple(ignored))


def _systems_by_column(
    table: WholeTable, systems: Sequence[str] | None, content: Literal["numbers", "texts"], others: Sequence[str | None]
) -> list[str]:
    """Return the columns of systems: those named, or those of this content but the `others`, of ids and groups."""
    if systems is not None:
        return [table.find(name, "`systems`") for name in systems]
    candidates = [name for name in table.names if may_be_system(name) and name not in others]
    for name in candidates:
        if table.names.count(name) > 1:
            table.find(name, "")  # raises
    held = {name: table.content(name) for name in candidates}
    is_text = content == "texts"
    for name, kinds in held.items():
        if not is_text and {"numbers", "texts"} <= kinds:
            table.numbers(name)  # raises
    found = [name for name, kinds in held.items() if content in kinds]
    if len(found) < 2:
        rest = [name for name in table.names if name not in found]
        raise InputError(
            f"{table.title} has {len(found)} columns of {content} that may be systems"
            f"{f', {_list(found)}' if found else ''}; expected one for each of at least two systems, or the columns "
            f"system, segment and {'score' if content == 'numbers' else 'candidate'}. Name the systems with `systems`; "
            f"the other columns are {_list(rest) or 'none'}."
        )
    for name, kinds in held.items():
        if name not in found and "texts" not in kinds:  # a system may have failed in every row
            raise InputError(
                f"{table.title}: the column {name!r} holds {'only numbers' if 'numbers' in kinds else 'no value'}, "
                f"unlike {_list(found)}; expected {content}, if it is a system. Name the systems with `systems`, with "
                "or without this one, or leave the column out of the table."
            )
    return found


def _check_alike(table: WholeTable, columns: Mapping[str, Sequence[float]]) -> None:
    """Raise InputError if some columns hold whole numbers alone, as counts and years do, and others do not."""
    whole = [name for name, values in columns.items() if all(math.isnan(value) or value % 1 == 0 for value in values)]
    if 0 < len(whole) < len(columns):
        others = [name for name in columns if name not in whole]
        raise InputError(
            f"{table.title}: {_list(whole)} hold{'s' * (len(whole) == 1)} whole numbers only, unlike {_list(others)}. "
            "Name the columns of systems with `systems`."
        )


Cells = dict[str, dict[str, dict[str, int]]]
"""The row of a cell, by system, segment and run."""


class _Cells:
    """A table with several rows for a segment: one for each system, or for each run, or for both."""

    def __init__(self, table: WholeTable, id_column: str | None) -> None:
        self._table = table
        kind = "system and segment" if "system" in table.names else "segment and run"
        if id_column == NO_IDS:
            raise InputError(f"{table.title} has a row for each {kind}, so its segments need ids.")
        self._id_column = table.find(id_column or ID_COLUMNS, "--columns id=NAME")
        self._segments = table.keys(self._id_column)
        self._has_runs = RUN in table.names and len({*table.keys(RUN)}) > 1
        self._runs = table.keys(RUN) if self._has_runs else [""] * len(table)

    def by_run(self, columns: Mapping[str, Sequence[float]], by: str | None) -> SegmentColumns:
        """Return columns of systems, (rows,), with the values of the runs of a segment together."""
        cells: Cells = {}
        for row, (segment, run) in enumerate(zip(self._segments, self._runs, strict=True)):
            for system in columns:
                self._put(cells, row, system, segment, run)
        choice = _choice(self._table, self._id_column, [*columns], by)
        return self._columns("", cells, columns, choice)

    def by_metric(
        self, metrics: Sequence[str], values: Sequence[Any], systems: Sequence[str] | None
    ) -> dict[str, SegmentColumns]:
        """Return the values of each row as columns of systems, which are sorted by name unless they are named."""
        row_systems = self._table.keys("system")
        cells_by_metric: dict[str, Cells] = {}
        for row, (metric, system) in enumerate(zip(metrics, row_systems, strict=True)):
            self._put(cells_by_metric.setdefault(metric, {}), row, system, self._segments[row], self._runs[row])
        available = sorted({*row_systems}, key=natural_key)
        names = available if systems is None else systems
        left_out = tuple(name for name in available if name not in names)
        choice = ColumnChoice(self._table.title, self._id_column, tuple(names), left_out)
        columns = dict.fromkeys(names, values)
        return {metric: self._columns(metric, cells, columns, choice) for metric, cells in cells_by_metric.items()}

    def _put(self, cells: Cells, row: int, system: str, segment: str, run: str) -> None:
        earlier = cells.setdefault(system, {}).setdefault(segment, {}).setdefault(run, row)
        if earlier != row:
            and_run = f" and run {run!r}" if self._has_runs else ""
            raise InputError(
                f"{self._table.place(row)}: the system {system!r} has a second row for segment {segment!r}{and_run}; "
                f"the first is {self._table.place(earlier)}. Expected one, or other runs in a column {RUN!r}."
            )

    def _columns(
        self, metric: str, cells: Cells, values: Mapping[str, Sequence[Any]], choice: ColumnChoice
    ) -> SegmentColumns:
        rows: dict[str, int] = {}  # of each segment the first one
        for name in choice.systems:
            if name not in cells:
                of_metric = f" of {metric}" if metric else ""
                raise InputError(f"{self._table.title} lacks the system {name!r}{of_metric}; it has {_list(cells)}.")
            rows = {segment: min(run_rows.values()) for segment, run_rows in cells[name].items()} | rows
        columns: dict[str, list[Any]] = {}
        lacking: dict[tuple[str, int], str] = {}
        for name in choice.systems:
            runs = sorted({run for run_rows in cells[name].values() for run in run_rows}, key=natural_key)
            column = columns.setdefault(name, [])
            for segment in rows:
                run_rows = cells[name].get(segment, {})
                missing = [run for run in runs if run not in run_rows]
                run_values = tuple(values[name][run_rows[run]] for run in runs if run in run_rows)
                if run_rows and missing:
                    lacking[name, len(column)] = missing[0]
                column.append(None if missing else run_values if self._has_runs else run_values[0])
        places = [*rows.values()]
        return SegmentColumns(
            self._table.title,
            columns,
            [*rows],
            lambda row: self._table.place(places[row]),
            choice=choice,
            table=self._table,
            lacking_runs=lacking,
        )


def score_columns(
    scores: SegmentScores | Mapping[str, SegmentScores],
    systems: Sequence[str] | None = None,
    *,
    id_column: str | None = None,
    by: str | None = None,
) -> dict[str, SegmentColumns]:
    """Return by metric the scores of the systems, by default of all of the first metric, in a column for each.

    A single metric is called `score`; `by` is the column of groups, which is no system.
    """
    check_form(scores, "scores")
    by_metric: dict[str, SegmentColumns] = {}
    for name, table in _by_metric(scores).items():
        rows = table_of(_with_runs(table), "scores" if table is scores else f"scores[{name!r}]")
        names = systems
        if names is None and isinstance(table, Mapping) and "system" not in table:  # its names are explicit
            names = [column for column in table if column not in (ids_of(rows, id_column)[0], RUN, by)]
        for metric, columns in system_scores(rows, name, systems=names, id_column=id_column, by=by).items():
            if metric in by_metric:
                raise InputError(f"{rows.title} has scores of {metric}, which another input has too. Rename one.")
            by_metric[metric] = columns
            systems = [*columns.columns] if systems is None else systems
    return by_metric


def _with_runs(table: SegmentScores) -> SegmentScores:
    """Return a mapping of systems to scores of runs, (runs, segments), as rows; and anything else as it is."""
    if not isinstance(table, Mapping) or not any(np.ndim(scores) == 2 for scores in table.values()):
        return table
    rows = [
        (system, segment, run, score)
        for system, runs in table.items()
        for run, run_scores in enumerate(np.atleast_2d(runs).tolist(), 1)
        for segment, score in enumerate(run_scores, 1)
    ]
    return dict(zip(("system", "segment", RUN, "score"), zip(*rows, strict=True), strict=True))


def _by_metric(scores: SegmentScores | Mapping[str, SegmentScores]) -> Mapping[str, SegmentScores]:
    if isinstance(scores, Mapping) and scores and all(map(is_frame, scores.values())):
        return scores
    if not is_frame(scores):
        raise InputTypeError(
            f"The scores are a {type(scores).__name__}; expected a data frame with a column for each system, or a "
            "mapping of their names to lists of numbers."
        )
    return {"score": scores}


def score_matrix(frame: Any) -> tuple[tuple[str, ...], list[NDArray[np.float64]]]:
    """Return the systems of a data frame of scores, and their `scores_of`, by `system_scores`."""
    by_metric = system_scores(table_of(frame, "scores"), "score")
    if len(by_metric) > 1:
        raise InputError(f"scores has {len(by_metric)} metrics, {_list(by_metric)}; expected one.")
    [columns] = by_metric.values()
    joined = join_segments([columns])
    return tuple(columns.columns), [scores_of(joined.values(0, values)) for values in columns.columns.values()]


def scores_of(values: Sequence[float | tuple[float, ...]]) -> NDArray[np.float64]:
    """Return the scores of a system, (segments,), or of its runs, (runs, segments)."""
    scores = np.array(values, dtype=np.float64)
    return scores.T if scores.ndim == 2 else scores


def as_runs(inputs: Sequence[SegmentColumns], name: str, missing: Missing = "raise") -> SegmentColumns:
    """Return inputs of one column each, which are runs of one system, as a column of this name."""
    joined = join_segments(inputs, missing)
    runs = (joined.values(position, next(iter(run.columns.values()))) for position, run in enumerate(inputs))
    first = inputs[0]
    rows = joined.rows[0].tolist()
    ids = None if all(run.ids is None for run in inputs) else [*map(str, joined.names)]
    return SegmentColumns(
        first.title, {name: [*zip(*runs, strict=True)]}, ids, lambda row: first.place(rows[row]), first.unit
    )


# Joining.


@dataclass(frozen=True, slots=True, eq=False)
class JoinedSegments:
    """The segments that all inputs have, in the order of their ids."""

    names: tuple[str | int, ...]
    """The ids; or where there are none, the numbers of the lines or rows, which count from 1."""

    dropped: tuple[str | int, ...]
    """The segments that were left out, since some input lacks them."""

    rows: tuple[NDArray[np.int64], ...]
    """For each input the row of each segment, (segments,)."""

    def values(self, position: int, values: Sequence[Any]) -> list[Any]:
        """Return the values of a column of the input in a position, in the order of the segments."""
        return [values[row] for row in self.rows[position].tolist()]


def join_segments(inputs: Sequence[SegmentColumns], missing: Missing = "raise") -> JoinedSegments:
    """Join the rows of inputs by their ids, or by position if none has ids.

    Inputs without ids are joined with others only if the rows of these are in the order of their ids; if some are
    missing, ids have to be the numbers of lines, from 0 or 1. InputError names the line and the id of the first segment
    that an input lacks or has twice, unless such segments are to be dropped.
    """
    if missing not in get_args(Missing):
        raise InputError(f'missing is {missing!r}; expected "raise" or "drop".')
    with_ids = [columns for columns in inputs if columns.ids is not None]
    plain = [columns for columns in inputs if columns.ids is None]
    for columns in plain[1:]:
        if len(columns) != len(plain[0]):
            raise _unequal(plain[0], columns)
    ids_of_plain = _ids_of_positions(with_ids, plain[0]) if with_ids and plain else None
    positions: Sequence[str | int] = ids_of_plain or range(1, len(plain[0]) + 1 if plain else 1)
    by_position = {name: row for row, name in enumerate(positions)}
    rows_of = [by_position if columns.ids is None else _rows_by_id(columns, missing) for columns in inputs]
    ids = {name for rows in rows_of for name in rows}
    ids.update(*(columns.ids or () for columns in with_ids))  # those that occur again too
    names = sorted(ids, key=natural_key) if with_ids else positions
    kept: list[str | int] = []
    dropped: list[str | int] = []
    lacking = [columns.incomplete() for columns in inputs]
    for name in names:
        segment_rows = (rows.get(name) for rows in rows_of)
        is_complete = all(row is not None and row not in rows for row, rows in zip(segment_rows, lacking, strict=True))
        (kept if is_complete else dropped).append(name)
    if dropped and missing == "raise":
        raise _incomplete(inputs, rows_of, lacking, dropped[0])
    if not kept:
        titles = _list(dict.fromkeys(columns.title for columns in inputs))
        raise InputError(f"No segment is in all of {titles}, with a value in every column.")
    rows = tuple(np.array([rows[name] for name in kept], dtype=np.int64) for rows in rows_of)
    return JoinedSegments(tuple(kept), tuple(dropped), rows)


def _rows_by_id(columns: SegmentColumns, missing: Missing) -> dict[str | int, int]:
    """Return the row of each id; without the ids that occur again, if segments may be missing."""
    rows: dict[str | int, int] = {}
    repeated: set[str | int] = set()
    for row, name in enumerate(columns.ids or ()):
        earlier = rows.setdefault(name, row)
        if earlier != row and missing == "raise":
            raise InputError(
                f"{columns.place(row)}: segment {name!r} occurs again; it is in {columns.place(earlier)} too. Name a "
                'column without repetitions with `id_column`, or leave such segments out with missing="drop".'
            )
        if earlier != row:
            repeated.add(name)
    return {name: row for name, row in rows.items() if name not in repeated}


def _ids_of_positions(with_ids: Sequence[SegmentColumns], plain: SegmentColumns) -> list[str]:
    """Return the ids of the rows of an input without ids, (rows,); raise InputError if they are not clear."""
    number = len(plain)
    for columns in with_ids:
        ids = columns.ids or ()
        for row in range(1, len(ids)):
            if natural_key(ids[row]) < natural_key(ids[row - 1]):
                raise InputError(
                    f"{columns.place(row)}: segment {ids[row]!r} is not in the order of ids, and {plain.title} has no "
                    f"ids to join by. Give that as a table with a column of ids, sort {columns.title} by its ids, or "
                    f'join by position with id_column="{NO_IDS}".'
                )
    names = sorted({name for columns in with_ids for name in columns.ids or ()}, key=natural_key)
    if len(names) == number:
        return names
    start = 0 if "0" in names else 1
    lines = [str(line) for line in range(start, number + start)]
    if {*names} <= {*lines} and (start == 0 or str(number) in names):
        return lines
    raise InputError(
        f"{plain.title} has {number} {plain.unit}s without ids, and {with_ids[0].title} has {len(names)} segments, "
        f"whose ids are not the numbers of these {plain.unit}s. Give {plain.title} as a table with a column of ids."
    )


def _unequal(first: SegmentColumns, second: SegmentColumns) -> InputError:
    """Return the error for two inputs without ids that have different numbers of rows."""
    longer = max(first, second, key=len)
    return InputError(
        f"{first.title} has {len(first)} {first.unit}{'s' * (len(first) != 1)} and {second.title} has {len(second)} "
        f"{second.unit}{'s' * (len(second) != 1)}; expected as many in each, in the same order, or a column of ids in "
        f"both: {longer.place(min(len(first), len(second)))} has no partner."
    )


def _incomplete(
    inputs: Sequence[SegmentColumns],
    rows_of: Sequence[Mapping[Any, int]],
    lacking: Sequence[Mapping[int, str]],
    name: str | int,
) -> InputError:
    """Return the error for a segment that some input lacks."""
    remedy = 'or leave out such segments of all systems with missing="drop".'
    place = next(one.place(rows[name]) for one, rows in zip(inputs, rows_of, strict=True) if name in rows)
    for one, rows, columns in zip(inputs, rows_of, lacking, strict=True):
        if name not in rows:
            return InputError(f"{place}: segment {name!r} is not in {one.title}. Add it there, {remedy}")
        if (column := columns.get(rows[name])) is not None:
            of_column = f" of {column!r}" if column != one.title else ""
            if (run := one.lacking_runs.get((column, rows[name]))) is not None:
                of_column += f" in run {run!r}, which other segments have,"
            of_segment = "" if isinstance(name, int) else f" for segment {name!r}"  # a position is in the place
            return InputError(f"{one.place(rows[name])}: there is no value{of_column}{of_segment}. Add it, {remedy}")
    raise AssertionError(name)


# All inputs of a comparison.


@dataclass(frozen=True, slots=True, eq=False)
class JoinedInputs:
    """The values of all inputs, in the order of the segments."""

    systems: tuple[str, ...]
    """The baseline first."""

    candidates: tuple[tuple[str | tuple[str, ...], ...], ...]
    """By system and segment, a text or that of each run; none where only scores were given."""

    references: tuple[tuple[str, ...], ...]
    """Of each segment one or more; likewise."""

    scores: Mapping[str, Sequence[Sequence[float | tuple[float, ...]]]]
    """By metric, system and segment, a score or that of each run."""

    documents: Sequence[Hashable]
    """Of each segment; none where none were given."""

    groups: Sequence[str]
    """Of each segment; likewise."""

    segments: tuple[str | int, ...]
    dropped: tuple[str | int, ...]
    choices: tuple[ColumnChoice, ...]


def join_inputs(
    systems: Systems | None,
    references: References | None,
    scores: SegmentScores | Mapping[str, SegmentScores] | None,
    documents: Documents | None,
    by: str | Iterable[Hashable] | None = None,
    *,
    baseline: str | None = None,
    id_column: str | None = None,
    missing: Missing = "raise",
    needs_texts: bool = False,
) -> JoinedInputs:
    """Join what `compare` is given, which it describes; with `needs_texts` there have to be texts of systems."""
    names = cast("Sequence[str]", systems) if _are_names(systems) else None
    of_groups = []
    if by is not None:
        tables = _tables(systems=systems, references=references, documents=documents, scores=scores)
        of_groups = _groups_of(by, [*tables], id_column, missing)
    column = next((name for one in of_groups for name in one.columns), None)
    of_texts = [] if systems is None or names is not None else _texts_of(systems, id_column, missing, column)
    if not of_texts and (needs_texts or scores is None or references is not None):
        raise InputError("There are no texts of systems. Give them as `systems`, or give `scores` alone.")
    if references is None and is_frame(systems) and not isinstance(systems, Mapping | SegmentColumns):
        references = systems
    of_references = _references_of(references, id_column, missing) if of_texts else []
    of_documents = [] if documents is None else [_column_of(documents, "documents", DOCUMENT, list, id_column, missing)]
    if of_texts:
        names = [name for one in of_texts for name in one.columns]
    of_scores = {} if scores is None else score_columns(scores, names, id_column=id_column, by=column)
    if names is None:
        names = [*next(iter(of_scores.values())).columns] if of_scores else []
    ordered = _baseline_first(names, baseline)
    inputs = [*of_texts, *of_references, *of_documents, *of_groups, *of_scores.values()]
    joined = join_segments(inputs, missing)
    columns = (
        {name: joined.values(position, values) for name, values in one.columns.items()}
        for position, one in enumerate(inputs)
    )
    texts = {name: values for _ in of_texts for name, values in next(columns).items()}
    lists = [
        [[value] if isinstance(value, str) else value for value in values]
        for _ in of_references
        for values in next(columns).values()
    ]
    named = [values for _ in of_documents for values in next(columns).values()]
    groups = [[*map(str, values)] for _ in of_groups for values in next(columns).values()]
    _check_groups(of_groups, groups, joined.names)
    matrices = {metric: next(columns) for metric in of_scores}
    return JoinedInputs(
        ordered,
        tuple(tuple(texts[name]) for name in ordered) if texts else (),
        tuple(tuple(text for texts in segment for text in texts) for segment in zip(*lists, strict=True)),
        {metric: [of_metric[name] for name in ordered] for metric, of_metric in matrices.items()},
        named[0] if named else (),
        groups[0] if groups else (),
        joined.names,
        joined.dropped,
        tuple(dict.fromkeys(one.choice for one in inputs if one.choice is not None)),
    )


def _are_names(systems: object) -> bool:
    is_list = isinstance(systems, Sequence) and not isinstance(systems, str)
    return is_list and all(isinstance(name, str) for name in cast("Sequence[object]", systems))


def _baseline_first(systems: Sequence[str], baseline: str | None) -> tuple[str, ...]:
    """Return the systems with the baseline first; raise InputError unless there are two, and it is one of them."""
    if len(systems) < 2:
        given = f"one system, {systems[0]}" if systems else "no system"
        raise InputError(f"There is {given}; expected a baseline, and at least one to compare with it.")
    if len({*systems}) < len(systems):
        raise InputError(f"The systems are {', '.join(systems)}; expected each of them once.")
    if baseline is None:
        return tuple(systems)
    if baseline not in systems:
        raise InputError(f"The baseline {baseline!r} is none of the systems {', '.join(map(repr, systems))}.")
    return (baseline, *(name for name in systems if name != baseline))


def _tables(**inputs: Any) -> Iterator[WholeTable]:
    """Yield the tables among inputs, and those of each system or metric."""
    for title, value in inputs.items():
        parts = {title: value}
        if isinstance(value, Mapping) and (title == "systems" or all(map(is_frame, value.values()))):
            parts = {f"{title}[{name!r}]": part for name, part in value.items()}
        for name, part in parts.items():
            if is_frame(part) and not isinstance(part, SegmentColumns):
                yield table_of(part, name)
            else:
                columns = (
                    one for one in (part if isinstance(part, list) else [part]) if isinstance(one, SegmentColumns)
                )
                yield from (one.table for one in columns if one.table is not None)


def _groups_of(
    by: str | Iterable[Hashable], tables: Sequence[WholeTable], id_column: str | None, missing: Missing
) -> list[SegmentColumns]:
    """Return the groups of the segments, from every table that has the column; raise InputError if none has it."""
    if not isinstance(by, str):
        return [columns_of_list([*by], "`by`")]
    found = [table for table in dict.fromkeys(tables) if by in table.names]
    if not found:
        names = ", ".join(dict.fromkeys(name for table in tables for name in table.names))
        remedy = f"the tables have {names}. Name one of these" if names else "there is no table. Give one that has it"
        raise InputError(f"There is no column {by!r} to group by; {remedy}.")
    column = Column((by,), "`by`", is_id=True)
    columns = [text_columns(table, column, id_column=id_column, missing=missing) for table in found]
    return [replace(one, columns={by: values}) for one in columns for values in one.columns.values()]


def _check_groups(
    inputs: Sequence[SegmentColumns], groups: Sequence[Sequence[str]], segments: Sequence[str | int]
) -> None:
    """Raise InputError if inputs disagree about the group of a segment, or there is one group only."""
    for one, of_one in zip(inputs[1:], groups[1:], strict=True):
        for segment, first, other in zip(segments, groups[0], of_one, strict=True):
            if first != other:
                raise InputError(
                    f"Segment {segment!r} is in the group {first!r} in {inputs[0].title}, and in {other!r} in "
                    f"{one.title}; expected the same in both."
                )
    if groups and len({*groups[0]}) < 2:
        raise InputError(f"All segments are in the group {groups[0][0]!r}; expected two or more groups.")


def _texts_of(systems: Systems, id_column: str | None, missing: Missing, by: str | None = None) -> list[SegmentColumns]:
    """Return the texts of systems, whose names are those of the columns."""
    if isinstance(systems, SegmentColumns):
        return [systems]
    if isinstance(systems, Mapping):
        found = []
        for name, texts in systems.items():
            title = f"systems[{name!r}]"
            forms = (list, tuple, SegmentColumns)
            is_runs = isinstance(texts, list | tuple) and texts and all(isinstance(one, forms) for one in texts)
            runs = [
                _column_of(of_run, title, CANDIDATE, partial(collect_strings, name=title), id_column, missing)
                for of_run in (texts if is_runs else [texts])
            ]
            of_system = as_runs(runs, name, missing) if is_runs else runs[0]
            [values] = of_system.columns.values()
            found.append(replace(of_system, columns={name: values}))
        return found
    if not is_frame(systems):
        raise InputTypeError(
            f"systems is a {type(systems).__name__}; expected a mapping of names to lists of texts, or a data frame."
        )
    return [system_texts(table_of(systems, "systems"), id_column=id_column, by=by, missing=missing)]


def _column_of(
    values: Iterable[Any] | Frame,
    title: str,
    column: Column,
    listed: Callable[[Any], Sequence[Any]],
    id_column: str | None,
    missing: Missing,
) -> SegmentColumns:
    """Return a column of a data frame, or of values that `listed` checks and lists."""
    if isinstance(values, SegmentColumns):
        return values
    if is_frame(values):
        return text_columns(table_of(values, title), column, id_column=id_column, missing=missing)
    return columns_of_list(listed(values), title)


def _references_of(references: References | None, id_column: str | None, missing: Missing) -> list[SegmentColumns]:
    if isinstance(references, list) and references and all(isinstance(one, SegmentColumns) for one in references):
        return references
    values = () if references is None else references
    return [_column_of(values, "references", REFERENCE, checked_references, id_column, missing)]


def checked_references(references: Iterable[str | Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Return the references of each segment; raise InputError if there is no segment, or one has no reference."""
    if isinstance(references, str | bytes):
        raise InputTypeError(
            f"The references are one {type(references).__name__}; expected a list, one for each segment."
        )
    lists = []
    for segment, given in enumerate(references):
        texts = collect_strings([given] if isinstance(given, str) else given, f"references[{segment}]")
        if not texts:
            raise InputError(f"references[{segment}] is empty; expected a text, or a list of at least one.")
        lists.append(tuple(texts))
    if not lists:
        raise InputError("There are no references; expected one for each segment.")
    return tuple(lists)


def _list(names: Iterable[object]) -> str:
    return ", ".join(map(str, names))
