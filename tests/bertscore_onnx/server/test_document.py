"""What docs/server.md and docs/serving.md show is what their commands print and their code does."""

import json
import re
import shlex
from argparse import ArgumentParser
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from bertscore_onnx.cli import app
from tests.support.documented import assert_same_form, assert_same_lines, code_blocks, commands
from tests.support.http_server import server_process, wait_until

pytestmark = pytest.mark.slow  # it starts servers

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
ADDRESS = "http://127.0.0.1:8080"
SHOWN = [command for command in commands(DOCS / "server.md") if command.output]
[SERVE] = [command for command in SHOWN if command.line.startswith("bertscore-onnx serve ")]
[PAIRS] = [command for command in SHOWN if command.line == "cat pairs.ndjson"]
CURLS = [command for command in SHOWN if command.line.startswith("curl ")]


@pytest.fixture(scope="module")
def server(minilm_bundle):
    """The server of the page's command: a client of it, and the lines it logs."""
    line = SERVE.line.replace("path/to/bundle", str(minilm_bundle)).replace("examples/", f"{ROOT}/examples/")
    with server_process(*shlex.split(line)[2:]) as (_, client, lines):
        yield client, lines


def curl(client: httpx.Client, line: str) -> str:
    """Do what `curl` would: its options that the page uses, and no others."""
    parser = ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("-H", dest="headers", action="append", default=[])
    parser.add_argument("-d", dest="data")
    parser.add_argument("-T", dest="file", choices=[PAIRS.line.split()[1]])
    parser.add_argument("-X", dest="method", choices=["POST"])
    asked = parser.parse_args(shlex.split(line)[1:])
    assert asked.address.startswith(ADDRESS)
    headers = dict(header.split(": ") for header in asked.headers)
    content = f"{PAIRS.output}\n" if asked.file else asked.data
    return client.post(asked.address.removeprefix(ADDRESS), content=content, headers=headers).text


def test_every_shown_output_is_of_a_command_that_is_run():
    assert {SERVE, PAIRS, *CURLS} == {*SHOWN}
    assert len(CURLS) >= 4


def test_the_server_starts_as_shown(server):
    _, lines = server
    start = next(line for line in lines if "Serving" in line)
    assert re.sub(r"\d+", "0", start).strip() == re.sub(r"\d+", "0", SERVE.output)


@pytest.mark.parametrize("command", CURLS, ids=lambda command: command.line.split()[1].rpartition("/")[2])
def test_requests_are_answered_as_shown(command, server):
    client, _ = server
    assert_same_lines(command.output, curl(client, command.line))


def test_requests_are_logged_as_shown(server, tiny_bundle):
    [block] = [block for block in code_blocks(DOCS / "server.md", "") if "request=" in block]
    text, shown = block.splitlines()
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
    assert_same_form(as_shown, fields_of_json)


def test_every_option_that_is_named_is_there():
    named = {*re.findall(r"`(--[a-z-]+)", (DOCS / "server.md").read_text(encoding="utf-8"))}
    known = CliRunner().invoke(app, ["serve", "--help"]).output
    assert {option for option in named if option not in known} == set()
    assert len(named) > 15


def test_the_code_of_serving_runs_as_shown(tiny_bundle, capsys):
    [block] = code_blocks(DOCS / "serving.md", "python")
    names = {}
    exec(block.replace("path/to/bundle", str(tiny_bundle)), names)  # noqa: S102 -- the page's own code
    assert [len(names[name]) for name in "PRF"] == [1, 1, 1]
