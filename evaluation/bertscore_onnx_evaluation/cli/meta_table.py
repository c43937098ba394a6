"""Systems from a table of judgements: a row for each output of a system, or for each system."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.cli.terminal import echo, with_options
from bertscore_onnx.errors import InputError
from bertscore_onnx.tables.columns import CANDIDATE_COLUMNS, ID_COLUMNS, REFERENCE_COLUMNS, check_forms
from bertscore_onnx.tables.table import natural_key
from bertscore_onnx.tables.whole_table import WholeTable
from bertscore_onnx_evaluation.cli.meta_options import MetaOptions
from bertscore_onnx_evaluation.cli.options import HUMAN_COLUMNS, column_of, filled_column, references_of_table
from bertscore_onnx_evaluation.column_roles import DOCUMENT_COLUMNS
from bertscore_onnx_evaluation.metric_scores import MetricScores
from bertscore_onnx_evaluation.metrics.correlation import Floats, finite, mean_by_system
from bertscore_onnx_evaluation.metrics.judged_systems import JudgedSystems

SEGMENT_COLUMNS = ("segment", "segment_id", "seg_id")
"""Columns of segments by their names; of other columns of ids the values decide."""
ANNOTATOR_COLUMNS = ("annotator", "rater")

Texts = tuple[str, tuple[str, ...]]
"""A candidate and its references."""


def systems_of_table(table: WholeTable, options: MetaOptions) -> list[JudgedSystems]:
    """Return the systems of each language pair, with the scores of the named columns.

    Without a column of language pairs, all rows have the single --language-pair; without one of segments, each row is
    a whole system; a column of systems that is empty throughout stands for one system without a name. With a column of
    annotators, an output has a row for each, and its human score is their mean.
    """
    rows = _Rows(table, options)
    for name in options.language_pair or ():
        if name not in rows.language_pairs:
            available = ", ".join(dict.fromkeys(rows.language_pairs))
            raise InputError(f"{table.title} has no rows of the language pair {name!r}; it has {available}.")
    pairs = np.array(rows.language_pairs, dtype=object)
    return [
        _language_pair(table, rows, name, np.flatnonzero(pairs == name))
        for name in dict.fromkeys(options.language_pair or sorted(rows.language_pairs))
    ]


class _Rows:
    """The columns of the table that are needed."""

    def __init__(self, table: WholeTable, options: MetaOptions) -> None:
        segment = _segment_column(table, options)
        forms = ["a row for each system" if segment is None else "a row for each output"]
        if segment is not None and (options.metrics or options.sentinels):
            forms.append("rows of texts")
        check_forms(options.named, "meta", forms)
        human_column = column_of(table, options.named, "human", HUMAN_COLUMNS)
        self.human = table.numbers(human_column)
        self.scores = {name: table.numbers(table.find(name, "--score")) for name in dict.fromkeys(options.score or ())}
        self.language_pairs = _language_pairs(table, options)
        self.has_segments = segment is not None
        self.segments = [""] * len(table) if segment is None else table.keys(segment)
        self.dropped: set[tuple[str, str]] = set()  # language pairs and segments
        for name, values in self.scores.items():
            for row in np.flatnonzero(np.isnan(values) & ~np.isnan(self.human)).tolist():
                if segment is None or options.missing == "raise":
                    raise InputError(
                        f"{table.place(row)}: the column {name!r} holds no score, but {human_column!r} a judgement. "
                        "Add the score, or leave out the segment for all systems with --missing drop."
                    )
                self.dropped.add((self.language_pairs[row], self.segments[row]))
        if options.metrics and segment is None:
            raise InputError(
                f"{table.title} has no column of segments, so that each row is a whole system, which has no text to "
                "score. Name the column with --columns segment=NAME."
            )
        self.annotators = _annotators(table, options)
        system = column_of(table, options.named, "system")
        self.systems = [""] * len(table) if table.is_blank(system) else table.keys(system)
        self.documents = None if segment is None else filled_column(table, options.named, "document", DOCUMENT_COLUMNS)
        self.texts = _texts_of_rows(table, options, human_column, self.human)

    def scores_of(self, row: int) -> list[float | None]:
        """Return the scores of a row, which belong to an output and not to its judgement, as its texts do."""
        return [finite(values[row]) for values in self.scores.values()]


def _segment_column(table: WholeTable, options: MetaOptions) -> str | None:
    """Return the column of segments; a column of ids is one if systems share them. None if rows are whole systems."""
    if options.named("segment") or {*SEGMENT_COLUMNS} & {*table.names}:
        return column_of(table, options.named, "segment", SEGMENT_COLUMNS)
    ids = (name for name in ID_COLUMNS if name in table.names)
    return next((name for name in ids if len({*table.keys(name)}) < len(table)), None)


def _language_pairs(table: WholeTable, options: MetaOptions) -> list[str]:
    column, named = options.named("lang_pair"), options.language_pair or ()
    if not column and len(named) == 1 and "lang_pair" not in table.names:
        return [*named] * len(table)
    advice = "" if column else ", or name the one language pair with --language-pair"
    return table.keys(table.find(column or "lang_pair", "--columns lang_pair=NAME", advice))


def _annotators(table: WholeTable, options: MetaOptions) -> list[str]:
    """Return the annotator of each row, empty where there is none."""
    annotators = [""] * len(table)
    if not options.named("annotator") and not {*ANNOTATOR_COLUMNS} & {*table.names}:
        return annotators
    name = column_of(table, options.named, "annotator", ANNOTATOR_COLUMNS)
    present, rows = table.without_nulls(name)
    for row, annotator in zip(rows, present.keys(name), strict=True):
        annotators[row] = annotator
    number = len({*annotators} - {""})
    if number > 1 and not options.quiet:
        echo(f"Human scores are means over the {number} annotators in the column {name!r}.")
    return annotators


def _texts_of_rows(
    table: WholeTable, options: MetaOptions, human_column: str, human: Floats
) -> dict[int, Texts] | None:
    """Return the candidate and the references of each row that has both; None if the table has no such columns.

    Metrics need those of each judged row. Sentinels do without.
    """
    if not (options.metrics or options.sentinels):
        return None
    try:
        candidate = column_of(table, options.named, "candidate", CANDIDATE_COLUMNS)
        columns = [
            table.find(names, "--columns reference=NAME") for names in options.named.references or (REFERENCE_COLUMNS,)
        ]
    except InputError:
        if options.metrics or options.named("candidate") or options.named.references:
            raise
        return None
    present, positions = table, [*range(len(table))]
    for column in (candidate, *columns):
        present, kept = present.without_nulls(column, are_texts=True)
        positions = [positions[row] for row in kept]
    try:
        lists = [present.lists(column, may_be_empty=True) for column in columns]
        texts = [*zip(positions, present.texts(candidate), *lists, strict=True)]
    except InputError as error:
        if options.metrics:
            raise
        if not options.quiet:
            echo(f"Sentinels of texts are left out. {with_options(error)}")
        return {}
    found: dict[int, Texts] = {}
    is_judged = ~np.isnan(human)
    for row, text, *cells in texts:
        is_scored = options.metrics and is_judged[row]
        references = tuple(reference for cell in cells for reference in cell if reference or is_scored)
        if references and (text or is_judged[row]):
            found[row] = text, references
    if options.metrics and {*np.flatnonzero(is_judged).tolist()} - {*found}:
        judged, _ = table.without_nulls(human_column)
        judged.texts(candidate)
        references_of_table(judged, options.named)
    return found


def _language_pair(table: WholeTable, rows: _Rows, name: str, chosen: NDArray[np.int64]) -> JudgedSystems:
    dropped = sorted((segment for pair, segment in rows.dropped if pair == name), key=natural_key)
    chosen = chosen[[(name, rows.segments[row]) not in rows.dropped for row in chosen]]
    if not len(chosen):
        raise InputError(f"{table.title}: no segment of {name} has a score of each judged output.")
    systems = sorted({rows.systems[row] for row in chosen})
    segments = sorted({rows.segments[row] for row in chosen}, key=natural_key)
    cells = _cells(table, rows, chosen, systems, segments)
    shape = (len(systems), len(segments))

    def arranged(values: Floats) -> MetricScores:
        matrix = np.full(shape, np.nan)  # (systems, segments)
        matrix[tuple(cells.T)] = values[chosen]
        return MetricScores(mean_by_system(matrix), matrix if rows.has_segments else None)

    order = np.lexsort((rows.human[chosen], *cells.T))  # the order of rows changes no sum
    human = _mean_judgements(rows.human[chosen][order], cells[order], shape)
    candidates: list[list[str | None]] = [[None] * shape[1] for _ in systems]
    references: list[list[tuple[str, ...]]] = [[()] * shape[1] for _ in systems]
    given = rows.texts or {}
    for row, (system, segment) in zip(chosen.tolist(), cells.tolist(), strict=True):
        if row in given:
            candidates[system][segment], references[system][segment] = given[row]
    return JudgedSystems(
        name,
        tuple(systems),
        mean_by_system(human),
        human if rows.has_segments else None,
        {metric: arranged(values) for metric, values in rows.scores.items()},
        segments=tuple(segments) if rows.has_segments else (),
        documents=_documents(table, rows.documents, chosen, cells) if rows.documents else (),
        candidates=None if rows.texts is None else tuple(map(tuple, candidates)),
        references=() if rows.texts is None else tuple(map(tuple, references)),
        dropped=tuple(dropped),
    )


def _documents(
    table: WholeTable, documents: Sequence[str], chosen: NDArray[np.int64], cells: NDArray[np.int64]
) -> tuple[str, ...]:
    """Return the document of each segment; raise InputError if two rows of a segment contradict each other."""
    first: dict[int, int] = {}
    for row, segment in zip(chosen.tolist(), cells[:, 1].tolist(), strict=True):
        earlier = first.setdefault(segment, row)
        if documents[row] != documents[earlier]:
            raise InputError(
                f"{table.place(row)}: the document is {documents[row]!r}, but {documents[earlier]!r} in "
                f"{table.place(earlier)}, which is of the same segment. Give both rows the same."
            )
    return tuple(documents[first[segment]] for segment in sorted(first))


def _mean_judgements(human: Floats, cells: NDArray[np.int64], shape: tuple[int, int]) -> Floats:
    """Return the mean judgement of each output, (systems, segments), NaN without any."""
    is_judged = ~np.isnan(human)
    sums, counts = np.zeros(shape), np.zeros(shape)
    np.add.at(sums, tuple(cells[is_judged].T), human[is_judged])
    np.add.at(counts, tuple(cells[is_judged].T), 1)
    return np.divide(sums, counts, out=np.full(shape, np.nan), where=counts > 0)


def _cells(
    table: WholeTable, rows: _Rows, chosen: NDArray[np.int64], systems: Sequence[str], segments: Sequence[str]
) -> NDArray[np.int64]:
    """Return the system and the segment of each row, (rows, 2)."""
    system_at = {name: at for at, name in enumerate(systems)}
    segment_at = {name: at for at, name in enumerate(segments)}
    cells = [(system_at[rows.systems[row]], segment_at[rows.segments[row]]) for row in chosen]
    first: dict[tuple[int, int], int] = {}
    with_texts: dict[tuple[int, int], int] = {}
    texts = rows.texts or {}
    by_annotator: dict[tuple[tuple[int, int], str], int] = {}
    for row, cell in zip(chosen.tolist(), cells, strict=True):
        earlier = first.setdefault(cell, row)
        with_same_text = with_texts.setdefault(cell, row) if row in texts else row
        by_same = by_annotator.setdefault((cell, rows.annotators[row]), row)
        if earlier == row:
            continue
        if by_same != row:
            where = f"segment {rows.segments[row]!r}" if rows.has_segments else "it, without a column of segments"
            raise InputError(
                f"{table.place(row)}: the system {rows.systems[row]!r} occurs a second time for {where}; the first "
                f"is {table.place(by_same)}. Expected one row for each, with the mean of several judgements."
            )
        for same, values in ((earlier, rows.scores_of), (with_same_text, texts.get)):
            if values(row) != values(same):
                raise InputError(
                    f"{table.place(row)}: this judges the same output as {table.place(same)}, but has another text or "
                    "score. Give both rows the same."
                )
    return np.array(cells, dtype=np.int64)
