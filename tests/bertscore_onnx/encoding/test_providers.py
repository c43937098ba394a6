import importlib.metadata
import os
import subprocess
import sys

import pytest

from bertscore_onnx.encoding import providers
from bertscore_onnx.encoding.session import open_session
from bertscore_onnx.errors import DeviceError, InputError, MissingExtraError


@pytest.fixture
def fresh(monkeypatch):
    """Import onnxruntime again in this test."""
    providers.load_onnxruntime.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    providers.load_onnxruntime.cache_clear()


@pytest.fixture
def offers_cuda(fresh):
    """Let the installed onnxruntime say that it can use CUDA."""
    fresh.setattr("onnxruntime.get_available_providers", lambda: [providers.CUDA.name, providers.CPU.name])


def test_a_missing_onnxruntime_is_answered_with_the_extras(fresh):
    fresh.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtraError, match=r"bertscore-onnx\[cpu\].*bertscore-onnx\[gpu\]"):
        providers.load_onnxruntime()


def test_two_wheels_are_warned_of(fresh):
    fresh.setattr(importlib.metadata, "version", lambda name: "1.0")
    with pytest.warns(RuntimeWarning, match="pip uninstall -y onnxruntime onnxruntime-gpu"):
        providers.load_onnxruntime()


def test_without_a_name_cuda_comes_first_and_the_cpu_after_it(offers_cuda):
    assert providers.choose_providers(None) == [providers.CUDA, providers.CPU]


def test_a_named_device_has_no_substitute(offers_cuda):
    assert providers.choose_providers("cpu") == [providers.CPU]
    [cuda] = providers.choose_providers("cuda:1")
    assert cuda.name == "CUDAExecutionProvider"
    options = cuda.options(cuda, 4, 4)
    assert (options["device_id"], options["use_tf32"]) == (1, 0)


def test_cuda_without_a_cuda_wheel_is_refused():
    with pytest.raises(DeviceError, match=r"offers only .*CPUExecutionProvider"):
        providers.choose_providers("cuda")


@pytest.mark.parametrize("name", ["gpu", "cuda:", "cuda:x", "", "CPU", "cpu:1", "openvino:0", "coreml:0", "mps", 3])
def test_an_unknown_device_is_refused(name):
    with pytest.raises(InputError, match='expected "cpu", "cuda", "cuda:N", "openvino" or "coreml"'):
        providers.choose_providers(name)


def test_openvino_without_its_wheel_is_refused_with_the_wheel_to_install():
    with pytest.raises(DeviceError, match=r"offers only .*pip uninstall -y onnxruntime`.*bertscore-onnx\[openvino\]"):
        providers.choose_providers("openvino")


@pytest.mark.parametrize(
    ("features", "precision"),
    [
        (["avx2", "avx512f", "amx_bf16", "amx_int8"], "bf16"),
        (["avx2", "avx512f", "avx512_bf16"], "bf16"),
        (["avx2", "avx512f", "amx_int8"], None),
        ([], None),
        (None, None),
    ],
)
def test_openvino_computes_in_bfloat16_where_the_processor_does(fresh, features, precision):
    fresh.setattr("onnxruntime.get_available_providers", lambda: [providers.OPENVINO.name, providers.CPU.name])
    fresh.setattr(providers, "cpu_features", lambda: features)
    [chosen] = providers.choose_providers("openvino")
    assert (chosen.name, chosen.compute_precision()) == ("OpenVINOExecutionProvider", precision)


def test_openvino_is_never_chosen_without_being_named(fresh):
    fresh.setattr("onnxruntime.get_available_providers", lambda: [providers.OPENVINO.name, providers.CPU.name])
    assert providers.choose_providers(None) == [providers.CPU]


@pytest.fixture
def offers_coreml(fresh):
    """Let the installed onnxruntime say that it can use Core ML, as its wheels for macOS do."""
    fresh.setattr("onnxruntime.get_available_providers", lambda: [providers.COREML.name, providers.CPU.name])


def test_core_ml_has_no_substitute_and_computes_in_the_graphs_precision(offers_coreml):
    [coreml] = providers.choose_providers("coreml")
    assert (coreml.name, coreml.compute_precision()) == ("CoreMLExecutionProvider", None)
    assert coreml.options(coreml, 4, 4) == {"ModelFormat": "MLProgram", "MLComputeUnits": "CPUAndGPU"}


def test_core_ml_is_never_chosen_without_being_named(offers_coreml):
    assert providers.choose_providers(None) == [providers.CPU]


def test_core_ml_without_a_wheel_for_macos_is_refused(fresh):
    fresh.setattr("onnxruntime.get_available_providers", lambda: [providers.CPU.name])
    with pytest.raises(
        DeviceError, match=r"offers only .*CPUExecutionProvider\. It is in the wheels for macOS alone\.$"
    ):
        providers.choose_providers("coreml")


def test_a_device_is_offered_where_onnxruntime_says_so(offers_coreml):
    offered = [device for device in ("cpu", "cuda", "openvino", "coreml", "mps") if providers.is_offered(device)]
    assert offered == ["cpu", "coreml"]


@pytest.mark.slow  # it imports PyTorch
def test_anything_that_prints_as_a_name_is_taken(offers_cuda):
    import torch

    [cuda] = providers.choose_providers(torch.device("cuda:1"))
    assert cuda.index == 1


class FakeSession:
    """A session that was asked for one provider and runs on another."""

    def __init__(self, graph, options, providers, enable_fallback=1):
        self.asked = [name for name, _ in providers]
        self.falls_back = enable_fallback

    def get_providers(self):
        return [providers.CPU.name]


def test_a_session_that_fell_back_to_the_cpu_is_not_taken(monkeypatch):
    monkeypatch.setattr("onnxruntime.InferenceSession", FakeSession)
    session, failure = open_session("graph", None, providers.CUDA)
    assert session is None
    assert "fell back to CPUExecutionProvider" in failure


def test_a_session_may_not_move_to_the_cpu_later(monkeypatch):
    monkeypatch.setattr("onnxruntime.InferenceSession", FakeSession)
    session, _ = open_session("graph", None, providers.CPU)
    assert session.asked == [providers.CPU.name]
    assert not session.falls_back


def test_onnxruntime_keeps_no_records_of_its_own(tiny_bundle, tmp_path):
    code = f"from bertscore_onnx import BERTScorer; BERTScorer({str(tiny_bundle)!r}, device='cpu').score(['a'], ['b'])"
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ORT_", "XDG_"))}
    environment = {**kept, "HOME": str(tmp_path), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)
    assert list(tmp_path.rglob("*")) == []
