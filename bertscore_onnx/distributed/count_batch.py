"""`CountBatch`: counts the documents of one batch of rows after the other, by the tokenizer alone."""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any, Unpack

from bertscore_onnx.errors import InputError
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.scoring.tokenization import DocumentCounter
from bertscore_onnx.settings import TokenizerSettings, checked_settings
from bertscore_onnx.tables.batches import Batch, Column, Errors, check_errors, table_of

if TYPE_CHECKING:
    import pyarrow


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
        counter = _counter(self._bundle, tuple(sorted(self._settings.items())))
        return counter.count(self._texts(batches, title))

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


@lru_cache(maxsize=2)
def _counter(bundle: str | None, settings: tuple[tuple[str, Any], ...]) -> DocumentCounter:
    """Return what counts in this process."""
    return DocumentCounter(bundle, **dict(settings))
