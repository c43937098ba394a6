import os
import signal
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bertscore_onnx import BERTScorer
from bertscore_onnx.errors import BundleNotFoundError, InputError, InputTypeError
from bertscore_onnx_service import ScoreBatch
from bertscore_onnx_service.jobs import ray as ray_module
from bertscore_onnx_service.jobs.ray import count_documents, score_dataset
from tests.service.jobs.conftest import QUIET_RAY, processes_of, texts

pytestmark = [pytest.mark.ray, *QUIET_RAY]


def table_of_pairs(number):
    references = [list(two) for two in zip(texts(number, 1), texts(number, 2), strict=True)]
    return pa.table({"id": range(number), "candidate": texts(number, 3), "reference": references})


def blocks(table, *sizes):
    """Return a dataset of blocks of these sizes, and one of the rest."""
    import ray

    starts = np.cumsum([0, *sizes])
    parts = [table.slice(start, size) for start, size in zip(starts, sizes, strict=False)]
    return ray.data.from_arrow([*parts, table.slice(starts[-1])])


@pytest.mark.parametrize("sizes", [(), (0, 1, 1, 50, 0, 7)], ids=["one block", "uneven blocks"])
def test_scores_are_those_of_one_process_for_any_blocks(cluster, tiny_bundle, sizes):
    table = table_of_pairs(200)
    expected = ScoreBatch(tiny_bundle, nthreads=1)(table)
    scored = score_dataset(blocks(table, *sizes), tiny_bundle, rows_per_batch=30)
    assert scored.take_all() == expected.to_pylist()


def test_a_dataset_is_read_and_written_with_its_signature(cluster, tiny_bundle, tmp_path):
    import ray

    table = table_of_pairs(60)
    (tmp_path / "pairs").mkdir()
    for part in range(6):
        pq.write_table(table.slice(10 * part, 10), tmp_path / "pairs" / f"{part}.parquet")
    # With no more CPUs than actors, these must leave one to the tasks that read and write.
    ds = ray.data.read_parquet(str(tmp_path / "pairs"))
    score_dataset(ds, tiny_bundle, cpus_per_actor=1).write_parquet(str(tmp_path / "scores"))
    score = ScoreBatch(tiny_bundle, nthreads=1)
    written = pq.read_table(tmp_path / "scores").sort_by("id")
    assert written.to_pylist() == score(table).to_pylist()
    assert written.schema.metadata[b"bertscore_onnx.signature"].decode() == str(score.signature)


@pytest.mark.filterwarnings("ignore:.* have an empty context:UserWarning")
@pytest.mark.parametrize("contexts", [[None, " ", None], [None, None, "it was"]])
def test_the_signature_is_that_of_score_for_blank_contexts(
    cluster, tiny_bundle, tmp_path, contexts
):
    table = pa.table({"candidate": ["a cat"] * 3, "reference": ["a dog"] * 3, "before": contexts})
    score_dataset(blocks(table, 1, 1), tiny_bundle, context="before").write_parquet(
        str(tmp_path / "scores")
    )
    with BERTScorer(tiny_bundle, device="cpu") as scorer:
        signature = str(scorer.score(["a cat"] * 3, ["a dog"] * 3, contexts=contexts).signature)
    schemas = [pq.read_schema(file) for file in (tmp_path / "scores").iterdir()]
    assert {schema.metadata[b"bertscore_onnx.signature"].decode() for schema in schemas} == {
        signature
    }


def test_a_row_that_cannot_be_scored_is_named_by_its_number(cluster, tiny_bundle):
    import ray

    ds = ray.data.from_items(
        [{"candidate": "a cat", "reference": "a dog"}, {"candidate": None, "reference": "a"}]
    )
    with pytest.raises(ray.exceptions.RayTaskError, match=r"InputError: .*row 1: .*'candidate'"):
        score_dataset(ds, tiny_bundle).materialize()


def test_references_may_come_as_tensors_of_strings(cluster, tiny_bundle):
    import ray

    def with_texts(batch):
        size = len(batch["id"])
        return {
            "candidate": np.array(["a cat"] * size),
            "reference": np.array([["a dog", "a cat"]] * size),
        }

    scored = score_dataset(ray.data.range(3).map_batches(with_texts), tiny_bundle).take_all()
    assert [row["best_reference"] for row in scored] == [1, 1, 1]


def test_a_dataset_without_rows_stays_as_it_is(cluster, tiny_bundle):
    assert score_dataset(blocks(table_of_pairs(0)), tiny_bundle).count() == 0


def test_documents_of_a_dataset_without_rows_cannot_be_counted(cluster, tiny_bundle):
    with pytest.raises(InputError, match="no rows"):
        count_documents(blocks(table_of_pairs(0)), tiny_bundle)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"candidate": "cand"}, "'cand'"),
        ({"context": "before"}, "'before'"),
        ({"rows_per_batch": 0}, "rows_per_batch"),
        ({"num_actors": 1.5}, "num_actors"),
        ({"gpus_per_actor": -1}, "gpus_per_actor is"),
        ({"device": "cuda"}, "give gpus_per_actor=1"),
        ({"device": "cuda:1", "gpus_per_actor": 1}, "leave it out"),
        ({"errors": "skip"}, "errors"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_faults_are_reported_at_the_call(cluster, tiny_bundle, settings, message):
    with pytest.raises(InputError, match=message):
        score_dataset(blocks(table_of_pairs(2)), tiny_bundle, **settings)


def test_a_bundle_that_is_not_there_is_reported_at_the_call(cluster, tmp_path):
    with pytest.raises(BundleNotFoundError, match="folder"):
        score_dataset(blocks(table_of_pairs(2)), tmp_path / "nowhere")


def test_a_dataset_of_another_library_is_refused(tiny_bundle):
    with pytest.raises(InputTypeError, match="Table"):
        score_dataset(table_of_pairs(2), tiny_bundle)


def test_an_actor_that_cannot_be_placed_is_reported(cluster, tiny_bundle):
    with pytest.warns(UserWarning, match="64 CPUs"):
        score_dataset(blocks(table_of_pairs(2)), tiny_bundle, cpus_per_actor=64)


def test_each_actor_scores_on_a_card_of_its_own(cluster, tiny_bundle, tmp_path, monkeypatch):
    class OnStandIns(ScoreBatch):
        def __init__(self, *arguments, **settings):
            super().__init__(*arguments, **{**settings, "device": "cpu"})
            self.device = settings["device"]

        def __call__(self, batch):
            card = os.environ["CUDA_VISIBLE_DEVICES"]
            (tmp_path / card).touch()
            until = time.monotonic() + 120
            # there is work for both actors
            while len([*tmp_path.iterdir()]) < 2 and time.monotonic() < until:
                time.sleep(0.05)
            return (
                super()
                .__call__(batch)
                .append_column("on", [[f"{self.device} of {card}"] * len(batch)])
            )

    monkeypatch.setattr(ray_module, "ScoreBatch", OnStandIns)
    scored = score_dataset(
        blocks(table_of_pairs(40)), tiny_bundle, gpus_per_actor=1, rows_per_batch=1
    ).take_all()
    assert {row["on"] for row in scored} == {"cuda of 0", "cuda of 1"}
    assert len(scored) == 40


def test_a_job_goes_on_where_an_actor_is_killed(cluster, tiny_bundle):
    table = table_of_pairs(10_000)
    expected = ScoreBatch(tiny_bundle)(table)
    scored = score_dataset(blocks(table), tiny_bundle, rows_per_batch=100)
    batches = iter(scored.iter_batches(batch_size=None, batch_format="pyarrow"))
    first = next(batches)
    os.kill(processes_of(b"ray::MapWorker")[0], signal.SIGKILL)
    rows = pa.concat_tables([first, *batches])
    assert rows.to_pylist() == expected.to_pylist()
