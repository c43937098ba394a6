from dataclasses import replace

import numpy as np
import pytest

from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.encoding.encoder import Encoder
from bertscore_onnx.encoding.providers import CPU
from bertscore_onnx.encoding.session import OnnxSession
from bertscore_onnx.errors import EncodingError, OutOfMemoryError

SESSIONS = "bertscore_onnx.encoding.session"

SEQUENCES = [np.array(ids) for ids in ([2, 5, 3], [2, 3], [2, 6, 7, 8, 3], [2, 5, 3], [2, 9, 3])]
INPUT_IDS = np.array([[2, 5, 3, 0], [2, 3, 0, 0], [2, 6, 7, 3], [2, 9, 3, 0], [2, 8, 3, 0]])
IS_TOKEN = INPUT_IDS > 0
MASK = IS_TOKEN.astype(np.int64)
NO_MEMORY = (
    "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned while running Softmax node. Status "
    "Message: bfc_arena.cc:376 Failed to allocate memory for requested buffer of size 268435456"
)


class SmallSession:
    """A session that fails on more than `most` texts."""

    def __init__(self, session, most, message):
        self._session, self._most, self._message = session, most, message
        self.batches = []

    def io_binding(self):
        binding = self._session.io_binding()
        original = binding.bind_ortvalue_input

        def bind_ortvalue_input(name, value):
            self.batches[-1:] = [value.shape()[0]]
            original(name, value)

        self.batches.append(0)
        binding.bind_ortvalue_input = bind_ortvalue_input
        return binding

    def run_with_iobinding(self, binding):
        if self.batches[-1] > self._most:
            raise RuntimeError(self._message)
        self._session.run_with_iobinding(binding)


def run(model, layers=1):
    """Return the vectors of the batch, (layers, batch, tokens, hidden)."""
    vectors = np.full((layers, *MASK.shape, 32), np.nan, dtype=np.float32)
    model.run_batch(INPUT_IDS, MASK, vectors)
    return vectors


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

        original = OnnxSession.get
        monkeypatch.setattr(OnnxSession, "get", get)
        return sessions

    return fail_above


def sizes(sessions):
    """Return how many texts each run had."""
    return [size for session in sessions for size in session.batches]


@pytest.mark.parametrize(
    ("most", "batches"), [(5, [5]), (3, [5, 2, 3]), (2, [5, 2, 3, 1, 2]), (1, [5, 2, 1, 1, 3, 1, 2, 1, 1])]
)
def test_a_batch_that_does_not_fit_into_memory_is_halved(bundle, fail_above, caplog, most, batches):
    model = Encoder(bundle, device="cpu", num_threads=1)
    expected = run(model)
    sessions = fail_above(most)
    found = run(model)
    assert found.shape == expected.shape
    assert np.abs(found - expected)[:, IS_TOKEN].max() <= 1e-6
    assert sizes(sessions) == batches
    assert ("ran out of memory on a batch of shape (5, 4); halving it" in caplog.text) == (most < 5)


def test_every_layer_of_the_halves_is_joined(all_layers_bundle, fail_above):
    model = Encoder(open_bundle(all_layers_bundle), device="cpu", num_threads=1)
    expected = run(model, layers=4)
    fail_above(2)
    found = run(model, layers=4)
    assert found.shape == expected.shape == (4, 5, 4, 32)
    assert np.abs(found - expected)[:, IS_TOKEN].max() <= 1e-6


def test_an_encoder_short_of_memory_gives_the_same_vectors(bundle, fail_above):
    encoder = Encoder(bundle, device="cpu")
    expected = encoder.encode(SEQUENCES)
    fail_above(2)
    found = encoder.encode(SEQUENCES)
    for text in range(len(SEQUENCES)):
        assert np.abs(found.vectors_of(0, text) - expected.vectors_of(0, text)).max() <= 1e-6


@pytest.mark.parametrize(
    "message", [NO_MEMORY, "CUDNN failure 4: out of memory ; GPU=0", "std::bad_alloc", "bad allocation"]
)
def test_a_single_text_that_does_not_fit_is_refused(bundle, fail_above, message):
    model = Encoder(bundle, device="cpu")
    fail_above(0, message)
    with pytest.raises(OutOfMemoryError, match="CPUExecutionProvider has too little memory for a text of 4 tokens"):
        run(model)


def test_too_little_memory_is_a_memory_error_too(bundle, fail_above):
    model = Encoder(bundle, device="cpu")
    fail_above(0)
    with pytest.raises(MemoryError) as caught:
        model.run_batch(INPUT_IDS[:1], MASK[:1], np.empty((1, 1, 4, 32), dtype=np.float32))
    assert isinstance(caught.value, EncodingError)


def test_any_other_failure_is_told_at_once(bundle, fail_above):
    model = Encoder(bundle, device="cpu", num_threads=1)
    sessions = fail_above(3, "Gather: index 7 is out of bounds")
    with pytest.raises(
        EncodingError, match=r"CPUExecutionProvider failed on a batch of shape \(5, 4\): Gather"
    ) as caught:
        run(model)
    assert not isinstance(caught.value, OutOfMemoryError)
    assert sizes(sessions) == [5]


def test_vectors_of_another_shape_are_refused(bundle):
    model = Encoder(bundle, device="cpu")
    with pytest.raises(EncodingError, match=r"failed on a batch of shape \(5, 4\).*shape"):
        model.run_batch(INPUT_IDS, MASK, np.empty((1, 5, 3, 32), dtype=np.float32))


def test_a_run_on_all_threads_gives_the_same_vectors(bundle):
    together = run(Encoder(bundle, device="cpu", num_threads=8))
    latency = run(Encoder(bundle, device="cpu", num_threads=8, optimize_for="latency"))
    assert np.abs(together - latency)[:, IS_TOKEN].max() <= 1e-6


def test_as_many_runs_go_concurrency_as_there_are_threads(bundle):
    assert Encoder(bundle, device="cpu", num_threads=3).session.concurrency == 3


def test_on_cuda_runs_are_padded_to_full_matrix_units(bundle, monkeypatch):
    monkeypatch.setattr(
        f"{SESSIONS}.choose_providers",
        lambda device: [replace(CPU, length_multiple=8)],
    )
    shapes = []
    original = Encoder.run_batch

    def run_and_record(self, input_ids, mask, vectors):
        shapes.append(input_ids.shape)
        original(self, input_ids, mask, vectors)

    monkeypatch.setattr(Encoder, "run_batch", run_and_record)
    padded = Encoder(bundle).encode(SEQUENCES)
    assert {tokens % 8 for _, tokens in shapes} == {0}
    monkeypatch.undo()
    exact = Encoder(bundle, device="cpu").encode(SEQUENCES)
    for text in range(len(SEQUENCES)):
        assert np.abs(padded.vectors_of(0, text) - exact.vectors_of(0, text)).max() < 1e-5
