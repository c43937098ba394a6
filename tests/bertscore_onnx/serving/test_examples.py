"""The examples of docs/serving.md run as they stand."""

import asyncio
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import httpx
import numpy as np
import onnxruntime
import pytest
from thread_pool import score_pairs
from triton_repository import write_repository
from typer.testing import CliRunner

from bertscore_onnx import BERTScorer
from bertscore_onnx.cli import app as command_line
from tests.support.fake_scorer import GUARD

pytestmark = pytest.mark.slow  # it starts servers

DOCUMENT = Path(__file__).parents[3] / "docs" / "serving.md"
CANDS = ["the cat sat on a mat", "a dog ran", "it is not a red house", "the tree"]
REFS = ["a cat sits on the mat", "the dog runs", "it was a blue house", "a tree"]
GUNICORN = [
    "gunicorn",
    "--bind=127.0.0.1:0",
    "--chdir=examples",
    "--workers=2",
    "--worker-class=gthread",
    "--threads=4",
]
TEXTS = {"candidates": CANDS, "references": REFS}


@pytest.fixture(scope="module")
def expected(tiny_bundle):
    with BERTScorer(tiny_bundle) as scorer:
        return scorer.score(CANDS, REFS).F.tolist()


def test_every_example_of_the_document_is_tested():
    named = set(re.findall(r"examples/(\w+)\.py", DOCUMENT.read_text(encoding="utf-8")))
    assert named == {"thread_pool", "fastapi_app", "gunicorn_app", "triton_repository"}


def test_a_thread_pool(tiny_bundle, expected):
    assert score_pairs(str(tiny_bundle), CANDS, REFS) == pytest.approx(expected, abs=1e-5)


def test_fastapi(tiny_bundle, expected, monkeypatch):
    from fastapi_app import app

    async def request():
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client,
        ):
            ready = await client.get("/ready")
            scored = await asyncio.gather(*(client.post("/score", json=TEXTS) for _ in range(8)))
            refused = await client.post("/score", json={"candidates": ["a"], "references": []})
        return ready, scored, refused

    monkeypatch.setenv("BERTSCORE_BUNDLE", str(tiny_bundle))
    ready, scored, refused = asyncio.run(request())
    assert ready.status_code == 200
    for answer in scored:
        assert answer.json()["F"] == pytest.approx(expected, abs=1e-5)
    assert refused.status_code == 422
    assert "1 candidates" in refused.json()["detail"]
    assert not app.state.batcher.ready


@pytest.fixture
def full_batcher(make_batcher, held):
    """A batcher whose queue is full, and stays so."""
    batcher = make_batcher(max_queue=1)
    held(batcher)
    batcher.submit(["a"], ["x"])
    return batcher


def test_fastapi_answers_a_full_queue_as_the_server_does(full_batcher):
    from fastapi_app import app

    async def post():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client:
            return await client.post("/score", json=TEXTS)

    app.state.batcher = full_batcher
    answer = asyncio.run(post())
    assert (answer.status_code, int(answer.headers["Retry-After"]) >= 1) == (429, True)


def test_gunicorn_answers_a_full_queue_as_the_server_does(tiny_bundle, full_batcher, monkeypatch):
    monkeypatch.setenv("BERTSCORE_BUNDLE", str(tiny_bundle))
    import gunicorn_app

    with monkeypatch.context() as patch, contextlib.closing(gunicorn_app.batcher):
        patch.setattr(gunicorn_app, "batcher", full_batcher)
        started = []
        environ = {"wsgi.input": io.BytesIO(json.dumps(TEXTS).encode())}
        [body] = gunicorn_app.application(environ, lambda *start: started.append(start))
    [(status, headers)] = started
    assert status == "429 Too Many Requests"
    assert int(dict(headers)["Retry-After"]) >= 1
    assert "1 requests are waiting" in json.loads(body)["error"]


@pytest.mark.skipif(find_spec("gunicorn") is None, reason="gunicorn runs on Unix only")
def test_gunicorn_without_preload(tiny_bundle, expected, pytestconfig):
    server = subprocess.Popen(
        [sys.executable, "-m", *GUNICORN, "gunicorn_app:application"],
        cwd=pytestconfig.rootpath,
        env={**os.environ, "BERTSCORE_BUNDLE": str(tiny_bundle)},
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        listening = next(line for line in server.stderr if "Listening at" in line)
        address = re.search(r"http://\S+", listening)[0]
        with httpx.Client(timeout=GUARD) as client, ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: client.post(address, json=TEXTS).json(), range(8)))
            refused = client.post(address, json={"candidates": ["a"], "references": []})
            malformed = client.post(address, content=b"{")
        server.terminate()
        errors = server.communicate(timeout=GUARD)[1]
    finally:
        server.kill()
        server.wait()
    for answer in answers:
        assert answer["F"] == pytest.approx(expected, abs=1e-5)
        assert answer["process"] != server.pid
    assert (refused.status_code, malformed.status_code) == (422, 400)
    assert (server.returncode, "Traceback" in errors) == (0, False)


def test_the_image_starts_a_server_that_exists(pytestconfig):
    """No engine builds it here; its instructions are read, and the command line takes its options."""
    lines = (pytestconfig.rootpath / "examples" / "Dockerfile").read_text(encoding="utf-8").splitlines()
    instructions = dict(line.split(" ", 1) for line in lines if line and not line.startswith("#"))
    assert instructions["FROM"].startswith("python:3.")
    assert re.fullmatch(r"[1-9]\d+:[1-9]\d+", instructions["USER"])  # by number: there is no such user
    command = json.loads(instructions["ENTRYPOINT"]) + json.loads(instructions["CMD"])
    assert command[:2] == ["bertscore-onnx", "serve"]
    options = {word for word in command if word.startswith("--")}
    help_text = CliRunner().invoke(command_line, ["serve", "--help"]).output
    assert options == {"--model", "--host", "--port", "--api-key-file"}
    assert all(option in help_text for option in options)
    check = json.loads(instructions["HEALTHCHECK"].partition("CMD ")[2])
    compile(check[2], "HEALTHCHECK", "exec")
    assert "/health/ready" in check[2]
    extras = re.search(r"\[(.+)\]", instructions["RUN"])[1].split(",")
    project = tomllib.loads((pytestconfig.rootpath / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {*extras} <= project["optional-dependencies"].keys()


def test_a_model_repository_of_triton_says_what_the_graph_takes(tiny_bundle, tmp_path):
    folder = write_repository(tiny_bundle, tmp_path)
    session = onnxruntime.InferenceSession(folder / "1" / "model.onnx", providers=["CPUExecutionProvider"])
    config = (folder / "config.pbtxt").read_text(encoding="utf-8")
    said = re.findall(r'name: "(\w+)" data_type: TYPE_(\w+) dims: \[ (.+?) \]', config)
    types = {"tensor(int64)": "INT64", "tensor(float)": "FP32"}
    graph = [
        (
            node.name,
            types[node.type],
            ", ".join("-1" if isinstance(size, str) else str(size) for size in node.shape[1:]),
        )
        for node in (*session.get_inputs(), *session.get_outputs())
    ]
    assert sorted(said) == sorted(graph)
    ids = np.full((2, 3), 5)
    assert session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids)})[0].shape == (2, 3, 32)
