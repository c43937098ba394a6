"""`bertscore-onnx inspect`."""

import json

import msgspec
import pytest

from bertscore_onnx.bundle.manifest import write_manifest
from bertscore_onnx.bundle.opening import read_manifest


def test_shows_the_manifest(run, tiny_bundle):
    lines = run("inspect", tiny_bundle).stdout.splitlines()
    shown = dict(line.split("  ", 1) for line in lines if "  " in line)
    assert {name: shown[name].strip() for name in ("path", "model", "layer", "family", "max length", "baselines")} == {
        "path": str(tiny_bundle),
        "model": "tiny-bert",
        "layer": "2",
        "family": "bert",
        "max length": "32 tokens",
        "baselines": "-",
    }


def test_shows_the_cost_of_the_precision(run, tiny_bundle):
    manifest = read_manifest(tiny_bundle)
    shown = f"precision       fp32; exported within {manifest.golden_difference:.1e} of PyTorch's scores\n"
    assert shown in run("inspect", tiny_bundle).stdout


def test_shows_the_digests(run, tiny_bundle):
    digest = read_manifest(tiny_bundle).files["model.onnx"]
    assert f"sha256 {digest}, as exported" in run("inspect", tiny_bundle).stdout


def test_recomputes_the_golden_scores(run, tiny_bundle):
    result = run("inspect", tiny_bundle, "--device", "cpu")
    assert result.exit_code == 0
    assert "\n8 golden pairs on CPUExecutionProvider: the largest difference is " in result.stdout


def test_takes_a_model_by_its_name(run, installed_bundle):
    assert f"path            {installed_bundle}\n" in run("inspect", "tiny-bert").stdout


def test_json_holds_the_manifest_and_the_difference(run, tiny_bundle):
    result = json.loads(run("inspect", tiny_bundle, "--json", "--device", "cpu").stdout)
    assert result["path"] == str(tiny_bundle)
    assert result["manifest"] == json.loads((tiny_bundle / "bertscore.json").read_bytes())
    assert 0 <= result["golden"].pop("largest_difference") <= 1e-5
    assert result["golden"] == {"tolerance": 1e-5, "provider": "CPUExecutionProvider"}


def test_a_changed_file_exits_1(run, installed_bundle):
    with (installed_bundle / "tokenizer.json").open("a") as file:
        file.write("\n")
    result = run("inspect", installed_bundle)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"Error: {installed_bundle / 'tokenizer.json'} is not the file that was exported")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_other_golden_scores_exit_1_after_the_report(run, installed_bundle, options):
    manifest = read_manifest(installed_bundle)
    first = msgspec.structs.replace(manifest.golden[0], f1=[manifest.golden[0].f1[0] - 0.25])
    write_manifest(installed_bundle, msgspec.structs.replace(manifest, golden=[first, *manifest.golden[1:]]))
    result = run("inspect", installed_bundle, "--device", "cpu", *options)
    assert result.exit_code == 1
    assert "tiny-bert" in result.stdout
    assert result.stderr == (
        f"Error: The golden scores of {installed_bundle} differ by 2.5e-01 on CPUExecutionProvider; at most 1e-05 is "
        "expected. Export the model again, or try another device with --device.\n"
    )


def test_a_bundle_without_golden_scores_exits_1_after_the_report(run, installed_bundle):
    manifest = read_manifest(installed_bundle)
    write_manifest(installed_bundle, msgspec.structs.replace(manifest, golden=[]))
    result = run("inspect", installed_bundle)
    assert result.exit_code == 1
    assert "tiny-bert" in result.stdout
    assert result.stderr == "Error: The bundle has no golden scores to be verified by. Export the model again.\n"


def test_a_folder_that_is_no_bundle_exits_1(run, tmp_path):
    result = run("inspect", tmp_path)
    assert result.exit_code == 1
    assert result.stderr == f"Error: {tmp_path} is no bundle: it has no bertscore.json.\n"
