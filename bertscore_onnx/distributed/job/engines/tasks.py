"""Tasks for other processes: parts that are worth sending together."""

from collections.abc import Sequence

from bertscore_onnx.distributed.job.parts import Part

MAX_ROWS = 65_536
"""About the most rows of a task, so that little is done again where a process is lost."""

MAX_PARTS = 1_024

TASKS_PER_WORKER = 4
"""At least as many, where there are parts enough, so that all workers end at about the same time."""


def cut_tasks(parts: Sequence[Part], num_workers: int) -> list[list[Part]]:
    """Return tasks of consecutive parts; all parts of a text file are of one task, since it is read from its start.

    Args:
        parts: what is to be done.
        num_workers: how many tasks can be done at a time.
    """
    max_rows = min(MAX_ROWS, sum(part.rows for part in parts) // (TASKS_PER_WORKER * num_workers))
    tasks: list[list[Part]] = []
    num_rows = 0
    for part in parts:
        is_continued = bool(tasks) and tasks[-1][-1].table is part.table and part.table.format != "parquet"
        is_full = not tasks or num_rows + part.rows > max_rows or len(tasks[-1]) == MAX_PARTS
        if is_full and not is_continued:
            tasks.append([])
            num_rows = 0
        tasks[-1].append(part)
        num_rows += part.rows
    return tasks
