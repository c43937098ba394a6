"""`bertscore-onnx serve`, as far as it does not serve; see tests/service/http for the rest."""

import socket

import pytest

from bertscore_onnx import count_documents

pytestmark = pytest.mark.usefixtures("loggers_as_before")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])  # noqa: S104 -- it is refused
def test_others_are_not_let_in_without_keys(refused, host):
    assert "--api-key-file" in refused("serve", "--model", "nothing", "--host", host)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_this_machine_is_let_in_without_keys(refused, tmp_path, host):
    assert "There is no folder" in refused("serve", "--model", tmp_path / "nothing", "--host", host)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--precision", "int8"], "is in fp32, and int8 was asked for"),
        (["--max-length", 33], "max_length is 33; tiny-bert takes 3 (2 special tokens"),
        (
            ["--model", "{bundle}"],
            "Two models are called 'tiny-bert'. Give one another name: --model NAME={bundle}.",
        ),
        (["--idf", "zoo={other}"], "The idf table 'zoo' does not fit the model 'tiny-bert'."),
        (["--idf", "zoo={damaged}"], "damaged.json does not hold document counts"),
    ],
)
def test_what_does_not_fit_the_model_is_refused(
    refused, write, tiny_bundle, fast_bundle, tmp_path, arguments, message
):
    files = {name: tmp_path / f"{name}.json" for name in ("other", "damaged")}
    count_documents(["the cat", "a dog"], fast_bundle).save(files["other"])
    write("damaged.json", '{"format":"bertscore-onnx document counts 1","tokens":')
    arguments = [str(argument).format(bundle=tiny_bundle, **files) for argument in arguments]
    assert message.format(bundle=tiny_bundle) in refused(
        "serve", "--model", tiny_bundle, *arguments
    )


def test_a_port_that_is_taken_is_refused(refused, tiny_bundle):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert f"Cannot listen on 127.0.0.1, port {port}" in refused(
            "serve", "--model", tiny_bundle, "--port", port
        )
