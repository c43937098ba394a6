"""What docs/server.md shows is what its commands print."""

import json
import re
import shlex
from argparse import ArgumentParser

import httpx
import pytest
from typer.testing import CliRunner

from bertscore_onnx.cli import app
from tests.support.http_server import server_process, wait_until
from tests.support.snippets import ROOT, difference, snippets

pytestmark = pytest.mark.slow  # it starts servers

DOCS = ROOT / "docs"
ADDRESS = "http://127.0.0.1:8080"
SHOWN = [
    (line, shown)
    for one in snippets(DOCS / "server.md", "console")
    for line, shown in one.commands()
    if shown
]
[(SERVE, SERVES)] = [
    (line, shown) for line, shown in SHOWN if line.startswith("bertscore-onnx serve ")
]
CURLS = [(line.replace("\\\n", ""), shown) for line, shown in SHOWN if line.startswith("curl ")]


@pytest.fixture(scope="module")
def server(minilm_bundle):
    """The server of the page's command: a client of it, and the lines it logs."""
    line = SERVE.replace("path/to/bundle", str(minilm_bundle)).replace(
        "examples/", f"{ROOT}/examples/"
    )
    with server_process(*shlex.split(line)[2:]) as (_, client, lines):
        yield client, lines


def curl(client: httpx.Client, line: str) -> str:
    """Do what `curl` would: its options that the page uses, and no others."""
    parser = ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("-d", dest="data")
    asked = parser.parse_args(shlex.split(line)[1:])
    assert asked.address.startswith(ADDRESS)
    headers = dict(header.split(": ") for header in asked.headers)
    return client.post(
        asked.address.removeprefix(ADDRESS), content=asked.data, headers=headers
    ).text


def test_every_shown_output_is_of_a_command_that_is_run():
    assert len(SHOWN) == 1 + len(CURLS)
    assert len(CURLS) >= 3


def test_the_server_starts_as_shown(server):
    _, lines = server
    start = next(line for line in lines if "Serving" in line)
    assert re.sub(r"\d+", "0", start).strip() == re.sub(r"\d+", "0", SERVES).strip()


@pytest.mark.parametrize(
    ("line", "shown"), CURLS, ids=[f"{number}" for number in range(len(CURLS))]
)
def test_requests_are_answered_as_shown(line, shown, server):
    client, _ = server
    assert difference(shown, curl(client, line)) is None


def test_requests_are_logged_as_shown(server, tiny_bundle):
    [block] = snippets(DOCS / "server.md", "")
    text, shown = block.text.splitlines()
    client, lines = server
    body = {"pairs": [{"candidate": "a", "reference": "b"}]}
    request = client.post("/v1/score", json=body).headers["X-Request-Id"]
    wait_until(lambda: any(f"request={request}" in line for line in lines))

    def fields(line: str) -> list[str]:
        return [field.partition("=")[0] for field in line.split(" ")[2:]]

    scored = next(line for line in lines if f"request={request}" in line)
    assert fields(scored) == fields(text)
    with server_process("--model", str(tiny_bundle), "--log-format", "json") as (_, other, logged):
        other.post("/v1/score", json=body)
        wait_until(lambda: any("/v1/score" in line for line in logged))
    fields_of_json = json.loads(next(line for line in logged if "/v1/score" in line))
    as_shown = json.loads(shown)
    for name in ("time", "request", "client", "seconds", "model"):  # of the moment
        assert type(fields_of_json[name]) is type(as_shown[name])
        fields_of_json[name] = as_shown[name]
    assert [*fields_of_json.items()] == [*as_shown.items()]


def test_every_option_that_is_named_is_there():
    pages = [DOCS / "server.md", DOCS / "serve.md"]
    text = "".join(page.read_text(encoding="utf-8") for page in pages)
    named = {*re.findall(r"`(--[a-z-]+)", text)}
    known = CliRunner().invoke(app, ["serve", "--help"]).output
    assert {option for option in named if option not in known} == set()
    assert len(named) > 10
