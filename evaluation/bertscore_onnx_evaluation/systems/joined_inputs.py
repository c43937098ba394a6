"""What `compare` is given: texts, references, scores and documents, in lists or data frames, joined by segment."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from bertscore_onnx.errors import InputError, InputTypeError
from bertscore_onnx.tables.columns import Column
from bertscore_onnx.tables.whole_table import WholeTable
from bertscore_onnx.text.texts import collect_strings
from bertscore_onnx_evaluation.systems.given_scores import SegmentScores, score_columns
from bertscore_onnx_evaluation.systems.segments import (
    CANDIDATE,
    DOCUMENT,
    REFERENCE,
    ColumnChoice,
    Missing,
    SegmentColumns,
    as_runs,
    columns_of_list,
    group_column,
    is_frame,
    join_segments,
    system_texts,
    table_of,
    text_columns,
)

Frame = Any
"""A data frame in any form that `BERTScorer.score_frame` takes."""

Systems = Mapping[str, Iterable[str] | Frame] | Frame | Sequence[str]
References = Iterable[str | Sequence[str]] | Frame
Documents = Iterable[Hashable] | Frame


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
    """Join what `compare` is given, which it describes; with `needs_texts` there have to be texts of systems.

    Raises:
        InputError: fewer than two systems, or inputs that are missing, or cannot be joined or read.
        InputTypeError: something is of another type.
    """
    names = cast("Sequence[str]", systems) if _are_names(systems) else None
    tables = _tables(systems=systems, references=references, scores=scores, documents=documents)
    of_groups = [] if by is None else _groups_of(by, tables, id_column, missing)
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
    lists = [_as_lists(values) for _ in of_references for values in next(columns).values()]
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


def _tables(**inputs: Any) -> Iterator[tuple[str, Frame]]:
    """Yield the data frames among inputs, and those of each system or metric, with their names in messages."""
    for title, value in inputs.items():
        if isinstance(value, Mapping) and all(map(is_frame, value.values())):
            yield from ((f"{title}[{name!r}]", frame) for name, frame in value.items())
        elif is_frame(value) and not (title == "systems" and isinstance(value, Mapping)):
            yield title, value


def _groups_of(
    by: str | Iterable[Hashable], tables: Iterable[tuple[str, Frame]], id_column: str | None, missing: Missing
) -> list[SegmentColumns]:
    """Return the groups of the segments, from every data frame that has the column."""
    if not isinstance(by, str):
        listed = [*by]
        if listed and all(isinstance(one, SegmentColumns) for one in listed):
            return cast("list[SegmentColumns]", listed)
        return [columns_of_list(listed, "`by`")]
    return columns_of_groups([table_of(frame, title) for title, frame in tables], by, id_column, missing)


def columns_of_groups(
    tables: Sequence[WholeTable], by: str, id_column: str | None, missing: Missing
) -> list[SegmentColumns]:
    """Return the groups of segments from every table that has the column; raise InputError if none has it."""
    found = [table for table in tables if by in table.names]
    if not found:
        names = ", ".join(dict.fromkeys(name for table in tables for name in table.names))
        remedy = f"the tables have {names}. Name one of these" if names else "there is no table. Give one that has it"
        raise InputError(f"There is no column {by!r} to group by; {remedy}.")
    return [group_column(table, by, id_column=id_column, missing=missing) for table in found]


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
            is_runs = isinstance(texts, list | tuple) and texts and all(isinstance(one, list | tuple) for one in texts)
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


def _as_lists(values: Sequence[Any]) -> list[Sequence[str]]:
    return [[value] if isinstance(value, str) else value for value in values]
