"""`bertscore-onnx doctor`."""

import json
import platform
import re
import shutil
from importlib.resources import files

import onnx
import pytest

from bertscore_onnx import __version__
from bertscore_onnx.bundle.store import Variant, bundle_folder
from bertscore_onnx.concurrency.cpus import CpuBound
from bertscore_onnx.errors import MissingExtraError


def test_a_machine_without_bundles_is_well(run, home):
    result = run("doctor")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "no bundle is installed; make one with `bertscore-onnx export --model roberta-large`" in result.stdout


def test_tells_versions_and_places(run, home):
    lines = dict(line.split(maxsplit=1) for line in run("doctor").stdout.splitlines())
    assert lines["bertscore-onnx"] == __version__
    assert lines["python"] == platform.python_version()
    assert lines["home"] == str(home)


def test_runs_a_matrix_product_on_every_provider(run, home):
    assert re.search(r"^provider +CPUExecutionProvider: works$", run("doctor").stdout, re.MULTILINE)


def test_a_provider_that_does_not_work_exits_1_after_the_report(run, home, monkeypatch):
    monkeypatch.setattr("bertscore_onnx.cli.doctor.try_providers", lambda: {"CUDAExecutionProvider": "no driver"})
    result = run("doctor")
    assert result.exit_code == 1
    assert "CUDAExecutionProvider: no driver" in result.stdout


def test_the_graph_is_the_product_of_two_matrices():
    value = onnx.helper.make_tensor_value_info
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("MatMul", ["a", "b"], ["product"])],
        "probe",
        [value("a", 1, ["rows", "inner"]), value("b", 1, ["inner", "columns"])],
        [value("product", 1, ["rows", "columns"])],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    assert files("bertscore_onnx.cli").joinpath("self_test.onnx").read_bytes() == model.SerializeToString()


def test_runs_a_bundle(run, installed_bundle):
    output = run("doctor").stdout
    assert f"{installed_bundle}: valid\n" in output
    assert f"8 golden pairs of {installed_bundle} on " in output
    assert re.search(
        r"^one pair +\d+\.\d ms optimized for throughput and \d+\.\d ms optimized for latency", output, re.MULTILINE
    )


def test_runs_a_bundle_of_all_layers(run, home, all_layers_bundle):
    shutil.copytree(all_layers_bundle, bundle_folder("tiny-bert", Variant(None)))
    result = run("doctor")
    assert (result.exit_code, result.stderr) == (0, "")
    assert re.search(r"^one pair +\d", result.stdout, re.MULTILINE)


def test_json_has_the_same_facts(run, installed_bundle):
    report = json.loads(run("doctor", "--json").stdout)
    assert report["bundles"] == [{"path": str(installed_bundle), "error": None}]
    assert report["trial"]["path"] == str(installed_bundle)
    assert report["trial"]["pairs"] == 8
    assert report["trial"]["error"] is None
    assert report["trial"]["pair_ms"].keys() == {"throughput", "latency"}
    assert min(report["trial"]["pair_ms"].values()) > 0
    assert report["usable_cpus"] >= 1


@pytest.mark.parametrize(
    ("value", "number", "source", "words"),
    [
        ("1", 1, "OMP_NUM_THREADS", "set by the environment variable OMP_NUM_THREADS"),
        ("", 2, "affinity", "all that this process may run on"),
    ],
)
def test_tells_the_usable_cpus_and_what_bounds_them(run, home, monkeypatch, value, number, source, words):
    monkeypatch.setattr("bertscore_onnx.concurrency.cpus.permitted_cpus", lambda: CpuBound(2, "affinity"))
    monkeypatch.setenv("OMP_NUM_THREADS", value)
    assert re.search(rf"^usable CPUs +{number}, {words}$", run("doctor").stdout, re.MULTILINE)
    report = json.loads(run("doctor", "--json").stdout)
    assert (report["usable_cpus"], report["usable_cpus_source"]) == (number, source)


def test_a_broken_bundle_exits_1_after_the_report(run, installed_bundle):
    (installed_bundle / "model.onnx").write_bytes(b"")
    result = run("doctor")
    assert result.exit_code == 1
    assert f"{installed_bundle}: {installed_bundle / 'model.onnx'} is not the file that was exported" in result.stdout
    assert result.stdout.splitlines()[-1] == "inference       not tried"


def test_a_run_that_fails_exits_1_after_the_report(run, installed_bundle, monkeypatch):
    monkeypatch.setattr("bertscore_onnx.scoring.golden.golden_difference", lambda pipeline: 0.5)
    result = run("doctor", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["trial"]["error"] == "the golden scores differ by 5.0e-01"


def test_missing_onnxruntime_exits_1_after_the_report(run, installed_bundle, monkeypatch):
    def fail():
        raise MissingExtraError("ONNX Runtime is not installed.")

    monkeypatch.setattr("bertscore_onnx.encoding.providers.load_onnxruntime", fail)
    result = run("doctor", "--json")
    report = json.loads(result.stdout)
    assert result.exit_code == 1
    assert report["onnxruntime_error"] == "ONNX Runtime is not installed."
    assert (report["providers"], report["trial"]) == ({}, None)


def test_a_user_without_a_home_folder_is_told_what_to_set(run, homeless):
    result = run("doctor")
    assert (result.exit_code, result.stderr) == (0, "")
    assert re.search(r"^home +none; set BERTSCORE_ONNX_HOME", result.stdout, re.MULTILINE)
    assert json.loads(run("doctor", "--json").stdout)["home"] is None
