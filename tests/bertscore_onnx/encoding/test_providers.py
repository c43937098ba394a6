import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from dataclasses import replace

import pytest

from bertscore_onnx.encoding import providers
from bertscore_onnx.errors import DeviceError, InputError, MissingExtraError


@pytest.fixture
def fresh(monkeypatch):
    """Import onnxruntime again in this test."""
    providers.load_onnxruntime.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    providers.load_onnxruntime.cache_clear()


@pytest.fixture
def offer(fresh):
    """Return a function that lets the installed packages offer providers beside the CPU's."""

    def offer(*offered):
        names = [provider.name for provider in (*offered, providers.CPU)]
        engines = {provider.engine for provider in offered}
        fresh.setattr("onnxruntime.get_available_providers", lambda: names)
        fresh.setattr(importlib.util, "find_spec", lambda name: name in engines or None)

    return offer


def test_a_missing_onnxruntime_is_answered_with_the_extras(fresh):
    fresh.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(
        MissingExtraError, match=r"onnxruntime!=1\.29\.\*,>=.*onnxruntime-gpu\[cuda,cudnn\]>="
    ):
        providers.load_onnxruntime()


def test_two_wheels_are_warned_of(fresh):
    fresh.setattr(importlib.metadata, "version", lambda name: "1.0")
    with pytest.warns(RuntimeWarning, match="pip uninstall -y onnxruntime onnxruntime-gpu"):
        providers.load_onnxruntime()


@pytest.mark.parametrize("provider", [providers.CUDA, providers.OPENVINO], ids=["cuda", "openvino"])
def test_without_a_name_cuda_alone_comes_before_the_cpu(offer, provider):
    offer(provider)
    expected = [providers.CUDA, providers.CPU] if provider == providers.CUDA else [providers.CPU]
    assert providers.choose_providers(None) == expected


def test_a_named_device_has_no_substitute(offer):
    offer(providers.CUDA)
    assert providers.choose_providers("cpu") == [providers.CPU]
    [cuda] = providers.choose_providers("cuda:1")
    assert cuda.name == "CUDAExecutionProvider"
    options = cuda.options(cuda)
    assert (options["device_id"], options["use_tf32"]) == (1, 0)


def test_the_memory_of_a_card_can_be_limited(monkeypatch):
    cuda = providers.CUDA
    assert "gpu_mem_limit" not in cuda.options(cuda)
    monkeypatch.setenv("BERTSCORE_ONNX_GPU_MEM_LIMIT", "8000000000")
    assert cuda.options(cuda)["gpu_mem_limit"] == 8_000_000_000
    for value in ("8 GB", "0", "-1"):
        monkeypatch.setenv("BERTSCORE_ONNX_GPU_MEM_LIMIT", value)
        with pytest.raises(InputError, match="bytes"):
            cuda.options(cuda)


@pytest.mark.parametrize(
    ("device", "message"),
    [
        ("cuda", r"offers only CPUExecutionProvider"),
        (
            "openvino",
            r"openvino is not installed\. Install it: `pip install [^`]*openvino[^`]*`\.$",
        ),
    ],
)
def test_a_missing_wheel_of_a_device_is_named(offer, device, message):
    offer()
    with pytest.raises(DeviceError, match=message):
        providers.choose_providers(device)


def test_openvino_is_chosen_by_name_alone(offer):
    offer(providers.OPENVINO)
    assert providers.choose_providers("openvino") == [providers.OPENVINO]


@pytest.mark.parametrize(
    "name", ["gpu", "cuda:", "cuda:x", "", "CPU", "cpu:1", "openvino:0", "mps", 3]
)
def test_an_unknown_device_is_refused(name):
    with pytest.raises(InputError, match="device"):
        providers.choose_providers(name)


def test_a_further_row_of_the_table_is_taken_and_listed(offer, fresh):
    further = replace(
        providers.CPU, name="OtherExecutionProvider", device="other", is_numbered=True
    )
    fresh.setattr(providers, "PROVIDERS", (*providers.PROVIDERS, further))
    offer(further)
    assert providers.choose_providers("other:2") == [replace(further, index=2)]
    with pytest.raises(InputError, match=r'expected "cpu", .*"other" or "other:N"'):
        providers.choose_providers("npu")


@pytest.mark.parametrize("name", ["cuda:0,1", "cuda:0,cuda:1", "cuda:0, 1, 2"])
def test_several_cards_are_refused_with_the_way_to_use_them(name):
    with pytest.raises(InputError, match="one card"):
        providers.choose_providers(name)


@pytest.mark.slow  # it imports PyTorch
def test_anything_that_prints_as_a_name_is_taken(offer):
    import torch

    offer(providers.CUDA)
    [cuda] = providers.choose_providers(torch.device("cuda:1"))
    assert cuda.index == 1


def test_onnxruntime_keeps_no_records_of_its_own(tiny_bundle, tmp_path):
    code = (
        f"from bertscore_onnx import BERTScorer; BERTScorer({str(tiny_bundle)!r}, "
        "device='cpu').score(['a'], ['b'])"
    )
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("ORT_", "XDG_"))
    }
    environment = {
        **kept,
        "HOME": str(tmp_path),
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
    }
    subprocess.run([sys.executable, "-c", code], env=environment, check=True, timeout=60)
    assert list(tmp_path.rglob("*")) == []
