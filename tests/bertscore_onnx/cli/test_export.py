"""`bertscore-onnx export`."""

import re
import shutil

import pytest

from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.cli.export import Stages

pytestmark = pytest.mark.slow  # it imports PyTorch


def test_prints_the_folder_and_the_stages(run, tiny_model, tmp_path):
    output = tmp_path / "my bundle"
    result = run("export", "--model", tiny_model, "--num_layers", 1, "--output", output, "--tokenizer_mode", "fast")
    assert (result.exit_code, result.stdout) == (0, f"{output}\n")
    manifest = open_bundle(output).manifest
    assert (manifest.num_layers, manifest.tokenizer_mode) == (1, "fast")
    *stages, model, verified, tokenizer, size, hint = result.stderr.splitlines()
    assert [stage.partition(" ")[0] for stage in stages] == ["[1/5]", "[2/5]", "[3/5]", "[4/5]", "[5/5]"]
    assert re.fullmatch(r"\[3/5\] Writing the graph \.\.\.  \d+\.\d s", stages[2])
    assert model == "Model: tiny-bert, layer 1, fp32, fast tokenizer"
    found = re.fullmatch(
        r"Verified: P, R and F of 8 pairs differ from PyTorch's by (\d\.\de-\d\d) at most; "
        r"the tokenizer matches on all edge-case texts",
        verified,
    )
    assert found[1] == f"{manifest.golden_difference:.1e}"
    assert re.match(r"Tokenizer: ids other than the slow tokenizer's for \d+ of 61 texts", tokenizer)
    found = re.fullmatch(r"Bundle: (\d+\.\d) MB, exported in \d+\.\d s", size)
    assert float(found[1]) == pytest.approx(sum(file.stat().st_size for file in output.iterdir()) / 1e6, abs=0.051)
    assert hint == f"Score with it: bertscore-onnx score --model '{output}' -c FILE -r FILE"


@pytest.mark.parametrize(
    ("mode", "users"),
    [
        ("fast", "any programming language with ONNX Runtime and Hugging Face's tokenizers can use it"),
        ("slow", "for programming languages other than Python, export with --tokenizer-mode fast"),
    ],
)
def test_tells_who_can_use_the_scoring_graph(run, tiny_model, tmp_path, mode, users):
    output = tmp_path / "bundle"
    options = ["--model", tiny_model, "-l", 1, "--scoring-graph", "--tokenizer-mode", mode, "--output", output]
    [line] = [line for line in run("export", *options).stderr.splitlines() if line.startswith("Scoring graph: ")]
    difference = f"{open_bundle(output).manifest.scoring_difference:.1e}"
    assert line == f"Scoring graph: P, R and F differ from the encoder's by {difference} at most; {users}"


def test_tells_the_first_texts_of_other_ids_than_the_slow_tokenizers(run, tmp_path):
    from tests.support.tiny_models import save_model_and_tokenizer

    model = save_model_and_tokenizer("roberta", tmp_path / "roberta")  # the slow tokenizer adds a space in front
    result = run("export", "--model", model, "-l", 1, "--tokenizer-mode", "fast", "--output", tmp_path / "bundle")
    [line] = [line for line in result.stderr.splitlines() if line.startswith("Tokenizer: ")]
    found = re.fullmatch(r"Tokenizer: ids other than the slow tokenizer's for (\d+) of 61 texts: (.*), \.\.\.", line)
    slow = open_bundle(tmp_path / "bundle").manifest.slow_differences
    assert int(found[1]) == slow.num_different > 30
    assert found[2].startswith(
        "'The cat sat on the mat.', 'A cat was sitting on the mat.', 'Profits rose by 12 % in the th'"
    )


def test_the_home_folder_is_the_default(run, tiny_model, home):
    result = run("export", "--model", tiny_model, "-l", 1)
    assert result.stdout == f"{home}/bundles/tiny-bert/layer-1-slow-fp32\n"


@pytest.mark.parametrize("precision", ["fp16", "int8"])
def test_a_precision_has_a_place_of_its_own(run, tiny_model, home, precision):
    result = run("export", "--model", tiny_model, "-l", 1, "--precision", precision)
    assert (result.exit_code, result.stdout) == (0, f"{home}/bundles/tiny-bert/layer-1-slow-{precision}\n")


def test_a_folder_whose_name_says_nothing_needs_another(run, tiny_model, tmp_path, home):
    folder = shutil.copytree(tiny_model, tmp_path / "model")
    result = run("export", "--model", folder, "-l", 1)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "--name" in result.stderr
    result = run("export", "--model", folder, "-l", 1, "--name", "acme/news")
    assert (result.exit_code, result.stdout) == (0, f"{home}/bundles/acme--news/layer-1-slow-fp32\n")


def test_an_unknown_precision_is_wrong_usage(run):
    result = run("export", "--model", "roberta-large", "--precision", "int4")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "'int4' is not one of 'fp32', 'fp16', 'int8'" in result.stderr


def test_a_bundle_that_is_there_is_kept(run, tiny_model, installed_bundle):
    result = run("export", "--model", tiny_model, "-l", 2)
    assert (result.exit_code, result.stdout) == (1, "")
    last = result.stderr.splitlines()[-1]
    assert last == f"Error: {installed_bundle} is there already. Pass --force to replace it."


def test_force_replaces_a_bundle(run, tiny_model, installed_bundle):
    result = run("export", "--model", tiny_model, "-l", 1, "--output", installed_bundle, "--force")
    assert result.exit_code == 0
    assert open_bundle(installed_bundle).manifest.num_layers == 1


def test_force_does_not_replace_what_is_no_bundle(run, tiny_model, write, tmp_path):
    keepsake = write("keepsake.txt", "mine")
    result = run("export", "--model", tiny_model, "-l", 1, "--output", tmp_path, "--force")
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1] == (
        f"Error: {tmp_path} is there already and is no bundle. Name a folder that is new or empty."
    )
    assert keepsake.read_text() == "mine"


def test_an_empty_folder_is_filled(run, tiny_model, tmp_path):
    result = run("export", "--model", tiny_model, "-l", 1, "--output", tmp_path)
    assert (result.exit_code, result.stdout) == (0, f"{tmp_path}\n")


def test_errors_start_a_line(run, tiny_model, tmp_path):
    result = run("export", "--model", tiny_model, "-l", 9, "--output", tmp_path / "bundle")
    assert (result.exit_code, result.stdout) == (1, "")
    last = result.stderr.splitlines()[-1]
    assert last == f"Error: {tiny_model} has 3 layers; --num-layers must be from 0 to that, not 9."


def test_a_missing_layer_exits_1(run, tiny_model, home):
    result = run("export", "--model", tiny_model)
    assert result.exit_code == 1
    assert "\nError: The catalogue has no layer for tiny-bert; choose one with --num-layers." in result.stderr


@pytest.mark.parametrize("package", ["torch", "transformers", "optimum", "onnx"])
def test_a_missing_package_is_answered_with_the_extra(run_process, package):
    result = run_process("export", "--model", "roberta-large", blocked=(package,))
    assert (result.returncode, result.stdout) == (1, b"")
    assert result.stderr.decode() == (
        f"Error: Exporting needs {package}, which is not installed, or not completely. Install it with "
        "`pip install 'bertscore-onnx[export,cpu]'`, or export in an environment of its own: "
        "`uvx --from 'bertscore-onnx[export,cpu]' bertscore-onnx export --model MODEL`; scoring does not need it.\n"
    )


def test_another_transformers_is_answered_with_an_environment_of_its_own(run_process, tmp_path, monkeypatch):
    installed = tmp_path / "transformers-5.1.0.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: transformers\nVersion: 5.1.0\n")
    monkeypatch.syspath_prepend(tmp_path)
    result = run_process("export", "--model", "roberta-large")
    assert (result.returncode, result.stdout) == (1, b"")
    assert result.stderr.decode() == (
        "Error: Exporting needs transformers 4, and 5.1.0 is installed. Export in an environment of its own: "
        "`uvx --from 'bertscore-onnx[export,cpu]' bertscore-onnx export --model MODEL`; scoring does not need it.\n"
    )


def test_a_part_of_a_package_that_is_missing_is_answered_with_the_extra(run_process):
    result = run_process(
        "export", "--model", "roberta-large", blocked=("transformers.utils.logging", "transformers.utils")
    )
    assert result.returncode == 1
    assert result.stderr.startswith(b"Error: Exporting needs transformers, which is not installed, or not completely.")


def test_other_missing_modules_are_not_taken_for_the_extra(run_process):
    result = run_process("export", "--model", "roberta-large", blocked=("bertscore_onnx_export.pipeline",))
    assert b"ModuleNotFoundError: import of bertscore_onnx_export.pipeline halted" in result.stderr


def test_an_unknown_tokenizer_mode_is_wrong_usage(run):
    result = run("export", "--model", "roberta-large", "--tokenizer-mode", "medium")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "'medium' is not one of 'slow', 'fast'" in result.stderr


def test_stages_are_told_as_they_begin(capsys):
    with Stages(2) as stages:
        stages.begin("Loading")
        assert capsys.readouterr().err == "[1/2] Loading ..."


def test_no_stage_says_nothing(capsys):
    with Stages(2):
        pass
    assert capsys.readouterr().err == ""
