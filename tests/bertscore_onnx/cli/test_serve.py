"""`bertscore-onnx serve`, as far as it does not serve; see tests/bertscore_onnx/server for the rest."""

import logging
import socket

import pytest

from bertscore_onnx import count_documents


@pytest.fixture(autouse=True)
def loggers_as_before(monkeypatch):
    for name in ("bertscore_onnx", "uvicorn"):
        for attribute, value in vars(logger := logging.getLogger(name)).items():
            if attribute in ("handlers", "level", "propagate"):
                monkeypatch.setattr(logger, attribute, value)


def test_the_extra_is_asked_for_where_it_is_missing(run_process):
    done = run_process("serve", "--model", "nothing", blocked=("starlette",))
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode() == (
        "Error: Serving needs starlette, which is not installed. Install it with "
        "`pip install 'bertscore-onnx[server,cpu]'`.\n"
    )


def test_the_command_line_does_without_the_extra(run_process):
    done = run_process("serve", "--help", blocked=("starlette", "uvicorn", "prometheus_client"))
    assert done.returncode == 0
    assert b"--api-key-file" in done.stdout


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])  # noqa: S104 -- it is refused
def test_others_are_not_let_in_without_keys(run, host):
    result = run("serve", "--model", "nothing", "--host", host)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--api-key-file" in result.stderr


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_this_machine_is_let_in_without_keys(run, tmp_path, host):
    result = run("serve", "--model", tmp_path / "nothing", "--host", host)
    assert result.exit_code == 1
    assert "There is no folder" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--idf", "zoo"], "--idf 'zoo' is not in the form NAME=FILE"),
        (["--idf", "zoo="], "--idf 'zoo=' is not in the form NAME=FILE"),
        (["--idf", "zoo=/does/not/exist"], "Cannot read '/does/not/exist'"),
        (["--api-key-file", "/does/not/exist"], "Cannot read the keys in /does/not/exist"),
        (["--drain", "0"], "drain is 0.0 seconds; expected more than 0"),
    ],
)
def test_wrong_settings_are_refused_before_a_model_is_loaded(run, arguments, told):
    result = run("serve", "--model", "nothing", *arguments)
    assert (result.exit_code, result.stdout) == (1, "")
    assert told in result.stderr


def test_a_bundle_of_another_precision_is_refused(run, tiny_bundle):
    result = run("serve", "--model", tiny_bundle, "--precision", "int8")
    assert result.exit_code == 1
    assert "is in fp32, and int8 was asked for" in result.stderr


def test_a_maximum_length_beyond_the_models_is_refused(run, tiny_bundle):
    result = run("serve", "--model", tiny_bundle, "--max-length", 33)
    assert result.exit_code == 1
    assert "--max-length is 33; tiny-bert takes 3 (2 special tokens" in result.stderr


def test_two_models_of_one_name_are_refused(run, tiny_bundle):
    result = run("serve", "--model", tiny_bundle, "--model", tiny_bundle)
    assert result.exit_code == 1
    assert f"Two models are called 'tiny-bert'. Give one another name: --model NAME={tiny_bundle}." in result.stderr


def test_a_port_that_is_taken_is_refused(run, tiny_bundle):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        result = run("serve", "--model", tiny_bundle, "--port", port)
    assert result.exit_code == 1
    assert f"Cannot listen on 127.0.0.1, port {port}" in result.stderr


def test_counts_of_another_tokenizer_are_refused(run, tiny_bundle, fast_bundle, tmp_path):
    count_documents(["the cat", "a dog"], fast_bundle).save(tmp_path / "counts.json")
    result = run("serve", "--model", tiny_bundle, "--idf", f"zoo={tmp_path / 'counts.json'}")
    assert result.exit_code == 1
    assert "The idf table 'zoo' does not fit the model 'tiny-bert'. The document counts are of" in result.stderr


def test_damaged_counts_are_refused(run, tiny_bundle, tmp_path):
    (tmp_path / "counts.json").write_text('{"format":"bertscore-onnx document counts 1","tokens":')
    result = run("serve", "--model", tiny_bundle, "--idf", f"zoo={tmp_path / 'counts.json'}")
    assert result.exit_code == 1
    assert "counts.json does not hold document counts" in result.stderr
