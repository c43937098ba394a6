"""Which parts are sent to another process together, and which scorer these processes need."""

import pytest

from bertscore_onnx.distributed.batches import ScoreBatch
from bertscore_onnx.distributed.parts import MAX_TASK_PARTS, MAX_TASK_ROWS, Part, cut_parts, cut_tasks, score
from bertscore_onnx.distributed.rows import InputTable
from bertscore_onnx.errors import InputError


@pytest.fixture
def tasks():
    """Cut files of some numbers of rows into tasks, and return the rows of the parts of each."""

    def tasks(*numbers, num_workers, part_rows=100, kind="parquet"):
        tables = [
            InputTable(f"{number}", f"/{number}", kind, None, rows, "candidate", "reference", None)
            for number, rows in enumerate(numbers)
        ]
        parts = cut_parts(tables, part_rows)
        return [[part.rows for part in task] for task in cut_tasks(parts, num_workers)]

    return tasks


def test_each_worker_has_several_tasks_where_there_are_parts_enough(tasks):
    assert tasks(1600, num_workers=2) == [[100, 100]] * 8
    assert tasks(250, num_workers=2) == [[100], [100], [50]]


def test_tasks_are_bounded(tasks):
    assert {sum(task) for task in tasks(50 * MAX_TASK_ROWS, num_workers=1, part_rows=MAX_TASK_ROWS // 4)} == {
        MAX_TASK_ROWS
    }
    many = tasks(*[1] * (9 * MAX_TASK_PARTS), num_workers=1)
    assert max(map(len, many)) == MAX_TASK_PARTS


def test_all_parts_of_a_text_file_are_of_one_task(tasks):
    assert tasks(500, 300, num_workers=4, kind="csv") == [[100] * 5, [100] * 3]


def test_nothing_to_do_is_no_task(tasks):
    assert tasks(num_workers=4) == []


def test_a_process_with_another_scorer_than_the_job_scores_nothing(tiny_bundle, tmp_path, scorer):
    score_batch, part = ScoreBatch(tiny_bundle, device="cpu"), Part("part-00000-00000.parquet", None, 0, 1)
    described = scorer.hash, "CUDAExecutionProvider"
    with pytest.raises(InputError, match=r"CPUExecutionProvider, and that of the job is .*CUDAExecutionProvider"):
        next(score(score_batch, described, None, str(tmp_path), "job", [part], print))
    assert not list(tmp_path.iterdir())
