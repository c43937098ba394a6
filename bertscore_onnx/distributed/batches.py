"""`ScoreBatch`: what an engine calls with one batch of rows after the other, in as many processes as it likes."""

from collections import deque
from collections.abc import Hashable, Iterable, Iterator
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Unpack

from bertscore_onnx.errors import InputError
from bertscore_onnx.functional import ScorerCache
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.scores import Score
from bertscore_onnx.scoring.tokenization import count_documents
from bertscore_onnx.settings import ScorerSettings, TokenizerSettings, checked_settings, key_of
from bertscore_onnx.signature import Signature
from bertscore_onnx.tables.batches import (
    Batch,
    Errors,
    RowReader,
    Rows,
    ScoreColumns,
    ScoredRows,
    Table,
    check_errors,
    table_of,
)
from bertscore_onnx.tables.columns import Column

if TYPE_CHECKING:
    import pyarrow


MAX_SCORERS = 2
"""How many scorers a process keeps, which all that is called in it share."""

MAX_IDLE_ROWS = 10_000
"""How many rows in a row that cannot be scored are kept before they are handed on without waiting for a score."""

_scorers = ScorerCache(MAX_SCORERS)


class ScoreBatch:
    """Scores batches of rows: a callable to give to Ray Data, Spark, Dask, `datasets.map` or pandas.

    It holds settings alone, so that it is pickled and hashed in no time. The scorer is loaded in the process where it
    is first called, once for all copies of equal settings. In fp32, fp16 and int8 on a CPU the scores of a row have the
    same bits however rows are cut into batches.
    """

    def __init__(
        self,
        bundle: str | PathLike[str] | None = None,
        candidate: str = "candidate",
        reference: str = "reference",
        *,
        errors: Errors = "raise",
        **settings: Unpack[ScorerSettings],
    ) -> None:
        """Take what to score with; no bundle is opened yet.

        Args:
            bundle: a path, a name or `hf://…`, as `BERTScorer` takes it; each process opens it for itself. None for the
                default model of `lang`.
            candidate: the name of the column of candidates, a text a row.
            reference: that of references, a text or a list of texts a row.
            errors: what becomes of a row that has a null or something else than texts: "raise" for an InputError with
                its number, "null" for nulls as its scores and a further column `error` with the reason.
            settings: those of `BERTScorer`. `idf` may not be True without `idf_sents`, since a batch holds a part of
                the references: give it the `DocumentCounts` of the whole.

        Raises:
            InputError: there is no such setting, or no such treatment of errors.
        """
        check_errors(errors)
        self._bundle = None if bundle is None else fspath(bundle)
        self._candidate, self._reference, self._errors = candidate, reference, errors
        self._settings = checked_settings(settings)

    @property
    def columns(self) -> ScoreColumns:
        """The columns that it adds."""
        return ScoreColumns(bool(self._settings.get("all_layers")), self._errors)

    @property
    def signature(self) -> Signature:
        """That of its scores; loads the scorer in this process."""
        with self._scorer() as scorer:
            return scorer.signature

    def __call__(self, batch: Batch) -> Batch:
        """Score the rows of a batch.

        Args:
            batch: a dict of columns (numpy arrays or lists), a `pyarrow.Table` or `RecordBatch`, or a
                `pandas.DataFrame`.

        Returns:
            The batch in its form, with further columns: `precision`, `recall` and `f1`, float32, and `best_reference`,
            the position of the reference with the best F; each a list over the layers with `all_layers`. With
            `errors="null"` also `error`, which is null where there are scores. A dict then has arrays of objects. The
            metadata of an Arrow schema gets the signature, under `bertscore_onnx.signature`.

        Raises:
            InputError: a column is missing, or has the name of one that is to be added; or a row cannot be scored.
            BertScoreOnnxError: what `BERTScorer` raises, when it is first called in a process.
        """
        [scored] = self.stream([batch])
        return scored

    def stream(self, batches: Iterable[Batch], title: str = "") -> Iterator[Batch]:
        """Score the rows of many batches, which are read some thousand rows ahead, so that their size is no matter.

        Args:
            batches: as for a call.
            title: what the rows are of, such as a file, for a message.

        Yields:
            Each batch as a call returns it. Where a row cannot be scored, first the batches before it.

        Raises:
            InputError, BertScoreOnnxError: as a call raises them; the number of a row counts from the first batch on.
        """
        reader = RowReader(self._candidate, self._reference, self._errors, title)

        def read() -> Iterator[tuple[Table, Rows]]:
            for batch in batches:
                table = table_of(batch)
                candidates, references = map(table.values, reader.find(table.names))
                self.columns.check_free(table.names, "The batch")
                yield table, reader.read(candidates, references)

        return self.stream_rows(read())

    def stream_rows(self, batches: Iterable[tuple[Table, Rows]]) -> Iterator[Batch]:
        """Score rows that were read already, as `stream` does.

        Args:
            batches: each batch, and the texts in its rows.

        Yields:
            Each batch as a call returns it. Where `batches` fails, first the batches before.

        Raises:
            BertScoreOnnxError: what `BERTScorer` raises.
        """
        unread = iter(batches)
        waiting: deque[tuple[Table, Rows]] = deque()
        is_ended = False

        def pairs() -> Iterator[tuple[str, list[str]]]:
            nonlocal is_ended
            num_idle = 0  # rows without a pair, for which no score comes
            for table, rows in unread:
                waiting.append((table, rows))
                yield from rows.pairs
                num_idle = 0 if rows.pairs else num_idle + len(rows.reasons)
                if num_idle > MAX_IDLE_ROWS:
                    return
            is_ended = True

        with self._scorer() as scorer:
            signature, found = scorer.signature, list[Score]()

            def finished() -> Iterator[Batch]:
                while waiting and len(waiting[0][1].pairs) == len(found):
                    table, rows = waiting.popleft()
                    yield table.with_scores(ScoredRows(found[:], rows.reasons, self.columns, signature))
                    found.clear()

            while not is_ended:
                try:
                    for score in scorer.stream(pairs()):
                        yield from finished()  # batches without a pair
                        found.append(score)
                        yield from finished()
                except Exception:
                    yield from finished()
                    raise
                yield from finished()

    def __eq__(self, other: object) -> bool:
        """Compare the settings."""
        return isinstance(other, ScoreBatch) and self._key() == other._key()

    def __hash__(self) -> int:
        """Return what equal ones share."""
        return hash(self._key())

    def __repr__(self) -> str:
        """Name the bundle and the settings."""
        given: dict[str, Any] = {"candidate": self._candidate, "reference": self._reference, "errors": self._errors}
        named = ", ".join(f"{name}={value!r}" for name, value in (given | self._settings).items())
        return f"ScoreBatch({self._bundle!r}, {named})"

    def _key(self) -> Hashable:
        return self._bundle, self._candidate, self._reference, self._errors, key_of(self._settings)

    def _scorer(self) -> BERTScorer:
        """Return the scorer of this process; the caller closes it."""
        settings: ScorerSettings = {**self._settings, "model_type": self._bundle}  # type: ignore[typeddict-item]
        return _scorers.get(settings)


# `CountBatch`: counts the documents of one batch of rows after the other, by the tokenizer alone.


class CountBatch:
    """Counts in how many references each token occurs: like `ScoreBatch`, a callable to give to an engine."""

    def __init__(
        self,
        bundle: str | PathLike[str] | None = None,
        reference: str = "reference",
        *,
        errors: Errors = "raise",
        **settings: Unpack[TokenizerSettings],
    ) -> None:
        """Take what to count with; no bundle is opened yet.

        Args:
            bundle: as for `ScoreBatch`, whose model is not loaded.
            reference: the name of the column of references, a text or a list of texts a row.
            errors: what becomes of a row that holds something else: an InputError with its number, or nothing.
            settings: those of `BERTScorer` that say which bundle, and where texts are cut.

        Raises:
            InputError: there is no such setting, or no such treatment of rows.
        """
        check_errors(errors)
        self._bundle = None if bundle is None else fspath(bundle)
        self._reference, self._errors = reference, errors
        self._settings = checked_settings(settings, TokenizerSettings)

    def __call__(self, batch: Batch) -> "pyarrow.Table":
        """Count the references of a batch, as `DocumentCounts.to_arrow` has them: sum them by tokenization and token.

        Raises:
            InputError: the column is missing; or a row cannot be counted, and `errors` is "raise".
            MissingExtraError: pyarrow is not installed.
        """
        return self.count(batch).to_arrow()

    def count(self, batch: Batch) -> DocumentCounts:
        """Count the references of a batch, in any form that `ScoreBatch` takes; errors are those of a call."""
        return self.total([batch])

    def total(self, batches: Iterable[Batch], title: str = "") -> DocumentCounts:
        """Count the references of many batches together, which are read one by one.

        Args:
            batches: each in any form that `ScoreBatch` takes.
            title: what the rows are of, such as a file, for a message.

        Raises:
            InputError: as a call raises it; the number of a row counts from the first batch on.
        """
        return count_documents(self._texts(batches, title), self._bundle, **self._settings)

    def _texts(self, batches: Iterable[Batch], title: str) -> Iterator[list[str]]:
        column = Column((self._reference,), "reference", may_hold_lists=True)
        tables = map(table_of, batches)
        values = (value for table in tables for value in table.values(column.find(table.names, title or "The batch")))
        for number, value in enumerate(values, 1):
            try:
                yield column.texts_of(value, self._reference, f"{title}, row {number}" if title else f"row {number}")
            except InputError:
                if self._errors == "raise":
                    raise
