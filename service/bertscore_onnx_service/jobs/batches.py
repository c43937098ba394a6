"""Callables that score or count batches of rows, in any process.

`ScoreBatch` scores one batch after the other, `CountBatch` counts the documents.
"""

from collections import deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from itertools import islice
from os import PathLike, fspath
from time import monotonic
from typing import TYPE_CHECKING, Any, Unpack, cast

from bertscore_onnx import errors as error_tree
from bertscore_onnx.errors import BertScoreOnnxError
from bertscore_onnx.functional import ScorerCache
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.scores import Score, Signature
from bertscore_onnx.scoring.tokenization import count_documents
from bertscore_onnx.settings import ScorerSettings, TokenizerSettings, checked_settings, key_of
from bertscore_onnx.tables.batches import Batch, BatchAdapter, adapt
from bertscore_onnx.tables.columns import find_columns
from bertscore_onnx.tables.row_reader import (
    RowReader,
    TextColumns,
    TextsOfRow,
    TextsOfRows,
    text_columns,
)
from bertscore_onnx.tables.score_columns import (
    SCORE_NAMES,
    Errors,
    ScoreColumns,
    check_errors,
    check_free,
    check_score_names,
)
from bertscore_onnx.text.texts import Text, are_in_context

if TYPE_CHECKING:
    import pyarrow


MAX_SCORERS = 2
"""How many models a process keeps, which all callables in it share, and how many with idf
weights.
"""

MAX_IDLE_ROWS = 10_000
"""How many consecutive rows that cannot be scored are kept before they are yielded without waiting
for a score.
"""

FIRST_ROWS = 16
"""How many rows are scored first to measure the speed; then as many more as before, and so on."""

MEASURED_SECONDS = 0.5
"""How long the speed is measured at least."""

_models = ScorerCache(MAX_SCORERS)
_weighted = ScorerCache(MAX_SCORERS)


class ScoreBatch:
    """Scores batches of rows.

    It is a callable to give to Ray Data, Spark, Dask, `datasets.map` or pandas.

    It holds settings alone, so that it is pickled and hashed in no time. The scorer is loaded in
    the process where it is first called, once for all copies of equal settings. In fp32, fp16 and
    int8 on a CPU the scores of a row have the same bits however rows are cut into batches;
    docs/differences.md names the exceptions.
    """

    def __init__(
        self,
        bundle: str | PathLike[str] | None = None,
        candidate: str | None = None,
        reference: str | Sequence[str] | None = None,
        *,
        context: str | None = None,
        names: Sequence[str] = SCORE_NAMES,
        errors: Errors = "raise",
        **settings: Unpack[ScorerSettings],
    ) -> None:
        """Check the settings; no bundle is opened yet.

        Args:
            bundle: a path, a name or `hf://…`, as `BERTScorer` takes it; each process opens it for
                itself. None for the default model of `lang`.
            candidate: the name of the column of candidates, a text per row; None for the column
                with a usual name, such as `candidate`.
            reference: the name of the column of references, a text or a list of texts per row; or
                several names; None for those with a usual name, such as `reference` and
                `reference2`.
            context: the name of a column of contexts, a text or a list of sentences per row, as
                `BERTScorer.score` takes them. The signature names them, even if those of a batch
                are all blank.
            names: the names of the columns of precision, recall and F1; with a fourth name, a
                further column marks rows with a truncated text, and another, `unknown`, has the
                share of unknown tokens as in `Scores`.
            errors: how to handle a row with a null, or with something other than texts: "raise" for
                an InputError with its number, "null" for nulls as its scores and a further column
                `error` with the reason.
            settings: arguments of `BERTScorer`. `idf` may not be True without `idf_sents`, since a
                batch holds a part of the references: give it the `DocumentCounts` of all.

        Raises:
            InputError: there is no such setting, or no such value of `errors`; or `names` are not
                three or four different ones.
        """
        check_errors(errors)
        self._bundle = None if bundle is None else fspath(bundle)
        self._candidate = candidate
        self._context = context
        self._errors = errors
        self._names = check_score_names(names)
        self._reference = reference
        if not isinstance(reference, str | None):
            self._reference = tuple(reference)
        self._settings = checked_settings(settings)

    @property
    def columns(self) -> ScoreColumns:
        """The columns that it adds."""
        return ScoreColumns(bool(self._settings.get("all_layers")), self._errors, self._names)

    @property
    def texts(self) -> TextColumns:
        """The columns of texts that it reads."""
        return text_columns(self._candidate, self._reference, self._context)

    @property
    def signature(self) -> Signature:
        """The signature of its scores; loads the scorer in this process."""
        with self._scorer() as scorer:
            return self.signature_of(scorer, [len(self.texts.references)])

    def signature_of(self, scorer: BERTScorer, num_columns: Collection[int]) -> Signature:
        """Return the signature of the scores that a scorer gives.

        Args:
            scorer: the scorer.
            num_columns: the numbers of columns of references that tables have.
        """
        signature = scorer.signature.with_references(min(num_columns), max(num_columns))
        if self._context is None:
            return signature
        return signature.in_context()

    def __call__(self, batch: Batch) -> Batch:
        """Score the rows of a batch.

        Args:
            batch: a dict of columns (numpy arrays or lists), a `pyarrow.Table` or `RecordBatch`, a
                DataFrame of pandas or polars, or a `datasets.Dataset`.

        Returns:
            The batch in its form, with further columns: `precision`, `recall` and `f1`, float32,
            and `best_reference`, the position of the reference with the best F; each a list over
            the layers with `all_layers`. With `errors="null"` also `error`, which is null where
            there are scores. A dict then has arrays of objects. The metadata of an Arrow schema
            gets the signature, under `bertscore_onnx.signature`.

        Raises:
            InputError: a column is missing, or has the name of a new column; or a row cannot be
                scored.
            BertScoreOnnxError: as for `BERTScorer`, at the first call in a process.
        """
        [scored] = self.stream([batch])
        return scored

    def stream(self, batches: Iterable[Batch], title: str = "") -> Iterator[Batch]:
        """Score the rows of many batches.

        Batches are read thousands of rows ahead, regardless of their size.

        Args:
            batches: as for a call.
            title: the name of the rows in messages, such as a partition.

        Yields:
            Each batch as a call returns it. If a row cannot be scored, first the batches before it.

        Raises:
            InputError, BertScoreOnnxError: as for a call; rows are numbered from 0, from the first
                batch on.
        """
        reader = RowReader(self._errors, title)

        def read() -> Iterator[tuple[BatchAdapter, TextsOfRows]]:
            for batch in batches:
                adapter = adapt(batch)
                texts = self.texts.find(adapter.names, title or "The batch")
                check_free(adapter.names, self.columns.names, "The batch", ("drop it",))
                yield adapter, reader.read(texts, adapter.values)

        return self.stream_rows(read())

    def stream_rows(
        self, batches: Iterable[tuple[BatchAdapter, TextsOfRows]], max_seconds: float | None = None
    ) -> Iterator[Batch]:
        """Score batches whose texts were read already, as `stream` does.

        Args:
            batches: each batch, and the texts in its rows.
            max_seconds: as for `BERTScorer.stream`.

        Yields:
            Each batch as a call returns it. If `batches` fails, first the batches before.

        Raises:
            BertScoreOnnxError: as for `BERTScorer`.
        """
        unread = iter(batches)
        waiting: deque[tuple[BatchAdapter, TextsOfRows]] = deque()
        is_ended = False

        def pairs() -> Iterator[TextsOfRow]:
            nonlocal is_ended
            num_idle = 0  # rows without a pair, for which no score comes
            for adapter, rows in unread:
                waiting.append((adapter, rows))
                yield from rows.pairs
                num_idle += len(rows.reasons)
                if rows.pairs:
                    num_idle = 0
                if num_idle > MAX_IDLE_ROWS:
                    return
            is_ended = True

        with self._scorer() as scorer:
            columns = self.columns
            scores: list[Score] = []

            def finished() -> Iterator[Batch]:
                while waiting and len(waiting[0][1].pairs) == len(scores):
                    adapter, rows = waiting.popleft()
                    values = columns.values(scores, rows.reasons)
                    scores.clear()
                    signature = self.signature_of(scorer, [rows.num_columns])
                    yield adapter.with_scores(columns, values, signature)

            while not is_ended:
                try:
                    for score in scorer.stream(pairs(), max_seconds=max_seconds):
                        yield from finished()  # batches without a pair
                        scores.append(score)
                        yield from finished()
                except Exception:
                    yield from finished()
                    raise
                yield from finished()

    def __eq__(self, other: object) -> bool:
        """Compare the settings."""
        return isinstance(other, ScoreBatch) and self._key() == other._key()

    def __hash__(self) -> int:
        """Return a hash of the settings."""
        return hash(self._key())

    def __repr__(self) -> str:
        """Name the bundle and the settings."""
        arguments: dict[str, Any] = {
            "candidate": self._candidate,
            "reference": self._reference,
            "errors": self._errors,
        }
        if self._context is not None:
            arguments["context"] = self._context
        if self._names != SCORE_NAMES:
            arguments["names"] = self._names
        arguments |= self._settings
        named = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
        return f"ScoreBatch({self._bundle!r}, {named})"

    def _key(self) -> Hashable:
        columns = (self._candidate, self._reference, self._context, self._names, self._errors)
        return self._bundle, *columns, key_of(self._settings)

    def _scorer(self) -> BERTScorer:
        """Return a scorer of the model that this process keeps.

        Scorers with idf weights share the model. The caller closes the scorer.
        """
        settings = {**self._settings, "model_type": self._bundle}
        unweighted = dict(settings)
        weights = {}
        for name in ("idf", "idf_sents"):
            if name in unweighted:
                weights[name] = unweighted.pop(name)
        scorer = _models.get(cast(ScorerSettings, unweighted))
        if weights.get("idf", False) is False and weights.get("idf_sents") is None:
            return scorer
        with scorer:
            return _weighted.get(cast(ScorerSettings, settings), lambda: scorer.with_idf(**weights))


def description_of(score_batch: ScoreBatch, num_columns: Collection[int]) -> tuple[str, str]:
    """Return the signature of scores, and the execution provider of this process's scorer.

    The tables have these numbers of columns of references.
    """
    with score_batch._scorer() as scorer:
        return str(score_batch.signature_of(scorer, num_columns)), scorer.provider


def rows_per_second(score_batch: ScoreBatch, pairs: Iterator[TextsOfRow]) -> float:
    """Score first pairs for about a second; return how many in one.

    Without pairs it is 0.
    """
    number = 0
    seconds = 0.0
    with score_batch._scorer() as scorer:
        while seconds < MEASURED_SECONDS:
            sample = list(islice(pairs, number + FIRST_ROWS))
            if not sample:
                break
            begun = monotonic()
            # not to its end, with the warnings of all rows
            for _ in islice(scorer.stream(sample), len(sample)):
                pass
            seconds += monotonic() - begun
            number += len(sample)
    return number / max(seconds, 1e-6)


def uses_contexts(score_batch: ScoreBatch, batches: Iterable[Batch]) -> bool:
    """Return whether a row that can be scored has a context that is not blank.

    Batches are read up to that one.
    """
    reader = RowReader("null")

    def candidates() -> Iterator[Text]:
        for batch in batches:
            adapter = adapt(batch)
            texts = score_batch.texts.find(adapter.names, "The batch")
            rows = reader.read(texts, adapter.values)
            for candidate, _ in rows.pairs:
                yield candidate

    return are_in_context(candidates())


class CountBatch:
    """Counts in how many references each token occurs.

    Like `ScoreBatch`, it is a callable to give to an engine.
    """

    def __init__(
        self,
        bundle: str | PathLike[str] | None = None,
        reference: str | Sequence[str] | None = None,
        *,
        errors: Errors = "raise",
        **settings: Unpack[TokenizerSettings],
    ) -> None:
        """Check the settings; no bundle is opened yet.

        Args:
            bundle: as for `ScoreBatch`; the model is not loaded.
            reference: as for `ScoreBatch`.
            errors: how to handle a row that holds something else: "raise" for an InputError with
                its number, "null" to leave it out.
            settings: arguments of `BERTScorer` that decide which bundle is opened, and where texts
                are truncated.

        Raises:
            InputError: there is no such setting, or no such value of `errors`.
        """
        check_errors(errors)
        self._bundle = None if bundle is None else fspath(bundle)
        self.references = text_columns(None, reference).references
        self._errors = errors
        self._settings = checked_settings(settings, TokenizerSettings)

    def __call__(self, batch: Batch) -> "pyarrow.Table":
        """Count the references of a batch as rows of `DocumentCounts.to_arrow`.

        Sum them by tokenization and token.

        Raises:
            InputError: the column is missing; or a row cannot be counted, and `errors` is "raise".
            MissingExtraError: pyarrow is not installed.
        """
        return self.count(batch).to_arrow()

    def count(self, batch: Batch) -> DocumentCounts:
        """Count the references of a batch, in any form that `ScoreBatch` takes.

        Errors are as of a call.
        """
        return self.total([batch])

    def total(self, batches: Iterable[Batch], title: str = "") -> DocumentCounts:
        """Count the references of many batches together.

        Batches are read one by one.

        Args:
            batches: each in any form that `ScoreBatch` takes.
            title: the name of the rows in messages, such as a partition.

        Raises:
            InputError: as for a call; rows are numbered from 0, from the first batch on.
        """
        reader = RowReader(self._errors, title)

        def references() -> Iterator[list[str]]:
            for batch in batches:
                adapter = adapt(batch)
                columns = find_columns(self.references, adapter.names, title or "The batch")
                yield from reader.references(columns, adapter.values)

        return self.count_texts(references())

    def count_texts(self, texts: Iterable[list[str]]) -> DocumentCounts:
        """Count references that were read already, a list for each row."""
        return count_documents(texts, self._bundle, **self._settings)


def attempt(score_batch: ScoreBatch) -> tuple[str, str]:
    """Load the scorer in this process.

    Return its signature after an empty string, or the error's class and message.
    """
    try:
        return "", str(score_batch.signature)
    except BertScoreOnnxError as error:
        return type(error).__name__, str(error)


def error_named(kind: str, message: str) -> BertScoreOnnxError:
    """Return the error that another process reports by the name of its class."""
    return getattr(error_tree, kind, BertScoreOnnxError)(message)
