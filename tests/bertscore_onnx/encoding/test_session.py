import json
import os
import shutil
import sys
import threading
import time
from dataclasses import replace
from types import SimpleNamespace

import msgspec
import numpy as np
import onnx
import pytest

from bertscore_onnx.bundle.bundle import Bundle, open_bundle, read_manifest
from bertscore_onnx.bundle.manifest import write_manifest
from bertscore_onnx.bundle.store import file_digest
from bertscore_onnx.encoding.encoder import Encoder
from bertscore_onnx.encoding.providers import CPU, CUDA, OPENVINO
from bertscore_onnx.encoding.session import open_session
from bertscore_onnx.errors import ClosedError, DeviceError, DigestError, GraphError, InputError
from tests.support.processes import forks, in_forked_child

SESSIONS = "bertscore_onnx.encoding.session"


@pytest.fixture(scope="module")
def bundle(tiny_bundle):
    return open_bundle(tiny_bundle)


def session_of(bundle, **options):
    return Encoder(bundle, **options).session


def threads_of(session):
    return session.get_session_options().intra_op_num_threads


def run_once(shared):
    """Run a session, so that its threads have begun; return it."""
    session = shared.get()
    ids = np.full((8, 32), 5)
    session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})
    return session


def in_latency_mode(bundle, num_threads=3):
    return session_of(bundle, device="cpu", num_threads=num_threads, optimize_for="latency")


def test_for_throughput_a_run_has_one_thread_and_for_latency_all(bundle):
    throughput, latency = session_of(bundle, device="cpu", num_threads=3), in_latency_mode(bundle)
    assert (threads_of(throughput.get()), throughput.concurrency) == (1, 3)
    assert (threads_of(latency.get()), latency.concurrency) == (3, 1)


def test_another_aim_is_refused(bundle):
    with pytest.raises(InputError, match='optimize_for is \'speed\'; expected "throughput" or "latency"'):
        session_of(bundle, device="cpu", optimize_for="speed")


def test_the_session_is_opened_once(bundle, monkeypatch):
    opened = []

    def count(*arguments):
        opened.append(arguments)
        return open_session(*arguments)

    monkeypatch.setattr(f"{SESSIONS}.open_session", count)
    shared = session_of(bundle, device="cpu", num_threads=3)
    threads = [threading.Thread(target=shared.get) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
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
    threads = [threading.Thread(target=session_of, args=(bundle,), kwargs={"device": "cpu"}) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert overlaps == [False] * 6


@pytest.mark.parametrize("optimize_for", ["throughput", "latency"])
def test_a_session_keeps_no_memory_for_every_shape(bundle, optimize_for):
    shared = session_of(bundle, device="cpu", num_threads=3, optimize_for=optimize_for)
    assert not shared.get().get_session_options().enable_mem_pattern


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
def test_what_no_device_could_load_is_the_graphs_fault(bundle, monkeypatch, provider, failure, error):
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
    model = onnx.load(bundle.graph_path)
    tensor = model.graph.initializer[0]
    entries = {"location": "weights", "offset": "0", "length": str(len(tensor.raw_data)), key: value}
    (tmp_path / "weights").write_bytes(tensor.raw_data)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    for name, content in entries.items():
        tensor.external_data.add(key=name, value=content)
    (tmp_path / "model.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(GraphError, match=r"model\.onnx cannot be loaded"):
        session_of(Bundle(tmp_path, bundle.manifest), device="cpu")


def test_without_a_number_all_usable_cpus_are_used(bundle, monkeypatch):
    monkeypatch.setattr(f"{SESSIONS}.usable_cpus", lambda: 5)
    assert session_of(bundle, device="cpu").num_threads == 5


def test_a_closed_session_says_so(bundle):
    shared = session_of(bundle, device="cpu", num_threads=3)
    shared.close()
    with pytest.raises(ClosedError, match="was closed"):
        shared.get()


def test_openvino_is_told_precision_and_threads(bundle, opened_as_openvino):
    for optimize_for in ("throughput", "latency"):
        session_of(bundle, device="openvino", num_threads=3, optimize_for=optimize_for)
    assert [json.loads(options["load_config"]) for options in opened_as_openvino] == [
        {"CPU": {"INFERENCE_PRECISION_HINT": "bf16", "INFERENCE_NUM_THREADS": "3", "NUM_STREAMS": streams}}
        for streams in ("3", "1")
    ]
    assert [options["device_type"] for options in opened_as_openvino] == ["CPU", "CPU"]


def test_openvino_computes_in_single_precision_where_nothing_else_is_said(bundle, opened_as_openvino, monkeypatch):
    provider = replace(OPENVINO, compute_precision=lambda: None)
    monkeypatch.setattr(f"{SESSIONS}.choose_providers", lambda device: [provider])
    session_of(bundle, device="openvino")
    [options] = opened_as_openvino
    assert json.loads(options["load_config"])["CPU"]["INFERENCE_PRECISION_HINT"] == "f32"


@forks
def test_a_session_that_a_child_cannot_open_is_told_of(bundle, monkeypatch):
    shared = session_of(bundle, device="cpu", num_threads=3)
    monkeypatch.setattr(f"{SESSIONS}.open_session", lambda *arguments: (None, "bad allocation"))
    with pytest.raises(DeviceError, match=r"CPUExecutionProvider cannot run .*: bad allocation"):
        in_forked_child(shared.get)


@forks
@pytest.mark.parametrize("optimize_for", ["throughput", "latency"])
def test_a_forked_child_opens_a_session_of_its_own(bundle, optimize_for):
    shared = session_of(bundle, device="cpu", num_threads=3, optimize_for=optimize_for)
    parents = run_once(shared)
    assert in_forked_child(lambda: shared.get() is not parents)
    assert shared.get() is parents


@forks
@pytest.mark.parametrize("let_go", [lambda held: held[0].close(), lambda held: held.clear()], ids=["close", "drop"])
def test_a_forked_child_may_let_go_of_its_parents_sessions(bundle, let_go):
    """ONNX Runtime would wait for the parent's threads, whose memory is not theirs any more, and crash."""
    held = [in_latency_mode(bundle, num_threads=8)]
    run_once(held[0])
    assert in_forked_child(lambda: let_go(held)) is None


@forks
def test_a_child_that_was_forked_while_a_session_was_opened_can_open_one(bundle):
    from bertscore_onnx.encoding import session as module

    shared = in_latency_mode(bundle)
    with module._opening:
        assert in_forked_child(lambda: threads_of(shared.get())) == 3


@forks
def test_cuda_in_a_forked_child_is_refused(bundle):
    shared = session_of(bundle, device="cpu")
    shared.provider = CUDA
    with pytest.raises(
        DeviceError, match='Make the scorer in the child process, or start that with the method "spawn"'
    ):
        in_forked_child(shared.get)


def test_the_first_device_that_works_is_taken(bundle, monkeypatch, caplog):
    monkeypatch.setattr(f"{SESSIONS}.choose_providers", lambda device: [CUDA, CPU])
    assert session_of(bundle).provider == CPU
    assert "CUDAExecutionProvider cannot be used, going on without it" in caplog.text


def test_whole_numbers_are_computed_on_the_cpu_only(bundle, monkeypatch):
    whole = Bundle(bundle.path, msgspec.structs.replace(bundle.manifest, precision="int8"))
    monkeypatch.setattr(f"{SESSIONS}.choose_providers", lambda device: [CUDA, CPU])
    assert session_of(whole).provider == CPU
    monkeypatch.setattr(f"{SESSIONS}.choose_providers", lambda device: [CUDA])
    with pytest.raises(DeviceError, match=r"'cuda' was asked for, and the bundle .* is in int8, which runs on the CPU"):
        session_of(whole, device="cuda")


class TestABundleThatIsReplaced:
    @pytest.fixture
    def folder(self, tiny_bundle, tmp_path):
        return shutil.copytree(tiny_bundle, tmp_path / "bundle")

    def replace(self, folder):
        """Put a graph in the place of the other that gives other vectors; its size and times are the same."""
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

    def test_data_beside_the_graph_counts_too(self, folder):
        onnx.save(
            onnx.load(folder / "model.onnx"),
            folder / "model.onnx",
            save_as_external_data=True,
            location="data",
            size_threshold=0,
        )
        files = {name: file_digest(folder / name) for name in ("model.onnx", "data", "tokenizer.json")}
        write_manifest(folder, msgspec.structs.replace(read_manifest(folder), files=files))
        bundle = open_bundle(folder)
        (folder / "data").write_bytes(bytes((folder / "data").stat().st_size))
        with pytest.raises(DigestError, match="data was replaced"):
            session_of(bundle, device="cpu")

    @forks
    def test_a_bundle_that_was_removed_is_told_of(self, folder):
        shared = session_of(open_bundle(folder), device="cpu", num_threads=3)
        shutil.rmtree(folder)
        with pytest.raises(DigestError, match="was replaced or removed"):
            in_forked_child(shared.get)

    def test_the_same_content_is_no_other_bundle(self, folder):
        bundle = open_bundle(folder)
        shutil.copytree(folder, folder.with_name("copy"))
        shutil.rmtree(folder)
        folder.with_name("copy").rename(folder)
        assert threads_of(in_latency_mode(bundle).get()) == 3

    @forks
    def test_a_forked_child_opens_none(self, folder):
        shared = session_of(open_bundle(folder), device="cpu", num_threads=3)
        self.replace(folder)
        with pytest.raises(DigestError, match="was replaced"):
            in_forked_child(lambda: shared.get())


class TestAWheelWithoutItsLibraries:
    @pytest.fixture
    def severities(self, monkeypatch):
        """Let ONNX Runtime be the wheel for CUDA on a machine without it; return how its log is set."""
        severities = []

        def preload_dlls():
            sys.stdout.write("Failed to load libcublasLt.so: cannot open shared object file\nPlease install CUDA.\n")

        def open_on_cpu(graph, options, *, providers, enable_fallback):
            return SimpleNamespace(get_providers=lambda: [CPU.name])

        wheel = SimpleNamespace(
            preload_dlls=preload_dlls,
            InferenceSession=open_on_cpu,
            set_default_logger_severity=severities.append,
        )
        monkeypatch.setattr(f"{SESSIONS}.load_onnxruntime", lambda: wheel)
        return severities

    def test_says_so_in_one_line_that_names_the_extra(self, severities, capfd):
        session, failure = open_session("graph", None, CUDA)
        assert session is None
        assert failure == (
            "Failed to load libcublasLt.so: cannot open shared object file. Install its libraries with `pip install "
            "'bertscore-onnx[gpu]'`; ONNX Runtime fell back to CPUExecutionProvider"
        )
        assert capfd.readouterr() == ("", "")

    def test_is_quiet_for_the_opening_alone(self, severities):
        open_session("graph", None, CUDA)
        assert severities == [4, 2]


@pytest.mark.parametrize("number", [1025, 100_000, 2**63])
def test_more_threads_than_any_machine_has_use_for_are_refused(bundle, number):
    with pytest.raises(InputError, match=rf"nthreads is {number:,}; expected at most 1,024"):
        session_of(bundle, device="cpu", num_threads=number)
