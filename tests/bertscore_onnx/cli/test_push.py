"""`bertscore-onnx push`."""

VARIANT = "layer-2-slow-fp32"


def test_prints_the_name_to_load_it_by(run, hub, tiny_bundle, monkeypatch):
    hub.token = "right"  # noqa: S105 (of the test's hub)
    monkeypatch.setenv("HF_TOKEN", "right")
    result = run("push", tiny_bundle, "org/tiny", "--private")
    repository = hub.repositories["org/tiny"]
    assert (result.exit_code, result.stdout) == (0, f"hf://org/tiny@{repository.refs['main']}/{VARIANT}\n")
    assert repository.private


def test_takes_a_model_by_its_name(run, hub, installed_bundle, monkeypatch):
    hub.token = "right"  # noqa: S105 (of the test's hub)
    monkeypatch.setenv("HF_TOKEN", "right")
    assert run("push", "tiny-bert", "org/tiny").exit_code == 0
