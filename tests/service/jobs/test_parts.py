"""Which parts are sent to another process together, which scorer these need, and unfinished parts."""

import hashlib
from threading import Event

import pytest

from bertscore_onnx.errors import InputError
from bertscore_onnx_service.jobs import parts
from bertscore_onnx_service.jobs.batches import ScoreBatch
from bertscore_onnx_service.jobs.job import score_files, verify_files
from bertscore_onnx_service.jobs.parts import (
    MAX_TASK_PARTS,
    MAX_TASK_ROWS,
    Part,
    PartWriter,
    cut_parts,
    cut_tasks,
    score,
)
from bertscore_onnx_service.jobs.rows import InputTable


@pytest.fixture
def tasks():
    """Cut files of some numbers of rows into tasks, and return the rows of the parts of each."""

    def tasks(*numbers, num_workers, part_rows=100, kind="parquet"):
        tables = [
            InputTable(f"{number}", f"/{number}", kind, None, rows, ("candidate", "reference"), None)
            for number, rows in enumerate(numbers)
        ]
        cut = cut_parts(tables, part_rows)
        return [[part.rows for part in task] for task in cut_tasks(cut, num_workers)]

    return tasks


def test_each_worker_has_several_tasks_if_there_are_parts(tasks):
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


def test_a_process_with_another_scorer_scores_nothing(tiny_bundle, tmp_path, scorer):
    score_batch, part = ScoreBatch(tiny_bundle, device="cpu"), Part("part-00000-00000.parquet", None, 0, 1)
    described = scorer.hash, "CUDAExecutionProvider"
    with pytest.raises(InputError, match="CUDAExecutionProvider"):
        next(score(score_batch, described, None, str(tmp_path), "job", [part], print))
    assert not list(tmp_path.iterdir())


# An interruption in the middle of a part.

ROWS = 2000


@pytest.fixture
def job(write_pairs, tiny_bundle, tmp_path):
    """Score a file of one part into a folder."""
    path = write_pairs("pairs.parquet", ROWS, candidate=["the cat"] * (ROWS - 1) + [None])

    def job(folder="scores", **options):
        return score_files(path, tmp_path / folder, tiny_bundle, device="cpu", errors="null", **options)

    return job


@pytest.fixture
def interrupted_job(job, monkeypatch):
    """Start the job, and interrupt it after 1,024 rows; return the interruption."""

    def interrupted_job(kind=KeyboardInterrupt):
        add, number = PartWriter.add, 0

        def interrupt(self, scored):
            nonlocal number
            number += scored.num_rows
            record = add(self, scored)
            if number == 1024:
                raise kind
            return record

        monkeypatch.setattr(PartWriter, "add", interrupt)
        with pytest.raises(kind) as caught:
            job()
        monkeypatch.setattr(PartWriter, "add", add)
        return caught.value

    return interrupted_job


@pytest.fixture
def scored_rows(monkeypatch):
    """The numbers of rows that were given to scorers."""
    numbers = []
    stream = ScoreBatch.stream_rows

    def counted(self, batches):
        def watched():
            for adapter, rows in batches:
                numbers.append(len(rows.reasons))
                yield adapter, rows

        return stream(self, watched())

    monkeypatch.setattr(ScoreBatch, "stream_rows", counted)
    return numbers


@pytest.mark.parametrize("kind", [KeyboardInterrupt, RuntimeError])
def test_rows_before_an_interruption_are_not_scored_again(job, interrupted_job, scored_rows, contents, tmp_path, kind):
    interruption = interrupted_job(kind)
    if kind is KeyboardInterrupt:
        message = "0 of 1 parts are complete, and the scores of 1,024 of 2,000 rows are saved. Run the same command"
        assert interruption.__notes__[0].startswith(message)
    assert verify_files(tmp_path / "scores") == [f"{tmp_path / 'scores'} has a job that is not complete"]
    scored_rows.clear()
    assert job().failures == 1
    assert sum(scored_rows) == ROWS - 1024
    assert verify_files(tmp_path / "scores") == []
    job("undisturbed")
    assert contents(tmp_path / "scores") == contents(tmp_path / "undisturbed")


@pytest.mark.parametrize("damage", ["flipped", "truncated", "empty", "of another job"])
def test_damaged_or_foreign_saved_scores_are_not_used(job, interrupted_job, scored_rows, contents, tmp_path, damage):
    interrupted_job()
    [file] = (tmp_path / "scores").glob(".part-*.scores")
    content = bytearray(file.read_bytes())
    if damage == "of another job":
        identity, _, stream = content[65:].partition(b"\n")
        content = identity.replace(b",0,2000]", b",1,2000]") + b"\n" + stream
        content = hashlib.sha256(content).hexdigest().encode() + b"\n" + content
    elif damage == "flipped":
        content[-100] ^= 1
    else:
        content = content[: len(content) // 2] if damage == "truncated" else b""
    file.write_bytes(content)
    scored_rows.clear()
    job()
    assert sum(scored_rows) == ROWS
    job("undisturbed")
    assert contents(tmp_path / "scores") == contents(tmp_path / "undisturbed")


def test_scores_are_saved_while_the_next_ones_are_computed(job, monkeypatch, tmp_path):
    add, is_saved, number = PartWriter.add, Event(), 0

    def add_and_wait(self, scored):
        nonlocal number
        number += scored.num_rows
        record = add(self, scored)
        assert number != 1024 or is_saved.wait(60)
        return record

    def save(path, data):
        assert path.name == ".part-00000-00000.parquet.scores"
        is_saved.set()

    monkeypatch.setattr(parts, "SAVE_SECONDS", 0.01)
    monkeypatch.setattr(parts, "replace_whole", save)
    monkeypatch.setattr(PartWriter, "add", add_and_wait)
    assert job().rows == ROWS
