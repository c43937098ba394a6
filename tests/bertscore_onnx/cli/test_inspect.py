import json
import re
import shutil

import msgspec
import onnx
import pytest

from bertscore_onnx.bundle.bundle import read_manifest
from tests.support.manifests import seal


def test_shows_the_manifest_and_recomputes_the_golden_scores(run, tiny_bundle):
    result = run("inspect", tiny_bundle, "--device", "cpu")
    shown = dict(line.split("  ", 1) for line in result.stdout.splitlines() if "  " in line)
    assert {
        name: shown[name].strip()
        for name in ("path", "model", "layer", "family", "max length", "baselines")
    } == {
        "path": str(tiny_bundle),
        "model": "tiny-bert",
        "layer": "2",
        "family": "bert",
        "max length": "32 tokens",
        "baselines": "-",
    }
    manifest = read_manifest(tiny_bundle)
    assert (
        f"fp32; exported within {manifest.golden_difference:.1e} of PyTorch's scores"
        in shown["precision"]
    )
    assert f"sha256 {manifest.files['model.onnx']}, as exported" in result.stdout
    assert re.match(r"Ready: 8 golden pairs within \S+ on CPUExecutionProvider\n", result.stdout)
    assert result.exit_code == 0


def test_checks_the_scoring_graph(run, run_json, scoring_bundle):
    manifest = read_manifest(scoring_bundle)
    result = run("inspect", scoring_bundle, "--device", "cpu")
    shown = (
        f"precision, recall, f1; exported within {manifest.scoring_difference:.1e} of its scores\n"
    )
    assert (result.exit_code, shown in result.stdout) == (0, True)
    assert (
        f"gives other ids for {manifest.slow_differences.num_different} of 61 texts\n"
        in result.stdout
    )
    assert "the scoring graph's scores within " in result.stdout.splitlines()[0]
    golden = run_json("inspect", scoring_bundle, "--device", "cpu")["golden"]
    assert 0 <= golden["scoring_graph_difference"] <= 1e-6


def test_a_scoring_graph_of_other_scores_exits_2(run, scoring_bundle, tmp_path):
    bundle = shutil.copytree(scoring_bundle, tmp_path / "bundle")
    graph = onnx.load(bundle / "scoring.onnx", load_external_data=False)
    outputs = {node.output[0]: node for node in graph.graph.node}
    outputs["precision"].output[0], outputs["recall"].output[0] = "recall", "precision"
    onnx.save(graph, bundle / "scoring.onnx")
    result = run("inspect", seal(bundle), "--device", "cpu")
    assert result.exit_code == 2
    assert f"The scores of the scoring graph of {bundle} differ by " in result.stderr


def test_takes_a_model_by_its_name(run, installed_bundle):
    lines = run("inspect", "tiny-bert").stdout.splitlines()
    assert ["path", str(installed_bundle)] in [line.split() for line in lines]


def test_json_holds_the_manifest_and_the_difference(run_json, tiny_bundle):
    result = run_json("inspect", tiny_bundle, "--device", "cpu")
    assert result["path"] == str(tiny_bundle)
    assert result["manifest"] == json.loads((tiny_bundle / "bertscore.json").read_bytes())
    assert 0 <= result["golden"].pop("largest_difference") <= 1e-5
    assert result["golden"] == {"tolerance": 1e-5, "provider": "CPUExecutionProvider"}


@pytest.mark.parametrize(
    ("is_golden", "options", "message"),
    [
        (True, [], "differ by 2.5e-01 on CPUExecutionProvider; at most 1e-05 is expected"),
        (True, ["--format", "json"], "differ by 2.5e-01 on CPUExecutionProvider"),
        (False, [], "The bundle has no golden scores"),
    ],
)
def test_other_golden_scores_or_none_exit_2_after_the_report(
    run, installed_bundle, is_golden, options, message
):
    manifest = read_manifest(installed_bundle)
    first = msgspec.structs.replace(manifest.golden[0], f1=[manifest.golden[0].f1[0] - 0.25])
    golden = [first, *manifest.golden[1:]] if is_golden else []
    result = run("inspect", seal(installed_bundle, golden=golden), "--device", "cpu", *options)
    assert result.exit_code == 2
    assert "tiny-bert" in result.stdout
    assert result.stderr.startswith("Error: ")
    assert message in result.stderr
