import re
import shutil

import pytest

from bertscore_onnx.bundle.bundle import open_bundle
from bertscore_onnx.cli.export import stages

pytestmark = pytest.mark.slow  # it imports PyTorch


def test_prints_the_folder_and_the_stages(run, tiny_model, tmp_path):
    output = tmp_path / "my bundle"
    result = run(
        "export",
        "--model",
        tiny_model,
        "--num_layers",
        1,
        "--output",
        output,
        "--tokenizer_mode",
        "fast",
    )
    assert (result.exit_code, result.stdout) == (0, f"{output}\n")
    manifest = open_bundle(output).manifest
    assert (manifest.num_layers, manifest.tokenizer_mode) == (1, "fast")
    *stages, model, verified, tokenizer, size, hint = result.stderr.splitlines()
    assert [stage.partition(" ")[0] for stage in stages] == [
        "[1/5]",
        "[2/5]",
        "[3/5]",
        "[4/5]",
        "[5/5]",
    ]
    assert re.fullmatch(r"\[3/5\] Writing the graph \.\.\.  \d+\.\d s", stages[2])
    assert model == "Model: tiny-bert, layer 1, fp32, fast tokenizer"
    assert verified.startswith(
        f"Verified: P, R and F of 8 pairs differ from PyTorch's by {manifest.golden_difference:.1e}"
    )
    assert re.match(
        r"Tokenizer: ids other than the slow tokenizer's for \d+ of 61 texts", tokenizer
    )
    found = re.fullmatch(r"Bundle: (\d+\.\d) MB, exported in \d+\.\d s", size)
    assert float(found[1]) == pytest.approx(
        sum(file.stat().st_size for file in output.iterdir()) / 1e6, abs=0.051
    )
    assert hint == f"Score with it: bertscore-onnx score --model '{output}' -c FILE -r FILE"


@pytest.mark.parametrize(
    ("mode", "users"),
    [
        ("fast", "any programming language with ONNX Runtime"),
        ("slow", "for programming languages other than Python, export with --tokenizer-mode fast"),
    ],
)
def test_reports_who_can_use_the_scoring_graph(run, tiny_model, tmp_path, mode, users):
    output = tmp_path / "bundle"
    options = [
        "--model",
        tiny_model,
        "-l",
        1,
        "--scoring-graph",
        "--tokenizer-mode",
        mode,
        "--output",
        output,
    ]
    [line] = [
        line
        for line in run("export", *options).stderr.splitlines()
        if line.startswith("Scoring graph: ")
    ]
    difference = f"{open_bundle(output).manifest.scoring_difference:.1e}"
    assert line.startswith(
        f"Scoring graph: P, R and F differ from the encoder's by {difference} at most; {users}"
    )


def test_reports_the_first_texts_of_other_ids_than_the_slow_tokenizers(run, tmp_path):
    from tests.support.tiny_models import save_model_and_tokenizer

    # the slow tokenizer adds a space in front
    model = save_model_and_tokenizer("roberta", tmp_path / "roberta")
    result = run(
        "export",
        "--model",
        model,
        "-l",
        1,
        "--tokenizer-mode",
        "fast",
        "--output",
        tmp_path / "bundle",
    )
    [line] = [line for line in result.stderr.splitlines() if line.startswith("Tokenizer: ")]
    found = re.fullmatch(
        r"Tokenizer: ids other than the slow tokenizer's for (\d+) of 61 texts: (.*), \.\.\.", line
    )
    slow = open_bundle(tmp_path / "bundle").manifest.slow_differences
    assert int(found[1]) == slow.num_different > 30
    assert found[2].startswith(
        "'The cat sat on the mat.', 'A cat was sitting on the mat.', 'Profits rose by 12 % in "
        "the th'"
    )


def test_options_that_do_not_fit_are_wrong_usage(refused):
    message = "--no-inner-norm: it has no effect without --all-layers"
    assert message in refused("export", "--model", "roberta-large", "--no-inner-norm")


def test_force_replaces_a_bundle_and_nothing_else(
    run, refused, tiny_model, installed_bundle, write, tmp_path
):
    stderr = refused("export", "--model", tiny_model, "-l", 2)
    assert stderr.endswith(f"Error: {installed_bundle} already exists. Pass --force to replace it.")
    arguments = ["export", "--model", tiny_model, "-l", 1, "--force", "--output"]
    assert run(*arguments, installed_bundle).exit_code == 0
    assert open_bundle(installed_bundle).manifest.num_layers == 1
    keepsake = write("keepsake.txt", "mine")
    assert f"Error: {tmp_path} already exists and is not a bundle." in refused(*arguments, tmp_path)
    assert keepsake.read_text() == "mine"


def test_an_empty_folder_is_filled(run, tiny_model, tmp_path):
    result = run("export", "--model", tiny_model, "-l", 1, "--output", tmp_path)
    assert (result.exit_code, result.stdout) == (0, f"{tmp_path}\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-l", 9], "{} has 3 layers; num_layers must be from 0 to that, not 9."),
        ([], "No layer is known for this model, tiny-bert, which has"),
    ],
)
def test_errors_start_a_line(run, tiny_model, home, options, message):
    result = run("export", "--model", tiny_model, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert f"\nError: {message.format(tiny_model)}" in "\n" + result.stderr


def test_stages_are_printed_as_they_begin_and_none_without_any(capsys):
    with stages(2):
        pass
    assert capsys.readouterr().err == ""
    with stages(2) as begin:
        begin("Loading")
        assert capsys.readouterr().err == "[1/2] Loading ..."


def test_the_path_of_no_folder_is_refused_before_the_first_stage(run):
    result = run("export", "--model", "./absent", "--num-layers", 1)
    assert result.exit_code == 2
    assert "there is no such folder" in result.stderr
    assert "[1/5]" not in result.stderr


def test_a_folder_that_bears_the_name_of_another_model_is_refused_before_the_first_stage(
    run, tiny_model, tmp_path
):
    folder = shutil.copytree(tiny_model, tmp_path / "bert-base-uncased")
    for options in ([], ["-l", 1], ["--all-layers"], ["--name", "distilroberta-base"]):
        result = run("export", "--model", folder, *options)
        assert result.exit_code == 2
        assert (
            f"{options[1] if '--name' in options else folder.name} is a model of the catalogue"
            in result.stderr
        )
        assert "this one has type bert, layers 3, hidden size 32, vocabulary 30." in result.stderr
        assert "[1/5]" not in result.stderr
