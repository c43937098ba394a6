import pytest

from bertscore_onnx.bundle.store import Variant, bundle_folder

VARIANT = "layer-2-slow-fp32"


@pytest.fixture
def commit(hub, tiny_bundle):
    return hub.add("org/tiny", tiny_bundle, VARIANT)


def test_pull_prints_the_folder(run, hub, commit):
    result = run("pull", f"org/tiny@{commit}")
    folder = bundle_folder("tiny-bert", Variant(2))
    assert (result.exit_code, result.stdout) == (0, f"{folder}\n")
    assert f"bertscore-onnx score --model {folder}" in result.stderr
    assert "%" not in result.stderr  # no bar unless there is a terminal


def test_other_commands_take_names_on_the_hub(run, hub, commit, write):
    texts = write("texts.txt", "the cat sat\n")
    result = run("score", "-m", "hf://org/tiny", "-c", texts, "-r", texts, "--device", "cpu")
    assert result.exit_code == 0, result.stderr
    assert run("inspect", f"hf://org/tiny@{commit}/{VARIANT}", "--device", "cpu").exit_code == 0


def test_push_prints_the_name_to_load_it_by(run, hub, tiny_bundle, monkeypatch):
    hub.token = "right"  # noqa: S105 (of the test's hub)
    monkeypatch.setenv("HF_TOKEN", "right")
    result = run("push", tiny_bundle, "org/tiny", "--private")
    repository = hub.repositories["org/tiny"]
    assert (result.exit_code, result.stdout) == (
        0,
        f"hf://org/tiny@{repository.refs['main']}/{VARIANT}\n",
    )
    assert repository.private


def test_push_takes_a_model_by_its_name(run, hub, installed_bundle, monkeypatch):
    hub.token = "right"  # noqa: S105 (of the test's hub)
    monkeypatch.setenv("HF_TOKEN", "right")
    assert run("push", "tiny-bert", "org/tiny").exit_code == 0
