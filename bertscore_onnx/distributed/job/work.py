"""What an engine does with parts: scores them, or counts the documents in their references."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from bertscore_onnx.distributed.job.part_files import PartScores, PartWriter, complete_part
from bertscore_onnx.distributed.job.parts import Part, read_parts
from bertscore_onnx.distributed.job.rows import TableSettings
from bertscore_onnx.distributed.score_batch import ScoreBatch
from bertscore_onnx.errors import InputError
from bertscore_onnx.matching.document_counts import DocumentCounts
from bertscore_onnx.scorer import BERTScorer
from bertscore_onnx.scoring.tokenization import DocumentCounter
from bertscore_onnx.tables.batches import Column, Errors, RowReader, Rows, Table, table_of

Advance = Callable[[int], object]
"""Is called with numbers of rows that were done since the last call."""

Result = TypeVar("Result", covariant=True)


class Work(Protocol[Result]):
    """Something to do with parts, which can be pickled."""

    def __call__(self, parts: Sequence[Part], advance: Advance) -> Iterator[Result]:
        """Yield results as they come."""
        ...


class Engine(Protocol):
    """Does work with parts, in this process or in others."""

    def __call__(self, work: Work[Result], parts: Sequence[Part], advance: Advance) -> Iterator[Result]:
        """Yield the results of all parts, in any order.

        Raises:
            BertScoreOnnxError: what the work raises.
        """
        ...


@dataclass(frozen=True, slots=True)
class Scoring:
    """Scores parts and writes their files; the rows of one part after the other, so that the model is never idle."""

    scorer: ScoreBatch
    tables: TableSettings
    folder: str
    """Where the files go; an absolute path, the same on all machines."""

    job: str
    """What tells the scores from those made otherwise."""

    def __call__(self, parts: Sequence[Part], advance: Advance) -> Iterator[PartScores]:
        """Yield each part once its file is complete; those at once that are already, if a task is done again.

        Raises:
            InputError: a row cannot be scored, and that is an error; or a file cannot be read or written. Parts before
                are complete.
            BertScoreOnnxError: what `BERTScorer` raises.
        """
        missing = []
        for part in parts:
            scores = complete_part(self.folder, part, self.job)
            if scores is None:
                missing.append(part)
            else:
                yield scores
        owners: deque[Part] = deque()
        writer: PartWriter | None = None
        try:
            for scored in self.scorer.stream_rows(self._read(missing, owners)):
                writer = writer or PartWriter(self.folder, owners[0], self.job)
                owners.popleft()
                scores = writer.add(scored)
                advance(scored.num_rows)
                if scores is not None:
                    writer = None
                    yield scores
        finally:
            if writer is not None:
                writer.discard()

    def _read(self, parts: Sequence[Part], owners: "deque[Part]") -> Iterator[tuple[Table, Rows]]:
        """Yield the rows of parts, and note for each batch what part it is of."""
        for part, batch in read_parts(parts, self.tables):
            table = part.table
            reader = RowReader(table.candidate, table.reference, self.scorer.columns.errors, table.name, batch.first)
            rows = reader.read(batch.candidates, batch.references)
            owners.append(part)
            yield table_of(batch.kept), rows


@dataclass(frozen=True, slots=True)
class Describing:
    """Loads a scorer where parts are scored, to say how, and lets go of it."""

    bundle: str | None
    settings: dict[str, Any] = field(hash=False)

    def __call__(self, parts: Sequence[Part], advance: Advance) -> Iterator[tuple[str, str]]:
        """Yield the signature and the execution provider.

        Raises:
            BertScoreOnnxError: what `BERTScorer` raises.
        """
        with BERTScorer(self.bundle, **self.settings) as scorer:
            yield str(scorer.signature), scorer.provider


@dataclass(frozen=True, slots=True)
class Counting:
    """Counts the documents in the references of parts."""

    bundle: str | None
    settings: dict[str, Any] = field(hash=False)
    """Those of the tokenizer."""

    tables: TableSettings
    errors: Errors

    def __call__(self, parts: Sequence[Part], advance: Advance) -> Iterator[DocumentCounts]:
        """Yield the counts of all parts together.

        Raises:
            InputError: a reference is no text, and that is an error; or a file cannot be read.
        """
        yield DocumentCounter(self.bundle, **self.settings).count(self._references(parts, advance))

    def _references(self, parts: Sequence[Part], advance: Advance) -> Iterator[list[str]]:
        for part, batch in read_parts(parts, self.tables):
            column = Column((part.table.reference,), "`reference`", may_hold_lists=True)
            for row, value in enumerate(batch.references, batch.first + 1):
                try:
                    yield column.texts_of(value, part.table.reference, f"{part.table.name}, row {row}")
                except InputError:
                    if self.errors == "raise":
                        raise
            advance(len(batch.references))
