"""`bertscore-onnx inspect`."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest

from bertscore_onnx.bundle.bundle import read_manifest
from bertscore_onnx.bundle.manifest import write_manifest
from bertscore_onnx.bundle.store import file_digest


def test_shows_the_manifest_and_recomputes_the_golden_scores(run, tiny_bundle):
    result = run("inspect", tiny_bundle, "--device", "cpu")
    shown = dict(line.split("  ", 1) for line in result.stdout.splitlines() if "  " in line)
    assert {name: shown[name].strip() for name in ("path", "model", "layer", "family", "max length", "baselines")} == {
        "path": str(tiny_bundle),
        "model": "tiny-bert",
        "layer": "2",
        "family": "bert",
        "max length": "32 tokens",
        "baselines": "-",
    }
    manifest = read_manifest(tiny_bundle)
    assert f"fp32; exported within {manifest.golden_difference:.1e} of PyTorch's scores" in shown["precision"]
    assert f"sha256 {manifest.files['model.onnx']}, as exported" in result.stdout
    assert "\n8 golden pairs on CPUExecutionProvider: the largest difference is " in result.stdout
    assert result.exit_code == 0


def test_checks_the_scoring_graph(run, run_json, scoring_bundle):
    manifest = read_manifest(scoring_bundle)
    result = run("inspect", scoring_bundle, "--device", "cpu")
    shown = f"precision, recall, f1; exported within {manifest.scoring_difference:.1e} of its scores\n"
    assert (result.exit_code, shown in result.stdout) == (0, True)
    assert f"gives other ids for {manifest.slow_differences.num_different} of 61 texts\n" in result.stdout
    assert "\nThe scores of the scoring graph differ from these by " in result.stdout
    golden = run_json("inspect", scoring_bundle, "--device", "cpu")["golden"]
    assert 0 <= golden["scoring_graph_difference"] <= 1e-6


def test_a_scoring_graph_of_other_scores_exits_1(run, scoring_bundle, tmp_path):
    bundle = shutil.copytree(scoring_bundle, tmp_path / "bundle")
    graph = onnx.load(bundle / "scoring.onnx", load_external_data=False)
    outputs = {node.output[0]: node for node in graph.graph.node}
    outputs["precision"].output[0], outputs["recall"].output[0] = "recall", "precision"
    onnx.save(graph, bundle / "scoring.onnx")
    manifest = read_manifest(bundle)
    files = {**manifest.files, "scoring.onnx": file_digest(bundle / "scoring.onnx")}
    write_manifest(bundle, msgspec.structs.replace(manifest, files=files))
    result = run("inspect", bundle, "--device", "cpu")
    assert result.exit_code == 1
    assert f"The scores of the scoring graph of {bundle} differ by " in result.stderr


def test_takes_a_model_by_its_name(run, installed_bundle):
    assert f"path            {installed_bundle}\n" in run("inspect", "tiny-bert").stdout


def test_json_holds_the_manifest_and_the_difference(run_json, tiny_bundle):
    result = run_json("inspect", tiny_bundle, "--device", "cpu")
    assert result["path"] == str(tiny_bundle)
    assert result["manifest"] == json.loads((tiny_bundle / "bertscore.json").read_bytes())
    assert 0 <= result["golden"].pop("largest_difference") <= 1e-5
    assert result["golden"] == {"tolerance": 1e-5, "provider": "CPUExecutionProvider"}


def test_a_changed_file_exits_1(refused, installed_bundle):
    with (installed_bundle / "tokenizer.json").open("a") as file:
        file.write("\n")
    stderr = refused("inspect", installed_bundle)
    assert stderr.startswith(f"Error: {installed_bundle / 'tokenizer.json'} is not the file that was exported")


@pytest.mark.parametrize(
    ("is_golden", "options", "message"),
    [
        (True, [], "differ by 2.5e-01 on CPUExecutionProvider; at most 1e-05 is expected"),
        (True, ["--format", "json"], "differ by 2.5e-01 on CPUExecutionProvider"),
        (False, [], "The bundle has no golden scores"),
    ],
)
def test_other_golden_scores_or_none_exit_1_after_the_report(run, installed_bundle, is_golden, options, message):
    manifest = read_manifest(installed_bundle)
    first = msgspec.structs.replace(manifest.golden[0], f1=[manifest.golden[0].f1[0] - 0.25])
    golden = [first, *manifest.golden[1:]] if is_golden else []
    write_manifest(installed_bundle, msgspec.structs.replace(manifest, golden=golden))
    result = run("inspect", installed_bundle, "--device", "cpu", *options)
    assert result.exit_code == 1
    assert "tiny-bert" in result.stdout
    assert result.stderr.startswith("Error: ")
    assert message in result.stderr


def test_a_folder_that_is_no_bundle_exits_1(refused, tmp_path):
    assert f"Error: {tmp_path} is no bundle" in refused("inspect", tmp_path)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit the memory of a process")
@pytest.mark.slow  # it starts processes
class TestInAProcessOfItsOwn:
    @pytest.fixture
    def inspect(self, run_process):
        """Check a bundle within limits, so that no bundle takes long; return the status and both outputs."""

        def inspect(bundle, *options, seconds=3, memory=2_000_000_000):
            limits = f"i.CPU_SECONDS, i.MEMORY_BYTES = {seconds}, {memory}"
            setup = f"import bertscore_onnx.cli.inspect as i; {limits}; "
            done = run_process("inspect", bundle, "--isolate", *options, setup=setup)
            return done.returncode, done.stdout.decode(), done.stderr.decode()

        return inspect

    @pytest.fixture
    def with_graph(self, installed_bundle):
        """Return a function that gives the bundle another graph, which adds a number to its vectors."""

        def build(*nodes, initializers=()):
            ones = onnx.numpy_helper.from_array(np.ones((1, 32), np.float32), "ones")
            axis = onnx.numpy_helper.from_array(np.array([-1]), "axis")
            value = onnx.helper.make_tensor_value_info
            graph = onnx.helper.make_graph(
                [
                    onnx.helper.make_node("Mul", ["input_ids", "attention_mask"], ["ids"]),
                    onnx.helper.make_node("Cast", ["ids"], ["numbers"], to=1),
                    onnx.helper.make_node("Unsqueeze", ["numbers", "axis"], ["column"]),
                    onnx.helper.make_node("MatMul", ["column", "ones"], ["vectors"]),
                    *nodes,
                    onnx.helper.make_node("Add", ["vectors", "number"], ["token_embeddings"]),
                ],
                "graph",
                [value(name, 7, ["batch", "tokens"]) for name in ("input_ids", "attention_mask")],
                [value("token_embeddings", 1, ["batch", "tokens", 32])],
                [ones, axis, *initializers],
            )
            model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
            (installed_bundle / "model.onnx").write_bytes(model.SerializeToString())
            manifest = read_manifest(installed_bundle)
            files = {**manifest.files, "model.onnx": file_digest(installed_bundle / "model.onnx")}
            write_manifest(installed_bundle, msgspec.structs.replace(manifest, files=files))
            return installed_bundle

        return build

    def test_a_sound_bundle_is_shown_as_ever(self, inspect, run, tiny_bundle):
        assert inspect(tiny_bundle) == (0, run("inspect", tiny_bundle, "--device", "cpu").stdout, "")

    def test_a_bundle_that_is_refused_exits_1(self, inspect, installed_bundle):
        (installed_bundle / "model.onnx").write_bytes(b"")
        status, stdout, stderr = inspect(installed_bundle)
        assert (status, stdout) == (1, "")
        assert stderr.startswith(f"Error: {installed_bundle / 'model.onnx'} is not the file that was exported")

    @pytest.fixture
    def endless(self, with_graph):
        """A bundle whose graph never ends."""
        value, node = onnx.helper.make_tensor_value_info, onnx.helper.make_node
        body = onnx.helper.make_graph(
            [node("Identity", ["condition"], ["again"]), node("Add", ["before", "before"], ["after"])],
            "body",
            [value("step", 7, []), value("condition", 9, []), value("before", 1, [])],
            [value("again", 9, []), value("after", 1, [])],
        )
        start = node("ReduceSum", ["vectors"], ["start"], keepdims=0)
        times = onnx.numpy_helper.from_array(np.array(2**62), "times")
        return with_graph(start, node("Loop", ["times", "", "start"], ["number"], body=body), initializers=[times])

    def test_a_loop_without_end_is_ended(self, inspect, endless):
        status, stdout, stderr = inspect(endless, "--format", "json", seconds=2)
        assert (status, stdout) == (1, "")
        assert "was killed by SIGXCPU: it used more than 2 s of CPU time. Do not use this bundle." in stderr

    @pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGINT])
    def test_it_ends_with_its_parent(self, endless, ending):
        command = [sys.executable, "-m", "bertscore_onnx", "inspect", str(endless), "--isolate"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as parent:
            children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children")
            while not children.read_text():
                time.sleep(0.001)
            parent.send_signal(ending)
            try:
                parent.communicate(timeout=30)  # which waits until neither process has the pipe open
            finally:
                parent.kill()
        assert parent.returncode != 0

    def test_a_tensor_that_takes_more_memory_than_allowed_is_refused(self, inspect, with_graph):
        node = onnx.helper.make_node
        shape = onnx.numpy_helper.from_array(np.array([500_000_000]), "shape")
        large = node("ConstantOfShape", ["shape"], ["large"])
        bundle = with_graph(large, node("ReduceMax", ["large"], ["number"], keepdims=0), initializers=[shape])
        status, stdout, stderr = inspect(bundle, "--format", "json", memory=500_000_000)
        assert (status, stdout) == (1, "")
        # another thread may report its batch after that
        assert "\nError: CPUExecutionProvider has too little memory" in "\n" + stderr

    @pytest.mark.parametrize("arguments", [["--device", "cuda"], []])
    def test_other_devices_and_names_are_wrong_usage(self, refused, tiny_bundle, arguments):
        refused("inspect", tiny_bundle if arguments else "roberta-large", "--isolate", *arguments, status=2)
