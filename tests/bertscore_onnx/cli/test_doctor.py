import json
import platform
import re
import shutil
from importlib.resources import files

import onnx
import pytest

from bertscore_onnx import __version__
from bertscore_onnx.bundle.store import Variant, bundle_folder
from bertscore_onnx.encoding.providers import CPU, OPENVINO
from bertscore_onnx.errors import MissingExtraError


def test_a_machine_without_bundles_is_well(run, home):
    result = run("doctor")
    assert (result.exit_code, result.stderr) == (0, "")
    verdict, _, *table = result.stdout.splitlines()
    assert verdict == "ONNX Runtime works; no bundle is installed"
    lines = dict(line.split(maxsplit=1) for line in table)
    assert (lines["bertscore-onnx"], lines["python"]) == (__version__, platform.python_version())
    assert lines["home"] == str(home)
    assert "no bundle is installed; name one, `bertscore-onnx doctor BUNDLE`" in result.stdout
    assert re.search(r"^provider +CPUExecutionProvider: works$", result.stdout, re.MULTILINE)


def test_a_provider_that_does_not_work_exits_1_after_the_report(run, home, monkeypatch):
    monkeypatch.setattr(
        "bertscore_onnx.cli.doctor.try_providers", lambda: {"CUDAExecutionProvider": "no driver"}
    )
    result = run("doctor")
    assert result.exit_code == 1
    assert result.stdout.startswith("Not everything works: CUDAExecutionProvider\n")
    assert "CUDAExecutionProvider: no driver" in result.stdout


def test_a_missing_cudnn_exits_1_after_the_report(run, home, monkeypatch):
    monkeypatch.setattr(
        "bertscore_onnx.cli.doctor.try_providers", lambda: {"CUDAExecutionProvider": None}
    )
    monkeypatch.setattr(
        "bertscore_onnx.encoding.providers.cudnn_error", lambda: "libcudnn.so.9: cannot open"
    )
    result = run("doctor")
    assert result.exit_code == 1
    assert re.search(r"^cuDNN +libcudnn\.so\.9: cannot open$", result.stdout, re.MULTILINE)


def test_the_graph_is_the_product_of_two_matrices():
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["a", "b"], ["product"])],
        "probe",
        [value("a", 1, ["rows", "inner"]), value("b", 1, ["inner", "columns"])],
        [value("product", 1, ["rows", "columns"])],
    )
    model = onnx.helper.make_model(
        graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8
    )
    assert (
        files("bertscore_onnx.cli").joinpath("self_test.onnx").read_bytes()
        == model.SerializeToString()
    )


def test_runs_a_bundle(run, run_json, installed_bundle):
    output = run("doctor").stdout
    assert f"{installed_bundle}: valid\n" in output
    assert f"8 golden pairs of {installed_bundle} on " in output
    times = r"^one pair +\d+\.\d ms optimized for throughput and \d+\.\d ms optimized for latency"
    assert re.search(times, output, re.MULTILINE)
    report = run_json("doctor")
    assert report["bundles"] == [{"path": str(installed_bundle), "error": None}]
    trial = report["trial"]
    assert (trial["path"], trial["pairs"], trial["error"]) == (str(installed_bundle), 8, None)
    assert trial["pair_ms"].keys() == {"throughput", "latency"}
    assert min(trial["pair_ms"].values()) > 0
    assert report["usable_cpus"] >= 1


def test_runs_a_bundle_of_all_layers(run, home, all_layers_bundle):
    shutil.copytree(all_layers_bundle, bundle_folder("tiny-bert", Variant(None)))
    result = run("doctor")
    assert (result.exit_code, result.stderr) == (0, "")
    assert re.search(r"^one pair +\d", result.stdout, re.MULTILINE)


@pytest.mark.parametrize(
    ("value", "number", "source", "words"),
    [
        ("1", 1, "OMP_NUM_THREADS", "set by the environment variable OMP_NUM_THREADS"),
        ("", 2, "affinity", "all that this process may run on"),
    ],
)
def test_reports_the_usable_cpus_and_what_bounds_them(
    run, run_json, home, monkeypatch, value, number, source, words
):
    monkeypatch.setattr("bertscore_onnx.concurrency.cpus.permitted_cpus", lambda: (2, "affinity"))
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert re.search(rf"^usable CPUs +{number}, {words}$", run("doctor").stdout, re.MULTILINE)
    report = run_json("doctor")
    assert (report["usable_cpus"], report["usable_cpus_source"]) == (number, source)


def test_a_broken_bundle_exits_1_after_the_report(run, installed_bundle):
    (installed_bundle / "model.onnx").write_bytes(b"")
    result = run("doctor")
    assert result.exit_code == 1
    assert (
        f"{installed_bundle}: {installed_bundle / 'model.onnx'} is not the file that was exported"
        in result.stdout
    )
    assert result.stdout.splitlines()[-1] == "inference       not tried"


def fail():
    raise MissingExtraError("ONNX Runtime is not installed.")


@pytest.mark.parametrize(
    ("name", "stand_in", "found"),
    [
        (
            "scoring.golden.golden_difference",
            lambda pipeline: 0.5,
            (None, "the golden scores differ by 5.0e-01"),
        ),
        ("encoding.providers.load_onnxruntime", fail, ("ONNX Runtime is not installed.", None)),
    ],
)
def test_what_fails_on_this_machine_exits_1_after_the_report(
    run, installed_bundle, monkeypatch, name, stand_in, found
):
    monkeypatch.setattr(f"bertscore_onnx.{name}", stand_in)
    result = run("doctor", "--format", "json")
    report = json.loads(result.stdout)
    assert (result.exit_code, bool(report["providers"])) == (1, found[0] is None)
    assert (report["onnxruntime_error"], report["trial"] and report["trial"]["error"]) == found


def test_a_device_that_cannot_run_the_bundle_exits_1_after_the_report(
    run, installed_bundle, monkeypatch
):
    monkeypatch.setattr("bertscore_onnx.encoding.providers.PROVIDERS", (OPENVINO, CPU))
    monkeypatch.setattr(
        "bertscore_onnx.cli.doctor.try_providers", lambda: {OPENVINO.name: None, CPU.name: None}
    )
    monkeypatch.setattr(
        "bertscore_onnx.encoding.session.open_in_openvino", lambda *arguments: (None, "no If .")
    )
    result = run("doctor")
    assert (result.exit_code, result.stderr) == (1, "")
    assert result.stdout.startswith(f"Not everything works: {installed_bundle} on openvino\n")
    line = rf'^on openvino +{OPENVINO.name} cannot run {installed_bundle}/model.onnx: no If\. Use device="cpu", or'
    assert re.search(line, result.stdout, re.MULTILINE)


def test_a_user_without_a_home_folder_is_advised_what_to_set(run, run_json, homeless):
    result = run("doctor")
    assert (result.exit_code, result.stderr) == (0, "")
    assert re.search(r"^home +none; set BERTSCORE_ONNX_HOME", result.stdout, re.MULTILINE)
    assert run_json("doctor")["home"] is None


def test_a_bundle_that_is_not_installed_is_tried_by_its_path(run, home, tiny_bundle, tmp_path):
    result = run("doctor", tiny_bundle)
    assert result.exit_code == 0
    assert f"golden pairs of {tiny_bundle} on CPUExecutionProvider" in result.stdout
    result = run("doctor", tmp_path)
    assert (result.exit_code, f"{tmp_path} is no bundle" in result.stdout) == (1, True)


def test_the_bundle_of_the_environment_comes_first(
    run, run_json, installed_bundle, tiny_bundle, monkeypatch
):
    monkeypatch.setenv("BERTSCORE_ONNX_MODEL", str(tiny_bundle))
    report = run_json("doctor")
    paths = [str(tiny_bundle), str(installed_bundle)]
    assert report["bundles"] == [{"path": path, "error": None} for path in paths]
    assert report["trial"]["path"] == str(tiny_bundle)
    monkeypatch.setenv("BERTSCORE_ONNX_MODEL", str(installed_bundle))
    assert [bundle["path"] for bundle in run_json("doctor")["bundles"]] == [str(installed_bundle)]
    monkeypatch.setenv("BERTSCORE_ONNX_MODEL", "hf://organisation/no-such-model")
    assert "no-such-model: It was not pulled yet" in run("doctor").stdout  # and is not pulled now
    monkeypatch.setenv("BERTSCORE_ONNX_MODEL", "no-such-model")
    result = run("doctor")
    assert result.exit_code == 1
    assert re.search(r"^bundle +no-such-model: .*'no-such-model'", result.stdout, re.MULTILINE)
