import re
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bertscore_onnx.bundle.bundle import Bundle, open_bundle
from bertscore_onnx.encoding.device import Buckets
from bertscore_onnx.encoding.encoder import (
    Encoder,
    PaddedTexts,
    ReusedMemory,
    plan_batches,
    plan_runs,
)
from bertscore_onnx.encoding.places import uninitialized
from bertscore_onnx.encoding.providers import CUDA, OPENVINO
from bertscore_onnx.errors import ClosedError, GraphError, TokenizerError
from bertscore_onnx.scoring.pipeline import CHUNK_BYTES
from harness.gpu import CHOICE, like_cuda
from tests.support.lengths import SENTENCES, TRANSLATIONS, lengths_like
from tests.support.manifests import with_fields

SEQUENCES = [np.array(ids) for ids in ([2, 5, 3], [2, 3], [2, 6, 7, 8, 3], [2, 5, 3])]


@pytest.fixture(scope="module")
def bundle(tiny_bundle):
    return open_bundle(tiny_bundle)


@pytest.fixture
def encoder(bundle):
    return Encoder(bundle, device="cpu")


@pytest.fixture
def runs(monkeypatch):
    """Return a list that grows by the shape of each batch that an encoder runs."""
    original, shapes = Encoder.run_batch, []

    def run(encoder, input_ids, mask, vectors):
        shapes.append(mask.shape)
        original(encoder, input_ids, mask, vectors)

    monkeypatch.setattr(Encoder, "run_batch", run)
    return shapes


def all_vectors(embeddings):
    """Return the vectors of all texts one after the other, (tokens, hidden)."""
    return np.concatenate(
        [embeddings.vectors_of(0, text) for text in range(len(embeddings.sequences))]
    )


def test_every_token_gets_a_unit_vector(encoder):
    embeddings = encoder.run(encoder.plan(SEQUENCES))
    assert [ids.tolist() for ids in embeddings.sequences] == [ids.tolist() for ids in SEQUENCES]
    assert embeddings.lengths.tolist() == [3, 2, 5, 3]
    vectors = all_vectors(embeddings)
    assert vectors.shape == (13, 32)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(13), abs=1e-6)


@pytest.fixture
def few_shapes(bundle, monkeypatch):
    """Return an encoder with the limits of CUDA, but runs of 256 tokens."""
    provider = like_cuda(batch_values=32 * 256, min_batch_tokens=1)
    monkeypatch.setattr(CHOICE, lambda device: [provider])
    return Encoder(bundle)


MANY_LENGTHS = [
    np.array([2, *[5] * number, 3])
    for number in (1, 2, 3, 7, 9, 11, 14, 20, 23, 30)
    for _ in range(7)
]


@pytest.mark.parametrize("options", [{}, {"max_items": 5}, {"max_items": 1}])
def test_on_a_gpu_runs_have_few_shapes_and_the_same_vectors(
    bundle, encoder, few_shapes, runs, options
):
    padded = few_shapes.run(few_shapes.plan(MANY_LENGTHS, **options))
    shapes, most = set(runs), options.get("max_items", 1000)
    assert {tokens for _, tokens in shapes} <= {*CUDA.widths, bundle.manifest.max_length}
    assert all(texts <= most for texts, _ in shapes)
    assert len(shapes) <= 8
    assert all(texts * tokens <= 256 for texts, tokens in shapes)
    assert (
        np.abs(all_vectors(padded) - all_vectors(encoder.run(encoder.plan(MANY_LENGTHS)))).max()
        < 1e-5
    )


def test_warming_up_runs_every_shape(encoder, few_shapes, runs, monkeypatch):
    few_shapes.run(few_shapes.plan(MANY_LENGTHS))
    needed = {*runs}
    warm = []
    monkeypatch.setattr(
        Encoder,
        "run_batch",
        lambda _, ids, *rest: warm.append((threading.current_thread().name, ids.shape)),
    )
    few_shapes.warm_up()
    names = {name for name, _ in warm}
    assert len(names) == 1
    assert needed <= {shape for _, shape in warm}
    assert Counter(warm) == dict.fromkeys(product(names, {shape for _, shape in warm}), 1)
    warm.clear()
    encoder.warm_up()  # a CPU needs none
    assert not warm


@pytest.mark.parametrize("optimize_for", ["throughput", "latency"])
def test_on_a_gpu_whoever_calls_one_thread_runs_the_model(bundle, monkeypatch, optimize_for):
    names, original = set(), Encoder.run_batch

    def run(encoder, *batch):
        names.add(threading.current_thread().name)
        original(encoder, *batch)

    monkeypatch.setattr(Encoder, "run_batch", run)
    monkeypatch.setattr(
        CHOICE, lambda device: [like_cuda(batch_values=32 * 64, min_batch_tokens=1)]
    )
    encoder = Encoder(bundle, optimize_for=optimize_for)
    with ThreadPoolExecutor(4) as callers:
        list(callers.map(encoder.run, [encoder.plan(MANY_LENGTHS)] * 8))
    [name] = names
    assert name.startswith("bertscore-encode")


def test_a_model_that_takes_no_padding_gets_none_on_a_gpu(bundle, monkeypatch, runs):
    monkeypatch.setattr(CHOICE, lambda device: [like_cuda()])
    encoder = Encoder(with_fields(bundle, padding=False))
    encoder.run(encoder.plan(SEQUENCES))
    assert sorted(runs) == [(1, 2), (1, 5), (2, 3)]


@pytest.mark.parametrize(
    ("percentiles", "number", "most_shapes", "most_padding"),
    [(SENTENCES, 3004, 12, 0.20), (SENTENCES, 20_000, 12, 0.13), (TRANSLATIONS, 20_000, 18, 0.19)],
)
@pytest.mark.parametrize("hidden_size", [384, 768, 1024])
def test_on_a_gpu_real_lengths_need_few_shapes_and_little_padding(
    bundle, percentiles, number, most_shapes, most_padding, hidden_size
):
    """Pairs in chunks like those of a pipeline."""
    manifest = msgspec.structs.replace(bundle.manifest, hidden_size=hidden_size, max_length=512)
    buckets, most = Buckets.of(CUDA, manifest), CUDA.max_tokens(hidden_size)
    lengths = lengths_like(percentiles, 2 * number)
    chunk = np.cumsum(lengths) // (CUDA.chunk_scale * CHUNK_BYTES // (4 * hidden_size))
    shapes, tokens = set(), 0
    for number in range(chunk[-1] + 1):
        of_chunk = lengths[chunk == number]
        batches = plan_runs(of_chunk, most, concurrency=1, buckets=buckets)
        assert np.array_equal(np.sort(np.concatenate(batches)), np.arange(len(of_chunk)))
        padded = PaddedTexts(
            [np.ones(length, dtype=np.int64) for length in of_chunk], batches, manifest, buckets
        )
        shapes.update(padded.shapes)
        tokens += padded.num_tokens
    assert tokens <= (1 + most_padding) * lengths.sum()
    assert len(shapes) <= most_shapes
    assert max(texts * width for texts, width in shapes) <= most
    assert shapes <= {*buckets.shapes()}


@given(
    st.lists(st.integers(1, 120), min_size=1, max_size=40), st.integers(1, 8), st.integers(1, 20)
)
def test_a_few_texts_on_a_cpu_have_few_shapes_and_a_run_for_each_thread(
    bundle, lengths, concurrency, max_items
):
    manifest = msgspec.structs.replace(bundle.manifest, hidden_size=384, max_length=512)
    of_provider = Buckets.of(OPENVINO, manifest)
    lengths = np.array(lengths)
    buckets = of_provider.for_texts(lengths, max_items, concurrency)
    if buckets is None:
        assert lengths.max() * len(lengths) > of_provider.max_tokens * concurrency
        return
    runs = list(buckets.plan(lengths))
    assert np.array_equal(np.sort(np.concatenate(runs)), np.arange(len(lengths)))
    assert len(runs) >= min(concurrency, len(lengths))
    assert max(map(len, runs)) <= max_items
    sequences = [np.ones(length, dtype=np.int64) for length in lengths]
    for texts, width in PaddedTexts(sequences, runs, manifest, buckets).shapes:
        assert (texts, width) in buckets.shapes()
        assert width in of_provider.widths


def test_runs_are_bounded_however_small_the_model_is(encoder, runs):
    embeddings = encoder.run(encoder.plan(SEQUENCES * 1000))
    assert embeddings.lengths.sum() == 13_000
    assert 750 < max(texts * tokens for texts, tokens in runs) <= 1024


def test_a_graph_that_is_none_or_takes_another_input_is_refused(bundle, tmp_path):
    graph = onnx.load(bundle.path / "model.onnx")
    extra = onnx.helper.make_tensor_value_info("extra", onnx.TensorProto.INT64, ["batch", "tokens"])
    graph.graph.input.append(extra)
    for content, message in (
        (b"no graph", "cannot be loaded"),
        (graph.SerializeToString(), r"takes the inputs \['input_ids', 'attention_mask', 'extra'\]"),
    ):
        (tmp_path / "model.onnx").write_bytes(content)
        with pytest.raises(GraphError, match=message):
            Encoder(Bundle(tmp_path, bundle.manifest), device="cpu")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"inputs": ["input_ids", "attention_mask", "token_type_ids"]}, "token_type_ids"),
        ({"output": "hidden"}, r"gives \['token_embeddings'\], not 'hidden'"),
        ({"hidden_size": 64}, r"expected \['batch', 'tokens', 64\]"),
    ],
    ids=str,
)
def test_a_graph_that_differs_from_the_manifest_is_refused(bundle, fields, message):
    with pytest.raises(GraphError, match=message):
        Encoder(with_fields(bundle, **fields), device="cpu")


def test_a_stop_ends_the_work_between_two_batches(encoder):
    is_stopped, done = threading.Event(), []

    def advance(tokens):
        done.append(tokens)
        is_stopped.set()

    with pytest.raises(ClosedError, match="went away"):
        encoder.run(encoder.plan(SEQUENCES, max_items=1), is_stopped=is_stopped, advance=advance)
    assert len(done) == 1


def test_an_id_outside_the_model_is_the_tokenizers_fault(bundle):
    with pytest.raises(TokenizerError, match="id 8"):
        Encoder(with_fields(bundle, vocab_size=6), device="cpu").plan(SEQUENCES)


def resident():
    """Return the memory of this process in bytes."""
    return 1024 * int(
        re.search(r"VmRSS:\s+(\d+)", Path("/proc/self/status").read_text(encoding="utf-8"))[1]
    )


@pytest.mark.skipif(sys.platform != "linux", reason="Resident memory is read from /proc.")
def test_a_large_array_gives_its_memory_back_to_the_system():
    # the C library takes arrays up to this size from its heap from now on
    np.empty(7_000_000, dtype=np.float32)
    arrays, others = [], []
    for _ in range(10):
        arrays.append(uninitialized((1, 1000, 1000)))
        arrays[-1][:] = 1
        others.append(np.ones(50_000, dtype=np.float32))
    held = resident()
    arrays.clear()
    assert held - resident() > 35_000_000


@pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage").exists(),
    reason="The system has no large pages.",
)
def test_a_large_array_asks_for_large_pages():
    array = uninitialized((1, 1000, 1000))
    mappings = re.findall(
        r"^([0-9a-f]+)-([0-9a-f]+) .*?^VmFlags:(.*?)$",
        Path("/proc/self/smaps").read_text(encoding="utf-8"),
        re.M | re.S,
    )
    [flags] = [
        flags
        for begin, end, flags in mappings
        if int(begin, 16) <= array.ctypes.data < int(end, 16)
    ]
    assert "hg" in flags.split()


def test_released_memory_is_used_again_where_it_is_large_enough():
    memory = ReusedMemory()
    first, second = memory.take((2, 1000, 1000)), memory.take((1, 10, 4))
    address = first.ctypes.data
    assert second.ctypes.data != address
    memory.give_back(first)
    again = memory.take((1, 900, 1000))
    assert (again.ctypes.data, again.shape) == (address, (1, 900, 1000))
    memory.give_back(second)
    larger = memory.take((1, 30, 4))
    larger[:] = 2
    assert larger.shape == (1, 30, 4)
    assert (larger == 2).all()


def batches(lengths, *arguments, **options):
    return [
        batch.tolist()
        for batch in plan_batches(np.array(lengths, dtype=np.int64), *arguments, **options)
    ]


@pytest.mark.parametrize(
    ("lengths", "max_tokens", "options", "expected"),
    [
        pytest.param(
            [1, 9, 2, 8], 16, {}, [[1], [3, 2], [0]], id="like lengths together, the longest first"
        ),
        pytest.param([4, 4, 4, 4], 8, {}, [[0, 1], [2, 3]], id="filled to the last token"),
        pytest.param([100, 1], 8, {}, [[0], [1]], id="an item over the limit alone"),
        pytest.param([1, 1, 1], 100, {"max_items": 2}, [[0, 1], [2]], id="items capped"),
        pytest.param(
            [3, 2, 3, 3, 1, 2],
            6,
            {"padding": False},
            [[0, 2], [3], [1, 5], [4]],
            id="one length each",
        ),
        pytest.param([], 8, {}, [], id="nothing"),
    ],
)
def test_items_of_like_length_share_a_batch(lengths, max_tokens, options, expected):
    assert batches(lengths, max_tokens, **options) == expected


@given(st.lists(st.integers(1, 50)), st.integers(1, 200), st.integers(1, 10) | st.none())
def test_every_item_is_planned_once_and_no_batch_is_too_large(lengths, max_tokens, max_items):
    planned = batches(lengths, max_tokens, max_items)
    assert sorted(index for batch in planned for index in batch) == list(range(len(lengths)))
    for batch in planned:
        assert len(batch) == 1 or len(batch) * max(lengths[index] for index in batch) <= max_tokens
        assert max_items is None or len(batch) <= max_items


@pytest.mark.parametrize(
    ("lengths", "options", "sizes"),
    [
        ([5, 9], {"concurrency": 8}, [1, 1]),
        ([5, 9], {"concurrency": 1}, [2]),
        ([5, 900], {"concurrency": 4}, [1, 1]),
        ([9] * 8, {"concurrency": 4}, [2] * 4),
        ([9] * 8, {"concurrency": 2, "splits_little_work": False}, [8]),
        ([9] * 1000, {"concurrency": 4}, [100] * 10),
        ([], {"concurrency": 4}, []),
    ],
)
def test_a_few_texts_are_shared_out(lengths, options, sizes):
    assert [
        len(batch) for batch in plan_runs(np.array(lengths, dtype=np.int64), 900, **options)
    ] == sizes
