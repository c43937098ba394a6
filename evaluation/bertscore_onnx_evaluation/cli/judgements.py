"""Tables of judgements, a row for each output or each annotator of it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from bertscore_onnx.cli.specs import ColumnNames
from bertscore_onnx.cli.terminal import echo, with_options
from bertscore_onnx.errors import InputError, either
from bertscore_onnx.tables.columns import TextColumn
from bertscore_onnx.tables.order import natural_key
from bertscore_onnx.tables.roles import (
    DOCUMENT_COLUMNS,
    ID_COLUMNS,
    USUAL_NAMES,
    check_forms,
    first_usual,
)
from bertscore_onnx.tables.whole_table import WholeTable
from bertscore_onnx_evaluation.cli.meta_options import MetaOptions
from bertscore_onnx_evaluation.metric_scores import MetricScores
from bertscore_onnx_evaluation.metrics.correlation import Floats, finite, mean_by_system
from bertscore_onnx_evaluation.metrics.judged_systems import JudgedSystems

HUMAN_COLUMNS = ("human", "human_score")
"""The usual names of a column of human scores."""

ANNOTATOR_COLUMNS = ("annotator", "rater")

Texts = tuple[str, tuple[str, ...]]
"""A candidate and its references."""


def systems_of_table(table: WholeTable, options: MetaOptions) -> list[JudgedSystems]:
    """Return the systems of each language pair, with the named scores.

    Without a column of language pairs, all rows have the single --language-pair; a column of
    systems that is empty throughout stands for one system without a name. With a column of
    annotators, an output has a row for each, and its human score is their mean.
    """
    judgements = _Judgements(table, options)
    for name in options.language_pair or ():
        if name not in judgements.language_pairs:
            available = ", ".join(dict.fromkeys(judgements.language_pairs))
            lack = f"{table.title} has no rows of the language pair {name!r}"
            raise InputError(f"{lack}; it has {available}.")
    names = options.language_pair or sorted(judgements.language_pairs)
    return [judgements.of_pair(name) for name in dict.fromkeys(names)]


class _Judgements:
    """The columns of a table that `meta` needs, by row."""

    def __init__(self, table: WholeTable, options: MetaOptions) -> None:
        self.table = table
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

    def of_pair(self, name: str) -> JudgedSystems:
        """Return the systems of a language pair."""
        dropped = {segment for pair, segment in self.dropped if pair == name}
        rows = []
        for row, pair in enumerate(self.language_pairs):
            if pair == name and self.segments[row] not in dropped:
                rows.append(row)
        if not rows:
            raise InputError(
                f"{self.table.title}: no segment of {name} has a score of each judged output."
            )
        self._check_outputs(rows)
        system_of_row = [self.systems[row] for row in rows]
        segment_of_row = [self.segments[row] for row in rows]
        systems = sorted(set(system_of_row))
        segments = sorted(set(segment_of_row), key=natural_key)
        shape = (len(systems), len(segments))
        # the system and the segment of each row, (2, rows)
        cells = np.array([_places(system_of_row, systems), _places(segment_of_row, segments)])
        metrics = {}
        for metric, values in self.scores.items():
            scores = np.full(shape, np.nan)
            scores[tuple(cells)] = values[rows]
            metrics[metric] = MetricScores(mean_by_system(scores), scores)
        documents: tuple[str, ...] = ()
        if self.documents:
            by_segment = self._documents(rows, self.documents)
            documents = tuple(by_segment[segment] for segment in segments)
        candidates = None
        references: tuple[tuple[tuple[str, ...], ...], ...] = ()
        if self.texts is not None:
            candidates, references = _arranged_texts(self.texts, rows, cells, shape)
        return JudgedSystems(
            name,
            tuple(systems),
            _mean_judgements(self.human[rows], cells, shape),
            metrics,
            segments=tuple(segments),
            documents=documents,
            candidates=candidates,
            references=references,
            dropped=tuple(sorted(dropped, key=natural_key)),
        )

    def _check_outputs(self, rows: Sequence[int]) -> None:
        """Raise InputError if two rows of an output contradict each other."""
        texts = self.texts or {}
        first: dict[tuple[str, str], int] = {}
        first_with_texts: dict[tuple[str, str], int] = {}
        first_by_annotator: dict[tuple[str, str, str], int] = {}
        for row in rows:
            output = (self.systems[row], self.segments[row])
            earlier = first.setdefault(output, row)
            with_texts = row
            if row in texts:
                with_texts = first_with_texts.setdefault(output, row)
            by_annotator = first_by_annotator.setdefault((*output, self.annotators[row]), row)
            if by_annotator != row:
                system, segment = output
                raise InputError(
                    f"{self.table.place(row)}: the system {system!r} occurs a second time for "
                    f"segment {segment!r}; the first is {self.table.place(by_annotator)}. "
                    "Expected one row for each, with the mean of several judgements."
                )
            if self._scores_of(row) != self._scores_of(earlier):
                raise self._contradiction(row, earlier)
            if texts.get(row) != texts.get(with_texts):
                raise self._contradiction(row, with_texts)

    def _scores_of(self, row: int) -> list[float | None]:
        """Return a row's scores, which belong to its output and not to its judgement."""
        return [finite(values[row]) for values in self.scores.values()]

    def _contradiction(self, row: int, earlier: int) -> InputError:
        return InputError(
            f"{self.table.place(row)}: this judges the same output as "
            f"{self.table.place(earlier)}, but has another text or score. Give both rows the same."
        )

    def _documents(self, rows: Sequence[int], documents: Sequence[str]) -> dict[str, str]:
        """Return the document of each segment; raise InputError if it has several."""
        first: dict[str, int] = {}
        for row in rows:
            earlier = first.setdefault(self.segments[row], row)
            if documents[row] != documents[earlier]:
                raise InputError(
                    f"{self.table.place(row)}: the document is {documents[row]!r}, but "
                    f"{documents[earlier]!r} in {self.table.place(earlier)}, which is of the same "
                    "segment. Give both rows the same."
                )
        return {segment: documents[row] for segment, row in first.items()}


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
    try:
        candidate = column_of(table, options.named, "candidate")
        columns = list(_reference_columns(table, options.named))
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


def _places(values: Iterable[str], names: Iterable[str]) -> list[int]:
    """Return the position of each value among the names."""
    positions = {name: position for position, name in enumerate(names)}
    return [positions[value] for value in values]


def _arranged_texts(
    texts: Mapping[int, Texts],
    rows: Sequence[int],
    cells: NDArray[np.int64],
    shape: tuple[int, int],
) -> tuple[tuple[tuple[str | None, ...], ...], tuple[tuple[tuple[str, ...], ...], ...]]:
    """Return the candidates and the references by system and segment."""
    num_systems, num_segments = shape
    candidates: list[list[str | None]] = [[None] * num_segments for _ in range(num_systems)]
    references: list[list[tuple[str, ...]]] = [[()] * num_segments for _ in range(num_systems)]
    for row, (system, segment) in zip(rows, cells.T.tolist(), strict=True):
        if row in texts:
            candidates[system][segment], references[system][segment] = texts[row]
    return tuple(map(tuple, candidates)), tuple(map(tuple, references))


def _mean_judgements(human: Floats, cells: NDArray[np.int64], shape: tuple[int, int]) -> Floats:
    """Return the mean judgement of each output, (systems, segments); NaN if it has none."""
    is_judged = ~np.isnan(human)
    human = human[is_judged]
    outputs = np.ravel_multi_index(tuple(cells[:, is_judged]), shape)
    size = shape[0] * shape[1]
    order = np.argsort(human)  # the order of rows changes no sum
    sums = np.bincount(outputs[order], human[order], minlength=size)
    counts = np.bincount(outputs, minlength=size)
    means = np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0)
    return means.reshape(shape)


# The columns of a table of judgements.


def column_of(
    table: WholeTable,
    columns: ColumnNames,
    role: str,
    usual: Iterable[str] = (),
) -> str:
    """Return the column of a role: as it is named, or by a usual name, or the role's name."""
    option = f"--columns {role}=NAME"
    if role in USUAL_NAMES and role not in columns:
        return TextColumn((), option, role=role).find(table.names, table.title)
    return table.find(columns.get(role) or usual or role, option)


def names_of(
    table: WholeTable, columns: ColumnNames, role: Literal["segment", "document"]
) -> list[str] | None:
    """Return the ids of segments, or the documents, of the rows, from the column that is named or
    the first with a usual name that is not blank; None without any.
    """
    usual = {"segment": ID_COLUMNS, "document": DOCUMENT_COLUMNS}[role]
    named = columns(role)
    if named is not None:
        return table.keys(table.find(named, f"--columns {role}=NAME"))
    filled = [name for name in table.names if not table.is_blank(name)]
    for name in first_usual(usual, filled):
        return table.keys(name)
    return None


def references_of_table(table: WholeTable, columns: ColumnNames) -> list[list[str]]:
    """Return the references of each row of a table that is held whole."""
    lists = []
    for number, name in enumerate(_reference_columns(table, columns)):
        lists.append(table.lists(name, may_be_empty=number > 0))
    return [list(chain.from_iterable(row)) for row in zip(*lists, strict=True)]


def _reference_columns(table: WholeTable, columns: ColumnNames) -> Iterator[str]:
    """Yield the columns of references: as they are named, or by their usual names."""
    option = "--columns reference=NAME"
    names = columns.references or table.find_references(option)
    for name in names:
        yield table.find(name, option)
