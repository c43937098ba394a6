"""Systems from a table of judgements, a row for each output."""

from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.cli.terminal import echo, with_options
from bertscore_onnx.errors import InputError, either
from bertscore_onnx.tables.roles import ID_COLUMNS, check_forms
from bertscore_onnx.tables.table import natural_key
from bertscore_onnx.tables.whole_table import WholeTable
from bertscore_onnx_evaluation.cli.meta_options import MetaOptions
from bertscore_onnx_evaluation.cli.options import (
    HUMAN_COLUMNS,
    column_of,
    names_of,
    references_of_table,
)
from bertscore_onnx_evaluation.metric_scores import MetricScores
from bertscore_onnx_evaluation.metrics.correlation import Floats, finite, mean_by_system
from bertscore_onnx_evaluation.metrics.judged_systems import JudgedSystems

ANNOTATOR_COLUMNS = ("annotator", "rater")

Texts = tuple[str, tuple[str, ...]]
"""A candidate and its references."""


def systems_of_table(table: WholeTable, options: MetaOptions) -> list[JudgedSystems]:
    """Return the systems of each language pair, with the named scores.

    Without a column of language pairs, all rows have the single --language-pair; a column of
    systems that is empty throughout stands for one system without a name. With a column of
    annotators, an output has a row for each, and its human score is their mean.
    """
    rows = _Rows(table, options)
    for name in options.language_pair or ():
        if name not in rows.language_pairs:
            available = ", ".join(dict.fromkeys(rows.language_pairs))
            lack = f"{table.title} has no rows of the language pair {name!r}"
            raise InputError(f"{lack}; it has {available}.")
    pairs = np.array(rows.language_pairs, dtype=object)
    systems = []
    for name in dict.fromkeys(options.language_pair or sorted(rows.language_pairs)):
        systems.append(_language_pair(table, rows, name, np.flatnonzero(pairs == name)))
    return systems


class _Rows:
    """The columns of the table that are needed."""

    def __init__(self, table: WholeTable, options: MetaOptions) -> None:
        segments = names_of(table, options.named, "segment")
        if segments is None:
            raise InputError(
                f"{table.title} has no column of segments, {either(map(repr, ID_COLUMNS))}. Name "
                "it with --columns segment=NAME. Of a table with a row for each system, "
                "`pandas.DataFrame.corr` gives the correlations."
            )
        forms = ["a row for each output"]
        if options.metrics or options.sentinels:
            forms.append("rows of texts")
        check_forms(options.named, "meta", forms)
        human_column = column_of(table, options.named, "human", HUMAN_COLUMNS)
        self.human = table.numbers(human_column)
        self.scores: dict[str, Floats] = {}
        for name in options.score or ():
            if name not in self.scores:
                self.scores[name] = table.numbers(table.find(name, "--score"))
        self.language_pairs = _language_pairs(table, options)
        self.segments = segments
        self.dropped: set[tuple[str, str]] = set()  # language pairs and segments
        for name, values in self.scores.items():
            lacks_score = np.isnan(values) & ~np.isnan(self.human)
            for row in np.flatnonzero(lacks_score).tolist():
                if options.missing == "raise":
                    raise InputError(
                        f"{table.place(row)}: the column {name!r} holds no score, but "
                        f"{human_column!r} a judgement. Add the score, or leave out the segment "
                        "for all systems with --missing drop."
                    )
                self.dropped.add((self.language_pairs[row], self.segments[row]))
        self.annotators = _annotators(table, options)
        system = column_of(table, options.named, "system")
        self.systems = [""] * len(table)
        if not table.is_blank(system):
            self.systems = table.keys(system)
        self.documents = names_of(table, options.named, "document")
        self.texts = _texts_of_rows(table, options, human_column, self.human)

    def scores_of(self, row: int) -> list[float | None]:
        """Return a row's scores, which belong to its output and not to its judgement."""
        return [finite(values[row]) for values in self.scores.values()]


def _language_pairs(table: WholeTable, options: MetaOptions) -> list[str]:
    column = options.named("lang_pair")
    pairs = list(options.language_pair or ())
    if not column and len(pairs) == 1 and "lang_pair" not in table.names:
        return pairs * len(table)
    advice = "" if column else ", or name the one language pair with --language-pair"
    return table.keys(table.find(column or "lang_pair", "--columns lang_pair=NAME", advice))


def _annotators(table: WholeTable, options: MetaOptions) -> list[str]:
    """Return the annotator of each row, empty where there is none."""
    annotators = [""] * len(table)
    if not options.named("annotator") and set(ANNOTATOR_COLUMNS).isdisjoint(table.names):
        return annotators
    name = column_of(table, options.named, "annotator", ANNOTATOR_COLUMNS)
    present, rows = table.without_nulls(name)
    for row, annotator in zip(rows, present.keys(name), strict=True):
        annotators[row] = annotator
    number = len(set(annotators) - {""})
    if number > 1 and not options.quiet:
        echo(f"Human scores are means over the {number} annotators in the column {name!r}.")
    return annotators


def _texts_of_rows(
    table: WholeTable,
    options: MetaOptions,
    human_column: str,
    human: Floats,
) -> dict[int, Texts] | None:
    """Return the candidate and references of each row that has both; None without such columns."""
    if not (options.metrics or options.sentinels):
        return None
    option = "--columns reference=NAME"
    try:
        candidate = column_of(table, options.named, "candidate")
        names = options.named.references or table.find_references(option)
        columns = [table.find(name, option) for name in names]
    except InputError:
        if options.metrics or options.named("candidate") or options.named.references:
            raise
        return None
    present = table
    positions = list(range(len(table)))
    for column in (candidate, columns[0]):
        present, kept = present.without_nulls(column, are_texts=True)
        positions = [positions[row] for row in kept]
    try:
        lists = [present.lists(column, may_be_empty=True) for column in columns]
        texts = list(zip(positions, present.texts(candidate), *lists, strict=True))
    except InputError as error:
        if options.metrics:
            raise
        if not options.quiet:
            echo(f"Sentinels of texts are left out. {with_options(error)}")
        return {}

    found: dict[int, Texts] = {}
    is_judged = ~np.isnan(human)
    for row, text, *cells in texts:
        # Metrics refuse an empty reference of a judged row; other empty ones are none.
        is_scored = options.metrics and is_judged[row]
        references = chain.from_iterable(cells)
        given = tuple(reference for reference in references if reference or is_scored)
        if given and (text or is_judged[row]):
            found[row] = (text, given)
    # Metrics need the texts of each judged row; sentinels do without.
    judged_rows = np.flatnonzero(is_judged).tolist()
    if options.metrics and not found.keys() >= set(judged_rows):
        # One of these raises the error that names the row.
        judged, _ = table.without_nulls(human_column)
        judged.texts(candidate)
        references_of_table(judged, options.named)
    return found


def _language_pair(
    table: WholeTable,
    rows: _Rows,
    name: str,
    of_pair: NDArray[np.int64],
) -> JudgedSystems:
    dropped = {segment for pair, segment in rows.dropped if pair == name}
    chosen = np.array([row for row in of_pair if rows.segments[row] not in dropped], np.int64)
    if not len(chosen):
        raise InputError(f"{table.title}: no segment of {name} has a score of each judged output.")
    systems = sorted({rows.systems[row] for row in chosen})
    segments = sorted({rows.segments[row] for row in chosen}, key=natural_key)
    cells = _cells(table, rows, chosen, systems, segments)
    shape = (len(systems), len(segments))

    def arranged(values: Floats) -> MetricScores:
        matrix = np.full(shape, np.nan)  # (systems, segments)
        matrix[tuple(cells.T)] = values[chosen]
        return MetricScores(mean_by_system(matrix), matrix)

    # The order of rows changes no sum.
    order = np.lexsort((rows.human[chosen], *cells.T))
    human = _mean_judgements(rows.human[chosen][order], cells[order], shape)
    metrics = {metric: arranged(values) for metric, values in rows.scores.items()}
    documents: tuple[str, ...] = ()
    if rows.documents:
        documents = _documents(table, rows.documents, chosen, cells)
    candidates = None
    references: tuple[tuple[tuple[str, ...], ...], ...] = ()
    if rows.texts is not None:
        candidates, references = _arranged_texts(rows.texts, chosen, cells, shape)
    return JudgedSystems(
        name,
        tuple(systems),
        human,
        metrics,
        segments=tuple(segments),
        documents=documents,
        candidates=candidates,
        references=references,
        dropped=tuple(sorted(dropped, key=natural_key)),
    )


def _arranged_texts(
    texts: Mapping[int, Texts],
    chosen: NDArray[np.int64],
    cells: NDArray[np.int64],
    shape: tuple[int, int],
) -> tuple[tuple[tuple[str | None, ...], ...], tuple[tuple[tuple[str, ...], ...], ...]]:
    """Return the candidates and the references by system and segment."""
    num_systems, num_segments = shape
    candidates: list[list[str | None]] = [[None] * num_segments for _ in range(num_systems)]
    references: list[list[tuple[str, ...]]] = [[()] * num_segments for _ in range(num_systems)]
    for row, (system, segment) in zip(chosen.tolist(), cells.tolist(), strict=True):
        if row in texts:
            candidate, references_of_row = texts[row]
            candidates[system][segment] = candidate
            references[system][segment] = references_of_row
    return tuple(map(tuple, candidates)), tuple(map(tuple, references))


def _documents(
    table: WholeTable,
    documents: Sequence[str],
    chosen: NDArray[np.int64],
    cells: NDArray[np.int64],
) -> tuple[str, ...]:
    """Return the document of each segment.

    InputError is raised if two rows of a segment contradict each other.
    """
    first: dict[int, int] = {}
    for row, segment in zip(chosen.tolist(), cells[:, 1].tolist(), strict=True):
        earlier = first.setdefault(segment, row)
        if documents[row] != documents[earlier]:
            raise InputError(
                f"{table.place(row)}: the document is {documents[row]!r}, but "
                f"{documents[earlier]!r} in {table.place(earlier)}, which is of the same segment. "
                "Give both rows the same."
            )
    return tuple(documents[first[segment]] for segment in sorted(first))


def _mean_judgements(human: Floats, cells: NDArray[np.int64], shape: tuple[int, int]) -> Floats:
    """Return the mean judgement of each output, (systems, segments); NaN if it has none."""
    is_judged = ~np.isnan(human)
    places = tuple(cells[is_judged].T)
    sums = np.zeros(shape)
    counts = np.zeros(shape)
    np.add.at(sums, places, human[is_judged])
    np.add.at(counts, places, 1)
    return np.divide(sums, counts, out=np.full(shape, np.nan), where=counts > 0)


def _cells(
    table: WholeTable,
    rows: _Rows,
    chosen: NDArray[np.int64],
    systems: Sequence[str],
    segments: Sequence[str],
) -> NDArray[np.int64]:
    """Return the system and the segment of each row, (rows, 2)."""
    system_numbers = {name: number for number, name in enumerate(systems)}
    segment_numbers = {name: number for number, name in enumerate(segments)}
    cells = []
    first: dict[tuple[int, int], int] = {}
    first_with_texts: dict[tuple[int, int], int] = {}
    first_by_annotator: dict[tuple[tuple[int, int], str], int] = {}
    texts = rows.texts or {}
    for row in chosen.tolist():
        cell = (system_numbers[rows.systems[row]], segment_numbers[rows.segments[row]])
        cells.append(cell)
        earlier = first.setdefault(cell, row)
        with_texts = row
        if row in texts:
            with_texts = first_with_texts.setdefault(cell, row)
        by_annotator = first_by_annotator.setdefault((cell, rows.annotators[row]), row)
        if earlier == row:
            continue
        if by_annotator != row:
            raise InputError(
                f"{table.place(row)}: the system {rows.systems[row]!r} occurs a second time for "
                f"segment {rows.segments[row]!r}; the first is {table.place(by_annotator)}. "
                "Expected one row for each, with the mean of several judgements."
            )
        if rows.scores_of(row) != rows.scores_of(earlier):
            raise _contradiction(table, row, earlier)
        if texts.get(row) != texts.get(with_texts):
            raise _contradiction(table, row, with_texts)
    return np.array(cells, dtype=np.int64)


def _contradiction(table: WholeTable, row: int, earlier: int) -> InputError:
    return InputError(
        f"{table.place(row)}: this judges the same output as {table.place(earlier)}, but has "
        "another text or score. Give both rows the same."
    )
