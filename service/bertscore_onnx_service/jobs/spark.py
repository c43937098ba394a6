"""Scores the rows of a Spark DataFrame, and counts its documents.

Frames may be of classic Spark or of Spark Connect.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from os import PathLike, fspath
from typing import TYPE_CHECKING, Unpack

from bertscore_onnx.errors import InputError, InputTypeError, check_installed
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.settings import (
    ScorerSettings,
    TokenizerSettings,
    checked_settings,
    counts_first,
    of_tokenizer,
)
from bertscore_onnx.tables.columns import TextColumn, find_columns
from bertscore_onnx.tables.row_reader import text_columns
from bertscore_onnx.tables.score_columns import (
    REASON,
    SCORE_NAMES,
    SIGNATURE,
    Errors,
    ScoreColumns,
    check_free,
)
from bertscore_onnx_service.jobs.batches import (
    CountBatch,
    ScoreBatch,
    attempt,
    error_named,
    uses_contexts,
)

__all__ = ["count_documents", "score_dataframe"]

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructField

Batches = Iterator["pyarrow.RecordBatch"]
"""The batches of a partition, as Spark passes and takes them."""


def score_dataframe(
    df: "DataFrame",
    bundle: str | PathLike[str] | None = None,
    candidate: str | None = None,
    reference: str | Sequence[str] | None = None,
    *,
    context: str | None = None,
    names: Sequence[str] = SCORE_NAMES,
    errors: Errors = "raise",
    **settings: Unpack[ScorerSettings],
) -> "DataFrame":
    """Score the rows of a frame.

    The result is computed when it is used, as any frame is. The call itself runs one short task
    that opens the bundle, so that a wrong setting or bundle raises its error at once; with
    `idf=True` it also counts the documents.

    Args:
        df: the frame. With `idf=True` it is computed twice, once to count and once to score: cache
            it if that is expensive, or does not give the same rows each time.
        bundle: a path that all executors see, a name or `hf://…`, as for `BERTScorer`; or, for an
            archive that Spark ships (`--archives bundle.zip#NAME`), the name under which it is
            extracted, with the folder in it if there is one. None for the default model of `lang`.
        candidate: the name of the column of candidates, of the type string; None for the column
            with a usual name.
        reference: the name of the column of references, string or array<string>, or several; None
            for those with a usual name, as for `ScoreBatch`.
        context: the name of a column of contexts, a text or a list of sentences per row, as
            `BERTScorer.score` takes them. The call reads rows up to the first with a context, which
            decides the signature.
        names: the names of the columns of scores, as for `ScoreBatch`.
        errors: how to handle a row with a null or an empty array: "raise" for an error with its
            partition and its number in there, both from 0, which fails the job; "null" for nulls as
            its scores and a further column `error` with the reason.
        settings: arguments of `BERTScorer`. `idf` may be True, for the documents of the whole
            frame. The default of `nthreads` is at most `spark.task.cpus`.

    Returns:
        The frame with its columns as they are, and `precision`, `recall` and `f1`, float, and
        `best_reference`, bigint, the position of the reference with the best F; each an array over
        the layers with `all_layers`. Rows keep their order in each partition. The metadata of these
        columns has the signature, under `bertscore_onnx.signature`.

    Raises:
        InputError: there is no such setting; a column is missing or of another type; there are
            columns with the names of those that are to be added; or there are no documents to
            count.
        BertScoreOnnxError: as for `BERTScorer`, on an executor.
        MissingExtraError: pyspark is not installed, or a package that it needs.
    """
    _check_frame(df)
    _check_texts(df, text_columns(candidate, reference, context))
    counts = counts_first(settings)
    checked = checked_settings({**settings, "idf": False} if counts else settings)
    added = ScoreBatch(
        bundle, candidate, reference, context=context, names=names, errors=errors, **checked
    ).columns
    taken = [name for name in df.columns if name.lower() in added.names]  # Spark ignores case
    check_free(taken, taken, "The frame", ("drop it",))

    def score_batch() -> ScoreBatch:
        return ScoreBatch(
            _on_executor(bundle),
            candidate,
            reference,
            context=context,
            names=names,
            errors=errors,
            **checked,
        )

    signature = _signature(df, score_batch)
    if context is not None and not _uses_contexts(df, score_batch):
        context = None
        signature = _signature(df, score_batch)
    if counts:
        checked["idf"] = count_documents(
            df, bundle, reference, errors=errors, **of_tokenizer(checked)
        )
        signature = _signature(df, score_batch)

    def score(batches: Batches, title: str) -> Batches:
        return score_batch().stream(batches, title)

    from pyspark.sql.types import StructType

    schema = StructType([*df.schema.fields, *_fields(added, {SIGNATURE.decode(): signature})])
    return _by_position(df).mapInArrow(_by_name(score, df.columns), schema)


def count_documents(
    df: "DataFrame",
    bundle: str | PathLike[str] | None = None,
    reference: str | Sequence[str] | None = None,
    *,
    errors: Errors = "raise",
    **settings: Unpack[TokenizerSettings],
) -> DocumentCounts:
    """Count in how many references of a frame each token occurs, for `idf`.

    The model is not loaded.

    Each partition is counted by itself, and Spark adds up the integers, regardless of partitioning.

    Args:
        df: the frame; one column is read.
        bundle, reference, errors: as for `score_dataframe`; "null" leaves out the rows that have no
            references.
        settings: arguments of `BERTScorer` that decide which bundle is opened, and where texts are
            truncated.

    Raises:
        InputError: there is no such setting; the column is missing or of another type; or the frame
            has no rows.
        MissingExtraError: pyspark is not installed, or a package that it needs.
    """
    _check_frame(df)
    count_batch = CountBatch(bundle, reference, errors=errors, **settings)
    names = _check_texts(df, count_batch.references)

    def count(batches: Batches, title: str) -> Batches:
        counter = CountBatch(_on_executor(bundle), reference, errors=errors, **settings)
        yield from counter.total(batches, title).to_arrow().to_batches()

    from pyspark.sql.functions import sum as sum_of

    positions = map(df.columns.index, names)
    references = _by_position(df).select(*map(str, positions))
    rows = references.mapInArrow(
        _by_name(count, names), "token bigint, documents bigint, tokenization string"
    )
    table = (
        rows.groupBy("tokenization", "token").agg(sum_of("documents").alias("documents")).toArrow()
    )
    if not table.num_rows:
        raise InputError(
            "The frame has no rows, so there are no documents to count; expected one or more."
        )
    return DocumentCounts.from_arrow(table)


def _check_frame(df: object) -> None:
    check_installed(("pyspark", "pandas", "pyarrow"), "spark", "Scoring on Spark")
    from pyspark.sql import DataFrame

    if not isinstance(df, DataFrame):
        raise InputTypeError(
            f"The frame is a {type(df).__module__}.{type(df).__name__}; expected that of Spark."
        )


def _check_texts(df: "DataFrame", columns: Iterable[TextColumn]) -> list[str]:
    """Return the names of columns; raise InputError if one is missing, or is not of texts."""
    from pyspark.sql.types import ArrayType, StringType

    names = []
    for column in find_columns(columns, df.columns, "The frame"):
        kind = data_type = df.schema[column.name].dataType
        if column.may_hold_lists and isinstance(kind, ArrayType):
            kind = kind.elementType
        if not isinstance(kind, StringType):
            expected = "string or array<string>" if column.may_hold_lists else "string"
            raise InputError(
                f"The frame: the column {column.name!r} is of type {data_type.simpleString()}; "
                f"expected {expected}."
            )
        names.append(column.name)
    return names


def _fields(added: ScoreColumns, metadata: dict[str, str]) -> "list[StructField]":
    """Return the columns of scores as Spark's fields."""
    from pyspark.sql.types import (
        ArrayType,
        BooleanType,
        FloatType,
        LongType,
        StringType,
        StructField,
    )

    types = {
        "float32": FloatType(),
        "int64": LongType(),
        "bool": BooleanType(),
        "string": StringType(),
    }
    columns = []
    for name, kind in added.types(types.__getitem__, ArrayType).items():
        signed = metadata if name != REASON else None
        columns.append(StructField(name, kind, metadata=signed))
    return columns


def _signature(df: "DataFrame", score_batch: Callable[[], ScoreBatch]) -> str:
    """Load the scorer on an executor, and return its signature.

    Raise its error, if any.
    """

    def sign(_: Batches) -> Batches:
        import pyarrow

        kind, text = attempt(score_batch())
        yield pyarrow.RecordBatch.from_pydict({"kind": [kind], "text": [text]})

    [row] = (
        df.sparkSession.range(1, numPartitions=1)
        .mapInArrow(sign, "kind string, text string")
        .collect()
    )
    if row.kind:
        raise error_named(row.kind, row.text)
    return str(row.text)


def _uses_contexts(df: "DataFrame", score_batch: Callable[[], ScoreBatch]) -> bool:
    """Return whether a row that can be scored has a context that is not blank.

    Rows are read up to that one.
    """

    def flag(batches: Batches, title: str) -> Batches:
        import pyarrow

        yield pyarrow.RecordBatch.from_pydict({"flag": [uses_contexts(score_batch(), batches)]})

    return bool(
        _by_position(df)
        .mapInArrow(_by_name(flag, df.columns), "flag boolean")
        .filter("flag")
        .take(1)
    )


def _on_executor(bundle: str | PathLike[str] | None) -> str | None:
    """Return the path of a bundle, in the folder where Spark extracts archives or as given."""
    if bundle is None:
        return None
    from pyspark import SparkFiles

    extracted = SparkFiles.get(fspath(bundle))
    return extracted if os.path.isdir(extracted) else fspath(bundle)


def _by_position(df: "DataFrame") -> "DataFrame":
    """Return a frame whose columns are called 0, 1, ….

    `mapInArrow` fails on names with dots, or that occur twice.
    """
    return df.toDF(*_positions(len(df.columns)))


def _by_name(
    work: Callable[[Batches, str], Batches], names: list[str]
) -> Callable[[Batches], Batches]:
    """Return a function for `mapInArrow` that names the columns of batches, and does some work on
    those of a partition with rows, with the name of the partition for messages.
    """

    def of_partition(batches: Batches) -> Batches:
        from pyspark import TaskContext

        named = (batch.rename_columns(names) for batch in batches if batch.num_rows)
        for first in named:
            for done in work(chain([first], named), f"partition {TaskContext.get().partitionId()}"):
                yield done.rename_columns(_positions(done.num_columns))

    return of_partition


def _positions(number: int) -> list[str]:
    return list(map(str, range(number)))
