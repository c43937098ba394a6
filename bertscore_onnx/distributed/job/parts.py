"""Parts of the input: consecutive rows of one file, whose scores go into one file."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from bertscore_onnx.distributed.job.rows import InputTable, RowBatch, TableSettings, read_rows
from bertscore_onnx.distributed.job.rows.reading import changed

PART_ROWS = 16_384
"""The rows of a part, where nothing else is asked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Rows of a file."""

    file: str
    """The name of the file with its scores."""

    table: InputTable
    """What the rows are of."""

    digest: str
    """That of the input file."""

    start: int
    """The number of the first row in the input file, from 0."""

    rows: int

    @property
    def stop(self) -> int:
        """The number after that of the last row."""
        return self.start + self.rows


def cut_parts(tables: Sequence[InputTable], digests: Sequence[str], part_rows: int) -> list[Part]:
    """Return the parts of all files, one at least for each.

    Args:
        tables: the files.
        digests: that of each.
        part_rows: the rows of a part, except the last one of a file.
    """
    return [
        Part(f"part-{number:05}-{index:05}.parquet", table, digest, start, min(part_rows, table.rows - start))
        for number, (table, digest) in enumerate(zip(tables, digests, strict=True))
        for index, start in enumerate(range(0, max(1, table.rows), part_rows))
    ]


def read_parts(parts: Sequence[Part], settings: TableSettings) -> Iterator[tuple[Part, RowBatch]]:
    """Yield the rows of parts in order, each file read once for those parts of it that stand together.

    Where batches of a part are cut depends on its rows alone; a part without rows comes with one empty batch.

    Raises:
        InputError: a file is damaged, or has changed since it was inspected.
    """
    for _, some in groupby(parts, key=lambda part: part.table.path):
        of_table = list(some)
        table = of_table[0].table
        yield from _cut(of_table, read_rows(table, settings, of_table[0].start, of_table[-1].stop))


def _cut(parts: Sequence[Part], batches: Iterator[RowBatch]) -> Iterator[tuple[Part, RowBatch]]:
    batch = RowBatch.without_rows(parts[0].table)
    for part in parts:
        if not part.rows:
            yield part, batch
        reached = part.start
        while reached < part.stop:
            while batch.stop <= reached:
                following = next(batches, None)
                if following is None:
                    raise changed(part.table)
                batch = following
            yield part, batch.between(reached, part.stop)
            reached = min(batch.stop, part.stop)
