from dataclasses import replace

import numpy as np
import pytest

from bertscore_onnx.bundle.opening import open_bundle
from bertscore_onnx.encoding.encoder import Encoder
from bertscore_onnx.encoding.model import OnnxModel
from bertscore_onnx.encoding.onnx_runtime.graph import OnnxGraph
from bertscore_onnx.encoding.onnx_runtime.providers import CPU, CUDA
from bertscore_onnx.encoding.onnx_runtime.sessions import SharedSession, open_session
from bertscore_onnx.errors import EncodingError, OutOfMemoryError

SESSIONS = "bertscore_onnx.encoding.onnx_runtime.sessions"

SEQUENCES = [np.array(ids) for ids in ([2, 5, 3], [2, 3], [2, 6, 7, 8, 3], [2, 5, 3], [2, 9, 3])]
INPUT_IDS = np.array([[2, 5, 3, 0], [2, 3, 0, 0], [2, 6, 7, 3], [2, 9, 3, 0], [2, 8, 3, 0]])
MASK = INPUT_IDS > 0
NO_MEMORY = (
    "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned while running Softmax node. Status "
    "Message: bfc_arena.cc:376 Failed to allocate memory for requested buffer of size 268435456"
)


class SmallSession:
    """A session that fails on more than `most` texts."""

    def __init__(self, session, most, message):
        self._session, self._most, self._message = session, most, message
        self.batches = []

    def run(self, outputs, feed):
        self.batches.append(len(feed["input_ids"]))
        if self.batches[-1] > self._most:
            raise RuntimeError(self._message)
        return self._session.run(outputs, feed)


@pytest.fixture(scope="module")
def bundle(tiny_bundle):
    return open_bundle(tiny_bundle)


@pytest.fixture
def fail_above(monkeypatch):
    """Return a function that lets sessions from now on fail on more than `most` texts; give it the list of them."""

    def fail_above(most, message=NO_MEMORY):
        sessions = []

        def get(self):
            sessions.append(SmallSession(original(self), most, message))
            return sessions[-1]

        original = SharedSession.get
        monkeypatch.setattr(SharedSession, "get", get)
        return sessions

    return fail_above


def sizes(sessions):
    """Return how many texts each run had."""
    return [size for session in sessions for size in session.batches]


@pytest.mark.parametrize(
    ("most", "batches"), [(5, [5]), (3, [5, 2, 3]), (2, [5, 2, 3, 1, 2]), (1, [5, 2, 1, 1, 3, 1, 2, 1, 1])]
)
def test_a_batch_that_does_not_fit_into_memory_is_halved(bundle, fail_above, caplog, most, batches):
    model = OnnxModel(bundle, device="cpu", num_threads=1)
    expected = model.run(INPUT_IDS, MASK)
    sessions = fail_above(most)
    found = model.run(INPUT_IDS, MASK)
    assert found.shape == expected.shape
    assert np.abs(found - expected)[:, MASK].max() <= 1e-6
    assert sizes(sessions) == batches
    assert ("ran out of memory on a batch of shape (5, 4); halving it" in caplog.text) == (most < 5)


def test_every_layer_of_the_halves_is_joined(all_layers_bundle, fail_above):
    model = OnnxModel(open_bundle(all_layers_bundle), device="cpu", num_threads=1)
    expected = model.run(INPUT_IDS, MASK)
    fail_above(2)
    found = model.run(INPUT_IDS, MASK)
    assert found.shape == expected.shape == (4, 5, 4, 32)
    assert np.abs(found - expected)[:, MASK].max() <= 1e-6


def test_an_encoder_short_of_memory_gives_the_same_vectors(bundle, fail_above):
    encoder = Encoder(bundle, device="cpu")
    expected = encoder.encode(SEQUENCES)
    fail_above(2)
    found = encoder.encode(SEQUENCES)
    assert found.ids.tolist() == expected.ids.tolist()
    assert np.abs(found.vectors - expected.vectors).max() <= 1e-6


@pytest.mark.parametrize(
    "message", [NO_MEMORY, "CUDNN failure 4: out of memory ; GPU=0", "std::bad_alloc", "bad allocation"]
)
def test_a_single_text_that_does_not_fit_is_refused(bundle, fail_above, message):
    model = OnnxModel(bundle, device="cpu")
    fail_above(0, message)
    with pytest.raises(OutOfMemoryError, match="CPUExecutionProvider has too little memory for a text of 4 tokens"):
        model.run(INPUT_IDS, MASK)


def test_too_little_memory_is_a_memory_error_too(bundle, fail_above):
    model = OnnxModel(bundle, device="cpu")
    fail_above(0)
    with pytest.raises(MemoryError) as caught:
        model.run(INPUT_IDS[:1], MASK[:1])
    assert isinstance(caught.value, EncodingError)


def test_any_other_failure_is_told_at_once(bundle, fail_above):
    model = OnnxModel(bundle, device="cpu", num_threads=1)
    sessions = fail_above(3, "Gather: index 7 is out of bounds")
    with pytest.raises(
        EncodingError, match=r"CPUExecutionProvider failed on a batch of shape \(5, 4\): Gather"
    ) as caught:
        model.run(INPUT_IDS, MASK)
    assert not isinstance(caught.value, OutOfMemoryError)
    assert sizes(sessions) == [5]


def test_vectors_of_another_shape_are_refused(bundle, monkeypatch):
    model = OnnxModel(bundle, device="cpu")
    monkeypatch.setattr(OnnxGraph, "run", lambda self, batch: [np.zeros((5, 4, 31), np.float32)])
    with pytest.raises(EncodingError, match=r"shape \(5, 4, 31\); expected \(5, 4, 32\)"):
        model.run(INPUT_IDS, MASK)


def test_a_run_on_all_threads_gives_the_same_vectors(bundle):
    together = OnnxModel(bundle, device="cpu", num_threads=8).run(INPUT_IDS, MASK)
    latency = OnnxModel(bundle, device="cpu", num_threads=8, optimize_for="latency").run(INPUT_IDS, MASK)
    assert np.abs(together - latency)[:, MASK].max() <= 1e-6


def test_as_many_runs_go_concurrency_as_there_are_threads(bundle):
    assert OnnxModel(bundle, device="cpu", num_threads=3).graph.concurrency == 3


class CudaBinding:
    """Stands for the binding of a session on a GPU, none of which is at hand: runs the session on the CPU instead."""

    def __init__(self, session):
        self.session, self.inputs, self.outputs = session, {}, []

    def bind_cpu_input(self, name, values):
        self.inputs[name] = values

    def bind_output(self, name, device_type, device_id):
        self.outputs.append((name, device_type, device_id))

    def copy_outputs_to_cpu(self):
        return self.session.run([name for name, *_ in self.outputs], self.inputs)


def test_on_cuda_the_output_stays_on_the_card_until_it_is_copied(bundle, monkeypatch):
    expected = OnnxModel(bundle, device="cpu").run(INPUT_IDS, MASK)
    bindings = []

    class CudaSession:
        def __init__(self, session):
            self._session = session
            self.get_inputs, self.get_outputs = session.get_inputs, session.get_outputs

        def io_binding(self):
            bindings.append(CudaBinding(self._session))
            return bindings[-1]

        def run_with_iobinding(self, binding):
            assert binding is bindings[-1]

    def open_on_the_cpu(graph, options, provider, num_threads, streams):
        session, failure = open_session(graph, options, CPU)
        return CudaSession(session), failure

    monkeypatch.setattr(f"{SESSIONS}.choose_providers", lambda device: [replace(CUDA, index=1)])
    monkeypatch.setattr(f"{SESSIONS}.open_session", open_on_the_cpu)
    assert np.array_equal(OnnxModel(bundle, device="cuda:1").run(INPUT_IDS, MASK), expected)
    assert bindings[0].outputs == [("token_embeddings", "cuda", 1)]


def test_on_cuda_runs_are_padded_to_full_matrix_units(bundle, monkeypatch):
    monkeypatch.setattr(
        f"{SESSIONS}.choose_providers",
        lambda device: [replace(CPU, length_multiple=8)],
    )
    shapes = []
    original = OnnxModel.run

    def run(self, input_ids, mask, **options):
        shapes.append(input_ids.shape)
        return original(self, input_ids, mask, **options)

    monkeypatch.setattr(OnnxModel, "run", run)
    padded = Encoder(bundle).encode(SEQUENCES)
    assert {tokens % 8 for _, tokens in shapes} == {0}
    monkeypatch.undo()
    exact = Encoder(bundle, device="cpu").encode(SEQUENCES)
    assert np.abs(padded.vectors - exact.vectors).max() < 1e-5
