import os
import shutil
import sys
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import onnx
import pytest

from bertscore_onnx.bundle.bundle import Bundle, open_bundle
from bertscore_onnx.encoding.encoder import Encoder
from bertscore_onnx.encoding.places import HostPlace
from bertscore_onnx.encoding.providers import (
    CPU,
    CUDA,
    _warn_of_cudnn,
    cudnn_error,
    open_session,
)
from bertscore_onnx.encoding.session import OnnxSession, OrtGraph
from bertscore_onnx.errors import (
    DeviceError,
    DigestError,
    EncodingError,
    GraphError,
    OutOfMemoryError,
    install_command,
)
from tests.support.manifests import with_fields
from tests.support.processes import forks, in_forked_child

SESSIONS = "bertscore_onnx.encoding.session"
PROVIDERS = "bertscore_onnx.encoding.providers"


@pytest.fixture(scope="module")
def bundle(tiny_bundle):
    return open_bundle(tiny_bundle)


def session_of(bundle, **options):
    return Encoder(bundle, **options).session


def threads_of(graph):
    return graph.session.get_session_options().intra_op_num_threads


def run_once(shared):
    """Run a graph, so that its threads have begun; return it."""
    ids = np.full((8, 32), 5)
    vectors = np.empty((8, 32, 32), dtype=np.float32)
    shared.run({"input_ids": ids, "attention_mask": np.ones_like(ids)}, [HostPlace(vectors)])
    return shared.get()


@pytest.mark.parametrize(
    ("optimize_for", "num_threads", "concurrency"), [("throughput", 1, 3), ("latency", 3, 1)]
)
def test_for_throughput_a_run_has_one_thread_for_latency_all(
    bundle, optimize_for, num_threads, concurrency
):
    shared = session_of(bundle, device="cpu", num_threads=3, optimize_for=optimize_for)
    assert (threads_of(shared.get()), shared.concurrency) == (num_threads, concurrency)
    # it would keep memory for every shape
    assert not shared.get().session.get_session_options().enable_mem_pattern


def in_threads(number, call):
    """Call a function in several threads at the same time."""
    threads = [threading.Thread(target=call) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)


def test_the_session_is_opened_once(bundle, monkeypatch):
    opened = []

    def count(*arguments):
        opened.append(arguments)
        return open_session(*arguments)

    monkeypatch.setattr(f"{SESSIONS}.open_session", count)
    in_threads(16, session_of(bundle, device="cpu", num_threads=3).get)
    assert len(opened) == 1


def test_scorers_never_open_sessions_side_by_side(bundle, monkeypatch):
    """Sessions created side by side race inside ONNX Runtime."""
    busy, overlaps = threading.Lock(), []

    def open_alone(*arguments):
        overlaps.append(not busy.acquire(blocking=False))
        time.sleep(0.01)
        opened = open_session(*arguments)
        busy.release()
        return opened

    monkeypatch.setattr(f"{SESSIONS}.open_session", open_alone)
    in_threads(6, lambda: session_of(bundle, device="cpu"))
    assert overlaps == [False] * 6


@pytest.mark.parametrize(
    ("provider", "failure", "error"),
    [
        (CUDA, "Load model from x failed: no such operator", GraphError),
        (CUDA, "External initializer: w offset: 0 is out of bounds", GraphError),
        (CUDA, "CUDA failure 100: no CUDA-capable device is detected", DeviceError),
        (CPU, "Failed to parse value: nonsense", GraphError),
        (CPU, "Failed to allocate memory for requested buffer", DeviceError),
    ],
)
def test_what_no_device_could_load_is_the_graphs_fault(
    bundle, monkeypatch, provider, failure, error
):
    monkeypatch.setattr(f"{SESSIONS}.choose_providers", lambda device: [provider])
    monkeypatch.setattr(f"{SESSIONS}.open_session", lambda *arguments: (None, failure))
    with pytest.raises(error, match=failure):
        session_of(bundle)


def test_names_in_a_graph_cannot_forge_lines(bundle, monkeypatch):
    monkeypatch.setattr(f"{SESSIONS}.open_session", lambda *arguments: (None, "a\x1b[2J\nINFO b"))
    with pytest.raises(GraphError) as caught:
        session_of(bundle, device="cpu")
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("value", ["-1", "nonsense", str(2**64)])
@pytest.mark.parametrize("key", ["offset", "length"])
def test_nonsense_about_external_data_is_the_graphs_fault(bundle, tmp_path, key, value):
    model = onnx.load(bundle.path / "model.onnx")
    tensor = model.graph.initializer[0]
    entries = {
        "location": "weights",
        "offset": "0",
        "length": str(len(tensor.raw_data)),
        key: value,
    }
    (tmp_path / "weights").write_bytes(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for name, content in entries.items():
        tensor.external_data.add(key=name, value=content)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(GraphError, match="cannot be loaded"):
        session_of(Bundle(tmp_path, bundle.manifest), device="cpu")


def test_without_a_number_all_usable_cpus_are_used(bundle, monkeypatch):
    monkeypatch.setattr(f"{SESSIONS}.usable_cpus", lambda: 5)
    assert session_of(bundle, device="cpu").num_threads == 5


@forks
def test_a_session_that_a_child_cannot_open_is_an_error(bundle, monkeypatch):
    shared = session_of(bundle, device="cpu", num_threads=3)
    monkeypatch.setattr(f"{SESSIONS}.open_session", lambda *arguments: (None, "bad allocation"))
    with pytest.raises(DeviceError, match="bad allocation"):
        in_forked_child(shared.get)


@forks
@pytest.mark.parametrize("optimize_for", ["throughput", "latency"])
def test_a_forked_child_opens_a_session_of_its_own(bundle, optimize_for):
    shared = session_of(bundle, device="cpu", num_threads=3, optimize_for=optimize_for)
    parents = run_once(shared)
    assert in_forked_child(lambda: shared.get() is not parents)
    assert shared.get() is parents


@forks
@pytest.mark.parametrize(
    "let_go", [lambda held: held[0].close(), lambda held: held.clear()], ids=["close", "drop"]
)
def test_a_forked_child_may_let_go_of_its_parents_sessions(bundle, let_go):
    """ONNX Runtime would wait for the parent's threads, whose memory is not theirs any more, and
    crash.
    """
    held = [session_of(bundle, device="cpu", num_threads=8, optimize_for="latency")]
    run_once(held[0])
    assert in_forked_child(lambda: let_go(held)) is None


@forks
def test_a_child_forked_during_an_opening_can_open_a_session(bundle):
    from bertscore_onnx.encoding import session as module

    shared = session_of(bundle, device="cpu", num_threads=3, optimize_for="latency")
    with module._opening:
        assert in_forked_child(lambda: threads_of(shared.get())) == 3


@forks
def test_cuda_in_a_forked_child_is_refused(bundle):
    shared = session_of(bundle, device="cpu")
    shared.provider = CUDA
    open_session("graph", None, CUDA)
    with pytest.raises(DeviceError, match="spawn"):
        in_forked_child(shared.get)


def test_the_first_device_that_works_is_taken(bundle, monkeypatch, caplog):
    monkeypatch.setattr(f"{SESSIONS}.choose_providers", lambda device: [CUDA, CPU])
    assert session_of(bundle).provider == CPU
    assert "CUDAExecutionProvider cannot be used" in caplog.text


def test_whole_numbers_are_computed_on_the_cpu_only(bundle, monkeypatch):
    whole = with_fields(bundle, precision="int8")
    monkeypatch.setattr(f"{SESSIONS}.choose_providers", lambda device: [CUDA, CPU])
    assert session_of(whole).provider == CPU
    monkeypatch.setattr(f"{SESSIONS}.choose_providers", lambda device: [CUDA])
    with pytest.raises(DeviceError, match="int8"):
        session_of(whole, device="cuda")


class TestABundleThatIsReplaced:
    @pytest.fixture
    def folder(self, tiny_bundle, tmp_path):
        return shutil.copytree(tiny_bundle, tmp_path / "bundle")

    def replace(self, folder):
        """Put a graph in the place of the other that gives other vectors; its size and times are
        the same.
        """
        graph = folder / "model.onnx"
        content, status = bytearray(graph.read_bytes()), graph.stat()
        content[len(content) // 2] ^= 1
        (folder / "new").write_bytes(content)
        os.utime(folder / "new", ns=(status.st_atime_ns, status.st_mtime_ns))
        (folder / "new").replace(graph)

    def test_no_first_session_is_opened(self, folder):
        bundle = open_bundle(folder)
        self.replace(folder)
        with pytest.raises(DigestError, match="was replaced"):
            session_of(bundle, device="cpu")

    def test_the_same_content_is_no_other_bundle(self, folder):
        bundle = open_bundle(folder)
        shutil.copytree(folder, folder.with_name("copy"))
        shutil.rmtree(folder)
        folder.with_name("copy").rename(folder)
        assert (
            threads_of(
                session_of(bundle, device="cpu", num_threads=3, optimize_for="latency").get()
            )
            == 3
        )

    @forks
    @pytest.mark.parametrize("is_removed", [False, True])
    def test_a_forked_child_opens_none(self, folder, is_removed):
        shared = session_of(open_bundle(folder), device="cpu", num_threads=3)
        shutil.rmtree(folder) if is_removed else self.replace(folder)
        with pytest.raises(DigestError, match="was replaced or removed"):
            in_forked_child(shared.get)


class TestAWheelWithoutItsLibraries:
    @pytest.fixture
    def severities(self, monkeypatch):
        """Let ONNX Runtime be the wheel for CUDA on a machine without it; return how its log is
        set.
        """
        severities = []

        def preload_dlls():
            sys.stdout.write(
                "Failed to load libcublasLt.so: cannot open shared object file\nPlease install "
                "CUDA.\n"
            )

        def open_on_cpu(graph, options, *, providers, enable_fallback):
            assert enable_fallback == 0
            return SimpleNamespace(get_providers=lambda: [CPU.name])

        wheel = SimpleNamespace(
            preload_dlls=preload_dlls,
            InferenceSession=open_on_cpu,
            set_default_logger_severity=severities.append,
        )
        monkeypatch.setattr(f"{PROVIDERS}.load_onnxruntime", lambda: wheel)
        return severities

    def test_fails_in_one_line_that_names_the_extra(self, severities, capfd):
        session, failure = open_session("graph", None, CUDA)
        assert session is None
        assert failure == (
            "Failed to load libcublasLt.so: cannot open shared object file. Install its "
            f"libraries with {install_command('gpu')}; ONNX Runtime fell back to "
            "CPUExecutionProvider"
        )
        assert capfd.readouterr() == ("", "")
        assert severities == [4, 2]  # it is quiet while it opens alone


class TestCudnn:
    @pytest.fixture(autouse=True)
    def cuda_works(self, monkeypatch):
        """Let sessions open on CUDA."""
        session = SimpleNamespace(get_providers=lambda: [CUDA.name])
        wheel = SimpleNamespace(InferenceSession=lambda graph, options, **named: session)
        monkeypatch.setattr(f"{PROVIDERS}.load_onnxruntime", lambda: wheel)
        cudnn_error.cache_clear()
        _warn_of_cudnn.cache_clear()
        yield
        cudnn_error.cache_clear()
        _warn_of_cudnn.cache_clear()

    def test_is_warned_of_once_where_it_is_missing(self):
        with pytest.warns(RuntimeWarning, match="cuDNN") as seen:
            opened = [open_session("graph", None, CUDA) for _ in range(3)]
        assert [failure for _, failure in opened] == [""] * 3
        assert len(seen) == 1

    @pytest.mark.parametrize(
        ("platform", "library"),
        [("linux", "libcudnn.so.9"), ("win32", "cudnn64_9.dll")],
        ids=["linux", "windows"],
    )
    def test_is_looked_for_by_the_name_of_its_library(self, monkeypatch, platform, library):
        loaded = []
        monkeypatch.setattr(f"{PROVIDERS}.ctypes", SimpleNamespace(CDLL=loaded.append))
        monkeypatch.setattr(f"{PROVIDERS}.sys", SimpleNamespace(platform=platform))
        assert open_session("graph", None, CUDA)[1] == ""
        assert loaded == [library]


@pytest.mark.parametrize(("provider", "arena"), [(CPU, "cpu:0"), (replace(CUDA, index=2), "gpu:2")])
def test_memory_is_released_on_the_device_of_the_session(bundle, monkeypatch, provider, arena):
    entries, runs = {}, []
    opened = session_of(bundle, device="cpu").get().session
    session = SimpleNamespace(
        get_inputs=opened.get_inputs,
        get_outputs=opened.get_outputs,
        run=lambda *arguments: runs.append(arguments),
    )
    options = SimpleNamespace(add_run_config_entry=entries.__setitem__)
    monkeypatch.setattr(
        f"{SESSIONS}.load_onnxruntime", lambda: SimpleNamespace(RunOptions=lambda: options)
    )
    OrtGraph(session, provider).release_memory()
    assert entries == {"memory.enable_memory_arena_shrinkage": arena}
    assert runs[0][2] is options


INPUT_IDS = np.array([[2, 5, 3, 0], [2, 3, 0, 0], [2, 6, 7, 3], [2, 9, 3, 0], [2, 8, 3, 0]])

IS_TOKEN = INPUT_IDS > 0

MASK = IS_TOKEN.astype(np.int64)

NO_MEMORY = (
    "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Non-zero status code returned while running "
    "Softmax node. Status Message: bfc_arena.cc:376 Failed to allocate memory for requested "
    "buffer of size 268435456"
)


class SmallGraph:
    """A graph that fails on more than `most` texts."""

    def __init__(self, graph, most, message):
        self._graph, self._most, self._message = graph, most, message
        self.batches = []

    def run(self, feed, places):
        self.batches.append(len(feed["input_ids"]))
        if self.batches[-1] > self._most:
            raise RuntimeError(self._message)
        self._graph.run(feed, places)


def run(model):
    """Return the vectors of the batch, (layers, batch, tokens, hidden)."""
    return model.unit_vectors(INPUT_IDS, MASK)


@pytest.fixture
def fail_above(monkeypatch):
    """Return a function that lets graphs from now on fail on more than `most` texts; give it the
    list of them.
    """

    def fail_above(most, message=NO_MEMORY):
        sessions = []

        def get(self):
            sessions.append(SmallGraph(original(self), most, message))
            return sessions[-1]

        original = OnnxSession.get
        monkeypatch.setattr(OnnxSession, "get", get)
        return sessions

    return fail_above


def sizes(sessions):
    """Return how many texts each run had."""
    return [size for session in sessions for size in session.batches]


@pytest.mark.parametrize(
    ("most", "batches"),
    [(5, [5]), (3, [5, 2, 3]), (2, [5, 2, 3, 1, 2]), (1, [5, 2, 1, 1, 3, 1, 2, 1, 1])],
)
def test_a_batch_that_does_not_fit_into_memory_is_halved(
    all_layers_bundle, fail_above, caplog, most, batches
):
    model = Encoder(open_bundle(all_layers_bundle), device="cpu", num_threads=1)
    expected = run(model)
    sessions = fail_above(most)
    found = run(model)
    assert found.shape == expected.shape == (4, 5, 4, 32)
    assert np.abs(found - expected)[:, IS_TOKEN].max() <= 1e-6
    assert sizes(sessions) == batches
    assert ("ran out of memory on a batch of shape (5, 4); halving it" in caplog.text) == (most < 5)


@pytest.mark.parametrize(
    "message",
    [
        NO_MEMORY,
        "CUDNN failure 4: out of memory ; GPU=0",
        "CUBLAS failure 3: CUBLAS_STATUS_ALLOC_FAILED ; GPU=0",
        "CUDNN failure 4003: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED ; GPU=0",
        "std::bad_alloc",
        "bad allocation",
    ],
)
def test_a_single_text_that_does_not_fit_is_refused(bundle, fail_above, message):
    model = Encoder(bundle, device="cpu")
    fail_above(0, message)
    with pytest.raises(OutOfMemoryError, match="a text of 4 tokens") as caught:
        run(model)
    assert isinstance(caught.value, EncodingError)
    assert isinstance(caught.value, MemoryError)


def test_any_other_failure_is_raised_at_once(bundle, fail_above):
    model = Encoder(bundle, device="cpu", num_threads=1)
    sessions = fail_above(3, "Gather: index 7 is out of bounds")
    with pytest.raises(EncodingError, match="Gather") as caught:
        run(model)
    assert not isinstance(caught.value, OutOfMemoryError)
    assert sizes(sessions) == [5]


def test_vectors_of_another_shape_are_refused(bundle):
    model = Encoder(bundle, device="cpu")
    with pytest.raises(EncodingError, match="shape"):
        model.run_batch(INPUT_IDS, MASK, HostPlace(np.empty((5, 3, 32), dtype=np.float32)))
