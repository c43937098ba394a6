import re
import sys
import threading
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx.bundle.bundle import Bundle, open_bundle
from bertscore_onnx.encoding.encoder import OWN_PAGES, Encoder, ReusedMemory, plan_batches, plan_runs, uninitialized
from bertscore_onnx.encoding.providers import CPU, CUDA
from bertscore_onnx.errors import ClosedError, DeviceError, GraphError, TokenizerError

SEQUENCES = [np.array(ids) for ids in ([2, 5, 3], [2, 3], [2, 6, 7, 8, 3], [2, 5, 3])]


@pytest.fixture(scope="module")
def bundle(tiny_bundle):
    return open_bundle(tiny_bundle)


@pytest.fixture
def encoder(bundle):
    return Encoder(bundle, device="cpu")


@pytest.fixture
def with_graph(bundle, tmp_path):
    """Return a function that gives the bundle another graph: `change` is applied to the ONNX model."""

    def build(change):
        graph = onnx.load(bundle.graph_path)
        change(graph.graph)
        onnx.save(graph, tmp_path / "model.onnx")
        return Bundle(tmp_path, bundle.manifest)

    return build


def all_vectors(embeddings):
    """Return the vectors of all texts one after the other, (tokens, hidden)."""
    return np.concatenate([embeddings.vectors_of(0, text) for text in range(len(embeddings.sequences))])


def test_every_token_gets_a_unit_vector(encoder):
    vectors = all_vectors(encoder.encode(SEQUENCES))
    assert vectors.shape == (13, 32)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(13), abs=1e-6)


def test_the_table_has_the_ids_of_each_text(encoder):
    embeddings = encoder.encode(SEQUENCES)
    assert [ids.tolist() for ids in embeddings.sequences] == [ids.tolist() for ids in SEQUENCES]
    assert embeddings.lengths.tolist() == [3, 2, 5, 3]


@pytest.mark.parametrize("options", [{"max_tokens": 1}, {"max_tokens": 6}, {"max_items": 1}])
def test_batches_do_not_change_vectors(encoder, options):
    together, apart = encoder.encode(SEQUENCES), encoder.encode(SEQUENCES, **options)
    for text in range(len(SEQUENCES)):
        assert np.abs(together.vectors_of(0, text) - apart.vectors_of(0, text)).max() < 1e-5


def test_runs_are_bounded_however_small_the_model_is(encoder, monkeypatch):
    original, sizes = Encoder.run_batch, []

    def run(self, input_ids, mask, vectors):
        sizes.append(mask.size)
        original(self, input_ids, mask, vectors)

    monkeypatch.setattr(Encoder, "run_batch", run)
    embeddings = encoder.encode(SEQUENCES * 1000)
    assert embeddings.lengths.sum() == 13_000
    assert 750 < max(sizes) <= 1024


def test_progress_adds_up_to_all_tokens(encoder):
    steps = []
    encoder.encode(SEQUENCES, max_tokens=6, advance=steps.append)
    assert len(steps) > 1
    assert sum(steps) == sum(map(len, SEQUENCES))


def test_nothing_encodes_to_nothing(encoder):
    embeddings = encoder.encode([])
    assert (embeddings.vectors.shape, embeddings.starts.shape) == ((1, 0, 32), (0,))


def test_a_closed_encoder_says_so(encoder):
    encoder.close()
    with pytest.raises(ClosedError, match="was closed"):
        encoder.encode(SEQUENCES)


def test_an_input_that_the_manifest_does_not_name_is_refused(with_graph):
    with pytest.raises(GraphError, match=r"takes the inputs \['input_ids', 'attention_mask', 'extra'\]"):
        Encoder(with_graph(lambda graph: graph.input.append(input_named("extra"))), device="cpu")


def test_an_input_that_the_graph_lacks_is_refused(bundle):
    manifest = msgspec.structs.replace(bundle.manifest, inputs=["input_ids", "attention_mask", "token_type_ids"])
    with pytest.raises(GraphError, match="token_type_ids"):
        Encoder(Bundle(bundle.path, manifest), device="cpu")


def test_an_output_of_another_name_is_refused(bundle):
    manifest = msgspec.structs.replace(bundle.manifest, output="hidden")
    with pytest.raises(GraphError, match=r"gives \['token_embeddings'\], not 'hidden'"):
        Encoder(Bundle(bundle.path, manifest), device="cpu")


def test_another_hidden_size_is_refused(bundle):
    manifest = msgspec.structs.replace(bundle.manifest, hidden_size=64)
    with pytest.raises(GraphError, match=r"expected \['batch', 'tokens', 64\]"):
        Encoder(Bundle(bundle.path, manifest), device="cpu")


def test_a_file_that_is_no_graph_is_refused(bundle, tmp_path):
    (tmp_path / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(GraphError, match="cannot be loaded"):
        Encoder(Bundle(tmp_path, bundle.manifest), device="cpu")


def test_a_device_asked_for_by_name_is_never_replaced(bundle, monkeypatch):
    monkeypatch.setattr("bertscore_onnx.encoding.session.choose_providers", lambda device: [CUDA])
    with pytest.raises(DeviceError, match="CUDAExecutionProvider cannot run"):
        Encoder(bundle, device="cuda")


def test_without_a_name_the_cpu_takes_over_and_this_is_logged(bundle, monkeypatch, caplog):
    monkeypatch.setattr("bertscore_onnx.encoding.session.choose_providers", lambda device: [CUDA, CPU])
    assert Encoder(bundle).provider == CPU.name
    assert "CUDAExecutionProvider cannot be used" in caplog.text


def input_named(name):
    return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.INT64, ["batch", "tokens"])


@pytest.mark.parametrize(
    ("optimize_for", "num_threads", "sizes"),
    [("throughput", 8, [1] * 4), ("throughput", 2, [2] * 2), ("throughput", 1, [4]), ("latency", 8, [4])],
)
def test_a_few_texts_get_a_batch_per_thread_or_one_batch(bundle, monkeypatch, optimize_for, num_threads, sizes):
    encoder, found = Encoder(bundle, device="cpu", num_threads=num_threads, optimize_for=optimize_for), []

    def run(model, input_ids, mask, vectors):
        found.append(len(mask))
        original(model, input_ids, mask, vectors)

    original = Encoder.run_batch
    monkeypatch.setattr(Encoder, "run_batch", run)
    encoder.encode(SEQUENCES)
    assert sorted(found) == sizes


def test_the_number_of_threads_does_not_change_vectors(bundle):
    one, many = (Encoder(bundle, device="cpu", num_threads=number).encode(SEQUENCES) for number in (1, 8))
    assert np.abs(all_vectors(one) - all_vectors(many)).max() <= 1e-6


def test_a_stop_ends_the_work_between_two_batches(encoder):
    is_stopped, done = threading.Event(), []

    def advance(tokens):
        done.append(tokens)
        is_stopped.set()

    with pytest.raises(ClosedError, match="went away"):
        encoder.encode(SEQUENCES, max_items=1, is_stopped=is_stopped, advance=advance)
    assert len(done) == 1


def test_the_compute_precision_is_the_graphs_unless_the_provider_has_its_own(bundle, encoder, opened_as_openvino):
    assert (encoder.precision, Encoder(bundle, device="openvino").precision) == ("fp32", "bf16")


def test_an_id_that_the_model_does_not_have_is_the_tokenizers_fault(bundle):
    fewer = Bundle(bundle.path, msgspec.structs.replace(bundle.manifest, vocab_size=6))
    with pytest.raises(TokenizerError, match="gives the id 8, and the model has 6 ids"):
        Encoder(fewer, device="cpu").encode(SEQUENCES)


@pytest.mark.parametrize("shape", [(0, 0, 8), (1, 3, 4), (2, 300_000, 3), (OWN_PAGES // 4,)])
def test_an_array_can_be_filled(shape):
    array = uninitialized(shape)
    array[:] = 1.5
    assert (array.shape, array.dtype) == (shape, np.float32)
    assert (array == 1.5).all()


def resident():
    """Return the memory of this process in bytes."""
    return 1024 * int(re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text(encoding="utf-8"))[1])


@pytest.mark.skipif(sys.platform != "linux", reason="Resident memory is read from /proc.")
def test_a_large_array_gives_its_memory_back_though_others_came_after_it():
    np.empty(7_000_000, dtype=np.float32)  # the C library takes arrays up to this size from its heap from now on
    arrays, others = [], []
    for _ in range(10):
        arrays.append(uninitialized((1, 1000, 1000)))
        arrays[-1][:] = 1
        others.append(np.ones(50_000, dtype=np.float32))
    held = resident()
    arrays.clear()
    assert held - resident() > 35_000_000


def test_memory_that_was_given_back_is_used_again():
    memory = ReusedMemory()
    first = memory.take((2, 1000, 1000))
    second = memory.take((1, 10, 4))
    address = first.ctypes.data
    assert second.ctypes.data != address
    memory.give_back(first)
    again = memory.take((1, 900, 1000))
    assert (again.ctypes.data, again.shape) == (address, (1, 900, 1000))


def test_memory_that_is_too_small_is_not_used():
    memory = ReusedMemory()
    memory.give_back(memory.take((1, 3, 4)))
    larger = memory.take((1, 30, 4))
    larger[:] = 2
    assert larger.shape == (1, 30, 4)
    assert (larger == 2).all()


def batches(lengths, *options):
    return [batch.tolist() for batch in plan_batches(np.array(lengths, dtype=np.int64), *options)]


def test_items_of_like_length_share_a_batch_and_the_longest_come_first():
    assert batches([1, 9, 2, 8], 16) == [[1], [3, 2], [0]]


def test_a_batch_may_be_filled_to_its_last_token():
    assert batches([4, 4, 4, 4], 8) == [[0, 1], [2, 3]]


def test_an_item_over_the_limit_makes_a_batch_of_its_own():
    assert batches([100, 1], 8) == [[0], [1]]


def test_the_number_of_items_can_be_capped():
    assert batches([1, 1, 1], 100, 2) == [[0, 1], [2]]


def test_nothing_makes_no_batch():
    assert batches([], 8) == []


@given(st.lists(st.integers(1, 50)), st.integers(1, 200), st.integers(1, 10) | st.none())
def test_every_item_is_planned_once_and_no_batch_is_too_large(lengths, max_tokens, max_items):
    planned = batches(lengths, max_tokens, max_items)
    assert sorted(index for batch in planned for index in batch) == list(range(len(lengths)))
    for batch in planned:
        assert len(batch) == 1 or len(batch) * max(lengths[index] for index in batch) <= max_tokens
        assert max_items is None or len(batch) <= max_items


def test_without_padding_a_batch_holds_one_length_only():
    planned = plan_batches(np.array([3, 2, 3, 3, 1, 2]), 6, padding=False)
    assert [batch.tolist() for batch in planned] == [[0, 2], [3], [1, 5], [4]]


@pytest.mark.parametrize(
    ("lengths", "concurrency", "sizes"),
    [
        ([5, 9], 8, [1, 1]),
        ([5, 9], 1, [2]),
        ([5, 900], 4, [1, 1]),
        ([9] * 8, 4, [2] * 4),
        ([9] * 1000, 4, [100] * 10),
        ([], 4, []),
    ],
)
def test_a_few_texts_are_shared_out(lengths, concurrency, sizes):
    planned = plan_runs(np.array(lengths, dtype=np.int64), 900, concurrency=concurrency)
    assert [len(batch) for batch in planned] == sizes


def test_a_provider_that_likes_it_whole_gets_little_work_whole():
    planned = plan_runs(np.full(8, 9), 900, concurrency=2, splits_little_work=False)
    assert [len(batch) for batch in planned] == [8]
